package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

// party is one client below hasp: a driver, for what is asked of the store alone.
type party struct {
	*redislease.Driver
	rdb *redis.Client
}

func newParty(addr string) *party {
	rdb := connect(addr)
	return &party{redislease.New(rdb, nil), rdb}
}

func (p *party) close(ctx context.Context) error {
	return errors.Join(p.Close(ctx), p.rdb.Close())
}

// claims are n of a mutex each, or n readers of one key, by the keys that key answers.
func claims(n int, key func(i int) string) []driver.Claim {
	all := make([]driver.Claim, n)
	for i := range all {
		all[i] = driver.Claim{
			Ref: driver.Ref{Keys: []string{key(i)}}, Weight: 1, Capacity: 1, Name: "bench",
			Life: driver.Life{Hold: time.Minute, Wait: time.Minute},
		}
		_, _ = rand.Read(all[i].ID[:]) // never fails
	}
	return all
}

// atOnce is how many calls are under way when many are made.
const atOnce = 256

// each does something with every claim, in so many goroutines.
func each(goroutines int, all []driver.Claim, do func(c *driver.Claim) error) error {
	var wg sync.WaitGroup
	errs := make([]error, goroutines)
	for from := range goroutines {
		wg.Go(func() {
			for i := from; i < len(all) && errs[from] == nil; i += goroutines {
				errs[from] = do(&all[i])
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// join puts claims into their lines and insists on how they stand there.
func (p *party) join(ctx context.Context, all []driver.Claim, want driver.State) error {
	return p.joinBy(ctx, atOnce, all, want)
}

// joinBy does that in so many goroutines.
func (p *party) joinBy(ctx context.Context, goroutines int, all []driver.Claim, want driver.State) error {
	return each(goroutines, all, func(c *driver.Claim) error {
		s, err := p.Join(ctx, driver.Join{Claim: *c})
		c.Number = s.Number
		return stands(s, err, want)
	})
}

// leave takes claims out.
func (p *party) leave(ctx context.Context, all []driver.Claim) error {
	return each(atOnce, all, func(c *driver.Claim) error {
		s, err := p.Leave(ctx, driver.Leaving{Ref: c.Ref})
		return stands(s, err, driver.Left)
	})
}

func stands(s driver.Standing, err error, want driver.State) error {
	if err == nil && s.State != want {
		err = fmt.Errorf("a claim is %s, not %s", s.State, want)
	}
	return err
}

// renew renews claims in one call and answers how many hold.
func (p *party) renew(ctx context.Context, all []driver.Claim) (holding int, err error) {
	items := make([]driver.Renewal, len(all))
	for i, c := range all {
		items[i] = driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}
	}
	p.Renew(ctx, items, func(_ int, s driver.Standing, failed error) {
		if failed != nil {
			err = failed
		}
		if s.State == driver.Holding {
			holding++
		}
	})
	return holding, err
}
