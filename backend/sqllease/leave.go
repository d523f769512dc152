package sqllease

import (
	"context"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// Leave takes a claim out of all its lines and hands over.
func (e steps) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	e.roster.depart(l.ID)
	return transact(ctx, e.Driver, linesOf(l), func(t *tx) (driver.Standing, error) { return t.leave(l) })
}

// linesOf are the lines a Leave touches.
func linesOf(l driver.Leaving) []string {
	keys := slices.Clone(l.Keys)
	if l.Unanswered && l.Remember > 0 {
		keys = append(keys, RememberedKey)
	}
	return keys
}

func (t *tx) leave(l driver.Leaving) (driver.Standing, error) {
	s := newStep(t)
	st, err := s.leave(l)
	if err != nil {
		return driver.Standing{}, err
	}
	st.More = s.capped()
	t.after = append(t.after, func() { t.d.roster.remove(l.ID) })
	return st, s.finish()
}

func (s *step) leave(l driver.Leaving) (driver.Standing, error) {
	rows, free, err := s.places(l.ID)
	if err != nil {
		return driver.Standing{}, err
	}
	if !free {
		return driver.Standing{}, errClaimLocked
	}
	if len(rows) == 0 || rows[0].remembered() {
		if err := s.open(l.Keys[:1], l.ID); err != nil { // reads the clock
			return driver.Standing{}, err
		}
		if err := s.handOver(); err != nil {
			return driver.Standing{}, err
		}
		if err := s.giveUp(l, rows); err != nil {
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
	if err := s.giveUp(l, nil); err != nil {
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
	s.touch(rows[0].id, rows[0].session)
	return s.exec(stDelete, rows[0].id[:])
}

// giveUp remembers an ID whose Join may still arrive.
func (s *step) giveUp(l driver.Leaving, before []claim) error {
	if !l.Unanswered || l.Remember <= 0 {
		return nil
	}
	until := s.now + micros(l.Remember) + micros(s.d.dialect.Grain)
	if len(before) > 0 {
		if before[0].expiresAt >= until {
			return nil
		}
		if err := s.exec(stDelete, l.ID[:]); err != nil {
			return err
		}
	}
	line, err := s.look(RememberedKey, driver.ID{})
	if err != nil {
		return err
	}
	if err := s.exec(stInsert, claim{
		key: RememberedKey, id: l.ID, keys: 1, weight: 1, capacity: 1, expiresAt: until, joinedAt: s.now, waiting: true,
	}.args()...); err != nil {
		return err
	}
	if !line.sweepAt.Valid {
		if err := s.save(line, until+micros(minKeep), 0); err != nil {
			return err
		}
	}
	return s.sweepSome()
}
