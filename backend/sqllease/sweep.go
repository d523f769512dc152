package sqllease

import (
	"context"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

const (
	// sweepStep is how many due lines a step that made a new one looks at: more than it
	// makes, so the tables cannot grow faster than they are swept.
	sweepStep = 4
	// sweepTurns is how many steps over a network make a new line before one looks.
	sweepTurns = 8
	// sweepBatch is how many due lines the janitor looks at in one transaction.
	sweepBatch = 64
	// A line that is in use is looked at again after as long as the last of its claims has been
	// there, within these bounds: what is held for hours costs a few writes.
	minRecheck, maxRecheck = time.Minute, time.Hour
)

// sweepSome looks at a few lines that are due. Where each statement is a round trip, one step
// of several does it for all.
func (s *step) sweepSome() error {
	limit := sweepStep
	if s.locks != nil {
		if s.d.fresh.Add(1)%sweepTurns != 0 {
			return nil
		}
		limit *= sweepTurns
	}
	_, err := s.sweep(limit)
	return err
}

// sweep looks at lines that are due: their dead are removed, and the line itself where
// it has been empty for long enough.
func (s *step) sweep(limit int) (int, error) {
	keys, err := s.keys(stDue, s.now, limit)
	if err != nil {
		return 0, err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool { return s.lines[key] != nil })
	if keys, err = s.free(keys); err != nil {
		return 0, err
	}
	if s.locks != nil && len(keys) > 0 {
		if err := s.foresee(keys, nil); err != nil {
			return 0, err
		}
	}
	for _, key := range keys {
		if err := s.sweepLine(key); err != nil {
			return 0, err
		}
	}
	return len(keys), nil
}

func (s *step) sweepLine(key string) error {
	l, err := s.look(key, driver.ID{})
	if err != nil {
		return err
	}
	if !l.sweepAt.Valid || l.sweepAt.Int64 > s.now { // another has been here meanwhile
		return nil
	}
	l.aside = true
	if err := s.bury(l); err != nil {
		return err
	}
	if l.deadLeft {
		return nil // due again at once
	}
	if key == RememberedKey {
		l.dirty = false // nobody holds there
		if !l.frontExpiry.Valid {
			return s.exec(stDropLine, []byte(key))
		}
		return s.keep(l, s.now+micros(minKeep))
	}
	if l.dirty {
		return s.handOver() // sets when the line is due, now that it has changed
	}
	if l.frontExpiry.Valid {
		been := s.now - l.last.Int64 // a number is the time it was given
		return s.keep(l, s.now+min(max(been, micros(minRecheck)), micros(maxRecheck)))
	}
	return s.exec(stDropLine, []byte(key))
}

// sweepAll sweeps batch by batch and says whether lines are left that will be due.
func (d *Driver) sweepAll(ctx context.Context) (left bool, err error) {
	for more := true; more && err == nil; {
		var n int
		n, err = transact(ctx, d, nil, func(t *tx) (int, error) {
			s := newStep(t)
			if _, err := s.look(checkKey, driver.ID{}); err != nil { // reads the clock
				return 0, err
			}
			n, err := s.sweep(sweepBatch)
			if err != nil {
				return 0, err
			}
			return n, s.finish()
		})
		more = n == sweepBatch
	}
	if err != nil {
		return false, err
	}
	keys, err := read(ctx, d, func(t *tx) ([]string, error) {
		return t.keys(stPage, []byte{}, []byte{}, Successor(""), 1)
	})
	return len(keys) > 0, err
}
