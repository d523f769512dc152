package memlease_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/hasp-dev/hasp/driver"
)

func BenchmarkJoinLeave(b *testing.B) {
	c := newClient(b)
	j := c.claim("k")
	leaving := driver.Leaving{Ref: j.Ref}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.pair(ctx, j, leaving); err != nil {
			b.Fatal(err)
		}
	}
}

// pair joins and leaves; it is no test helper, since marking one takes longer.
func (c *client) pair(ctx context.Context, j driver.Join, l driver.Leaving) error {
	s, err := c.Join(ctx, j)
	if err != nil || s.State != driver.Holding {
		return fmt.Errorf("join: %+v, %w", s, err)
	}
	s, err = c.Leave(ctx, l)
	if err != nil || s.State != driver.Left {
		return fmt.Errorf("leave: %+v, %w", s, err)
	}
	return nil
}

func BenchmarkJoinLeaveOfManyKeys(b *testing.B) {
	c := newClient(b)
	keys := make([]string, 100_000)
	for i := range keys {
		keys[i] = key(i)
	}
	j := c.claim("k")
	ctx := b.Context()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		j.Keys = keys[i%len(keys):][:1]
		if err := c.pair(ctx, j, driver.Leaving{Ref: j.Ref}); err != nil {
			b.Fatal(err)
		}
	}
}

// The holder of a long line leaves and joins behind.
func BenchmarkHandOverIn10000(b *testing.B) {
	c := newClient(b)
	ctx := b.Context()
	line := crowd(c, 10_000)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		j := line[i%len(line)]
		j.Leaving = &driver.Leaving{Ref: j.Ref}
		if s, err := c.Join(ctx, j); err != nil || s.State != driver.Waiting {
			b.Fatal(s, err)
		}
	}
}

func BenchmarkRenewIn10000(b *testing.B) {
	c := newClient(b)
	ctx := b.Context()
	items := make([]driver.Renewal, 10_000)
	for i, j := range crowd(c, len(items)) {
		items[i] = driver.Renewal{Ref: j.Ref, Mode: driver.Extend, Life: j.Life}
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Renew(ctx, items[i%len(items):][:1], func(_ int, s driver.Standing, err error) {
			if err != nil || s.State == driver.Gone {
				b.Fatal(s, err)
			}
		})
	}
}
