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
	lookLimit  = 5 * time.Second        // for a look: a connection may be silent for ever
	findChunk  = 256                    // claims looked at in one transaction
)

// poller looks into the database for one client.
type poller struct {
	*Client
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
	if p.ear.pushed.Load() && !p.ear.gap.Load() {
		waiting, holding = 0, 0
	}
	switch {
	case waiting > 0:
		longest = p.setup.PollMax
	case p.ear.watches():
		longest = watchPause
	case holding > 0:
		p.pause = holdPause
		return holdPause
	}
	p.pause = min(max(2*p.pause, p.setup.PollMin), longest)
	return p.pause
}

// poll looks once.
func (p *poller) poll(ctx context.Context) {
	ctx, stop := context.WithTimeout(ctx, lookLimit)
	defer stop()
	keys := p.ear.keys(p.setup.Marks)
	sight, err := p.steps.Look(ctx, Gaze{Inbox: p.inbox, Keys: keys})
	if err != nil {
		p.gap = true
		return
	}
	if p.gap {
		p.gap = false
		p.deliver(driver.Signal{Kind: driver.Missed})
	}
	for i, key := range keys {
		for _, news := range p.ear.compare(key, sight.Marks[i]) {
			p.pause = 0
			p.deliver(news)
		}
	}
	if sight.Changed != p.seen && (!p.ear.pushed.Load() || p.ear.gap.Load()) {
		p.pause = 0
		if !p.compare(ctx) {
			return
		}
		p.seen = sight.Changed
	}
	p.ear.gap.Store(false)
	p.probe(ctx)
}

// probe looks for dead processes, the less often the more wait before this client's
// claims: they look too, and see it sooner. So a crowd looks hardly more often than one.
func (p *poller) probe(ctx context.Context) {
	if p.setup.Probe == nil || p.unprobed < time.Duration(1+p.before)*probePause {
		return
	}
	p.unprobed, p.before = 0, 0
	lines := p.known.lines(maxProbedLines)
	if len(lines) == 0 {
		return
	}
	buried, before := p.setup.Probe(ctx, lines)
	p.before = before
	if buried {
		p.pause, p.before = 0, 0
	}
}

// compare looks at every claim of this client, since something happened to one.
func (p *poller) compare(ctx context.Context) bool {
	for chunk := range slices.Chunk(p.known.all(p.inbox), findChunk) {
		ids := make([]driver.ID, len(chunk))
		for i, s := range chunk {
			ids[i] = s.id
		}
		sight, err := p.steps.Look(ctx, Gaze{Inbox: p.inbox, IDs: ids})
		if err != nil {
			p.gap = true
			return false
		}
		for i, s := range chunk {
			p.report(s, sight.Found[i])
		}
	}
	return true
}

// report tells what became of one claim.
func (p *poller) report(s stay, f Found) {
	news := News{Key: s.keys[0], ID: s.id, Number: f.Number}
	switch {
	case f.Number == 0:
		if s.number == 0 { // its Join may still be under way
			return
		}
		news.Kind, news.Number = driver.Ended, s.number
	case f.Revoked:
		news.Kind, news.Revoked = driver.Ended, true
	case f.Waiting && f.Several:
		news.Kind = driver.Turn
	case !f.Waiting:
		news.Kind = driver.Granted
	default:
		return
	}
	p.Tell(news)
}
