package crew

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hasp-dev/hasp"
)

// job is one lock to be wanted, and what to do with it.
type job struct {
	keys             []string
	weight, capacity int64
	options          hasp.LockOptions
	patience         time.Duration // ends the call's context; 0: not
	hold             time.Duration
	forgets          bool // never releases
	acquire          func(context.Context, *hasp.Client) (*hasp.Lease, error)
}

const rwCapacity = 1 << 30

// job throws the dice for one.
func (w *worker) job(dice *rand.Rand) job {
	ttl := w.brief.TTL
	j := job{weight: 1, capacity: 1, hold: between(dice, 0, cmp.Or(w.brief.Hold, ttl/20)), options: hasp.LockOptions{TTL: ttl}}
	nth := dice.IntN(w.brief.Keys)
	switch kind := dice.IntN(100); {
	case kind < 40:
		j.useMutex(fmt.Sprint("mutex ", nth))
	case kind < 50:
		j.useMutex(fmt.Sprint("rw ", nth)) // a mutex on a read/write lock's key
	case kind < 70:
		j.useRead(fmt.Sprint("rw ", nth))
	case kind < 80:
		j.useSemaphore(dice, fmt.Sprint("permits ", nth))
	case kind < 90 && w.brief.Keys > 1:
		a, b := nth, dice.IntN(w.brief.Keys-1)
		if b >= a {
			b++
		}
		j.useMutex(fmt.Sprint("mutex ", a), fmt.Sprint("mutex ", b))
	default:
		j.useWrite(fmt.Sprint("rw ", nth))
	}
	switch how := dice.IntN(100); {
	case how < 20:
		j.options.Wait = hasp.NoWait
	case how < 40:
		j.options.Wait = between(dice, time.Millisecond, ttl)
	case how < 60:
		j.patience = between(dice, time.Millisecond, ttl)
	}
	if !w.brief.Breathes || dice.IntN(10) == 0 {
		// a fixed lease, held for about as long as it lives, or longer
		j.options.NoRenew = true
		if dice.IntN(3) == 0 {
			j.hold = ttl/2 + time.Duration(dice.Int64N(int64(ttl)))
			j.forgets = dice.IntN(4) == 0
		}
	} else if dice.IntN(25) == 0 {
		j.hold = ttl + time.Duration(dice.Int64N(int64(ttl)))
	}
	return j
}

func (j *job) useMutex(key string, more ...string) {
	j.keys = append([]string{key}, more...)
	j.acquire = func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) {
		return c.Mutex(key, more...).Lock(ctx)
	}
}

func (j *job) useRead(key string) {
	j.keys, j.capacity = []string{key}, rwCapacity
	j.acquire = func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) { return c.RWMutex(key).RLock(ctx) }
}

func (j *job) useWrite(key string) {
	j.keys, j.weight, j.capacity = []string{key}, rwCapacity, rwCapacity
	j.acquire = func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) { return c.RWMutex(key).Lock(ctx) }
}

// useSemaphore wants one or two of three or four permits: clients need not agree.
func (j *job) useSemaphore(dice *rand.Rand, key string) {
	of, n := 3+dice.IntN(2), 1+dice.IntN(2)
	j.keys, j.weight, j.capacity = []string{key}, int64(n), int64(of)
	j.acquire = func(ctx context.Context, c *hasp.Client) (*hasp.Lease, error) {
		return c.Semaphore(key, of).Acquire(ctx, n)
	}
}
