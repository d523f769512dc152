package pglease_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/driver"
)

// manyHeld makes claims that hold and live by a session.
func manyHeld(t *testing.T, c *client, n int) []driver.Claim {
	t.Helper()
	claims := make([]driver.Claim, n)
	var wg sync.WaitGroup
	for who := range 4 {
		wg.Go(func() {
			for i := who; i < n; i += 4 {
				claims[i] = c.holds(10*time.Minute, fmt.Sprintf("key:%05d", i))
			}
		})
	}
	wg.Wait()
	for i, s := range c.renew(claims...) {
		if s.State != driver.Holding {
			t.Fatalf("claim %d is %v", i, s.State)
		}
	}
	return claims
}

// written counts the row versions that one connection has written to a table.
func written(t *testing.T, pool *pgxpool.Pool, table string) int64 {
	t.Helper()
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	exec(t, conn.Conn(), "SELECT pg_stat_force_next_flush()")
	return number(t, conn.Conn(), "SELECT n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_user_tables WHERE relname = $1", table)
}

func TestRenewingAllHeldClaimsUpdatesOneRow(t *testing.T) {
	t.Parallel()
	n := 2000
	switch {
	case os.Getenv("HASP_SOAK") == "1":
		n = 10000
	case testing.Short():
		n = 500
	}
	pool := newPool(t, newDatabase(t)+"&pool_max_conns=1") // whose only connection does the writing
	c := newClient(t, pool)
	claims := manyHeld(t, c, n)
	before := []int64{written(t, pool, "hasp_sessions"), written(t, pool, "hasp_claims"), written(t, pool, "hasp_lines")}
	for range 3 {
		for i, s := range c.renew(claims...) {
			if s.State != driver.Holding || s.Life != 10*time.Minute {
				t.Fatalf("claim %d is %+v", i, s)
			}
		}
	}
	after := []int64{written(t, pool, "hasp_sessions"), written(t, pool, "hasp_claims"), written(t, pool, "hasp_lines")}
	if after[0]-before[0] != 3 || after[1] != before[1] || after[2] != before[2] {
		t.Errorf("three renewals of %d claims wrote %d rows of sessions, %d of claims, %d of lines, want 3, 0, 0",
			n, after[0]-before[0], after[1]-before[1], after[2]-before[2])
	}
}

// What happens to one of the claims of a session is found with the next renewal.
func TestAClaimThatEndsAmongManyIsFound(t *testing.T) {
	t.Parallel()
	pool := newPool(t, newDatabase(t))
	c, other := newClient(t, pool), newClient(t, pool)
	claims := manyHeld(t, c, 100)
	if found, err := other.End(t.Context(), claims[17].Keys[0], []int64{claims[17].Number}, true); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	if found, err := other.End(t.Context(), claims[42].Keys[0], []int64{claims[42].Number}, false); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	waiter := other.claim(time.Minute, claims[5].Keys[0])
	other.join(driver.Join{Claim: waiter}, driver.Waiting)
	for range 2 {
		for i, s := range c.renew(claims...) {
			want := driver.Holding
			if i == 17 || i == 42 {
				want = driver.Gone
			}
			if s.State != want || s.Behind != (i == 5) || s.Revoked != (i == 42) {
				t.Errorf("claim %d is %+v", i, s)
			}
		}
	}
	other.leave(waiter, driver.Left)
	if s := c.renew(claims[5])[0]; s.Behind {
		t.Error("nobody waits any more, but Behind is set")
	}
}

// A lease beyond its MaxHold is renewed no more, and must not live by the renewals of
// other claims of its client.
func TestAClaimThatIsNamedNoMoreEndsThoughItsSessionLives(t *testing.T) {
	t.Parallel()
	pool := newPool(t, newDatabase(t))
	c, other := newClient(t, pool), newClient(t, pool)
	const ttl = 4 * time.Second
	kept, dropped := c.holds(ttl, "kept"), c.holds(ttl, "dropped")
	c.renew(kept, dropped)
	c.renew(kept, dropped)
	for end := time.Now().Add(soon); ; time.Sleep(ttl / 5) {
		if s := c.renew(kept)[0]; s.State != driver.Holding {
			t.Fatal("a renewal in time found the claim gone")
		}
		s, err := other.Join(t.Context(), driver.Join{Claim: other.claim(ttl, "dropped"), Try: true})
		if err != nil {
			t.Fatal(err)
		}
		if s.State == driver.Holding {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it lives on")
		}
	}
	if s := c.renew(dropped)[0]; s.State != driver.Gone {
		t.Errorf("it is %v, want gone", s.State)
	}
}

// A session that expired is not revived: its claims are lost, and new ones get another.
func TestAnExpiredSessionIsNotRevived(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	c, other := newClient(t, pool), newClient(t, pool)
	claims := manyHeld(t, c, 20)
	conn := connect(t, url)
	exec(t, conn, "UPDATE hasp_sessions SET expires_at = 1 WHERE session > 0")
	exec(t, conn, "UPDATE hasp_claims SET expires_at = 1")
	exec(t, conn, "UPDATE hasp_lines SET soon = 1")
	other.holds(time.Minute, claims[0].Keys[0]) // deletes the session
	for i, s := range c.renew(claims...) {
		if s.State != driver.Gone {
			t.Errorf("claim %d is %v, want gone", i, s.State)
		}
	}
	fresh := c.holds(10*time.Minute, "fresh")
	c.renew(fresh)
	if n := number(t, conn, "SELECT count(*) FROM hasp_sessions WHERE session > 0"); n != 1 {
		t.Errorf("%d sessions, want one new one", n)
	}
	if s := c.renew(fresh)[0]; s.State != driver.Holding {
		t.Errorf("a claim of the new session is %v", s.State)
	}
}

// What is held for long is looked at by the sweep ever less often: each look is a write.
func TestALineThatIsHeldForLongIsSeldomSwept(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	c := newClient(t, newPool(t, url))
	conn := connect(t, url)
	c.renew(c.holds(10*time.Minute, "held"))
	for _, minutes := range []int64{0, 30, 600} {
		exec(t, conn, fmt.Sprintf("UPDATE hasp_lines SET sweep_at = 1, last = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint - %d", minutes*60_000_000))
		if err := c.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		again := number(t, conn, "SELECT (sweep_at - extract(epoch FROM clock_timestamp()) * 1000000)::bigint / 60000000 FROM hasp_lines WHERE key = 'held'")
		if want := min(max(minutes, 1), 60); again > want || again < want-1-want/2 {
			t.Errorf("after %d minutes it is looked at again in %d, want %d", minutes, again, want)
		}
	}
}
