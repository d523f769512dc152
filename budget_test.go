package hasp_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestABudgetIsOverAtItsDeadline(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		quiet, end := hasp.Budget(t.Context(), time.Second)
		defer end()
		watched, end := hasp.Budget(t.Context(), time.Second)
		defer end()
		if at, ok := quiet.Deadline(); !ok || time.Until(at) != time.Second {
			t.Errorf("deadline in %s", time.Until(at))
		}
		if quiet.Err() != nil || watched.Err() != nil {
			t.Error("over at once")
		}
		<-watched.Done()
		for _, b := range []context.Context{quiet, watched} {
			if !errors.Is(b.Err(), context.DeadlineExceeded) {
				t.Errorf("error %v", b.Err())
			}
		}
		<-quiet.Done() // also when it is asked for late
	})
}

func TestABudgetIsOverWithItsParent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		parent, cancel := context.WithTimeout(t.Context(), time.Minute)
		b, end := hasp.Budget(parent, time.Hour)
		defer end()
		if at, _ := b.Deadline(); time.Until(at) != time.Minute {
			t.Errorf("deadline in %s, want the parent's", time.Until(at))
		}
		child, stop := context.WithCancel(b)
		defer stop()
		cancel()
		<-child.Done()
		if !errors.Is(b.Err(), context.Canceled) || !errors.Is(child.Err(), context.Canceled) {
			t.Errorf("errors %v and %v", b.Err(), child.Err())
		}
	})
}

func TestABudgetThatIsGivenBackIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type k struct{}
		b, end := hasp.Budget(context.WithValue(t.Context(), k{}, 7), time.Hour)
		if b.Value(k{}) != 7 {
			t.Error("the parent's values are gone")
		}
		child, stop := context.WithCancel(b)
		defer stop()
		end()
		<-child.Done()
		<-b.Done()
		if !errors.Is(b.Err(), context.Canceled) || b.Value(k{}) != 7 {
			t.Errorf("error %v", b.Err())
		}
		late, end := hasp.Budget(t.Context(), time.Hour)
		end()
		if !errors.Is(late.Err(), context.Canceled) {
			t.Errorf("error %v", late.Err())
		}
		<-late.Done()
	})
}

func TestTheMachinesSuspendedTimeIsReadSteadily(t *testing.T) {
	t.Parallel()
	first := hasp.Asleep()
	for range 1000 {
		if d := hasp.Asleep() - first; d < -5*time.Millisecond || d > 5*time.Millisecond {
			t.Fatalf("it has changed by %s", d)
		}
	}
	if first < 0 {
		t.Errorf("suspended for %s", first)
	}
}
