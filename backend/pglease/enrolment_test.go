package pglease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// The first renewal of many claims waits for nobody: a line in which somebody else is at
// work only keeps its own claim waiting.
func TestABusyLineDoesNotHoldBackTheFirstRenewalsOfOthers(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	c := newClient(t, newPool(t, url))
	const n, slow = 300, 17
	claims := make([]driver.Claim, n)
	items := make([]driver.Renewal, n)
	for i := range claims {
		claims[i] = c.holds(10*time.Minute, fmt.Sprintf("key:%03d", i))
		items[i] = driver.Renewal{Ref: claims[i].Ref, Mode: driver.Extend, Life: claims[i].Life}
	}
	conn := connect(t, url)
	exec(t, conn, fmt.Sprintf("BEGIN; SELECT hasp_v1_lock(ARRAY['%s'::bytea])", claims[slow].Keys[0]))
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	answered := 0
	c.Renew(ctx, items, func(i int, s driver.Standing, err error) {
		c.want(s, err, driver.Holding)
		answered++
		switch {
		case answered == n-1:
			exec(t, conn, "COMMIT") // nothing else ends the wait for the line
		case answered < n-1 && i == slow:
			t.Error("the claim whose line is locked was renewed all the same")
		}
	})
	if answered != n {
		t.Errorf("%d of %d were answered", answered, n)
	}
	if lives, sessions := number(t, conn, "SELECT count(*) FROM hasp_claims WHERE session > 0"), number(t, conn, "SELECT count(*) FROM hasp_sessions WHERE session > 0"); lives != n || sessions != 1 {
		t.Errorf("%d claims live with %d sessions, want all with one", lives, sessions)
	}
}

// What a first renewal finds to do besides is done, in the same call.
func TestTheFirstRenewalOfManyDoesWhatElseThereIsToDo(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	c, other := newClient(t, pool), newClient(t, pool)
	claims := []driver.Claim{
		c.holds(10*time.Minute, "plain"), c.holds(10*time.Minute, "one", "two"), c.holds(10*time.Minute, "wanted"),
		c.holds(10*time.Minute, "gone"), c.holds(10*time.Minute, "revoked"), c.holds(10*time.Minute, "kept"),
	}
	other.join(driver.Join{Claim: other.claim(time.Minute, "wanted")}, driver.Waiting)
	c.leave(claims[3], driver.Left)
	if _, err := other.End(t.Context(), "revoked", []int64{claims[4].Number}, false); err != nil {
		t.Fatal(err)
	}
	c.Renew(t.Context(), []driver.Renewal{{Ref: claims[5].Ref, Mode: driver.Fix, Life: driver.Life{Hold: time.Hour, Wait: time.Minute}}},
		func(_ int, s driver.Standing, err error) { c.want(s, err, driver.Holding) })
	for range 2 {
		for i, s := range c.renew(claims...) {
			want := driver.Holding
			if i == 3 || i == 4 {
				want = driver.Gone
			}
			if s.State != want || s.Behind != (i == 2) || s.Revoked != (i == 4) {
				t.Errorf("claim %d is %+v", i, s)
			}
		}
	}
	conn := connect(t, url)
	if n := number(t, conn, "SELECT count(*) FROM hasp_claims WHERE session > 0"); n != 4 {
		t.Errorf("%d places live with a session, want 4: plain, one, two, wanted", n)
	}
}

// A claim that was given up, and whose Leave could not be done, must not live by the
// renewals of other claims of its client.
func TestAClaimThatCouldNotLeaveEndsThoughItsSessionLives(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url)
	c, other := newClient(t, pool), newClient(t, pool)
	const ttl = 6 * time.Second
	kept, left := c.holds(ttl, "kept"), c.holds(ttl, "left")
	c.renew(kept, left)
	conn := connect(t, url)
	exec(t, conn, "BEGIN; SELECT 1 FROM hasp_claims WHERE key = 'left' FOR KEY SHARE") // as a guard does
	ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer stop()
	if _, err := c.Leave(ctx, driver.Leaving{Ref: left.Ref}); !errors.Is(err, driver.ErrUnavailable) {
		t.Fatalf("leaving answered %v", err)
	}
	exec(t, conn, "ROLLBACK")
	for end := time.Now().Add(soon); ; time.Sleep(ttl / 20) {
		if s := c.renew(kept)[0]; s.State != driver.Holding {
			t.Fatal("a renewal in time found the claim gone")
		}
		s, err := other.Join(t.Context(), driver.Join{Claim: other.claim(ttl, "left"), Try: true})
		if err != nil {
			t.Fatal(err)
		}
		if s.State == driver.Holding {
			return
		}
		if time.Now().After(end) {
			t.Fatal("it lives on")
		}
	}
}

// Renewals that are done one by one are a few in each transaction, and still one call.
func TestManyThatAreRenewedOneByOneAreAnsweredTogether(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	c := newClient(t, newPool(t, url))
	const n = 3*32 + 5
	var claims []driver.Claim
	for i := range n {
		claims = append(claims, c.holds(10*time.Minute, fmt.Sprintf("a:%03d", i), fmt.Sprintf("b:%03d", i)))
	}
	for i := range n {
		w := c.claim(10*time.Minute, claims[i].Keys[1])
		w.Life.Wait = 10 * time.Minute
		w.Number = c.join(driver.Join{Claim: w}, driver.Waiting).Number
		claims = append(claims, w)
	}
	for range 2 {
		for i, s := range c.renew(claims...) {
			want := driver.Holding
			if i >= n {
				want = driver.Waiting
			}
			if s.State != want || s.Number != claims[i].Number || s.Behind != (i < n) {
				t.Errorf("claim %d is %+v", i, s)
			}
		}
	}
	conn := connect(t, url)
	if lives, sessions := number(t, conn, "SELECT count(*) FROM hasp_claims WHERE session > 0"), number(t, conn, "SELECT count(*) FROM hasp_sessions WHERE session > 0"); lives != 2*n || sessions != 1 {
		t.Errorf("%d places live with %d sessions, want %d with one", lives, sessions, 2*n)
	}
}
