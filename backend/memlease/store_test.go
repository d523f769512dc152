package memlease_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

func TestDropLosesEveryClaimOfTheLineWithoutASignal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ear := c.listens()
		a, b, both := c.claim("k"), c.claim("k"), c.claim("k", "other")
		last := c.joins(a, driver.Holding).Number
		c.joins(b, driver.Waiting)
		c.joins(both, driver.Waiting)
		c.store.Drop("k")
		c.store.Drop("unknown")
		ear.hears(driver.Signal{Kind: driver.Missed})
		for _, j := range []driver.Join{a, b, both} {
			c.renews(j, driver.Gone)
		}
		if s := c.joins(c.claim("k", "other"), driver.Holding); s.Number <= last {
			t.Errorf("number %d after %d", s.Number, last)
		}
	})
}

func TestWipeForgetsNumbersAndRememberedIDs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		a, late := c.claim("k"), c.claim("k")
		c.joins(a, driver.Holding)
		_, err := c.Leave(t.Context(), driver.Leaving{Ref: late.Ref, Unanswered: true, Remember: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		c.joins(late, driver.Gone)
		c.store.Wipe()
		if n := c.store.Sizes(); n != [4]int{} {
			t.Errorf("sizes %v", n)
		}
		c.renews(a, driver.Gone)
		if s := c.joins(late, driver.Holding); s.Number != time.Now().UnixMicro() {
			t.Errorf("number %d", s.Number)
		}
	})
}

func TestTheLastNumberOutlivesTheEmptyLineByTwiceTheTTL(t *testing.T) {
	t.Parallel()
	for _, of := range []struct{ hold, keeps time.Duration }{{second, 10 * second}, {time.Minute, 2 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t)
			j := c.claim("k")
			j.Life.Hold = of.hold
			c.joins(j, driver.Holding)
			c.leaves(j, driver.Left)
			time.Sleep(of.keeps - 1)
			c.leaves(j, driver.Gone)
			if n := c.store.Sizes(); n[0] != 1 {
				t.Errorf("%d lines before %v", n[0], of.keeps)
			}
			time.Sleep(11 * second) // a line that is not due is looked at again by and by
			c.leaves(j, driver.Gone)
			if n := c.store.Sizes(); n[0] != 0 {
				t.Errorf("%d lines after %v", n[0], of.keeps)
			}
		})
	}
}

func TestMemoryReturnsToBaseAfterManyKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		const keys = 100_000
		for i := range keys {
			j := c.claim(key(i), key(i+1))
			c.joins(j, driver.Holding)
			switch i % 3 {
			case 0: // never touched again
			case 1:
				c.leaves(j, driver.Left)
			default:
				_, err := c.Leave(t.Context(), driver.Leaving{Ref: j.Ref, Unanswered: true, Remember: 20 * second})
				if err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(21 * second)
		}
		if n := c.store.Sizes(); n[0] > 100 || n[1] > 100 || n[2] > 100 || n[3] > 1000 {
			t.Errorf("sizes %v after one key at a time", n)
		}
		for i := range keys {
			c.joins(c.claim(key(i)), driver.Holding)
		}
		one := c.claim("k")
		for range keys / 3 {
			time.Sleep(10 * time.Millisecond)
			c.joins(one, driver.Holding)
			c.leaves(one, driver.Left)
		}
		if n := c.store.Sizes(); n[0] > 1 || n[1] != 0 || n[2] != 0 || n[3] > 100 {
			t.Errorf("sizes %v after all keys at once", n)
		}
	})
}

func TestFailAnswersEveryCallUntilItIsTakenBack(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	other := c.another()
	full := errors.New("disk full")
	refused := errors.Join(driver.ErrRefused, full)
	for _, of := range []struct {
		fail        func(error)
		err, class  error
		othersAreOK bool
	}{
		{c.store.Fail, full, driver.ErrUnavailable, false},
		{c.store.Fail, refused, driver.ErrRefused, false},
		{c.Fail, full, driver.ErrUnavailable, true},
	} {
		of.fail(of.err)
		for i, err := range calls(t.Context(), c) {
			if !errors.Is(err, of.class) || !errors.Is(err, full) {
				t.Errorf("call %d answers %v, want %v", i, err, of.class)
			}
		}
		for i, err := range calls(t.Context(), other) {
			if (err == nil) != of.othersAreOK {
				t.Errorf("the other client's call %d answers %v", i, err)
			}
		}
		of.fail(nil)
		for i, err := range calls(t.Context(), c) {
			if err != nil {
				t.Errorf("after Fail(nil) call %d answers %v", i, err)
			}
		}
	}
}

// calls makes every call once, on a key of its own.
func calls(ctx context.Context, c *client) (errs []error) {
	j := c.claim("calls")
	j.Try = true
	_, err := c.Join(ctx, j)
	errs = append(errs, err)
	c.Renew(ctx, []driver.Renewal{{Ref: j.Ref, Mode: driver.Extend, Life: life}}, func(_ int, _ driver.Standing, err error) {
		errs = append(errs, err)
	})
	_, err = c.Leave(ctx, driver.Leaving{Ref: j.Ref})
	errs = append(errs, err)
	_, err = c.Lines(ctx, driver.Query{})
	errs = append(errs, err)
	_, err = c.End(ctx, "calls", []int64{1}, true)
	return append(errs, err, c.Check(ctx))
}

func TestACallWhoseContextHasEndedDoesNothing(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range calls(ctx, c) {
		if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.Canceled) {
			t.Errorf("call %d answers %v", i, err)
		}
	}
	if n := c.store.Sizes(); n != [4]int{} {
		t.Errorf("sizes %v", n)
	}
}

func TestAfterCloseEveryCallIsUnavailable(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	j := c.claim("k")
	c.joins(j, driver.Holding)
	for range 2 {
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, err := range calls(t.Context(), c) {
		if !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("call %d answers %v", i, err)
		}
	}
	c.another().renews(j, driver.Holding) // the claim is still there
}

func TestAStalledCallEndsWithItsContextAndHasDoneNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		resume := c.store.Stall()
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		start := time.Now()
		_, err := c.Join(ctx, c.claim("k"))
		if !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		resume()
		resume()
		if n := len(c.line("k").Holders); n != 0 {
			t.Errorf("%d hold", n)
		}
	})
}

func TestAStalledCallGoesOnWhenEveryStallIsLifted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		j := c.claim("k")
		other := c.another()
		mine, all := c.Stall(), c.store.Stall()
		done := make(chan error)
		go func() {
			_, err := c.Join(t.Context(), j)
			done <- err
		}()
		all()
		synctest.Wait()
		if n := len(other.line("k").Holders); n != 0 {
			t.Errorf("%d hold while the client is stalled", n)
		}
		mine()
		if err := <-done; err != nil {
			t.Error(err)
		}
		other.renews(j, driver.Holding)
	})
}

func TestCloseCutsShortACallThatIsStalled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		defer c.store.Stall()()
		done := make(chan error)
		go func() { done <- c.Check(t.Context()) }()
		synctest.Wait()
		if err := c.Close(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-done; !errors.Is(err, driver.ErrUnavailable) {
			t.Error(err)
		}
	})
}
