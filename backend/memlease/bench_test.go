package memlease_test

import (
	"testing"

	"github.com/hasp-dev/hasp/driver"
)

func BenchmarkJoinLeave(b *testing.B) {
	c := newClient(b)
	j := c.join("k")
	leaving := driver.Leaving{Ref: j.Ref}
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		if s, err := c.Join(ctx, j); err != nil || s.State != driver.Holding {
			b.Fatal(s, err)
		}
		if s, err := c.Leave(ctx, leaving); err != nil || s.State != driver.Left {
			b.Fatal(s, err)
		}
	}
}

// BenchmarkHandOver lets the holder of a long line leave and join behind.
func BenchmarkHandOverWith10000Waiters(b *testing.B) {
	c := newClient(b)
	ctx := b.Context()
	const n = 10_000
	line := make([]driver.Join, n)
	for i := range line {
		line[i] = c.join("k")
		c.must(c.Join(ctx, line[i]))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := 0; b.Loop(); i++ {
		j := line[i%n]
		j.Leaving = &driver.Leaving{Ref: j.Ref}
		if s, err := c.Join(ctx, j); err != nil || s.State != driver.Waiting {
			b.Fatal(s, err)
		}
	}
}

func BenchmarkRenewWith10000Waiters(b *testing.B) {
	c := newClient(b)
	ctx := b.Context()
	items := make([]driver.Renewal, 10_000)
	for i := range items {
		j := c.join("k")
		c.must(c.Join(ctx, j))
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
