package sqllease

import (
	"context"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// Join asks once more where a dead process was in the way.
func (e steps) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	st, err := e.join(ctx, j)
	if err != nil || e.dialect.Witness == nil || (st.State != driver.Waiting && st.State != driver.Refused) {
		return st, err
	}
	if !e.worthAnother(ctx, j.Keys, st.State) {
		return st, nil
	}
	return e.join(ctx, j)
}

func (d *Driver) join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if err := d.openSession(ctx); err != nil {
		return driver.Standing{}, err
	}
	keys := slices.Clone(j.Keys)
	if j.Leaving != nil {
		d.roster.depart(j.Leaving.ID)
		keys = append(keys, linesOf(*j.Leaving)...)
	}
	st, err := transact(ctx, d, keys, func(t *tx) (driver.Standing, error) {
		if j.Leaving != nil {
			if _, err := t.leave(*j.Leaving); err != nil {
				return driver.Standing{}, err
			}
		}
		s := newStep(t)
		st, err := s.join(j)
		if err != nil {
			return driver.Standing{}, err
		}
		t.after = append(t.after, func() {
			d.Settle(j.Ref, st)
			if j.Resume != nil && st.State == driver.Holding {
				d.known.drop(j.Resume.ID)
				d.roster.remove(j.Resume.ID)
			}
		})
		return st, s.finish()
	})
	if err == nil {
		d.janitor.Expect()
	}
	return st, err
}

func (s *step) join(j driver.Join) (driver.Standing, error) {
	if err := s.open(j.Keys, j.ID); err != nil {
		return driver.Standing{}, err
	}
	if err := s.handOver(); err != nil {
		return driver.Standing{}, err
	}
	if s.lines[j.Keys[0]].known {
		rows, err := s.find(j.ID)
		if err != nil {
			return driver.Standing{}, err
		}
		switch {
		case len(rows) == 0: // it was among the dead
		case rows[0].remembered(), rows[0].revoked:
			return s.gone(j.Ref, rows[0].revoked)
		default:
			return s.extend(rows, j.Life, false)
		}
	}
	if err := s.keepSession(j.ID); err != nil {
		return driver.Standing{}, err
	}
	if j.Resume != nil {
		return s.resume(j)
	}
	return s.enter(j)
}

// find answers the places of a claim, or the one row of an ID that is remembered.
func (s *step) find(id driver.ID) ([]claim, error) {
	rows, free, err := s.places(id)
	s.mine = free
	if err != nil || len(rows) == 0 || rows[0].expiresAt > s.now || !rows[0].remembered() {
		return rows, err
	}
	if !free { // somebody is sweeping it away
		return nil, nil
	}
	return nil, s.exec(stDelete, id[:])
}

// enter puts a new claim behind everybody.
func (s *step) enter(j driver.Join) (driver.Standing, error) {
	holds, err := s.room(j)
	if err != nil {
		return driver.Standing{}, err
	}
	if !holds {
		full, err := s.full(j)
		if err != nil {
			return driver.Standing{}, err
		}
		if j.Try || full {
			return s.refused(j)
		}
	}
	c := s.newClaim(j, holds)
	rows := make([]claim, 0, len(j.Keys))
	for _, key := range j.Keys {
		c.key = key
		if err := s.place(s.lines[key], c); err != nil {
			return driver.Standing{}, err
		}
		rows = append(rows, c)
	}
	return s.standing(rows)
}

// room says whether a claim that entered now would hold in all its lines.
func (s *step) room(j driver.Join) (bool, error) {
	for _, key := range j.Keys {
		l := s.lines[key]
		if l.firstWaiting.Valid || l.deadLeft {
			return false, nil
		}
		if !l.holders() {
			continue
		}
		h, err := s.held(key)
		if err != nil || !h.admits(j.Weight, j.Capacity) {
			return false, err
		}
	}
	return true, nil
}

// full says whether as many as the claim allows wait already in one of its lines.
func (s *step) full(j driver.Join) (bool, error) {
	if j.MaxLine <= 0 {
		return false, nil
	}
	for _, key := range j.Keys {
		n, err := s.count(stCrowd, []byte(key), j.MaxLine)
		if err != nil || n >= int64(j.MaxLine) {
			return err == nil, err
		}
	}
	return false, nil
}

// newClaim numbers a claim: above every number of its lines, and not behind the clock.
func (s *step) newClaim(j driver.Join, holds bool) claim {
	number := s.now
	for _, key := range j.Keys {
		number = max(number, s.lines[key].last.Int64+1)
	}
	c := claim{
		number: number, id: j.ID, keys: len(j.Keys), weight: j.Weight, capacity: j.Capacity,
		joinedAt: s.now, hold: micros(j.Life.Hold), index: j.Index, waiting: !holds, own: j.Life.Own, name: j.Name,
	}
	c.expiresAt, c.grace = s.expiry(j.Life, c.waiting)
	return c
}

// place writes a claim into one line and the line's number.
func (s *step) place(l *line, c claim) error {
	if err := s.exec(stInsert, c.args()...); err != nil {
		return err
	}
	fresh := !l.last.Valid
	kept := keep(c.hold)
	needed := c.expiresAt + max(c.hold, 0) + kept
	if l.last.Int64, l.last.Valid = c.number, true; !fresh && l.sweepAt.Int64 >= needed {
		if err := s.exec(stNumbered, []byte(l.key), c.number, c.number*bit(c.waiting)); err != nil {
			return err
		}
	} else if err := s.save(l, needed+kept, c.number*bit(c.waiting)); err != nil {
		return err
	}
	if c.waiting && !l.firstWaiting.Valid {
		l.firstWaiting.Int64, l.firstWaiting.Valid = c.number, true
	}
	if !fresh {
		return nil
	}
	return s.sweepSome()
}

// resume gives the place of a holding claim to the one that asks.
func (s *step) resume(j driver.Join) (driver.Standing, error) {
	rows, err := s.find(j.Resume.ID)
	if err != nil {
		return driver.Standing{}, err
	}
	if len(rows) == 0 || rows[0].remembered() || rows[0].number != j.Resume.Number || rows[0].waiting || rows[0].revoked {
		return s.gone(j.Ref, false)
	}
	if err := s.open(placesOf(rows), driver.ID{}); err != nil {
		return driver.Standing{}, err
	}
	if err := s.handOver(); err != nil {
		return driver.Standing{}, err
	}
	if rows[0].expiresAt <= s.now {
		return s.gone(j.Ref, false)
	}
	if !s.mine {
		return driver.Standing{}, errClaimLocked
	}
	s.touch(rows[0].id, rows[0].session)
	expiresAt, grace := s.expiry(j.Life, false)
	for i := range rows {
		rows[i].id, rows[i].name, rows[i].index, rows[i].own, rows[i].fixed = j.ID, j.Name, j.Index, j.Life.Own, false
		rows[i].session = 0
		rows[i].expiresAt, rows[i].grace, rows[i].hold = expiresAt, grace, micros(j.Life.Hold)
	}
	c := rows[0]
	if err := s.exec(stTakeOver, j.Resume.ID[:], c.id[:], c.name, c.index, bit(c.own), c.expiresAt, c.grace, c.hold); err != nil {
		return driver.Standing{}, err
	}
	return s.standing(rows)
}

func placesOf(rows []claim) []string {
	keys := make([]string, len(rows))
	for i, r := range rows {
		keys[i] = r.key
	}
	return keys
}
