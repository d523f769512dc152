package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/elect"
)

// sights starts an observer of the election, and answers where what it is told comes.
func sights(t *testing.T, c *hasp.Client) <-chan elect.Leader {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	told := make(chan elect.Leader)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for leader, err := range elect.Observe(ctx, c, election) {
			if err != nil {
				continue
			}
			select {
			case told <- leader:
			case <-ctx.Done():
			}
		}
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return told
}

// sees wants the observer to be told of a token, 0 for nobody, and answers after what time
// it was.
func sees(t *testing.T, told <-chan elect.Leader, token int64) time.Duration {
	t.Helper()
	begin := time.Now()
	select {
	case leader := <-told:
		if leader.Token != token {
			t.Fatalf("told of %+v, want token %d", leader, token)
		}
		return time.Since(begin)
	case <-time.After(soon):
		t.Fatalf("not told of %d", token)
		return 0
	}
}

// TestAnObserverIsToldByTheStore: of each leader and of nobody, and sooner than it would
// look by itself.
func TestAnObserverIsToldByTheStore(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		told := sights(t, s.client(t))
		c := s.client(t)
		sees(t, told, 0)
		// By itself it looks every two seconds: five times at once within the half of one
		// is no luck. A watch begins in the background, and a busy machine is late.
		promptly(t, prompt/2, "the slowest of five sights", func() (most time.Duration) {
			for range 5 {
				lease := must(c.Mutex(election).Lock(t.Context()))(t)
				most = max(most, sees(t, told, lease.Token()))
				released(t, lease)
				most = max(most, sees(t, told, 0))
			}
			return most
		})
	})
}

// TestAnObserverWhoseSignalsAreCutLooksByItself: no later than its own look.
func TestAnObserverWhoseSignalsAreCutLooksByItself(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	told := sights(t, s.client(t))
	c := s.client(t)
	sees(t, told, 0)
	for range 3 {
		must(s.redis.Command(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub"))(t)
		lease := must(c.Mutex(election).Lock(t.Context()))(t)
		sees(t, told, lease.Token())
		must(s.redis.Command(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub"))(t)
		released(t, lease)
		sees(t, told, 0)
	}
}
