package sqllease

import (
	"context"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// minePage is how many places of claims are read at once.
const minePage = 1000

// renewLives answers the items whose claims live by a life: its row renews them all, and
// only where it says that something happened to one are they looked at. What is left is
// to be done one by one.
func (d *Driver) renewLives(ctx context.Context, items []driver.Renewal, order []int, answer func(i int, s driver.Standing, err error)) []int {
	rolls, rest := d.roster.call(items, order)
	for _, g := range rolls {
		b, err := d.beat(ctx, g)
		if err == nil && b.alive && b.changed != g.seen {
			err = d.lookAtLife(ctx, g, b.changed)
		}
		if err == nil && !b.alive {
			d.roster.lose(g.life)
		}
		for _, i := range g.items {
			st, ok := d.roster.standing(g, items[i], b.left)
			switch {
			case err != nil:
				answer(i, driver.Standing{}, err)
			case ok:
				answer(i, st, nil)
			default:
				rest = append(rest, i)
			}
		}
	}
	return rest
}

// beat is what a renewal of a life has found.
type beat struct {
	alive   bool
	changed int64
	left    time.Duration // as it may be answered
}

// beat renews a life, and takes out of it whom nobody names any more.
func (d *Driver) beat(ctx context.Context, g *roll) (beat, error) {
	k := sessionKey{inbox: g.life.terms.inbox, session: g.life.number}
	lasts, unsaid := g.life.terms.lasts(d.dialect.Grain), g.life.terms.unsaid(d.dialect.Grain)
	locks := newLocks(nil)
	return Call(ctx, d.Client, true, func(ctx context.Context) (beat, error) {
		var late []parted
		done := false
		defer func() { d.roster.part(late, done) }()
		return once(ctx, d, locks, func(t *tx) (beat, error) {
			var now int64
			if err := t.row(stClock, nil, &now); err != nil {
				return beat{}, err
			}
			if late == nil { // else this is one more try
				late = d.roster.late(g, now+lasts)
			}
			if err := t.part(k, late); err != nil {
				return beat{}, err
			}
			if _, err := t.affect(stRenewLife, k.inbox[:], k.session, lasts); err != nil {
				return beat{}, err
			}
			p, err := t.pulse(k)
			t.after = append(t.after, func() {
				done = true
				d.roster.renewed(g, p.until)
			})
			return beat{alive: p.until > p.now, changed: p.changed, left: duration(p.until - unsaid - p.now)}, err
		})
	})
}

// part takes claims out of their life. One whose rows another transaction has locked, as a
// guard does, stays for now: the others must not wait for it.
func (t *tx) part(k sessionKey, late []parted) error {
	if t.locks != nil {
		return t.partTogether(k, late)
	}
	for i := range late {
		p := &late[i]
		_, free, err := t.places(p.id)
		if err != nil {
			return err
		}
		if p.kept = !free; p.kept {
			continue
		}
		if err := t.exec(stPart, p.id[:], k.session, p.until); err != nil {
			return err
		}
	}
	return nil
}

// partTogether does it in a few statements: claims that were named together would have
// expired together.
func (t *tx) partTogether(k sessionKey, late []parted) error {
	f := foresight{places: make(map[driver.ID][]claim)}
	ids := make([]driver.ID, len(late))
	for i, p := range late {
		ids[i] = p.id
	}
	if err := t.surveyPlaces(&f, ids); err != nil {
		return err
	}
	until := make(map[int64][][]byte)
	for i := range late {
		p := &late[i]
		rows, free := f.places[p.id]
		if p.kept = !free; len(rows) > 0 {
			until[p.until] = append(until[p.until], p.id[:])
		}
	}
	for end, which := range until {
		if err := t.exec(stPart, which, k.session, end); err != nil {
			return err
		}
	}
	return nil
}

// lookAtLife reads how the claims of a life are.
func (d *Driver) lookAtLife(ctx context.Context, g *roll, changed int64) error {
	before := d.roster.counted()
	found := make(map[driver.ID]sitter)
	last, number := "", int64(0)
	for more := true; more; {
		page, err := read(ctx, d, func(t *tx) ([]place, error) {
			return t.placesOfLife(g.life.number, []byte(last), number, minePage)
		})
		if err != nil {
			return err
		}
		for _, p := range page {
			last, number = p.key, p.number
			p.behind = p.behind || found[p.id].behind
			found[p.id] = p.sitter
		}
		more = len(page) == minePage
	}
	d.roster.saw(g, changed, found, before)
	return nil
}

// place is a claim in one of its lines.
type place struct {
	sitter
	id  driver.ID
	key string
}

func (t *tx) placesOfLife(args ...any) ([]place, error) {
	rows, err := t.query(stMine, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []place
	for rows.Next() {
		var p place
		var id, key []byte
		if err := rows.Scan(&id, &p.number, &key, &p.behind); err != nil {
			return nil, err
		}
		p.id, p.key = driver.ID(id), string(key)
		all = append(all, p)
	}
	return all, rows.Err()
}
