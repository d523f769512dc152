package pglease_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// TestIS2_ConflictsAreTriedAgain: a serialization failure, a deadlock and a lock that was
// not had in time reach no caller, unless they never end.
func TestIS2_ConflictsAreTriedAgain(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"40001", "40P01", "55P03"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			c := newClient(t, newPool(t, url))
			conn := connect(t, url)
			exec(t, conn, "CREATE SEQUENCE turns; CREATE TABLE most (n bigint); INSERT INTO most VALUES (5)")
			exec(t, conn, fmt.Sprintf(`CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
				IF nextval('turns') <= (SELECT n FROM most) THEN RAISE EXCEPTION 'injected' USING ERRCODE = '%s'; END IF; RETURN NEW; END $$;
				CREATE TRIGGER fail BEFORE INSERT ON hasp_claims FOR EACH ROW EXECUTE FUNCTION fail()`, code))
			c.holds(time.Minute, "key")
			if n := number(t, conn, "SELECT last_value FROM turns"); n != 6 {
				t.Errorf("it was tried %d times, want 6", n)
			}
			exec(t, conn, "UPDATE most SET n = 1000000")
			ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer stop()
			_, err := c.Join(ctx, driver.Join{Claim: c.claim(time.Minute, "other"), Try: true})
			unavailable(t, err, "another transaction")
		})
	}
}

// TestIS4_AWorkThatFailsInItsTransactionFreesTheLock, and its error is what the caller sees.
func TestIS4_AWorkThatFailsInItsTransactionFreesTheLock(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url+"&pool_max_conns=2")
	c, err := hasp.New(newClient(t, pool).Driver, nil)
	if err != nil {
		t.Fatal(err)
	}
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var failed error
	err = c.Mutex("key").Do(t.Context(), func(ctx context.Context) error {
		_, failed = tx.Exec(ctx, "SELECT 1 / 0")
		return failed
	})
	if failed == nil || err != failed { //nolint:errorlint // it is to be the very same
		t.Errorf("Do answered %v, want the work's own %v", err, failed)
	}
	lease, err := c.Mutex("key").TryLock(t.Context()) // while the failed transaction is still open
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(lease.Release(t.Context()), tx.Rollback(t.Context()), c.Close(t.Context())); err != nil {
		t.Error(err)
	}
}
