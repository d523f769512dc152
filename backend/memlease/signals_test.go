package memlease_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

var missed = driver.Signal{Kind: driver.Missed}

func to(j driver.Join, kind driver.SignalKind, s driver.Standing) driver.Signal {
	return driver.Signal{Kind: kind, Key: j.Keys[0], ID: j.ID, Number: s.Number}
}

func TestTheNextHolderIsToldAndNobodyElse(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		other := c.another()
		ear, others := c.listens(), other.listens()
		ear.hears(missed)
		others.hears(missed)
		a, b, third := c.claim("k"), other.claim("k"), c.claim("k")
		c.joins(a, driver.Holding)
		s := other.joins(b, driver.Waiting)
		c.joins(third, driver.Waiting)
		c.leaves(a, driver.Left)
		others.hears(to(b, driver.Granted, s))
		ear.hears()
	})
}

func TestAClaimOfSeveralKeysIsToldOncePerLine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		a, b, both := c.claim("a"), c.claim("b"), c.claim("a", "b", "c")
		ear := c.listens()
		c.joins(a, driver.Holding)
		c.joins(b, driver.Holding)
		s := c.joins(both, driver.Waiting)
		ear.hears(missed)
		c.leaves(a, driver.Left)
		c.leaves(a, driver.Gone)
		ear.hears(driver.Signal{Kind: driver.Turn, Key: "a", ID: both.ID, Number: s.Number})
		c.renews(both, driver.Waiting)
		c.leaves(b, driver.Left)
		ear.hears(driver.Signal{Kind: driver.Turn, Key: "b", ID: both.ID, Number: s.Number})
		c.renews(both, driver.Holding)
		ear.hears(to(both, driver.Granted, s))
	})
}

func TestTheDeadOfSeveralKeysHandOverInTheirOtherLines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ear := c.listens()
		both, waiter := c.claim("a", "b"), c.claim("b")
		both.Life.Hold = 3 * second
		c.joins(both, driver.Holding)
		s := c.joins(waiter, driver.Waiting)
		ear.hears(missed)
		time.Sleep(3 * second)
		c.joins(c.claim("a"), driver.Holding)
		ear.hears(to(waiter, driver.Granted, s))
	})
}

func TestAnEndedHolderIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ear := c.listens()
		a, b := c.claim("k"), c.claim("k")
		s, next := c.joins(a, driver.Holding), c.joins(b, driver.Waiting)
		ear.hears(missed)
		for _, force := range []bool{false, false, true} {
			if found, err := c.End(t.Context(), "k", []int64{1, s.Number}, force); err != nil || len(found) != 1 {
				t.Fatal(found, err)
			}
		}
		ended := to(a, driver.Ended, s)
		revoked := ended
		revoked.Revoked = true
		ear.hears(revoked, revoked, ended, to(b, driver.Granted, next))
	})
}

func TestAWatchedKeyTellsWhoWaitsAndWhenHoldersChange(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		other := c.another()
		ear := c.listens()
		stop := c.Watch("k")
		again := c.Watch("k")
		ear.hears(missed)
		wanted, changed := driver.Signal{Kind: driver.Wanted, Key: "k"}, driver.Signal{Kind: driver.Changed, Key: "k"}
		a, b := other.claim("k"), other.claim("k")
		other.joins(a, driver.Holding)
		ear.hears(changed)
		other.joins(b, driver.Waiting)
		ear.hears(wanted)
		other.renews(a, driver.Holding)
		ear.hears()
		other.leaves(a, driver.Left)
		ear.hears(changed)
		stop()
		stop()
		other.leaves(b, driver.Left)
		ear.hears(changed)
		again()
		other.joins(a, driver.Holding)
		ear.hears()
		if keys, _ := c.store.Watched(); keys != 0 {
			t.Errorf("%d keys watched", keys)
		}
	})
}

func TestALongQueueIsReplacedByMissed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ear := c.listens()
		ear.hears(missed)
		resume := c.Stall()
		other := c.another()
		other.inbox = c.inbox
		j := other.claim("k")
		var s driver.Standing
		for range 5000 {
			s = other.joins(j, driver.Holding)
			if _, err := other.End(t.Context(), "k", []int64{s.Number}, true); err != nil {
				t.Fatal(err)
			}
		}
		ear.hears()
		resume()
		synctest.Wait()
		last := to(j, driver.Ended, s)
		if n := len(ear.heard); n > 1000 || ear.heard[0] != missed || ear.heard[n-1] != last {
			t.Errorf("%d heard, from %v to %v", n, ear.heard[0], ear.heard[n-1])
		}
	})
}

func TestStallHoldsBackSignalsAndDeliversThemInOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		other := c.another()
		ear := c.listens()
		ear.hears(missed)
		a, b, d := c.claim("k"), c.claim("k"), c.claim("k")
		c.joins(a, driver.Holding)
		sb, sd := c.joins(b, driver.Waiting), c.joins(d, driver.Waiting)
		resume := c.Stall()
		other.leaves(a, driver.Left)
		other.leaves(b, driver.Left)
		ear.hears()
		resume()
		ear.hears(to(b, driver.Granted, sb), to(d, driver.Granted, sd))
	})
}

func TestListenEndsWithItsContextAndWithClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		c.Watch("k")
		cut, closed := c.listens(), c.listens()
		synctest.Wait()
		cut.stop()
		synctest.Wait()
		if !errors.Is(cut.err, context.Canceled) || closed.err != nil {
			t.Errorf("%v, %v", cut.err, closed.err)
		}
		if err := c.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if !errors.Is(closed.err, driver.ErrUnavailable) {
			t.Errorf("%v", closed.err)
		}
		if keys, inboxes := c.store.Watched(); keys != 0 || inboxes != 0 {
			t.Errorf("%d keys watched, %d inboxes", keys, inboxes)
		}
		c.Watch("k")()
		if err := c.Listen(t.Context(), [6]byte{1}, nil); !errors.Is(err, driver.ErrUnavailable) {
			t.Errorf("%v", err)
		}
	})
}

func TestSignalsThatComeWhileOthersAreDeliveredKeepTheirOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		ctx, cancel := context.WithCancel(t.Context())
		var heard, want []int64
		end := func() { // deliver may call the driver
			j := c.claim("k")
			s, joined := c.Join(ctx, j)
			_, ended := c.End(ctx, "k", []int64{s.Number}, true)
			if joined != nil || ended != nil {
				t.Error(joined, ended)
			}
			want = append(want, s.Number)
		}
		resume := c.Stall()
		go func() {
			_ = c.Listen(ctx, [6]byte{1}, func(s driver.Signal) {
				if s.Kind == driver.Ended {
					heard = append(heard, s.Number)
				}
				for range 2 {
					if len(want) < 1000 {
						end()
					}
				}
			})
		}()
		resume()
		synctest.Wait()
		cancel()
		if len(heard) != 1000 || !slices.Equal(heard, want) {
			t.Errorf("%d heard of %d", len(heard), len(want))
		}
	})
}
