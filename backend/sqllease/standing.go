package sqllease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// standing answers how a claim stands; rows are its places, as they are now.
func (s *step) standing(rows []claim) (driver.Standing, error) {
	c := rows[0]
	st := driver.Standing{State: driver.Holding, Number: c.number, Life: s.lives(c), More: s.capped()}
	if c.waiting {
		st.State = driver.Waiting
	}
	for _, r := range rows {
		l := s.lines[r.key]
		if err := s.behind(&st, l, r); err != nil {
			return driver.Standing{}, err
		}
		if !c.waiting {
			continue
		}
		if err := s.inTheWay(&st, l, r); err != nil {
			return driver.Standing{}, err
		}
	}
	if c.waiting {
		st.LookAgain = max(st.LookAgain, time.Millisecond)
	}
	return st, nil
}

func (s *step) behind(st *driver.Standing, l *line, c claim) error {
	switch {
	case st.Behind || !l.firstWaiting.Valid:
		return nil
	case !c.waiting:
		st.Behind = true
		return nil
	}
	n, err := s.count(stBehind, []byte(l.key), c.number)
	st.Behind = n > 0
	return err
}

// lockedPause is when to look again at a line whose dead are kept by another's lock.
const lockedPause = 50 * time.Millisecond

// inTheWay adds what one line says of a waiting claim.
func (s *step) inTheWay(st *driver.Standing, l *line, c claim) error {
	a, err := s.before(l, c.number)
	if err != nil {
		return err
	}
	st.Ahead = max(st.Ahead, a.count)
	if a.count == 0 {
		return nil
	}
	again := duration(a.front.gone(c.weight, c.capacity)-s.now) + s.d.dialect.Grain
	if again <= s.d.dialect.Grain { // dead, and kept by another's lock
		again = lockedPause
	}
	st.LookAgain = max(st.LookAgain, again)
	return s.holder(st, l.key, c.id)
}

// before counts the claims before a number and sums up the nearest to the front. Claims
// of one transaction that ask in rising order share the work.
func (s *step) before(l *line, number int64) (ahead, error) {
	a := l.ahead
	if a.below == 0 || a.below > number {
		h, err := s.held(l.key)
		if err != nil {
			return ahead{}, err
		}
		a = ahead{below: 1, count: h.count, holders: h}
	}
	more, err := s.count(stAhead, []byte(l.key), a.below-1, number)
	if err != nil {
		return ahead{}, err
	}
	a.below, a.count = number, a.count+int(more)
	if !a.full && more > 0 {
		front, err := s.group(stNear, []byte(l.key), number, lookAhead)
		if err != nil {
			return ahead{}, err
		}
		a.front, a.full = a.holders.and(front), front.count == lookAhead
	} else if a.front.count == 0 {
		a.front = a.holders
	}
	l.ahead = a
	return a, nil
}

// holder names the first holder of a line, if there is one beside the claim itself.
func (s *step) holder(st *driver.Standing, key string, self driver.ID) error {
	if st.Holder != "" || st.ExpiresIn > 0 {
		return nil
	}
	head, err := s.claims(stHead, []byte(key), 2)
	if err != nil {
		return err
	}
	for _, c := range head {
		if c.id != self && !c.waiting && c.expiresAt > s.now {
			st.Holder, st.ExpiresIn = c.name, duration(c.expiresAt-s.now)
			return nil
		}
	}
	return nil
}

// gone answers that a stay is not there, and who holds one of its keys by now.
func (s *step) gone(ref driver.Ref, revoked bool) (driver.Standing, error) {
	st := driver.Standing{State: driver.Gone, Number: ref.Number, Revoked: revoked}
	for _, key := range ref.Keys {
		l, err := s.look(key, driver.ID{})
		if err != nil {
			return driver.Standing{}, err
		}
		if !l.holders() {
			continue
		}
		if err := s.holder(&st, key, ref.ID); err != nil {
			return driver.Standing{}, err
		}
	}
	return st, nil
}

// refused answers that a claim did not enter, and who is in the way.
func (s *step) refused(j driver.Join) (driver.Standing, error) {
	st := driver.Standing{State: driver.Refused, More: s.capped()}
	for _, key := range j.Keys {
		l := s.lines[key]
		a, err := s.before(l, maxNumber)
		if err != nil {
			return driver.Standing{}, err
		}
		st.Ahead = max(st.Ahead, a.count)
		if a.count == 0 || (!l.firstWaiting.Valid && a.holders.admits(j.Weight, j.Capacity)) {
			continue
		}
		if err := s.holder(&st, key, j.ID); err != nil {
			return driver.Standing{}, err
		}
	}
	return st, nil
}

const maxNumber = 1<<63 - 1
