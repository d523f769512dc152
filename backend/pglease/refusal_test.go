package pglease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/pglease"
	"github.com/hasp-dev/hasp/driver"
)

// refused checks that every call is refused in a way that names the remedy.
func refused(t *testing.T, url, remedy string) {
	t.Helper()
	c := newClient(t, newPool(t, url))
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	_, join := c.Join(ctx, driver.Join{Claim: c.claim(time.Minute, "key"), Try: true})
	for what, err := range map[string]error{"Check": c.Check(ctx), "Join": join} {
		if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), remedy) {
			t.Errorf("%s: %v, want ErrRefused that says %q", what, err, remedy)
		}
	}
}

func TestADatabaseThatDoesNotFitIsRefused(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ sql, remedy string }{
		"no tables":          {"DROP TABLE hasp_meta, hasp_claims, hasp_lines, hasp_sessions", "hasp migrate"},
		"one missing":        {"DROP TABLE hasp_sessions", "no table hasp_sessions: run `hasp migrate`"},
		"no function":        {"DROP FUNCTION hasp_v1_holders", "no function \"hasp_v1_holders\": run `hasp migrate`"},
		"an older layout":    {"UPDATE hasp_meta SET value = 0 WHERE name = 'schema'", "older release: run `hasp migrate`"},
		"a newer layout":     {"UPDATE hasp_meta SET value = 2", "newer release"},
		"somebody's table":   {"DROP TABLE hasp_claims; CREATE TABLE hasp_claims (key text)", "is not hasp's"},
		"no unique key":      {"ALTER TABLE hasp_lines DROP CONSTRAINT hasp_lines_pkey", "is not hasp's"},
		"a narrow column":    {"ALTER TABLE hasp_claims ALTER name TYPE varchar(10) USING 'x'", "no column name of type bytea"},
		"another type":       {"ALTER TABLE hasp_lines ALTER last TYPE integer", "no column last of type bigint"},
		"no column":          {"ALTER TABLE hasp_sessions DROP news", "no column news of type bigint"},
		"a read-only server": {"DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET default_transaction_read_only = on'; END $$", "read-only"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			exec(t, connect(t, url), c.sql)
			refused(t, url, c.remedy)
		})
	}
}

// Whoever is not let in is told why, and in time.
func TestAServerThatLetsNobodyInIsTold(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	for what, c := range map[string]struct {
		url    string
		class  error
		remedy string
	}{
		"no database": {server.url("nowhere"), driver.ErrRefused, "no such database"},
		"no user":     {strings.Replace(url, "postgres@", "nobody@", 1), driver.ErrRefused, "does not let this user in"},
		"no server":   {"postgres://postgres@127.0.0.1:1/postgres?sslmode=disable", driver.ErrUnavailable, "connect"},
	} {
		c1 := newClient(t, newPool(t, c.url))
		ctx, stop := context.WithTimeout(t.Context(), soon)
		_, err := c1.Join(ctx, driver.Join{Claim: c1.claim(time.Minute, "key"), Try: true})
		if !errors.Is(err, c.class) || !strings.Contains(err.Error(), c.remedy) || ctx.Err() != nil {
			t.Errorf("%s: %v, want %v that says %q before the call's time is over", what, err, c.class, c.remedy)
		}
		stop()
	}
}

func TestAUserWithoutRightsIsToldWhich(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	conn := connect(t, url)
	exec(t, conn, "CREATE ROLE poor LOGIN")
	poor := strings.Replace(url, "postgres@", "poor@", 1)
	refused(t, poor, "may not SELECT")
	exec(t, conn, "GRANT SELECT ON hasp_meta TO poor; GRANT SELECT, INSERT, UPDATE, DELETE ON hasp_claims, hasp_lines TO poor; GRANT SELECT, INSERT, DELETE ON hasp_sessions TO poor")
	refused(t, poor, "may not UPDATE on table hasp_sessions")
	exec(t, conn, "GRANT UPDATE ON hasp_sessions TO poor")
	newClient(t, newPool(t, poor)).holds(time.Minute, "key")
	exec(t, conn, "REVOKE EXECUTE ON FUNCTION hasp_v1_leave FROM PUBLIC")
	refused(t, poor, "may not EXECUTE the function")
}

