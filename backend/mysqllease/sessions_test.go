package mysqllease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/driver"
)

// writes is how many rows the server has changed or deleted so far.
func writes(tb testing.TB, db *sql.DB) (n int64) {
	tb.Helper()
	for _, counter := range []string{"Handler_update", "Handler_delete"} {
		var name string
		var value int64
		if err := db.QueryRowContext(tb.Context(), "SHOW GLOBAL STATUS LIKE '"+counter+"'").Scan(&name, &value); err != nil {
			tb.Fatal(err)
		}
		n += value
	}
	return n
}

// renewAll renews claims in one call, and wants all of them to hold.
func renewAll(ctx context.Context, d *mysqllease.Driver, claims []driver.Claim) error {
	items := make([]driver.Renewal, len(claims))
	for i, c := range claims {
		items[i] = driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}
	}
	var failed error
	d.Renew(ctx, items, func(i int, s driver.Standing, err error) {
		if err == nil && s.State != driver.Holding {
			err = fmt.Errorf("claim %d is %v", i, s.State)
		}
		failed = errors.Join(failed, err)
	})
	return failed
}

// However many claims are held, renewing them changes one row.
//
//nolint:paralleltest // counts all that its server does
func TestHeldClaimsAreRenewedByOneRow(t *testing.T) {
	s := startServer(t)
	name := s.database(t)
	admin, d := s.open(t, ""), newDriver(t, s, name)
	n := 300
	if os.Getenv("HASP_SOAK") == "1" {
		n = 10_000
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	claims := make([]driver.Claim, n)
	var wg sync.WaitGroup
	for hand := range 4 {
		wg.Go(func() {
			for i := hand; i < n; i += 4 {
				claims[i] = lives(mutex("holder", fmt.Sprintf("key %d", i)), 10*time.Minute)
				st, err := d.Join(ctx, driver.Join{Claim: claims[i]})
				if claims[i].Number = st.Number; err != nil || st.State != driver.Holding {
					t.Errorf("key %d: %v, %v", i, st.State, err)
				}
			}
		})
	}
	wg.Wait()
	renewal := func() int64 {
		before := writes(t, admin)
		if err := renewAll(ctx, d, claims); err != nil {
			t.Fatal(err)
		}
		return writes(t, admin) - before
	}
	// Each comes to live by the session, and one that is locked just then a renewal later.
	for round := 0; renewal() > 1; round++ {
		if round == 10 {
			t.Fatal("not all claims live by the session")
		}
	}
	for range 3 {
		if changed := renewal(); changed != 1 {
			t.Errorf("renewing %d claims changed %d rows, want 1", n, changed)
		}
	}
}

// A renewal that begins before the expiry and commits after it: whoever joins in between
// finds the session's row locked, so it is alive, and there is one holder (P8).
func TestP8_ARenewalStoppedBeforeItsCommitKeepsTheOnlyHolder(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db, a, b := s.open(t, name), newDriver(t, s, name), newDriver(t, s, name)
	// The row is changed, and the renewal stops before it can commit.
	run(t, db, `CREATE TRIGGER stop AFTER UPDATE ON hasp_sessions FOR EACH ROW
		SET @slept = IF(NEW.session > 0 AND NEW.expires_at > OLD.expires_at, SLEEP(8), 0)`)
	c := joined(t, a, lives(mutex("holder", "key"), 12*time.Second))
	if st, err := renew(t.Context(), a, c); err != nil || st.State != driver.Holding { // it lives by the session now
		t.Fatalf("the first renewal: %v, %v", st.State, err)
	}
	rest := func() (micros int64) { // by what is committed
		t.Helper()
		err := db.QueryRowContext(t.Context(), `SELECT MAX(expires_at) - TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))
			FROM hasp_sessions WHERE session > 0`).Scan(&micros)
		if err != nil {
			t.Fatal(err)
		}
		return micros
	}
	for rest() > 5_000_000 {
		time.Sleep(50 * time.Millisecond)
	}
	type answer struct {
		s   driver.Standing
		err error
	}
	renewed := make(chan answer, 1)
	go func() {
		s, err := renew(t.Context(), a, c)
		renewed <- answer{s, err}
	}()
	seen := false
	for len(renewed) == 0 {
		seen = seen || rest() <= 0
		if st := join(t, b, driver.Join{Claim: mutex("next", "key"), Try: true}); st.State != driver.Refused {
			t.Fatalf("the next one is %v; the renewal: %+v", st.State, <-renewed)
		}
	}
	if r := <-renewed; r.err != nil || r.s.State != driver.Holding {
		t.Errorf("the renewal: %v, %v, want holding", r.s.State, r.err)
	}
	if !seen {
		t.Error("the renewal committed before the session seemed expired: nothing was tried")
	}
	wants(t, join(t, b, driver.Join{Claim: mutex("next", "key"), Try: true}), driver.Refused)
	run(t, db, "DROP TRIGGER stop")
	wants(t, leave(t, a, c.Ref), driver.Left)
	wants(t, join(t, b, driver.Join{Claim: mutex("next", "key"), Try: true}), driver.Holding)
}

// Who is found dead is removed and never comes back, whoever of many finds it first.
func TestADeadSessionIsBuriedOnceAndItsClaimsAreGone(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	a := newDriver(t, s, name)
	var claims []driver.Claim
	for i := range 8 {
		claims = append(claims, joined(t, a, lives(mutex("holder", fmt.Sprintf("key %d", i)), 2*time.Second)))
	}
	if err := renewAll(t.Context(), a, claims); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for i := range 8 {
		d := newDriver(t, s, name)
		wg.Go(func() {
			next := mutex("next", fmt.Sprintf("key %d", i))
			for {
				st, err := d.Join(ctx, driver.Join{Claim: next})
				if err != nil {
					t.Error(err)
					return
				}
				if st.State == driver.Holding {
					return
				}
				time.Sleep(min(st.LookAgain, 50*time.Millisecond))
			}
		})
	}
	wg.Wait()
	for i, c := range claims {
		if st, err := renew(t.Context(), a, c); err != nil || st.State != driver.Gone {
			t.Errorf("claim %d of the dead session: %v, %v, want gone", i, st.State, err)
		}
	}
}

// A client that crashed leaves a row, which a later client removes when its time is over and
// none of its claims is there any more.
func TestRowsOfCrashedClientsAreSwept(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db := s.open(t, name)
	holder := newDriver(t, s, name)
	joined(t, holder, lives(mutex("holder", "key"), time.Hour))
	run(t, db, "UPDATE hasp_sessions SET expires_at = 1",
		"INSERT INTO hasp_sessions (inbox, session, boot, file, changed, expires_at) VALUES ('crashd', 0, '', '', 0, 1)")
	joined(t, newDriver(t, s, name), mutex("later", "another key"))
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		var crashed, held int
		err := db.QueryRowContext(t.Context(), "SELECT COALESCE(SUM(inbox = 'crashd'), 0), COALESCE(SUM(inbox = 'holder'), 0) FROM hasp_sessions").Scan(&crashed, &held)
		if err != nil {
			t.Fatal(err)
		}
		if held != 1 {
			t.Fatalf("%d rows of a client that has a claim, want 1", held)
		}
		if crashed == 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the row of the crashed client is still there")
		}
	}
}
