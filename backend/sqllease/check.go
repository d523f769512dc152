package sqllease

import (
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Bounds of what a call may ask for.
const (
	maxName = 128
	maxLife = 10 * 365 * 24 * time.Hour
)

func checkJoin(j driver.Join) error {
	err := errors.Join(checkRef(j.Ref), checkLife(j.Life))
	if j.Weight < 1 || j.Weight > j.Capacity {
		err = errors.Join(err, fmt.Errorf("%w: weight %d does not fit the capacity %d", driver.ErrInvalid, j.Weight, j.Capacity))
	}
	if len(j.Name) > maxName {
		err = errors.Join(err, fmt.Errorf("%w: the name is longer than %d bytes", driver.ErrInvalid, maxName))
	}
	if j.MaxLine < 0 {
		err = errors.Join(err, fmt.Errorf("%w: MaxLine is negative", driver.ErrInvalid))
	}
	if !j.Try && j.Resume == nil && j.Life.Wait <= 0 {
		err = errors.Join(err, fmt.Errorf("%w: a claim that may wait needs a life for it", driver.ErrInvalid))
	}
	if j.Leaving != nil {
		err = errors.Join(err, checkRef(j.Leaving.Ref))
	}
	return err
}

func checkRenewal(r driver.Renewal) error {
	switch r.Mode {
	case driver.Drop:
		return checkRef(r.Ref)
	case driver.Extend, driver.Fix:
		return errors.Join(checkRef(r.Ref), checkLife(r.Life))
	}
	return fmt.Errorf("%w: no such mode of renewal: %v", driver.ErrInvalid, r.Mode)
}

func checkRef(r driver.Ref) error { return checkKeys(r.Keys) }

func checkKeys(keys []string) error {
	if len(keys) == 0 || len(keys) > maxKeys {
		return fmt.Errorf("%w: %d keys; a claim has 1 to %d", driver.ErrInvalid, len(keys), maxKeys)
	}
	for i, key := range keys {
		if key == "" || key[0] == 0 {
			return fmt.Errorf("%w: a key is empty or begins with NUL", driver.ErrInvalid)
		}
		if i > 0 && keys[i-1] >= key {
			return fmt.Errorf("%w: the keys are not sorted and distinct", driver.ErrInvalid)
		}
	}
	return nil
}

func checkLife(l driver.Life) error {
	if l.Hold <= 0 || l.Grace < 0 || l.Wait < 0 || max(l.Hold, l.Grace, l.Wait) > maxLife {
		return fmt.Errorf("%w: a life must be above 0 and below ten years", driver.ErrInvalid)
	}
	return nil
}
