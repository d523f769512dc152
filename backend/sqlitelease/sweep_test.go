package sqlitelease_test

import (
	"database/sql"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

func symlink(t *testing.T, from, to string) {
	t.Helper()
	if err := os.Symlink(from, to); err != nil {
		t.Fatal(err)
	}
}

// rows counts what is in the tables of lines and claims.
func rows(t *testing.T, db *sql.DB) (n int) {
	t.Helper()
	if err := db.QueryRow("SELECT (SELECT COUNT(*) FROM hasp_lines) + (SELECT COUNT(*) FROM hasp_claims)").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// age makes everything in the tables an hour older.
func age(t *testing.T, db *sql.DB) {
	t.Helper()
	const text = "UPDATE hasp_lines SET sweep_at = sweep_at - 3600000000; UPDATE hasp_claims SET expires_at = expires_at - 3600000000"
	if _, err := db.Exec("PRAGMA busy_timeout = 5000; " + text); err != nil {
		t.Fatal(err)
	}
}

// churn uses n new keys: of four claims one is left to expire and one is remembered.
func churn(t *testing.T, d *sqlitelease.Driver, n int) {
	t.Helper()
	for i := range n {
		c := mutex("client", fmt.Sprintf("key-%d-%d", time.Now().UnixNano(), i))
		if _, err := d.Join(t.Context(), driver.Join{Claim: c}); err != nil {
			t.Fatal(err)
		}
		if i%4 == 0 {
			continue
		}
		l := driver.Leaving{Ref: c.Ref, Unanswered: i%4 == 1, Remember: time.Second}
		if _, err := d.Leave(t.Context(), l); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTablesDoNotGrowWithTheKeysEverUsed(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	const n = 1000
	for range 4 {
		churn(t, d, n)
		age(t, db)
	}
	if got := rows(t, db); got > 2*n {
		t.Errorf("%d rows after %d keys, want those of the last %d at most", got, 4*n, n)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestAnIdleClientSweepsTheTablesEmpty(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.NewSweeping(db, 20*time.Millisecond)
	churn(t, d, 500)
	age(t, db)
	deadline := time.Now().Add(patience)
	for rows(t, db) > 0 && time.Now().Before(deadline) {
		time.Sleep(10 * time.Millisecond)
		age(t, db) // what was emptied just now is remembered for a while
	}
	if got := rows(t, db); got > 0 {
		t.Errorf("%d rows are left", got)
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A line that is swept while somebody holds it stays, and so do its numbers.
func TestALineInUseIsNotSwept(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	c := mutex("client", "key")
	first, err := d.Join(t.Context(), driver.Join{Claim: c})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE hasp_lines SET sweep_at = 0, last = last + 1000000000"); err != nil {
		t.Fatal(err)
	}
	churn(t, d, 8)
	if _, err := d.Leave(t.Context(), driver.Leaving{Ref: c.Ref}); err != nil {
		t.Fatal(err)
	}
	churn(t, d, 8)
	s, err := d.Join(t.Context(), driver.Join{Claim: mutex("client", "key")})
	if err != nil || s.Number != first.Number+1000000001 {
		t.Errorf("the next number is %d after %d: %v", s.Number, first.Number+1000000000, err)
	}
}

// What is held for long is looked at by the sweep ever less often: each look is a write.
func TestALineThatIsHeldForLongIsSeldomSwept(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	d := sqlitelease.New(db, nil)
	c := mutex("client", "key")
	c.Life.Hold = time.Hour
	if _, err := d.Join(t.Context(), driver.Join{Claim: c}); err != nil {
		t.Fatal(err)
	}
	const clock = "CAST((julianday('now') - 2440587.5) * 86400000000 AS INTEGER)"
	for _, minutes := range []int64{0, 30, 600} {
		if _, err := db.Exec("UPDATE hasp_lines SET sweep_at = 0, last = "+clock+" - $1 WHERE key = CAST('key' AS BLOB)", minutes*60_000_000); err != nil {
			t.Fatal(err)
		}
		churn(t, d, 8)
		var again int64
		if err := db.QueryRow("SELECT (sweep_at - " + clock + ") / 60000000 FROM hasp_lines WHERE key = CAST('key' AS BLOB)").Scan(&again); err != nil {
			t.Fatal(err)
		}
		if want := min(max(minutes, 1), 60); again > want || again < want-1-want/2 {
			t.Errorf("after %d minutes it is looked at again in %d, want %d", minutes, again, want)
		}
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
