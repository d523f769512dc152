package pglease_test

import (
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// expire makes all that holds seem expired.
const expire = `UPDATE hasp_sessions SET expires_at = 1 WHERE session > 0; UPDATE hasp_claims SET expires_at = 1; UPDATE hasp_lines SET soon = 1`

// A renewal that began before the expiry and has not committed is not passed: judged by
// reading alone, this gives two holders.
func TestARenewalStoppedBeforeItsCommitIsNotPassed(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	c, other := newClient(t, pool), newClient(t, pool)
	const ttl = 2 * time.Second
	x := c.holds(ttl, "key")
	if s := c.renew(x)[0]; s.State != driver.Holding {
		t.Fatalf("it is %v at first", s.State)
	}
	tx, err := connect(t, url).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var alive bool
	if err := tx.QueryRow(t.Context(), "SELECT alive FROM hasp_v1_touch($1, 1, 600000000)", c.inbox[:]).Scan(&alive); err != nil || !alive {
		t.Fatalf("renewed: %v, %v", alive, err)
	}
	time.Sleep(ttl + ttl/4) // to everybody but the renewal it has expired
	y := other.claim(time.Minute, "key")
	s := other.join(driver.Join{Claim: y}, driver.Waiting)
	if s.LookAgain <= 0 {
		t.Error("it does not say when to look again")
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s := c.renew(x)[0]; s.State != driver.Holding || !s.Behind {
		t.Errorf("the holder is %+v", s)
	}
	if s := other.renew(y)[0]; s.State != driver.Waiting {
		t.Errorf("the other is %v", s.State)
	}
}

// An expired claim whose session somebody is renewing this moment is not passed; once
// that has been undone, it is.
func TestALockedSessionCountsAsAlive(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	c, other := newClient(t, pool), newClient(t, pool)
	x := c.holds(10*time.Minute, "key")
	c.renew(x)
	conn := connect(t, url)
	exec(t, conn, expire)
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), "UPDATE hasp_sessions SET expires_at = expires_at + 1 WHERE session > 0"); err != nil {
		t.Fatal(err)
	}
	other.join(driver.Join{Claim: other.claim(time.Minute, "key"), Try: true}, driver.Refused)
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.join(driver.Join{Claim: other.claim(time.Minute, "key"), Try: true}, driver.Holding)
	if s := c.renew(x)[0]; s.State != driver.Gone {
		t.Errorf("the dead is %v", s.State)
	}
}

// A transaction that has locked the claim's row is not passed by expiry, by a release or
// by force, before it ends; the claim is renewed meanwhile.
func TestAGuardedClaimIsNotPassed(t *testing.T) {
	t.Parallel()
	for _, lock := range []string{"FOR UPDATE", "FOR KEY SHARE"} {
		t.Run(lock, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			pool := newPool(t, url)
			c, other := newClient(t, pool), newClient(t, pool)
			x := c.holds(10*time.Minute, "key")
			c.renew(x)
			guard, conn := connect(t, url), connect(t, url)
			tx, err := guard.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.Exec(t.Context(), "SELECT number FROM hasp_claims WHERE id = $1 AND number = $2 "+lock, x.ID[:], x.Number); err != nil {
				t.Fatal(err)
			}
			if s := c.renew(x)[0]; s.State != driver.Holding {
				t.Errorf("a renewal meanwhile is answered %v", s.State)
			}
			done := make(chan error, 1)
			go func() {
				_, err := other.End(t.Context(), "key", []int64{x.Number}, true)
				done <- err
			}()
			select {
			case err := <-done:
				t.Fatalf("forced out from under the guard: %v", err)
			case <-time.After(300 * time.Millisecond):
			}
			exec(t, conn, "UPDATE hasp_sessions SET expires_at = 1 WHERE session > 0")
			if lock != "FOR UPDATE" {
				exec(t, conn, "UPDATE hasp_claims SET expires_at = 1")
			}
			exec(t, conn, "UPDATE hasp_lines SET soon = 1")
			other.join(driver.Join{Claim: other.claim(time.Minute, "key"), Try: true}, driver.Refused)
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
			other.join(driver.Join{Claim: other.claim(time.Minute, "key"), Try: true}, driver.Holding)
		})
	}
}

// Many processes that find the same dead claims in their way let one in.
func TestOfManyThatPassTheDeadOneHolds(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url+"&pool_max_conns=16")
	c := newClient(t, pool)
	conn := connect(t, url)
	for range 20 {
		x := c.holds(10*time.Minute, "key")
		c.renew(x)
		exec(t, conn, expire)
		states := make(chan driver.State, 8)
		for range cap(states) {
			other := newClient(t, pool)
			go func() {
				s, err := other.Join(t.Context(), driver.Join{Claim: other.claim(time.Minute, "key"), Try: true})
				if err != nil {
					t.Error(err)
				}
				states <- s.State
			}()
		}
		held := 0
		for range cap(states) {
			if <-states == driver.Holding {
				held++
			}
		}
		if held != 1 {
			t.Fatalf("%d hold", held)
		}
		exec(t, conn, "DELETE FROM hasp_claims; UPDATE hasp_lines SET waiting = false")
	}
}

// Tables that somebody has emptied one by one, or in part, give nobody a second holder.
func TestClaimsWithoutTheirLineStillExclude(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	c, other := newClient(t, pool), newClient(t, pool)
	conn := connect(t, url)
	x, y := c.holds(10*time.Minute, "key"), c.holds(10*time.Minute, "session")
	c.renew(y)
	w := other.claim(time.Minute, "key")
	other.join(driver.Join{Claim: w}, driver.Waiting)
	exec(t, conn, "DELETE FROM hasp_lines")
	for _, key := range []string{"key", "session"} {
		other.join(driver.Join{Claim: other.claim(time.Minute, key), Try: true}, driver.Refused)
	}
	for i, s := range c.renew(x, y) {
		if s.State != driver.Holding {
			t.Errorf("holder %d is %v", i, s.State)
		}
	}
	if s := other.renew(w)[0]; s.State != driver.Waiting {
		t.Errorf("the one that waits is %v", s.State)
	}
	c.leave(x, driver.Left)
	if s := other.renew(w)[0]; s.State != driver.Holding {
		t.Errorf("the next is %v", s.State)
	}
}
