package sqllease

import (
	"context"

	"github.com/hasp-dev/hasp/driver"
)

// Leave takes a claim out of all its lines and hands over.
func (d *Driver) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	if err := checkRef(l.Ref); err != nil {
		return driver.Standing{}, d.explain(err, Fault{})
	}
	d.known.drop(l.ID)
	var capped []string
	st, err := transact(ctx, d, func(t *tx) (left, error) {
		st, more, err := t.leaveCapped(l)
		return left{standing: st, more: more}, err
	})
	for capped = st.more; err == nil && len(capped) > 0; {
		capped, _ = d.settle(ctx, capped) // the claim has left, whatever becomes of the others
	}
	return st.standing, err
}

// left is the answer to a Leave, with the lines the step could not finish.
type left struct {
	standing driver.Standing
	more     []string
}

func (t *tx) leave(l driver.Leaving) (driver.Standing, error) {
	st, _, err := t.leaveCapped(l)
	return st, err
}

func (t *tx) leaveCapped(l driver.Leaving) (driver.Standing, []string, error) {
	s := newStep(t)
	st, err := s.leave(l)
	if err != nil {
		return driver.Standing{}, nil, err
	}
	return st, s.unfinished(), s.finish()
}

func (s *step) leave(l driver.Leaving) (driver.Standing, error) {
	rows, err := s.claims(stFind, l.ID[:])
	if err != nil {
		return driver.Standing{}, err
	}
	if len(rows) == 0 || rows[0].remembered() {
		if err := s.open(l.Keys[:1], l.ID); err != nil { // reads the clock
			return driver.Standing{}, err
		}
		if err := s.handOver(); err != nil {
			return driver.Standing{}, err
		}
		if err := s.giveUp(l, len(rows) > 0); err != nil {
			return driver.Standing{}, err
		}
		return s.gone(l.Ref, false)
	}
	if err := s.open(placesOf(rows), l.ID); err != nil {
		return driver.Standing{}, err
	}
	alive := rows[0].expiresAt > s.now
	if alive {
		if err := s.take(rows); err != nil {
			return driver.Standing{}, err
		}
	}
	if err := s.handOver(); err != nil {
		return driver.Standing{}, err
	}
	if err := s.giveUp(l, false); err != nil {
		return driver.Standing{}, err
	}
	if !alive {
		return s.gone(l.Ref, false)
	}
	return driver.Standing{State: driver.Left, Number: rows[0].number}, nil
}

// take deletes a living claim and marks its lines.
func (s *step) take(rows []claim) error {
	for _, r := range rows {
		l := s.lines[r.key]
		l.dirty = true
		l.kept = max(l.kept, keep(r.hold))
	}
	return s.exec(stDelete, rows[0].id[:])
}

// giveUp remembers an ID whose Join may still arrive.
func (s *step) giveUp(l driver.Leaving, known bool) error {
	if !l.Unanswered || l.Remember <= 0 {
		return nil
	}
	if known {
		if err := s.exec(stDelete, l.ID[:]); err != nil {
			return err
		}
	}
	line, err := s.look(rememberedKey, driver.ID{})
	if err != nil {
		return err
	}
	until := s.now + micros(l.Remember) + micros(s.d.dialect.Grain)
	if err := s.exec(stInsert, claim{
		key: rememberedKey, id: l.ID, keys: 1, weight: 1, capacity: 1, expiresAt: until, joinedAt: s.now, waiting: true,
	}.args()...); err != nil {
		return err
	}
	if !line.sweepAt.Valid || line.sweepAt.Int64 <= s.now {
		if err := s.save(line, 0, until+micros(minKeep)); err != nil {
			return err
		}
	}
	return s.sweepSome()
}

// unfinished names the lines a capped step has left with work.
func (s *step) unfinished() []string {
	var keys []string
	for key, l := range s.lines {
		if (l.deadLeft || l.cut) && key != rememberedKey {
			keys = append(keys, key)
		}
	}
	return keys
}

// settle is a step without work of its own: it removes the dead of some lines and hands
// over. It answers the lines that still need one.
func (d *Driver) settle(ctx context.Context, keys []string) ([]string, error) {
	return transact(ctx, d, func(t *tx) ([]string, error) {
		s := newStep(t)
		for _, key := range keys {
			l, err := s.look(key, driver.ID{})
			if err != nil {
				return nil, err
			}
			l.dirty = true
			if err := s.bury(l); err != nil {
				return nil, err
			}
		}
		if err := s.handOver(); err != nil {
			return nil, err
		}
		return s.unfinished(), s.finish()
	})
}
