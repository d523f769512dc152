package sqllease

import (
	"cmp"
	"context"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// End is one step on at most as many claims as it may remove.
func (e steps) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	return transact(ctx, e.Driver, []string{key}, func(t *tx) ([]int64, error) {
		s := newStep(t)
		ended, err := s.end(key, numbers, force)
		if err != nil {
			return nil, err
		}
		return ended, s.finish()
	})
}

func (s *step) end(key string, numbers []int64, force bool) ([]int64, error) {
	if err := s.open([]string{key}, driver.ID{}); err != nil {
		return nil, err
	}
	if err := s.handOver(); err != nil {
		return nil, err
	}
	var found []int64
	for _, number := range numbers {
		rows, err := s.claims(stNumber, []byte(key), number)
		if err != nil {
			return nil, err
		}
		for _, c := range rows {
			if c.expiresAt <= s.now || slices.Contains(found, number) {
				continue
			}
			found = append(found, number)
			if err := s.endOne(c, force); err != nil {
				return nil, err
			}
		}
	}
	return found, s.handOver()
}

func (s *step) endOne(c claim, force bool) error {
	if _, free, err := s.places(c.id); err != nil || !free {
		return cmp.Or(err, errClaimLocked)
	}
	removed := force || c.waiting
	s.told = append(s.told, told{kind: driver.Ended, claim: c, revoked: !removed})
	if removed {
		return s.remove(c)
	}
	until, err := s.settled(c)
	if err != nil {
		return err
	}
	return s.exec(stRevoke, c.id[:], until)
}
