package integration_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// TestAStickyLeaseIsUsedAgainAndGivenToWhoWaits: a released lease stays with its client
// for a minute, is locked again with the next token, and goes to another client as soon as
// that one waits.
func TestAStickyLeaseIsUsedAgainAndGivenToWhoWaits(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		mine := s.client(t, hasp.Options{Lock: hasp.LockOptions{Sticky: time.Minute, LocalHandoffs: 1}})
		other := s.client(t)
		first := must(mine.Mutex("k").Lock(t.Context()))(t)
		released(t, first)
		second := must(mine.Mutex("k").Lock(t.Context()))(t)
		if second.Token() != first.Token()+1 {
			t.Errorf("token %d after %d, want the next", second.Token(), first.Token())
		}
		released(t, second)
		began := time.Now()
		theirs := must(other.Mutex("k").Lock(t.Context()))(t)
		took := time.Since(began)
		t.Logf("given up within %s", took)
		if took > soon || theirs.Token() <= second.Token() {
			t.Errorf("after %s with token %d, before it was %d", took, theirs.Token(), second.Token())
		}
		released(t, theirs)
		last := must(mine.Mutex("k").Lock(t.Context()))(t)
		wantNil(t, last.Err())
		released(t, last)
	})
}

// line is the way of one client to its store.
type line struct {
	driver.Driver
	driver.Signaler
	muted    bool         // all signals are lost: only that there may have been some is told
	renewals atomic.Int64 // that were answered
}

// Listen implements driver.Signaler.
func (l *line) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	return l.Signaler.Listen(ctx, inbox, func(s driver.Signal) {
		if !l.muted || s.Kind == driver.Missed {
			deliver(s)
		}
	})
}

// Renew implements driver.Driver.
func (l *line) Renew(ctx context.Context, items []driver.Renewal, answer func(int, driver.Standing, error)) {
	l.Driver.Renew(ctx, items, func(i int, s driver.Standing, err error) {
		answer(i, s, err)
		l.renewals.Add(1)
	})
}

// by makes a client that hears signals or, muted, none.
func (s *store) by(t *testing.T, muted bool, o hasp.LockOptions) (*hasp.Client, *line) {
	t.Helper()
	below := s.driver(t)
	sig, ok := below.(driver.Signaler)
	if !ok {
		t.Fatalf("the driver %T does not signal", below)
	}
	l := &line{Driver: below, Signaler: sig, muted: muted}
	c := must(hasp.New(l, &hasp.Options{Lock: o}))(t)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), soon)
		defer stop()
		wantNil(t, c.Close(ctx))
	})
	return c, l
}

// TestAStickyKeyIsGivenUpWithinItsBound: with signals sooner than any look would, which
// comes 0.8 s after the last answer; without any by the second renewal of its place, after two
// seconds, where Sticky is a
// minute. The key is idle, or one that its client locks over and over.
func TestAStickyKeyIsGivenUpWithinItsBound(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		for _, c := range []struct {
			name  string
			muted bool
			bound time.Duration
		}{{"with signals", false, prompt / 2}, {"without", true, 2*time.Second + prompt/2}} {
			mine, way := s.by(t, c.muted, hasp.LockOptions{Sticky: time.Minute, TTL: time.Minute}) // so that no renewal tells sooner
			other, _ := s.by(t, c.muted, hasp.LockOptions{})
			key := "idle " + c.name
			promptly(t, c.bound, key, func() time.Duration {
				seen := way.renewals.Load()
				released(t, must(mine.Mutex(key).Lock(t.Context()))(t))
				eventually(t, soon, "it is looked at", func() bool { return way.renewals.Load() > seen })
				return takes(t, other, key)
			})
			key = "hot " + c.name
			uses, stop := useAgain(t, mine, key)
			promptly(t, c.bound, key, func() time.Duration {
				seen := uses.Load()
				eventually(t, soon, "it is used again", func() bool { return uses.Load() > seen+1 })
				return takes(t, other, key)
			})
			stop()
		}
	})
}

// takes locks a key, gives it back, and answers how long it has waited.
func takes(t *testing.T, c *hasp.Client, key string) time.Duration {
	t.Helper()
	began := time.Now()
	lease := must(c.Mutex(key).Lock(t.Context()))(t)
	took := time.Since(began)
	released(t, lease)
	return took
}

// useAgain locks a key over and over, and counts how often it has had it.
func useAgain(t *testing.T, c *hasp.Client, key string) (uses *atomic.Int64, stop func()) {
	t.Helper()
	uses = new(atomic.Int64)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			lease, err := c.Mutex(key).Lock(ctx)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			uses.Add(1)
			wantNil(t, lease.Release(ctx))
		}
	}()
	return uses, func() {
		end()
		<-done
	}
}

// TestGoroutinesOfTwoProcessesTakeTurns: eight goroutines in each of two clients, which
// hand the lock on among themselves and to each other, count without losing one, and every
// grant has a larger token.
func TestGoroutinesOfTwoProcessesTakeTurns(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const each = 5
		var all sync.WaitGroup
		counter, token := 0, int64(0) // under the lock
		for _, o := range []hasp.LockOptions{{LocalHandoffs: 3}, {LocalHandoffs: 1, Sticky: time.Second}} {
			c := s.client(t, hasp.Options{Lock: o})
			for range 8 {
				all.Go(func() {
					for range each {
						lease, err := c.Mutex("k").Lock(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						if counter++; lease.Token() <= token {
							t.Errorf("token %d after %d", lease.Token(), token)
						}
						token = lease.Token()
						wantNil(t, lease.Release(t.Context()))
					}
				})
			}
		}
		all.Wait()
		if counter != 2*8*each {
			t.Errorf("counted %d, want %d", counter, 2*8*each)
		}
	})
}
