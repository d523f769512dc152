package pglease_test

import (
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Tables and indexes come to a size and stay there, however long locks come and go.
func TestTablesDoNotGrowWithUse(t *testing.T) {
	t.Parallel()
	period := 4 * time.Second
	if os.Getenv("HASP_SOAK") == "1" {
		period = 2 * time.Minute
	}
	url := newDatabase(t)
	pool := newPool(t, url+"&pool_max_conns=4")
	c := newClient(t, pool)
	conn := connect(t, url)
	churn := func() (steps int) {
		var wg sync.WaitGroup
		var mu sync.Mutex
		end := time.Now().Add(period)
		for who := range 4 {
			wg.Go(func() {
				n := 0
				for ; time.Now().Before(end); n++ {
					x := c.holds(time.Minute, fmt.Sprintf("key:%d:%d", who, n%100))
					if n%10 == 0 {
						c.renew(x)
					}
					c.leave(x, driver.Left)
				}
				mu.Lock()
				defer mu.Unlock()
				steps += n
			})
		}
		wg.Wait()
		return steps
	}
	size := func() int64 {
		return number(t, conn, "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relname IN ('hasp_claims', 'hasp_lines', 'hasp_sessions')")
	}
	warm := churn()
	before := size()
	more := 0
	for range 3 {
		more += churn()
	}
	after := size()
	// Some thousand dead rows are waited for before a vacuum. What is never reused would be
	// 350 bytes for each lock.
	const most = 6 << 20
	if after > most {
		t.Errorf("%d bytes after %d locks, %d after %d more, want %d at most", before, warm, after, more, most)
	}
	t.Logf("%d bytes after %d locks, %d after %d more", before, warm, after, more)
	hot := number(t, conn, "SELECT (100 * sum(n_tup_hot_upd) / greatest(sum(n_tup_upd), 1))::bigint FROM pg_stat_user_tables WHERE relname = 'hasp_lines'")
	if hot < 90 {
		t.Errorf("%d %% of the updates of lines stay in their page, want 90 at least", hot)
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
