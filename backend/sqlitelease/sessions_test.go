package sqlitelease_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// joined lets a driver lock keys with names of their own and answers what renews them.
func joined(t *testing.T, d *sqlitelease.Driver, client string, n int, life driver.Life) []driver.Renewal {
	t.Helper()
	items := make([]driver.Renewal, n)
	for i := range items {
		c := mutex(client, fmt.Sprintf("%s-%d", client, i))
		c.Life = life
		st, err := d.Join(t.Context(), driver.Join{Claim: c, Try: true})
		if err != nil || st.State != driver.Holding {
			t.Fatalf("%v, %v", st.State, err)
		}
		c.Number = st.Number
		items[i] = driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: life}
	}
	return items
}

// newMemory makes a database with one connection, which keeps no disk busy.
func newMemory(t *testing.T) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if err := sqlitelease.Migrate(t.Context(), db, nil); err != nil {
		t.Fatal(err)
	}
	return db
}

// many is n, or fewer where it would take long.
func many(n int) int {
	switch {
	case underRace:
		return n / 50
	case testing.Short():
		return n / 10
	}
	return n
}

// renewed renews and answers how many are in each state.
func renewed(t *testing.T, d *sqlitelease.Driver, items []driver.Renewal) map[driver.State]int {
	t.Helper()
	states := make(map[driver.State]int)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d.Renew(ctx, items, func(i int, s driver.Standing, err error) {
		if err != nil {
			t.Errorf("item %d: %v", i, err)
		}
		if s.State == driver.Holding && s.Life < items[i].Life.Hold/2 {
			t.Errorf("item %d lives %v more, want about %v", i, s.Life, items[i].Life.Hold)
		}
		states[s.State]++
	})
	return states
}

// number asks the database for one.
func number(t *testing.T, db *sql.DB, query string, args ...any) (n int64) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query, args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// run changes the database behind the driver's back.
func run(t *testing.T, db *sql.DB, query string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), query, args...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
}

func held(hold, grace time.Duration) driver.Life {
	return driver.Life{Hold: hold, Grace: grace, Wait: min(hold, 6*time.Second)}
}

func TestAnIntervalsRenewalOfTenThousandClaimsIsOneRow(t *testing.T) {
	t.Parallel()
	n := many(10_000)
	db := newMemory(t)
	d := sqlitelease.New(db, nil)
	items := joined(t, d, "client", n, held(time.Hour, 0))
	if got := renewed(t, d, items); got[driver.Holding] != n {
		t.Fatalf("at first: %v", got)
	}
	for range 3 {
		before, until := number(t, db, "SELECT total_changes()"), number(t, db, "SELECT MAX(expires_at) FROM hasp_sessions WHERE session > 0")
		time.Sleep(5 * time.Millisecond)
		began := time.Now()
		if got := renewed(t, d, items); got[driver.Holding] != n {
			t.Errorf("renewed: %v", got)
		}
		t.Logf("%d claims in %v", n, time.Since(began))
		if rows := number(t, db, "SELECT total_changes()") - before; rows != 1 {
			t.Errorf("%d rows were written, want 1", rows)
		}
		if now := number(t, db, "SELECT MAX(expires_at) FROM hasp_sessions WHERE session > 0"); now <= until {
			t.Error("the session was not renewed")
		}
	}
}

// A session that has expired is never revived: all its claims are lost, and whoever passes
// one removes what is left of it.
func TestARenewalAfterTheSessionHasExpiredIsGoneForAllItsClaims(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	d := sqlitelease.New(db, nil)
	items := joined(t, d, "client", 70, held(time.Hour, 0)) // more than one step removes
	renewed(t, d, items)
	run(t, db, "UPDATE hasp_claims SET expires_at = 1; UPDATE hasp_sessions SET expires_at = 1 WHERE session > 0")
	next := mutex("other", items[0].Keys...)
	st, err := sqlitelease.New(openFile(t, path), nil).Join(t.Context(), driver.Join{Claim: next, Try: true})
	if err != nil || st.State != driver.Holding {
		t.Fatalf("the next: %v, %v", st.State, err)
	}
	if got := renewed(t, d, items); got[driver.Gone] != len(items) {
		t.Errorf("renewed: %v, want all gone", got)
	}
	again := joined(t, d, "client2", 2, held(time.Hour, 0))
	if got := renewed(t, d, again); got[driver.Holding] != 2 {
		t.Errorf("new claims: %v", got)
	}
	eventually(t, "only what lives is left", func() bool {
		return number(t, db, "SELECT COUNT(*) FROM hasp_claims") == 3 && number(t, db, "SELECT COUNT(*) FROM hasp_sessions WHERE session > 0") == 1
	})
}

// eventually waits for what is done beside the calls.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not yet: %s", what)
		}
	}
}

