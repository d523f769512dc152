package sqllease

import (
	"context"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Pauses between two looks, apart from the dialect's own while a claim waits.
const (
	watchPause = 250 * time.Millisecond // a key is watched and nothing waits
	holdPause  = 500 * time.Millisecond // claims only hold: somebody may end them
	probePause = 100 * time.Millisecond // between two looks for dead processes
	findChunk  = 256                    // claims looked at in one transaction
)

// poller looks into the database for one client.
type poller struct {
	*Driver
	inbox   [6]byte
	deliver func(driver.Signal)

	pause    time.Duration // the last one
	unprobed time.Duration // since the last probe
	before   int           // how many waited before this client's claims then
	seen     int64         // the session's counter of changes
	gap      bool          // the last look failed
}

// rest waits until it is time to look, or for ever while there is nothing to look for.
// Being woken is no reason to look yet, but to look soon.
func (p *poller) rest(ctx context.Context) bool {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		p.ear.idle.Store(true) // before the claims are counted: none is missed
		pause := p.next()
		p.ear.idle.Store(pause == 0)
		if pause == 0 {
			pause = time.Hour
		}
		timer.Reset(pause)
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			p.unprobed += pause
			return ctx.Err() == nil
		case <-p.ear.wake:
			p.pause = 0
		}
	}
}

// next is the pause before the next look; 0: there is nothing to look for.
func (p *poller) next() time.Duration {
	waiting, holding := p.known.count()
	longest := time.Duration(0)
	switch {
	case waiting > 0:
		longest = p.dialect.PollMax
	case len(p.ear.keys()) > 0:
		longest = watchPause
	case holding > 0:
		p.pause = holdPause
		return holdPause
	}
	p.pause = min(max(2*p.pause, p.dialect.PollMin), longest)
	return p.pause
}

// poll looks once.
func (p *poller) poll(ctx context.Context) {
	keys := p.ear.keys()
	changed, marks, err := p.look(ctx, keys)
	if err != nil {
		p.gap = true
		return
	}
	if p.gap {
		p.gap = false
		p.deliver(driver.Signal{Kind: driver.Missed})
	}
	for i, key := range keys {
		for _, news := range p.ear.compare(key, marks[i]) {
			p.pause = 0
			p.deliver(news)
		}
	}
	if changed != p.seen {
		p.pause = 0
		if p.compare(ctx) {
			p.seen = changed
		}
	}
	p.probe(ctx)
}

// probe looks for dead processes, the less often the more wait before this client's
// claims: they look too, and see it sooner. So a crowd looks hardly more often than one.
func (p *poller) probe(ctx context.Context) {
	if p.dialect.Witness == nil || p.unprobed < time.Duration(1+p.before)*probePause {
		return
	}
	p.unprobed, p.before = 0, 0
	lines := p.known.lines(maxProbedLines)
	if len(lines) == 0 {
		return
	}
	buried, before := p.buryProcesses(ctx, lines)
	p.before = before
	if buried {
		p.pause, p.before = 0, 0
	}
}

// look reads the counter of changes and the watched lines.
func (p *poller) look(ctx context.Context, keys []string) (changed int64, marks []mark, err error) {
	type seen struct {
		changed int64
		marks   []mark
	}
	s, err := read(ctx, p.Driver, func(t *tx) (seen, error) {
		var s seen
		if err := t.row(stChanged, []any{p.inbox[:]}, &s.changed); err != nil {
			return s, err
		}
		for _, key := range keys {
			var m mark
			if err := t.row(stMark, []any{[]byte(key)}, &m.front, &m.newest, &m.holders, &m.last, &m.waited); err != nil {
				return s, err
			}
			s.marks = append(s.marks, m)
		}
		return s, nil
	})
	return s.changed, s.marks, err
}

// compare looks at every claim of this client, since something happened to one.
func (p *poller) compare(ctx context.Context) bool {
	for chunk := range slices.Chunk(p.known.all(p.inbox), findChunk) {
		found, err := read(ctx, p.Driver, func(t *tx) ([][]claim, error) {
			all := make([][]claim, len(chunk))
			for i, s := range chunk {
				rows, err := t.claims(stFind, s.id[:])
				if err != nil {
					return nil, err
				}
				all[i] = rows
			}
			return all, nil
		})
		if err != nil {
			p.gap = true
			return false
		}
		for i, s := range chunk {
			p.report(s, found[i])
		}
	}
	return true
}

// report tells what became of one claim.
func (p *poller) report(s stay, rows []claim) {
	news := driver.Signal{Key: s.keys[0], ID: s.id, Number: s.number}
	switch {
	case len(rows) == 0 || rows[0].remembered():
		if s.number == 0 { // its Join may still be under way
			return
		}
		news.Kind = driver.Ended
	case rows[0].revoked:
		news.Kind, news.Revoked = driver.Ended, true
	case rows[0].waiting && rows[0].keys > 1:
		news.Kind = driver.Turn
	case !rows[0].waiting:
		news.Kind = driver.Granted
	default:
		return
	}
	if len(rows) > 0 && !rows[0].remembered() {
		news.Number = rows[0].number
	}
	if p.known.news(stay{id: s.id, number: news.Number}, news.Kind, news.Revoked) {
		p.deliver(news)
	}
}
