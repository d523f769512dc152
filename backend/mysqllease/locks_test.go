package mysqllease_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/driver"
)

// holdRows begins a transaction of the program's own that locks rows,
// and answers once it has them.
func holdRows(tb testing.TB, db *sql.DB, query string, args ...any) (end func()) {
	tb.Helper()
	tx, err := db.BeginTx(tb.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		tb.Fatal(err)
	}
	var one int
	if err := tx.QueryRowContext(tb.Context(), query, args...).Scan(&one); err != nil {
		tb.Fatalf("no row to lock: %v", err)
	}
	end = sync.OnceFunc(func() { _ = tx.Rollback() })
	tb.Cleanup(end)
	return end
}

// A line that another transaction has locked is waited for, and what keeps the call waiting
// is said when its time is over. Other lines go on meanwhile.
func TestALockedLineOnlyDelays(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	db := s.open(t, s.database(t))
	d := mysqllease.New(db, nil)
	wants(t, leave(t, d, joined(t, d, mutex("client", "key")).Ref), driver.Left) // the line is there
	end := holdRows(t, db, "SELECT 1 FROM hasp_lines WHERE `key` = 'key' FOR UPDATE")
	done := make(chan error, 1)
	go func() {
		st, err := d.Join(t.Context(), driver.Join{Claim: mutex("client", "key")})
		if err == nil && st.State != driver.Holding {
			err = fmt.Errorf("it is %v", st.State)
		}
		done <- err
	}()
	joined(t, d, mutex("client", "another key"))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second) // longer than a lock wait of a step
	defer cancel()
	_, err := d.Join(ctx, driver.Join{Claim: mutex("client", "key"), Try: true})
	if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "locked") {
		t.Errorf("%v, want ErrUnavailable that says what is in the way", err)
	}
	select {
	case err := <-done:
		t.Fatalf("while another transaction has the line: %v", err)
	default:
	}
	end()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Where the server ends statements that take too long, a step is tried again like any other
// that found somebody in its way, and what ends it is said when the call's time is over.
func TestStatementsThatAreEndedAreTriedAgain(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	limit, value, word := "max_statement_time", "0.5", "max_statement_time"
	if os.Getenv(serverVariable) != "" { // it ends reads only, and lines are locked by an INSERT
		limit, value, word = "max_execution_time", "500", "locked"
	}
	d := mysqllease.New(s.open(t, name, func(c *mysql.Config) { c.Params = map[string]string{limit: value} }), nil)
	wants(t, leave(t, d, joined(t, d, mutex("client", "key")).Ref), driver.Left) // the line is there
	end := holdRows(t, s.open(t, name), "SELECT 1 FROM hasp_lines WHERE `key` = 'key' FOR UPDATE")
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err := d.Join(ctx, driver.Join{Claim: mutex("client", "key"), Try: true})
	if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), word) {
		t.Errorf("%v, want ErrUnavailable that names %s", err, word)
	}
	end()
	joined(t, d, mutex("client", "key"))
}

// joined joins a claim that must hold.
func joined(tb testing.TB, d *mysqllease.Driver, c driver.Claim) driver.Claim {
	tb.Helper()
	st := join(tb, d, driver.Join{Claim: c})
	wants(tb, st, driver.Holding)
	c.Number = st.Number
	return c
}

// Whoever locks a claim's row keeps it in its place: nobody passes it, though it has
// expired, until that transaction ends.
func TestALockedClaimCountsAsAliveUntilItsLockEnds(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db, other := s.open(t, name), newDriver(t, s, name)
	d := newDriver(t, s, name)
	for _, keys := range [][]string{{"one"}, {"first", "second"}} {
		last := keys[len(keys)-1]
		c := joined(t, d, lives(mutex("holder", keys...), 100*time.Millisecond))
		end := holdRows(t, db, "SELECT 1 FROM hasp_claims WHERE `key` = ? AND waiting = 0 AND number = ? AND id = ? FOR UPDATE", keys[0], c.Number, c.ID[:])
		time.Sleep(300 * time.Millisecond) // it expires, by the database's clock
		wants(t, join(t, other, driver.Join{Claim: mutex("next", last), Try: true}), driver.Refused)
		next := mutex("next", last)
		st := join(t, other, driver.Join{Claim: next})
		wants(t, st, driver.Waiting)
		if st.LookAgain < 10*time.Millisecond {
			t.Errorf("look again after %v: that is a busy loop", st.LookAgain)
		}
		end()
		st, err := renew(t.Context(), other, next)
		if err != nil {
			t.Fatal(err)
		}
		wants(t, st, driver.Holding)
		if st, err = renew(t.Context(), d, c); err != nil || st.State != driver.Gone {
			t.Errorf("the dead claim: %v, %v, want gone", st.State, err)
		}
	}
}

