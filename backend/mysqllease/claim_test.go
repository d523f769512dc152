package mysqllease_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/driver"
)

// mutex is a new claim that wants a key for itself.
func mutex(client string, keys ...string) driver.Claim {
	c := driver.Claim{
		Ref: driver.Ref{Keys: keys}, Weight: 1, Capacity: 1, Name: client,
		Life: driver.Life{Hold: 10 * time.Second, Wait: 6 * time.Second},
	}
	copy(c.ID[:6], client+"      ")
	_, _ = rand.Read(c.ID[6:]) // never fails
	return c
}

// lives is the claim with another TTL.
func lives(c driver.Claim, d time.Duration) driver.Claim {
	c.Life = driver.Life{Hold: d, Wait: d}
	return c
}

// join joins and wants an answer.
func join(tb testing.TB, d *mysqllease.Driver, j driver.Join) driver.Standing {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	s, err := d.Join(ctx, j)
	if err != nil {
		tb.Fatalf("Join: %v", err)
	}
	return s
}

// leave leaves and wants an answer.
func leave(tb testing.TB, d *mysqllease.Driver, ref driver.Ref) driver.Standing {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	s, err := d.Leave(ctx, driver.Leaving{Ref: ref})
	if err != nil {
		tb.Fatalf("Leave: %v", err)
	}
	return s
}

// renew renews one claim.
func renew(ctx context.Context, d *mysqllease.Driver, c driver.Claim) (s driver.Standing, err error) {
	d.Renew(ctx, []driver.Renewal{{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}}, func(_ int, is driver.Standing, e error) { s, err = is, e })
	return s, err
}

// wants checks a state.
func wants(tb testing.TB, s driver.Standing, want driver.State) {
	tb.Helper()
	if s.State != want {
		tb.Fatalf("the claim is %v, want %v", s.State, want)
	}
}

// patience is longer than any call takes, on a slow machine as well.
const patience = time.Minute

// newDriver makes a driver with a handle of its own, closed with the test.
func newDriver(tb testing.TB, s *server, database string) *mysqllease.Driver {
	tb.Helper()
	d := mysqllease.New(s.open(tb, database), nil)
	tb.Cleanup(func() { _ = d.Close(context.WithoutCancel(tb.Context())) })
	return d
}
