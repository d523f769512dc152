package fence_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/fence"
)

func TestGateRefusesSmallerTokens(t *testing.T) {
	t.Parallel()
	var g fence.Gate
	wantNil(t, g.Admit("a", 5))
	wantNil(t, g.Admit("a", 5))
	wantNil(t, g.Admit("b", 1))
	wantNil(t, g.Admit("a", 9))
	err := g.Admit("a", 5)
	wantStale(t, err, "a", 9, 5)
	for _, part := range []string{`"a"`, "9", "5"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %s", err, part)
		}
	}
	wantStale(t, g.Do(t.Context(), "a", 8, never(t)), "a", 9, 8)
	wantNil(t, g.Admit("a", 9))
}

func TestGateRefusesWhatIsNoToken(t *testing.T) {
	t.Parallel()
	var g fence.Gate
	for _, token := range []int64{0, -1} {
		wantIs(t, g.Admit("a", token), hasp.ErrInvalid)
		wantIs(t, g.Do(t.Context(), "a", token, never(t)), hasp.ErrInvalid)
	}
	wantIs(t, g.Admit("", 1), hasp.ErrInvalid)
	wantIs(t, g.Admit(strings.Repeat("x", 513), 1), hasp.ErrInvalid)
	wantIs(t, (&fence.Gate{Limit: -1}).Admit("a", 1), hasp.ErrInvalid)
}

func never(t *testing.T) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		t.Error("it ran")
		return nil
	}
}

// hold runs until it is let go, and says so in between.
type hold struct {
	begun, goOn chan struct{}
	ended       chan error
	ctx         context.Context
}

func holdGate(ctx context.Context, g *fence.Gate, resource string, token int64) *hold {
	h := &hold{begun: make(chan struct{}), goOn: make(chan struct{}), ended: make(chan error, 1)}
	go func() {
		h.ended <- g.Do(ctx, resource, token, func(ctx context.Context) error {
			h.ctx = ctx
			close(h.begun)
			<-h.goOn
			return ctx.Err()
		})
	}()
	return h
}

func (h *hold) inside() bool {
	synctest.Wait()
	select {
	case <-h.begun:
		return true
	default:
		return false
	}
}

func TestGateLetsALaterHolderInWhenTheEarlierOneIsOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g fence.Gate
		ctx := t.Context()
		first := holdGate(ctx, &g, "a", 5)
		twin := holdGate(ctx, &g, "a", 5)
		if !first.inside() || !twin.inside() {
			t.Fatal("two calls with one token do not run side by side")
		}
		wantNil(t, first.ctx.Err())
		later := holdGate(ctx, &g, "a", 6)
		if later.inside() {
			t.Fatal("a later holder runs beside an earlier one")
		}
		wantStale(t, context.Cause(first.ctx), "a", 6, 5)
		wantStale(t, context.Cause(twin.ctx), "a", 6, 5)
		wantStale(t, g.Admit("a", 5), "a", 6, 5)

		close(first.goOn)
		err := <-first.ended
		wantStale(t, err, "a", 6, 5)
		wantIs(t, err, context.Canceled)
		if later.inside() {
			t.Fatal("a later holder runs beside an earlier one's second call")
		}
		close(twin.goOn)
		if !later.inside() {
			t.Fatal("the later holder does not run, though nobody is inside")
		}
		wantNil(t, later.ctx.Err())
		close(later.goOn)
		wantNil(t, <-later.ended)
	})
}

func TestGateRefusesAHolderThatWaitsWhenALaterOneComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g fence.Gate
		first := holdGate(t.Context(), &g, "a", 5)
		first.inside()
		second := holdGate(t.Context(), &g, "a", 6)
		second.inside()
		third := holdGate(t.Context(), &g, "a", 7)
		third.inside()
		close(first.goOn)
		wantStale(t, <-second.ended, "a", 7, 6)
		if second.inside() || !third.inside() {
			t.Error("want the latest holder inside, and nobody else")
		}
		close(third.goOn)
		wantNil(t, <-third.ended)
	})
}

func TestGateWaitsNoLongerThanTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g fence.Gate
		first := holdGate(t.Context(), &g, "a", 5)
		first.inside()
		ctx, cancel := context.WithCancelCause(t.Context())
		second := holdGate(ctx, &g, "a", 6)
		second.inside()
		reason := errors.New("enough")
		cancel(reason)
		wantIs(t, <-second.ended, reason)
		wantStale(t, g.Admit("a", 5), "a", 6, 5)
		close(first.goOn)
		wantStale(t, <-first.ended, "a", 6, 5)
		if second.inside() {
			t.Error("it ran after its context had ended")
		}
	})
}

func TestGateOpensAgainAfterAPanic(t *testing.T) {
	t.Parallel()
	var g fence.Gate
	func() {
		defer func() {
			if r := recover(); r != "boom" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = g.Do(t.Context(), "a", 5, func(context.Context) error { panic("boom") })
	}()
	wantNil(t, g.Do(t.Context(), "a", 6, func(context.Context) error { return nil }))
}

func TestGateAnswersTheErrorOfTheFunctionAsItIs(t *testing.T) {
	t.Parallel()
	var g fence.Gate
	reason := errors.New("disk full")
	if err := g.Do(t.Context(), "a", 5, func(context.Context) error { return reason }); err != reason { //nolint:errorlint // as it is
		t.Errorf("got %v", err)
	}
}

// What was forgotten is not let pass by guess.
func TestGateForgetsTheResourceUsedLeastAndRemembersWhatThatWas(t *testing.T) {
	t.Parallel()
	g := fence.Gate{Limit: 2}
	wantNil(t, g.Admit("old", 100))
	wantNil(t, g.Admit("used", 3))
	wantNil(t, g.Admit("old", 100))
	wantNil(t, g.Admit("used", 3))
	wantNil(t, g.Admit("new", 50)) // forgets old
	if n := g.Known(); n != 2 {
		t.Errorf("it knows %d resources, want 2", n)
	}
	wantNil(t, g.Admit("used", 3)) // its token is small, but it is known

	err := g.Admit("old", 99)
	wantStale(t, err, "old", 100, 99)
	var stale *fence.StaleError
	if errors.As(err, &stale) && (!stale.Forgotten || !strings.Contains(err.Error(), "Gate.Limit")) {
		t.Errorf("%v does not say that it was forgotten", err)
	}
	wantStale(t, g.Admit("never seen", 99), "never seen", 100, 99)
	wantNil(t, g.Admit("old", 100)) // its holder goes on
}

func TestGateForgetsNothingInUse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := fence.Gate{Limit: 1}
		first := holdGate(t.Context(), &g, "a", 5)
		first.inside()
		for i := range int64(10) {
			wantNil(t, g.Admit(fmt.Sprint("other", i), 10+i))
		}
		later := holdGate(t.Context(), &g, "a", 20)
		if later.inside() {
			t.Error("the gate has forgotten who is inside")
		}
		close(first.goOn)
		close(later.goOn)
		wantStale(t, <-first.ended, "a", 20, 5)
		wantNil(t, <-later.ended)
		if n := g.Known(); n != 1 {
			t.Errorf("it knows %d resources, want 1", n)
		}
	})
}

func TestGateUnderManyGoroutinesAdmitsInOrder(t *testing.T) {
	t.Parallel()
	g := fence.Gate{Limit: 2}
	var all sync.WaitGroup
	var mu sync.Mutex
	type state struct {
		users         int
		token, latest int64
	}
	var resources [3]state // guarded by mu
	for range 8 {
		all.Go(func() {
			for range 2000 {
				n, token := rand.IntN(len(resources)), 1+rand.Int64N(1000)
				err := g.Do(t.Context(), strconv.Itoa(n), token, func(context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					r := &resources[n]
					if r.users > 0 && r.token != token || token < r.latest {
						t.Errorf("%d came in at %+v", token, *r)
					}
					r.users, r.token, r.latest = r.users+1, token, token
					mu.Unlock()
					runtime.Gosched()
					mu.Lock()
					r.users--
					return nil
				})
				if err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
