package pglease_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/driver"
)

// client is a driver with an inbox.
type client struct {
	tb testing.TB
	*pglease.Driver
	inbox [6]byte
}

func newClient(tb testing.TB, pool *pgxpool.Pool) *client {
	tb.Helper()
	c := &client{tb: tb, Driver: pglease.New(pool, nil)}
	_, _ = rand.Read(c.inbox[:]) // never fails
	tb.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(tb.Context()), soon)
		defer stop()
		if err := c.Close(ctx); err != nil {
			tb.Error(err)
		}
	})
	return c
}

// soon bounds what should take no time at all, on a machine that does much else.
const soon = time.Minute

// claim is a mutex's claim that lives that long.
func (c *client) claim(ttl time.Duration, keys ...string) driver.Claim {
	var id driver.ID
	_, _ = rand.Read(id[:]) // never fails
	copy(id[:], c.inbox[:])
	return driver.Claim{
		Ref: driver.Ref{ID: id, Keys: keys}, Weight: 1, Capacity: 1, Name: "test",
		Life: driver.Life{Hold: ttl, Wait: min(ttl, 6*time.Second)},
	}
}

// holds joins and insists on holding.
func (c *client) holds(ttl time.Duration, keys ...string) driver.Claim {
	c.tb.Helper()
	claim := c.claim(ttl, keys...)
	claim.Number = c.join(driver.Join{Claim: claim, Try: true}, driver.Holding).Number
	return claim
}

func (c *client) join(j driver.Join, want driver.State) driver.Standing {
	c.tb.Helper()
	s, err := c.Join(c.tb.Context(), j)
	c.want(s, err, want)
	return s
}

func (c *client) leave(claim driver.Claim, want driver.State) {
	c.tb.Helper()
	s, err := c.Leave(c.tb.Context(), driver.Leaving{Ref: claim.Ref})
	c.want(s, err, want)
}

func (c *client) want(s driver.Standing, err error, want driver.State) {
	c.tb.Helper()
	if err != nil || s.State != want {
		c.tb.Fatalf("answered %v, %v, want %v", s.State, err, want)
	}
}

// renew extends claims and answers how each stands.
func (c *client) renew(claims ...driver.Claim) []driver.Standing {
	c.tb.Helper()
	items := make([]driver.Renewal, len(claims))
	for i, claim := range claims {
		items[i] = driver.Renewal{Ref: claim.Ref, Mode: driver.Extend, Life: claim.Life}
	}
	all := make([]driver.Standing, len(items))
	c.Renew(c.tb.Context(), items, func(i int, s driver.Standing, err error) {
		if err != nil {
			c.tb.Errorf("renewal %d: %v", i, err)
		}
		all[i] = s
	})
	return all
}

// connect is a connection of the test's own.
func connect(tb testing.TB, url string) *pgx.Conn {
	tb.Helper()
	conn, err := pgx.Connect(tb.Context(), url)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close(context.WithoutCancel(tb.Context())) })
	return conn
}

// exec runs statements of the test's own.
func exec(tb testing.TB, conn *pgx.Conn, text string) {
	tb.Helper()
	if _, err := conn.Exec(tb.Context(), text); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
}

// number reads one number.
func number(tb testing.TB, conn *pgx.Conn, text string, args ...any) int64 {
	tb.Helper()
	var n int64
	if err := conn.QueryRow(tb.Context(), text, args...).Scan(&n); err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return n
}
