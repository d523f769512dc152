package redislease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

const (
	maxKeys     = 64  // of one claim
	maxName     = 128 // bytes
	maxLimit    = 1000
	maxCapacity = 1 << 48 // sums of weights stay exact in Lua
	maxLife     = 400 * 24 * time.Hour
)

func checkKeys(keys []string) error {
	if len(keys) == 0 || len(keys) > maxKeys {
		return invalid("a claim has 1 to %d keys, not %d", maxKeys, len(keys))
	}
	for i, key := range keys {
		if key == "" {
			return invalid("a key is empty")
		}
		if i > 0 && key <= keys[i-1] {
			return invalid("keys are not sorted and distinct: %q after %q", key, keys[i-1])
		}
	}
	return nil
}

// checkLife wants a life for a waiting claim only where one may begin to wait.
func checkLife(life driver.Life, waits bool) error {
	if life.Hold <= 0 || life.Grace < 0 || life.Wait < 0 || waits && life.Wait == 0 ||
		life.Hold > maxLife || life.Grace > maxLife || life.Wait > maxLife {
		return invalid("life: hold %v, grace %v, wait %v", life.Hold, life.Grace, life.Wait)
	}
	return nil
}

func checkJoin(j *driver.Join) error {
	if err := checkKeys(j.Keys); err != nil {
		return err
	}
	if j.Weight < 1 || j.Weight > j.Capacity || j.Capacity > maxCapacity {
		return invalid("weight %d is not from 1 to the capacity %d, at most %d", j.Weight, j.Capacity, int64(maxCapacity))
	}
	if len(j.Name) > maxName {
		return invalid("the name has %d bytes, more than %d", len(j.Name), maxName)
	}
	if j.MaxLine < 0 {
		return invalid("max line %d is negative", j.MaxLine)
	}
	if j.Leaving != nil {
		if err := checkKeys(j.Leaving.Keys); err != nil {
			return err
		}
	}
	return checkLife(j.Life, !j.Try && j.Resume == nil)
}

func checkRenewal(r *driver.Renewal) error {
	if err := checkKeys(r.Keys); err != nil {
		return err
	}
	switch r.Mode {
	case driver.Extend, driver.Fix:
		return checkLife(r.Life, false)
	case driver.Drop:
		return nil
	}
	return invalid("mode %v", r.Mode)
}

// millis rounds a life up to what Redis counts in.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
