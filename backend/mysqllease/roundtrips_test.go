package mysqllease_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/driver"
)

// questions is how many statements the server was sent so far.
func questions(tb testing.TB, admin *sql.DB) (n int64) {
	tb.Helper()
	var name string
	if err := admin.QueryRowContext(tb.Context(), "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &n); err != nil {
		tb.Fatal(err)
	}
	return n
}

// inLines joins n lines, each with one claim, and answers these.
func inLines(t *testing.T, d *mysqllease.Driver, client string, n int, want driver.State) []driver.Claim {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	claims := make([]driver.Claim, n)
	var all sync.WaitGroup
	for hand := range 3 {
		all.Go(func() {
			for i := hand; i < n; i += 3 {
				c := lives(mutex(client, fmt.Sprintf("line %d", i)), 10*time.Minute)
				st, err := d.Join(ctx, driver.Join{Claim: c})
				if err != nil || st.State != want {
					t.Errorf("line %d: %v, %v", i, st.State, err)
				}
				c.Number = st.Number
				claims[i] = c
			}
		})
	}
	all.Wait()
	return claims
}

// Renewing many claims takes a number of statements that does not grow with them, whatever
// they do: begin to live by their session, wait each in a line of its own, or leave.
//
//nolint:paralleltest // counts all that its server does
func TestManyRenewalsAreFewRoundTrips(t *testing.T) {
	s := startServer(t)
	name := s.database(t)
	admin := s.open(t, "")
	holder, waiter := newDriver(t, s, name), newDriver(t, s, name)
	const n = 250
	held := inLines(t, holder, "holder", n, driver.Holding)
	lined := inLines(t, waiter, "waiter", n, driver.Waiting)
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	for _, c := range []struct {
		what   string
		d      *mysqllease.Driver
		claims []driver.Claim
		mode   driver.Mode
		want   driver.State
	}{
		{"the first renewal of what is held", holder, held, driver.Extend, driver.Holding},
		{"the second", holder, held, driver.Extend, driver.Holding},
		{"the renewal of what waits", waiter, lined, driver.Extend, driver.Waiting},
		{"giving up what waits", waiter, lined, driver.Drop, driver.Left},
		{"giving it up again", waiter, lined, driver.Drop, driver.Gone},
		{"giving up what is held", holder, held, driver.Drop, driver.Left},
	} {
		before := questions(t, admin)
		items := make([]driver.Renewal, n)
		for i, claim := range c.claims {
			items[i] = driver.Renewal{Ref: claim.Ref, Mode: c.mode, Life: claim.Life}
		}
		c.d.Renew(ctx, items, func(i int, st driver.Standing, err error) {
			if err != nil || st.State != c.want {
				t.Errorf("%s: item %d: %v, %v", c.what, i, st.State, err)
			}
		})
		if sent := questions(t, admin) - before; sent > 30 {
			t.Errorf("%s: %d statements for %d claims, want at most 30", c.what, sent, n)
		} else {
			t.Logf("%s: %d statements", c.what, sent)
		}
	}
}

// Lines that have served are forgotten together by a few statements of a step that makes a
// new one; a line in use is left.
//
//nolint:paralleltest // counts all that its server does
func TestLinesThatAreDueAreForgottenTogether(t *testing.T) {
	s := startServer(t)
	name := s.database(t)
	db, d := s.open(t, name), newDriver(t, s, name)
	for _, c := range inLines(t, d, "client", 20, driver.Holding)[1:] {
		wants(t, leave(t, d, c.Ref), driver.Left)
	}
	run(t, db, "UPDATE hasp_lines SET sweep_at = 0")
	lines := func() (n int) {
		t.Helper()
		if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM hasp_lines WHERE `key` LIKE 'line %'").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := questions(t, db)
	for i := range 8 {
		joined(t, d, mutex("client", fmt.Sprintf("new %d", i)))
	}
	if n := lines(); n != 1 {
		t.Errorf("%d lines are left, want the one that is in use", n)
	}
	if sent := questions(t, db) - before; sent > 8*8+12 {
		t.Errorf("%d statements for eight new lines, want at most 76", sent)
	}
}
