package sqlitelease_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// newID is a new ID of one client.
func newID(inbox string) driver.ID {
	var id driver.ID
	_, _ = rand.Read(id[:])
	copy(id[:6], inbox)
	return id
}

// mutex is a claim as hasp makes it.
func mutex(inbox string, keys ...string) driver.Claim {
	return driver.Claim{
		Ref: driver.Ref{ID: newID(inbox), Keys: keys}, Weight: 1, Capacity: 1, Name: inbox,
		Life: driver.Life{Hold: 10 * time.Second, Wait: 6 * time.Second},
	}
}

func BenchmarkJoinLeave(b *testing.B) {
	_, db := newFile(b)
	d := sqlitelease.New(db, nil)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		c := mutex("client", "order:42")
		if s, err := d.Join(ctx, driver.Join{Claim: c}); err != nil || s.State != driver.Holding {
			b.Fatal(s, err)
		}
		if s, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref}); err != nil || s.State != driver.Left {
			b.Fatal(s, err)
		}
	}
	_ = d.Close(ctx)
}

func BenchmarkJoinLeaveNewKeys(b *testing.B) {
	_, db := newFile(b)
	d := sqlitelease.New(db, nil)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		c := mutex("client", rand.Text())
		if s, err := d.Join(ctx, driver.Join{Claim: c}); err != nil || s.State != driver.Holding {
			b.Fatal(s, err)
		}
		if s, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref}); err != nil || s.State != driver.Left {
			b.Fatal(s, err)
		}
	}
	_ = d.Close(ctx)
}

// BenchmarkRenew is one of a thousand held claims.
func BenchmarkRenew(b *testing.B) {
	_, db := newFile(b)
	d := sqlitelease.New(db, nil)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	items := make([]driver.Renewal, 1000)
	for i := range items {
		c := mutex("client", rand.Text())
		if _, err := d.Join(ctx, driver.Join{Claim: c}); err != nil {
			b.Fatal(err)
		}
		items[i] = driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if n++; n%len(items) != 1 {
			continue
		}
		d.Renew(ctx, items, func(_ int, s driver.Standing, err error) {
			if err != nil || s.State != driver.Holding {
				b.Error(s, err)
			}
		})
	}
	_ = d.Close(ctx)
}

// BenchmarkLongLine is a claim that joins and leaves behind 1,000 others.
func BenchmarkLongLine(b *testing.B) {
	_, db := newFile(b)
	d := sqlitelease.New(db, nil)
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	for range 1000 {
		c := mutex("client", "order:42")
		c.Life = driver.Life{Hold: time.Hour, Wait: time.Hour}
		if _, err := d.Join(ctx, driver.Join{Claim: c}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		c := mutex("client", "order:42")
		if s, err := d.Join(ctx, driver.Join{Claim: c}); err != nil || s.State != driver.Waiting {
			b.Fatal(s, err)
		}
		if s, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref}); err != nil || s.State != driver.Left {
			b.Fatal(s, err)
		}
	}
	_ = d.Close(ctx)
}
