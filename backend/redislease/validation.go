package redislease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Bounds of this store, beyond those of every store.
const (
	maxCapacity = 1 << 48 // sums of weights stay exact in Lua
	maxLife     = 400 * 24 * time.Hour
)

func checkKeys(keys ...string) error { return named(driver.ValidateKeys(keys)) }

func checkLife(l driver.Life) error {
	if max(l.Hold, l.Grace, l.Wait) > maxLife {
		return invalid("a life is longer than %v: hold %v, grace %v, wait %v", maxLife, l.Hold, l.Grace, l.Wait)
	}
	return nil
}

func checkJoin(j *driver.Join) error {
	if err := j.Validate(); err != nil {
		return named(err)
	}
	if j.Capacity > maxCapacity {
		return invalid("the capacity %d is above %d", j.Capacity, int64(maxCapacity))
	}
	return checkLife(j.Life)
}

func checkRenewal(r *driver.Renewal) error {
	if err := r.Validate(); err != nil || r.Mode == driver.Drop {
		return named(err)
	}
	return checkLife(r.Life)
}

// millis rounds a life up to what Redis counts in.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
