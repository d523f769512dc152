package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// client is one client of the store, as a case sees it.
type client struct {
	b      *bench
	d      driver.Driver
	name   string
	inbox  [6]byte
	claims int
	ear    *ear
}

// claim is a new claim of these keys: a mutex, with a life no case outlasts.
func (c *client) claim(keys ...string) *claim {
	c.b.mu.Lock()
	c.claims++
	n := c.claims
	c.b.mu.Unlock()
	x := &claim{c: c, b: c.b, label: fmt.Sprintf("%s%d", c.name, n)}
	x.Claim = driver.Claim{
		Ref:      driver.Ref{ID: c.id(), Keys: keys},
		Weight:   1,
		Capacity: 1,
		Name:     c.name,
	}
	return x.lives(200, 200)
}

// id is a new ID of this client.
func (c *client) id() driver.ID {
	var id driver.ID
	copy(id[:6], c.inbox[:])
	copy(id[6:], randomBytes(10))
	return id
}

func (c *client) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := c.ear.close()
	if e := c.d.Close(ctx); e != nil {
		err = errors.Join(err, fmt.Errorf("client %s: Close: %w", c.name, e))
	}
	return err
}

// answer is what Renew says of one item.
type answer struct {
	driver.Standing
	err error
}

// renew renews items and checks how they are answered: each exactly once, one at a
// time, and not after Renew has returned.
func (c *client) renew(ctx context.Context, items []driver.Renewal) []answer {
	b, got, count := c.b, make([]answer, len(items)), make([]int, len(items))
	var inside, over atomic.Bool
	if b.failed() {
		return got
	}
	begin := time.Now()
	c.d.Renew(ctx, items, func(i int, s driver.Standing, err error) {
		switch {
		case over.Load():
			b.fail("Renew called answer after it had returned")
			return
		case !inside.CompareAndSwap(false, true):
			b.fail("Renew called answer from two goroutines at a time")
			return
		case i < 0 || i >= len(items):
			b.fail("Renew answered item %d of %d", i, len(items))
		default:
			got[i], count[i] = answer{s, err}, count[i]+1
		}
		inside.Store(false)
	})
	over.Store(true)
	b.took(time.Since(begin))
	for i, n := range count {
		b.check(n == 1, "Renew answered item %d of %d %d times", i, len(items), n)
	}
	return got
}

// end revokes or forces claims and answers the numbers found.
func (c *client) end(key string, force bool, xs ...*claim) []int64 {
	numbers := make([]int64, len(xs))
	for i, x := range xs {
		numbers[i] = x.Number
	}
	return c.endNumbers(key, force, numbers...)
}

func (c *client) endNumbers(key string, force bool, numbers ...int64) []int64 {
	if c.b.failed() {
		return nil
	}
	begin := time.Now()
	found, err := c.d.(driver.Operator).End(c.b.ctx, key, numbers, force)
	c.b.took(time.Since(begin))
	c.b.note("%s ends %d of %q, force %v: found %d, %v", c.name, numbers, key, force, found, err)
	if err != nil {
		c.b.fail("End: %w", err)
	}
	return found
}
