package sqllease

import (
	"context"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// End revokes, or with force removes, exactly the named stays of a key. More than one
// step may remove are taken in several.
func (d *Driver) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	if err := checkKeys([]string{key}); err != nil {
		return nil, d.explain(err, Fault{})
	}
	var found []int64
	for some := range slices.Chunk(slices.Clone(numbers), maxRemovals) {
		ended, err := transact(ctx, d, func(t *tx) ([]int64, error) {
			s := newStep(t)
			ended, err := s.end(key, some, force)
			if err != nil {
				return nil, err
			}
			return ended, s.finish()
		})
		found = append(found, ended...)
		if err != nil {
			return found, err
		}
	}
	return found, nil
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
	removed := force || c.waiting
	s.told = append(s.told, told{kind: driver.Ended, claim: c, revoked: !removed})
	if removed {
		return s.remove(c)
	}
	return s.exec(stRevoke, c.id[:])
}
