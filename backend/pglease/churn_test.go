package pglease_test

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Tables and indexes come to a size and stay there, however many locks come and go. A
// vacuum is run when a round is over: on a busy machine autovacuum comes late. The long
// check leaves it to autovacuum.
func TestTablesDoNotGrowWithUse(t *testing.T) {
	t.Parallel()
	long := os.Getenv("HASP_SOAK") == "1"
	rounds, most := 8, int64(2<<20)
	if long {
		rounds, most = 200, 6<<20
	}
	url := newDatabase(t)
	c := newClient(t, newPool(t, url+"&pool_max_conns=4"))
	conn := connect(t, url)
	var sizes []int64
	for range rounds {
		var wg sync.WaitGroup
		for who := range 4 {
			wg.Go(func() { c.churn(250, who) })
		}
		wg.Wait()
		if !long {
			exec(t, conn, "VACUUM hasp_claims, hasp_lines, hasp_sessions")
		}
		sizes = append(sizes, number(t, conn, "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN ('hasp_claims', 'hasp_lines', 'hasp_sessions')"))
	}
	// With the dead rows of one round they have at most 1.2 MB. Where nothing is ever used
	// again, each lock leaves 350 bytes.
	if sizes[rounds-1] > most {
		t.Errorf("the tables have %d bytes after rounds of 1000 locks each, want %d at most in the end", sizes, most)
	}
}

// churn takes and gives back that many locks, a hundred keys in turn.
func (c *client) churn(locks, who int) {
	c.tb.Helper()
	for n := range locks {
		x := c.holds(time.Minute, fmt.Sprintf("key:%d:%d", who, n%100))
		if n%10 == 0 {
			c.renew(x)
		}
		c.leave(x, driver.Left)
	}
}

// A lock rewrites the row of its line within the page, without a word to an index. None of
// the updates do where an index has a column that changes. How many do besides depends on
// who looks at the table meanwhile: an old snapshot halves them.
func TestLockRewritesItsLineInThePage(t *testing.T) {
	t.Parallel()
	const warm, locks = 200, 1000
	pool := newPool(t, newDatabase(t)+"&pool_max_conns=1")
	c := newClient(t, pool)
	// Counters are told late, so a number of updates is waited for.
	counters := func(least int64) (updates, inPage int64) {
		t.Helper()
		ctx, stop := context.WithTimeout(t.Context(), 2*soon)
		defer stop()
		for {
			err := pool.QueryRow(ctx, "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'hasp_lines'").Scan(&updates, &inPage)
			if err != nil {
				t.Fatalf("%d updates are counted, want %d at least: %v", updates, least, err)
			}
			if updates >= least {
				return updates, inPage
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
	c.churn(warm, 0)
	before, inPageBefore := counters(warm - 100) // the first lock of each key inserts
	c.churn(locks, 0)
	updates, inPage := counters(before + locks)
	if share := 100 * (inPage - inPageBefore) / (updates - before); share < 20 {
		t.Errorf("%d %% of the updates of lines stay in their page, want 20 at least", share)
	}
}

// What an update changes is not indexed, a page has room for the next version of its rows,
// and a vacuum comes when a small part of a table is dead.
func TestTablesAreMadeForUpdates(t *testing.T) {
	t.Parallel()
	conn := connect(t, newDatabase(t))
	const indexes = `SELECT string_agg(DISTINCT a.attname, ' ' ORDER BY a.attname) FROM pg_index i
		JOIN pg_attribute a ON a.attrelid = i.indexrelid WHERE i.indrelid = $1::regclass`
	for table, want := range map[string]string{"hasp_claims": "id key number", "hasp_lines": "key sweep_at", "hasp_sessions": "inbox session"} {
		var indexed string
		if err := conn.QueryRow(t.Context(), indexes, table).Scan(&indexed); err != nil || indexed != want {
			t.Errorf("%s has indexes on %s, want %s: %v", table, indexed, want, err)
		}
		const options = `SELECT count(*) FROM pg_class, pg_options_to_table(reloptions) WHERE oid = $1::regclass AND
			(option_name = 'fillfactor' AND option_value::float <= 80 OR option_name = 'autovacuum_vacuum_scale_factor' AND option_value::float <= 0.1)`
		if n := number(t, conn, options, table); n != 2 {
			t.Errorf("%s keeps %d of its fillfactor of at most 80 and its vacuum scale of at most 0.1", table, n)
		}
	}
}

// Lines and sessions that have served are swept.
func TestWhatHasServedIsSwept(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	c := newClient(t, newPool(t, url))
	conn := connect(t, url)
	for i := range 150 {
		c.leave(c.holds(time.Minute, fmt.Sprintf("key:%d", i)), driver.Left)
	}
	dead := c.holds(time.Minute, "dead")
	c.renew(dead)
	if _, err := c.Leave(t.Context(), driver.Leaving{Ref: c.claim(time.Minute, "key").Ref, Unanswered: true, Remember: time.Minute}); err != nil {
		t.Fatal(err)
	}
	live := c.holds(10*time.Minute, "live")
	exec(t, conn, "UPDATE hasp_lines SET sweep_at = 1")
	exec(t, conn, "UPDATE hasp_claims SET expires_at = 1 WHERE key = 'dead'; UPDATE hasp_sessions SET expires_at = 1 WHERE session > 0; UPDATE hasp_lines SET soon = 1 WHERE get_byte(key, 0) = 0 OR key = 'dead'")
	if err := c.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := number(t, conn, "SELECT count(*) FROM hasp_lines"); n != 2 {
		t.Errorf("%d lines are left, want the one in use and the one whose number must outlive it", n)
	}
	if n := number(t, conn, "SELECT count(*) FROM hasp_claims"); n != 1 {
		t.Errorf("%d claims are left, want the one that lives", n)
	}
	if n := number(t, conn, "SELECT count(*) FROM hasp_sessions"); n != 1 {
		t.Errorf("%d sessions are left, want the client's", n)
	}
	c.leave(live, driver.Left)
}
