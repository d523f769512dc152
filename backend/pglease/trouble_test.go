package pglease_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// unavailable checks an error that comes when its context ends, and says what was in the way.
func unavailable(t *testing.T, err error, says string) {
	t.Helper()
	if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), says) {
		t.Errorf("%v, want ErrUnavailable with the context's error that says %q", err, says)
	}
}

func TestAFullPoolIsSaid(t *testing.T) {
	t.Parallel()
	pool := newPool(t, newDatabase(t)+"&pool_max_conns=1")
	c := newClient(t, pool)
	c.holds(time.Minute, "other")
	mine, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	_, err = c.Join(ctx, driver.Join{Claim: c.claim(time.Minute, "key"), Try: true})
	unavailable(t, err, "no connection of the pool is free")
	mine.Release()
	c.holds(time.Minute, "key")
}

// Goroutines that hold locks and use the same small pool all come to an end.
func TestCP1_APoolOfOneIsEnough(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, 2} {
		pool := newPool(t, fmt.Sprintf("%s&pool_max_conns=%d", newDatabase(t), size))
		c, err := hasp.New(newClient(t, pool).Driver, nil)
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithTimeout(t.Context(), 2*soon)
		defer stop()
		var wg sync.WaitGroup
		n := 0
		for range 10 {
			wg.Go(func() {
				for range 5 {
					if err := c.Mutex("key").Do(ctx, func(ctx context.Context) error {
						n++
						_, err := pool.Exec(ctx, "SELECT 1")
						return err
					}); err != nil {
						t.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if n != 50 {
			t.Errorf("ran %d times, want 50", n)
		}
		if err := c.Close(ctx); err != nil {
			t.Error(err)
		}
		if s := pool.Stat(); s.AcquiredConns() != 0 {
			t.Errorf("%d connections are out", s.AcquiredConns())
		}
	}
}

// A statement of the user's that is in the way ends no call before its context, whatever
// time limits the server has, and is named.
func TestTimeLimitsOfTheServerOnlyDelay(t *testing.T) {
	t.Parallel()
	for _, setting := range []string{"lock_timeout=20", "statement_timeout=50", "idle_in_transaction_session_timeout=20", "idle_session_timeout=30"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			c := newClient(t, newPool(t, url+"&"+setting))
			x := c.holds(time.Minute, "other")
			conn := connect(t, url)
			exec(t, conn, "BEGIN; SELECT hasp_v1_lock(ARRAY['key'::bytea])")
			ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
			defer stop()
			y := c.claim(time.Minute, "key")
			_, err := c.Join(ctx, driver.Join{Claim: y, Try: true})
			if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("while another transaction is in the way: %v", err)
			}
			if name, _, _ := strings.Cut(setting, "="); strings.HasPrefix(name, "lock") || strings.HasPrefix(name, "statement") {
				unavailable(t, err, name)
			}
			exec(t, conn, "COMMIT")
			if _, err := c.Leave(t.Context(), driver.Leaving{Ref: y.Ref, Unanswered: true, Remember: time.Minute}); err != nil {
				t.Error(err)
			}
			c.leave(c.holds(time.Minute, "key"), driver.Left)
			c.leave(x, driver.Left)
		})
	}
}

// Backends that are killed between and during calls lose nothing.
func TestCP5_KilledBackendsLoseNothing(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url+"&pool_max_conns=8")
	c := newClient(t, pool)
	conn := connect(t, url)
	const kill = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
	var done atomic.Bool
	var wg sync.WaitGroup
	for who := range 4 {
		wg.Go(func() {
			for n := 0; !done.Load(); n++ {
				x := c.claim(time.Minute, fmt.Sprintf("key:%d", who))
				ctx, stop := context.WithTimeout(t.Context(), soon)
				if s, err := c.Join(ctx, driver.Join{Claim: x, Try: true}); err != nil || s.State != driver.Holding {
					t.Errorf("join %d of %d: %v, %v", n, who, s.State, err)
				}
				if s, err := c.Leave(ctx, driver.Leaving{Ref: x.Ref}); err != nil || (s.State != driver.Left && s.State != driver.Gone) {
					t.Errorf("leave %d of %d: %v, %v", n, who, s.State, err)
				}
				stop()
			}
		})
	}
	for range 20 {
		exec(t, conn, kill)
		time.Sleep(50 * time.Millisecond)
	}
	done.Store(true)
	wg.Wait()
	if n := number(t, conn, "SELECT count(*) FROM hasp_claims"); n != 0 {
		t.Errorf("%d claims are left", n)
	}
}

// Calls that are cancelled at any point leave no transaction open and no connection out.
func TestCancelledCallsLeaveNothingOpen(t *testing.T) {
	t.Parallel()
	url := newDatabase(t)
	pool := newPool(t, url+"&pool_max_conns=4")
	c := newClient(t, pool)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			ctx, stop := context.WithTimeout(t.Context(), time.Duration(i)*200*time.Microsecond)
			defer stop()
			x := c.claim(time.Second, "key")
			if _, err := c.Join(ctx, driver.Join{Claim: x}); err != nil && !errors.Is(err, driver.ErrUnavailable) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	ctx, stop := context.WithTimeout(t.Context(), soon)
	defer stop()
	if err := c.Close(ctx); err != nil {
		t.Fatal(err)
	}
	if n := pool.Stat().AcquiredConns(); n != 0 {
		t.Errorf("%d connections are out", n)
	}
	conn := connect(t, url)
	for end := time.Now().Add(soon); number(t, conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in%'") > 0; {
		if time.Now().After(end) {
			t.Fatal("a transaction is left open")
		}
		time.Sleep(10 * time.Millisecond)
	}
	if n := number(t, conn, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); n != 0 {
		t.Errorf("%d advisory locks are left", n)
	}
}

// Serialization failures and deadlocks that others provoke do not reach callers.
func TestIS1_OtherIsolationLevelsChangeNothing(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"read uncommitted", "repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			url := newDatabase(t)
			exec(t, connect(t, url), "DO $$ BEGIN EXECUTE 'ALTER DATABASE ' || current_database() || ' SET default_transaction_isolation = ''"+level+"'''; END $$")
			pool := newPool(t, url+"&pool_max_conns=10")
			var wg sync.WaitGroup
			var inside, ran atomic.Int64
			for range 8 {
				c, err := hasp.New(newClient(t, pool).Driver, nil)
				if err != nil {
					t.Fatal(err)
				}
				wg.Go(func() {
					for range 25 {
						if err := c.Mutex("key", "other").Do(t.Context(), func(context.Context) error {
							if inside.Add(1) != 1 {
								t.Error("two at once")
							}
							ran.Add(1)
							inside.Add(-1)
							return nil
						}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			wg.Wait()
			if ran.Load() != 200 {
				t.Errorf("ran %d times, want 200", ran.Load())
			}
		})
	}
}
