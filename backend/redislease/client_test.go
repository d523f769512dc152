package redislease_test

import (
	"context"
	"crypto/rand"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

// party is a driver with what a test needs around it.
type party struct {
	*redislease.Driver
	tb    testing.TB
	inbox [6]byte
}

var life = driver.Life{Hold: 10 * time.Second, Wait: 6 * time.Second}

func newParty(tb testing.TB, rdb redis.UniversalClient, opts *redislease.Options) *party {
	tb.Helper()
	p := &party{Driver: redislease.New(rdb, opts), tb: tb}
	_, _ = rand.Read(p.inbox[:])
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return p
}

// claim is a mutex over keys.
func (p *party) claim(keys ...string) driver.Claim {
	slices.Sort(keys)
	c := driver.Claim{Ref: driver.Ref{Keys: keys}, Weight: 1, Capacity: 1, Life: life, Name: "tester"}
	copy(c.ID[:], p.inbox[:])
	_, _ = rand.Read(c.ID[6:])
	return c
}

// joins expects a Join to end in that state.
func (p *party) joins(c *driver.Claim, want driver.State) driver.Standing {
	p.tb.Helper()
	s, err := p.Join(p.tb.Context(), driver.Join{Claim: *c})
	if err != nil || s.State != want {
		p.tb.Fatalf("join: %+v, %v, want %v", s, err, want)
	}
	c.Number = s.Number
	return s
}

func (p *party) renew(c *driver.Claim) (got driver.Standing, err error) {
	item := driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}
	p.Renew(p.tb.Context(), []driver.Renewal{item}, func(_ int, s driver.Standing, e error) { got, err = s, e })
	return got, err
}

func (p *party) renews(c *driver.Claim, want driver.State) driver.Standing {
	p.tb.Helper()
	s, err := p.renew(c)
	if err != nil || s.State != want {
		p.tb.Fatalf("renew: %+v, %v, want %v", s, err, want)
	}
	return s
}

func (p *party) leaves(c *driver.Claim, want driver.State) {
	p.tb.Helper()
	s, err := p.Leave(p.tb.Context(), driver.Leaving{Ref: c.Ref})
	if err != nil || s.State != want {
		p.tb.Fatalf("leave: %+v, %v, want %v", s, err, want)
	}
}

func newKey() string { return "test:" + rand.Text() }