// A Leave waits for such a lock, without keeping the line from others.
func TestALeaveWaitsForALockedClaimAndOthersGoOn(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db, other := s.open(t, name), newDriver(t, s, name)
	d := newDriver(t, s, name)
	c := joined(t, d, mutex("holder", "key"))
	end := holdRows(t, db, "SELECT 1 FROM hasp_claims WHERE `key` = 'key' AND waiting = 0 AND number = ? AND id = ? FOR UPDATE", c.Number, c.ID[:])
	left := make(chan error, 1)
	go func() {
		st, err := d.Leave(t.Context(), driver.Leaving{Ref: c.Ref})
		if err == nil && st.State != driver.Left {
			err = fmt.Errorf("it is %v", st.State)
		}
		left <- err
	}()
	for range 20 {
		wants(t, join(t, other, driver.Join{Claim: mutex("next", "key"), Try: true}), driver.Refused)
	}
	select {
	case err := <-left:
		t.Fatalf("while its row is locked: %v", err)
	default:
	}
	if _, err := other.End(t.Context(), "key", []int64{c.Number + 1}, true); err != nil {
		t.Errorf("End of another: %v", err)
	}
	end()
	if err := <-left; err != nil {
		t.Error(err)
	}
	wants(t, join(t, other, driver.Join{Claim: mutex("next", "key"), Try: true}), driver.Holding)
}

// Claims of several keys, in whatever order they are taken, and sweeps in between, are done
// by as many at once as there are.
func TestManyClaimsOfSeveralKeysDoNotStandInEachOthersWay(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var wg sync.WaitGroup
	for g := range 4 {
		d := newDriver(t, s, name)
		wg.Go(func() {
			for i := range 15 {
				from := (g + i) % 5
				keys := []string{fmt.Sprintf("key %d", from), fmt.Sprintf("key %d", from+1), fmt.Sprintf("key %d", from+2)}
				c := lives(mutex("client", keys...), time.Second)
				if _, err := d.Join(ctx, driver.Join{Claim: c}); err != nil {
					t.Error(err)
					return
				}
				if i%3 == 0 {
					continue // it dies in several lines
				}
				if _, err := d.Leave(ctx, driver.Leaving{Ref: c.Ref, Unanswered: i%2 == 0, Remember: time.Second}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// What a step sets its connection to is undone, also after steps that failed.
func TestAConnectionIsGivenBackAsItWas(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db := s.open(t, name, func(c *mysql.Config) {
		c.Params = map[string]string{"wait_timeout": "777", "innodb_lock_wait_timeout": "2", setting("isolation"): "'SERIALIZABLE'"}
	})
	db.SetMaxOpenConns(1)
	settings := func() string {
		var text string
		err := db.QueryRowContext(t.Context(),
			"SELECT CONCAT_WS(' ', CONNECTION_ID(), @@autocommit, @@"+setting("isolation")+", @@wait_timeout, @@innodb_lock_wait_timeout)").Scan(&text)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	before := settings()
	if !strings.HasSuffix(before, " SERIALIZABLE 777 2") {
		t.Fatalf("the connection is %q", before)
	}
	d := mysqllease.New(db, nil)
	c := joined(t, d, mutex("client", "key"))
	wants(t, join(t, d, driver.Join{Claim: mutex("client", "key"), Try: true}), driver.Refused)
	if _, err := d.Lines(t.Context(), driver.Query{}); err != nil {
		t.Fatal(err)
	}
	wants(t, leave(t, d, c.Ref), driver.Left)
	if after := settings(); after != before {
		t.Errorf("after steps: %q, was %q", after, before)
	}
	end := holdRows(t, s.open(t, name), "SELECT 1 FROM hasp_lines FOR UPDATE")
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if _, err := d.Join(ctx, driver.Join{Claim: c}); !errors.Is(err, driver.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
	end()
	_, after, _ := strings.Cut(settings(), " ") // it may be another connection
	if _, before, _ := strings.Cut(before, " "); after != before {
		t.Errorf("after a step that failed: %q, was %q", after, before)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A batch of renewals goes on where one claim's row is locked: that one is answered as it
// stands, or with an error of its own where it had to change.
func TestALockedClaimDoesNotHoldUpABatchOfRenewals(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db, d := s.open(t, name), newDriver(t, s, name)
	kept, dropped, free := joined(t, d, mutex("holder", "kept")), joined(t, d, mutex("holder", "dropped")), joined(t, d, mutex("holder", "free"))
	for _, c := range []driver.Claim{kept, dropped} {
		end := holdRows(t, db, "SELECT 1 FROM hasp_claims WHERE `key` = ? AND waiting = 0 AND number = ? AND id = ? LOCK IN SHARE MODE", c.Keys[0], c.Number, c.ID[:])
		defer end()
	}
	life := driver.Life{Hold: time.Minute, Wait: time.Minute, Own: true}
	items := []driver.Renewal{
		{Ref: kept.Ref, Mode: driver.Extend, Life: life},
		{Ref: dropped.Ref, Mode: driver.Drop},
		{Ref: free.Ref, Mode: driver.Extend, Life: life},
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	answers, errs := make([]driver.Standing, len(items)), make([]error, len(items))
	d.Renew(ctx, items, func(i int, s driver.Standing, err error) { answers[i], errs[i] = s, err })
	if a := answers[0]; errs[0] != nil || a.State != driver.Holding || a.Life <= 0 || a.Life > 10*time.Second {
		t.Errorf("a locked claim: %v with a life of %v, %v; want it as it stands", a.State, a.Life, errs[0])
	}
	if !errors.Is(errs[1], driver.ErrUnavailable) || !strings.Contains(errs[1].Error(), "locked") {
		t.Errorf("a locked claim that leaves: %v, want ErrUnavailable that says why", errs[1])
	}
	if a := answers[2]; errs[2] != nil || a.State != driver.Holding || a.Life < 50*time.Second {
		t.Errorf("another claim: %v with a life of %v, %v", a.State, a.Life, errs[2])
	}
}
