package sqllease

import (
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// maxLife is the longest life; the database counts in µs.
const maxLife = 10 * 365 * 24 * time.Hour

func checkJoin(j driver.Join, longest int) error {
	if err := j.Validate(); err != nil {
		return err
	}
	if err := checkNames(j.Keys, longest); err != nil {
		return err
	}
	if j.Leaving != nil {
		if err := checkNames(j.Leaving.Keys, longest); err != nil {
			return err
		}
	}
	return checkLife(j.Life)
}

func checkRenewal(r driver.Renewal, longest int) error {
	if err := r.Validate(); err != nil {
		return err
	}
	if err := checkNames(r.Keys, longest); err != nil || r.Mode == driver.Drop {
		return err
	}
	return checkLife(r.Life)
}

func checkKeys(keys []string, longest int) error {
	if err := driver.ValidateKeys(keys); err != nil {
		return err
	}
	return checkNames(keys, longest)
}

// checkNames refuses a name that could be taken for the line of the remembered IDs: of
// sorted keys it would be the first. And, where there is a longest key, longer ones.
func checkNames(keys []string, longest int) error {
	if keys[0][0] == 0 {
		return fmt.Errorf("%w: a key begins with NUL", driver.ErrInvalid)
	}
	for _, key := range keys {
		if longest > 0 && len(key) > longest {
			return fmt.Errorf("%w: a key of %d bytes; this database takes %d", driver.ErrInvalid, len(key), longest)
		}
	}
	return nil
}

func checkLife(l driver.Life) error {
	if max(l.Hold, l.Grace, l.Wait) > maxLife {
		return fmt.Errorf("%w: a life is longer than %v", driver.ErrInvalid, maxLife)
	}
	return nil
}
