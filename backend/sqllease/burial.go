package sqllease

import (
	"context"

	"github.com/hasp-dev/hasp/driver"
)

// maxFallen is how many lives are buried for each look at what has expired.
const maxFallen = 64

// buryFallen removes, beside the calls, what the lives that have expired have left.
func (d *Driver) buryFallen() {
	if d.burying.Swap(true) {
		return
	}
	if d.enter() != nil {
		d.burying.Store(false)
		return
	}
	go func() {
		defer d.calls.Done()
		defer d.burying.Store(false)
		d.buryLives(d.base)
	}()
}

// buryLives removes the claims of lives that have expired, a bounded number to a step,
// and then their rows.
func (d *Driver) buryLives(ctx context.Context) {
	for more := true; more; {
		fallen, err := read(ctx, d, func(t *tx) ([]sessionKey, error) { return t.fallenLives(maxFallen) })
		if err != nil {
			return // the next step that sees them tries again
		}
		more = false
		for _, k := range fallen {
			gone, err := d.buryLife(ctx, k)
			if err != nil {
				return
			}
			more = more || gone && len(fallen) == maxFallen
		}
	}
}

func (t *tx) fallenLives(limit int) ([]sessionKey, error) {
	var now int64
	if err := t.row(stClock, nil, &now); err != nil {
		return nil, err
	}
	rows, err := t.query(stFallenLives, now, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []sessionKey
	for rows.Next() {
		var k sessionKey
		var inbox []byte
		if err := rows.Scan(&inbox, &k.session); err != nil {
			return nil, err
		}
		copy(k.inbox[:], inbox)
		all = append(all, k)
	}
	return all, rows.Err()
}

// buryLife says whether nothing is left of a life.
func (d *Driver) buryLife(ctx context.Context, k sessionKey) (bool, error) {
	for {
		left, err := transact(ctx, d, nil, func(t *tx) (bool, error) { return newStep(t).buryLife(k) })
		if err != nil || !left {
			return err == nil, err
		}
	}
}

func (s *step) buryLife(k sessionKey) (left bool, err error) {
	if _, err := s.look(checkKey, driver.ID{}); err != nil { // reads the clock
		return false, err
	}
	dead, err := s.endLife(k)
	if err != nil || !dead {
		return false, err
	}
	s.note(k, true)
	rows, err := s.claims(stOwed, k.session, maxRemovals)
	if err != nil {
		return false, err
	}
	if err := s.removeDead(rows); err != nil {
		return false, err
	}
	if err := s.handOver(); err != nil {
		return false, err
	}
	return s.removals > 0 && len(rows) == maxRemovals, s.finish()
}