// Tables that come later are found without a restart.
func TestTM1_TablesMadeLaterAreFound(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	pool := newPool(t, url)
	c := newClient(t, pool)
	for range 2 {
		if _, err := c.Join(t.Context(), driver.Join{Claim: c.claim(time.Minute, "key"), Try: true}); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("without tables: %v", err)
		}
	}
	if n := number(t, connect(t, url), "SELECT count(*) FROM pg_tables WHERE tablename LIKE 'hasp%'"); n != 0 {
		t.Errorf("locking has made %d tables", n)
	}
	if err := pglease.Migrate(t.Context(), pool, nil); err != nil {
		t.Fatal(err)
	}
	c.holds(time.Minute, "key")
}

// A running client meets tables that a later release has made its own.
func TestARunningClientDoesNotTouchNewerTables(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	c := newClient(t, newPool(t, url))
	x := c.holds(time.Minute, "key")
	exec(t, connect(t, url), "UPDATE hasp_meta SET value = 2; DROP FUNCTION hasp_v1_leave") // as its migration does
	_, err := c.Leave(t.Context(), driver.Leaving{Ref: x.Ref})
	if !errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("%v, want ErrRefused that says so", err)
	}
}

func TestMigrateMayRunManyTimesAtOnce(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	pool := newPool(t, url+"&pool_max_conns=8")
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if err := pglease.Migrate(t.Context(), pool, nil); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c := newClient(t, pool)
	x := c.holds(time.Minute, "key")
	if err := pglease.Migrate(t.Context(), pool, nil); err != nil {
		t.Error(err)
	}
	c.leave(x, driver.Left)
	exec(t, connect(t, url), "UPDATE hasp_meta SET value = 2 WHERE name = 'schema'; ALTER TABLE hasp_claims ADD extra int")
	if err := pglease.Migrate(t.Context(), pool, nil); err != nil {
		t.Errorf("newer tables that this release may use: %v", err)
	}
	exec(t, connect(t, url), "UPDATE hasp_meta SET value = 2")
	if err := pglease.Migrate(t.Context(), pool, nil); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("newer tables: %v, want ErrRefused", err)
	}
}

// Two sets of tables in one database do not know each other; a schema is another.
func TestSchemaAndPrefixKeepApart(t *testing.T) {
	t.Parallel()
	url := emptyDatabase(t)
	pool := newPool(t, url)
	exec(t, connect(t, url), "CREATE SCHEMA locks")
	for _, o := range []*pglease.Options{nil, {Prefix: "other_"}, {Schema: "locks"}, {Schema: "locks", Prefix: "X"}} {
		if err := pglease.Migrate(t.Context(), pool, o); err != nil {
			t.Fatal(err)
		}
		c := &client{tb: t, Driver: pglease.New(pool, o)}
		c.holds(time.Minute, "key")
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	text, err := pglease.SchemaSQL(&pglease.Options{Schema: "locks", Prefix: "by_hand_"})
	if err != nil {
		t.Fatal(err)
	}
	conn := connect(t, url)
	exec(t, conn, text)
	exec(t, conn, text)
	c := &client{tb: t, Driver: pglease.New(pool, &pglease.Options{Schema: "locks", Prefix: "by_hand_"})}
	c.holds(time.Minute, "key")
	if err := c.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := pglease.Migrate(t.Context(), pool, &pglease.Options{Schema: "nowhere"}); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("a schema that is not there: %v, want ErrRefused", err)
	}
	if err := pglease.New(pool, &pglease.Options{Prefix: `"`}).Features().Err; !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("a prefix with a quote: %v, want ErrInvalid", err)
	}
}

func TestANilPoolIsInTheFeatures(t *testing.T) {
	t.Parallel()
	for _, d := range []*pglease.Driver{pglease.New(nil, nil), pglease.NewSQL(nil, nil)} {
		if err := d.Features().Err; !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("%v, want ErrInvalid", err)
		}
		if err := d.Check(t.Context()); !errors.Is(err, driver.ErrInvalid) {
			t.Errorf("Check: %v, want ErrInvalid", err)
		}
		if err := d.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