// A late copy of a Join whose claim has left makes a ghost. Nobody names it, so the
// session of its client does not keep it alive.
func TestAGhostDiesThoughItsClientsSessionGoesOn(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	life := held(5*time.Second, 0)
	others := joined(t, d, "client", 2, life)
	ghost := mutex("client", "key")
	ghost.Life = life
	if st, err := d.Join(t.Context(), driver.Join{Claim: ghost}); err != nil || st.State != driver.Holding {
		t.Fatal(st.State, err)
	}
	asks := sqlitelease.New(db, nil)
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if got := renewed(t, d, others); got[driver.Holding] != 2 {
			t.Fatalf("the others: %v", got)
		}
		st, err := asks.Join(t.Context(), driver.Join{Claim: mutex("other", "key"), Try: true})
		if err != nil {
			t.Fatal(err)
		}
		if st.State == driver.Holding {
			return
		}
		if time.Now().After(end) {
			t.Fatal("the ghost is still there")
		}
	}
}

// MaxHold: a claim that no renewal names any more ends when it would have by itself,
// though it had lived with others that are renewed.
func TestAClaimThatIsNamedNoMoreIsTakenOutOfTheSession(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	items := joined(t, d, "client", 3, held(10*time.Second, 0))
	renewed(t, d, items)
	const left = "SELECT COUNT(*) FROM hasp_claims WHERE session > 0"
	if n := number(t, db, left); n != 3 {
		t.Fatalf("%d claims live by the session, want 3", n)
	}
	until := number(t, db, "SELECT MAX(expires_at) FROM hasp_sessions WHERE session > 0")
	eventually(t, "one is out", func() bool {
		if got := renewed(t, d, items[1:]); got[driver.Holding] != 2 {
			t.Fatalf("the others: %v", got)
		}
		return number(t, db, left) == 2
	})
	if own := number(t, db, "SELECT expires_at FROM hasp_claims WHERE session = 0"); own > until || own < until-1_000_000 {
		t.Errorf("it expires at %d, its last renewal gave it about %d", own, until)
	}
	if got := renewed(t, d, items); got[driver.Holding]+got[driver.Gone] != 3 || got[driver.Holding] < 2 {
		t.Errorf("named again: %v", got)
	}
}

// Claims that must end by themselves are in no session, whatever they were before.
func TestWhatEndsByItselfLeavesTheSession(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	life := held(time.Minute, 0)
	items := joined(t, d, "client", 5, life)
	renewed(t, d, items)
	own := items[1]
	own.Life.Own = true
	fixed := items[2]
	fixed.Mode = driver.Fix
	renewed(t, d, []driver.Renewal{own, fixed})
	if found, err := d.End(t.Context(), items[3].Keys[0], []int64{items[3].Number}, false); err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	taker := mutex("taker", items[4].Keys...)
	taker.Life = life
	if st, err := d.Join(t.Context(), driver.Join{Claim: taker, Resume: &items[4].Ref}); err != nil || st.State != driver.Holding {
		t.Fatal(st.State, err)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM hasp_claims WHERE session > 0"); n != 1 {
		t.Errorf("%d claims live by the session, want 1", n)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM hasp_claims WHERE session = 0 AND expires_at > (SELECT MAX(expires_at) FROM hasp_sessions WHERE session > 0) - 1000000"); n != 4 {
		t.Errorf("%d claims keep the expiry they had, want 4", n)
	}
	got := renewed(t, d, []driver.Renewal{items[0], items[3], items[4]})
	if got[driver.Holding] != 1 || got[driver.Gone] != 2 {
		t.Errorf("renewed: %v, want those revoked and taken over gone", got)
	}
}

func TestClaimsOfAnotherTTLOrGraceLiveInAnotherSession(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	plain := joined(t, d, "client", 2, held(time.Hour, 0))
	grace := joined(t, d, "client-grace", 2, held(time.Hour, time.Minute))
	short := joined(t, d, "client-short", 2, held(time.Minute, 0))
	all := append(append(plain, grace...), short...)
	if got := renewed(t, d, all); got[driver.Holding] != 6 {
		t.Fatal(got)
	}
	if n := number(t, db, "SELECT COUNT(*) FROM hasp_sessions WHERE session > 0 AND inbox = CAST('client' AS BLOB)"); n != 3 {
		t.Errorf("%d sessions, want 3", n)
	}
	const apart = "SELECT (MAX(expires_at) - (SELECT expires_at FROM hasp_sessions WHERE session > 0 ORDER BY expires_at DESC LIMIT 1 OFFSET 1)) / 1000000 FROM hasp_sessions WHERE session > 0"
	if s := number(t, db, apart); s < 59 || s > 61 {
		t.Errorf("grace adds %d s in the store, want a minute", s)
	}
	// One that asks for more from now on moves, and never back to less.
	long := short[0]
	long.Life.Hold = time.Hour
	if got := renewed(t, d, []driver.Renewal{long}); got[driver.Holding] != 1 {
		t.Error(got)
	}
	renewed(t, d, []driver.Renewal{short[0]})
	page, err := d.Lines(t.Context(), driver.Query{Key: short[0].Keys[0]})
	if err != nil || len(page.Lines) != 1 || page.Lines[0].Holders[0].ExpiresIn < 59*time.Minute {
		t.Errorf("listed as %+v, %v", page, err)
	}
}

