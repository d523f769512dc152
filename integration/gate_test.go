package integration_test

import (
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
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