// A client that uses more TTLs than there are sessions for keeps its leases all the same.
func TestManyTTLsAtOnceAreRenewedAllTheSame(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	items := joined(t, d, "client", 40, held(time.Hour, 0))
	for i := range items {
		items[i].Life.Hold += time.Duration(i) * time.Minute
	}
	for range 2 {
		if got := renewed(t, d, items); got[driver.Holding] != 40 {
			t.Error(got)
		}
	}
	if n := number(t, db, "SELECT COUNT(*) FROM hasp_sessions WHERE session > 0"); n != 16 {
		t.Errorf("%d sessions, want 16", n)
	}
}

// Who waits behind is seen by those whose row alone was renewed, and only they are told.
func TestWhoWaitsBehindIsSeenThroughTheSession(t *testing.T) {
	t.Parallel()
	path, db := newFile(t)
	d, other := sqlitelease.New(db, nil), sqlitelease.New(openFile(t, path), nil)
	items := joined(t, d, "client", 50, held(time.Hour, 0))
	behind := func() (n int) {
		d.Renew(t.Context(), items, func(_ int, s driver.Standing, err error) {
			if err != nil || s.State != driver.Holding {
				t.Errorf("%v, %v", s.State, err)
			}
			if s.Behind {
				n++
			}
		})
		return n
	}
	wants := func(want int) {
		t.Helper()
		for range 2 {
			if n := behind(); n != want {
				t.Errorf("%d have somebody behind, want %d", n, want)
			}
		}
	}
	wants(0)
	for _, by := range []*sqlitelease.Driver{other, d} {
		c := mutex("waits", items[7].Keys...)
		if st, err := by.Join(t.Context(), driver.Join{Claim: c}); err != nil || st.State != driver.Waiting {
			t.Fatal(st.State, err)
		}
		wants(1)
		if _, err := by.Leave(t.Context(), driver.Leaving{Ref: c.Ref}); err != nil {
			t.Fatal(err)
		}
		wants(0)
	}
}

// One reader that is dead is found among a great many that live, and a great many dead
// ones cost bounded steps.
func TestDeadReadersAreFoundInACrowd(t *testing.T) {
	t.Parallel()
	n := many(2000)
	db := newMemory(t)
	alive, dying := sqlitelease.New(db, nil), sqlitelease.New(db, nil)
	reader := func(d *sqlitelease.Driver, inbox string) driver.Renewal {
		c := mutex(inbox, "key")
		c.Capacity, c.Life = 1<<30, held(time.Hour, 0)
		st, err := d.Join(t.Context(), driver.Join{Claim: c, Try: true})
		if err != nil || st.State != driver.Holding {
			t.Fatal(st.State, err)
		}
		c.Number = st.Number
		return driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}
	}
	var living, dead []driver.Renewal
	for i := range n {
		if i == n/2 {
			dead = append(dead, reader(dying, "dying1"))
		}
		living = append(living, reader(alive, "alive1"))
	}
	renewed(t, alive, living)
	renewed(t, dying, dead)
	run(t, db, "UPDATE hasp_claims SET expires_at = 1 WHERE session > 0")
	run(t, db, "UPDATE hasp_sessions SET expires_at = 1 WHERE session > 0 AND inbox = CAST('dying1' AS BLOB)")
	reader(alive, "alive1")
	if got := number(t, db, "SELECT COUNT(*) FROM hasp_claims WHERE key = CAST('key' AS BLOB)"); got != int64(n+1) {
		t.Errorf("%d readers, want the dead one out, %d", got, n+1)
	}
	if got := renewed(t, alive, living); got[driver.Holding] != n {
		t.Errorf("the living: %v", got)
	}
	run(t, db, "UPDATE hasp_claims SET expires_at = 1; UPDATE hasp_sessions SET expires_at = 1 WHERE session > 0")
	writer := mutex("writer", "key")
	for end := time.Now().Add(patience); ; {
		st, err := dying.Join(t.Context(), driver.Join{Claim: writer, Try: true})
		if err != nil {
			t.Fatal(err)
		}
		if st.State == driver.Holding {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the writer is %v, with %d ahead", st.State, st.Ahead)
		}
	}
}
