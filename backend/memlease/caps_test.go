package memlease_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

func TestAStepGrants32AndSaysMoreUntilAllHold(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	const readers = 100
	writer := c.share(1<<30, 1<<30, "k")
	c.joins(writer, driver.Holding)
	line := make([]driver.Join, readers)
	for i := range line {
		line[i] = c.share(1, 1<<30, "k")
		c.joins(line[i], driver.Waiting)
	}
	if s := c.leaves(writer, driver.Left); !s.More || len(c.line("k").Holders) != 32 {
		t.Fatalf("%+v, %d hold", s, len(c.line("k").Holders))
	}
	last := line[readers-1]
	for _, hold := range []int{64, 96} {
		s := c.renews(last, driver.Waiting)
		if n := len(c.line("k").Holders); !s.More || s.LookAgain <= 0 || n != hold {
			t.Fatalf("%+v, %d hold, want %d", s, n, hold)
		}
	}
	if s := c.renews(last, driver.Holding); s.More || s.Ahead != readers-1 {
		t.Errorf("%+v", s)
	}
}

func TestAStepRemoves64DeadAndGrantsNobodyBehindThoseLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		const readers = 150
		for range readers {
			c.joins(c.share(1, 1<<30, "k"), driver.Holding)
		}
		time.Sleep(life.Hold)
		writer := c.share(1<<30, 1<<30, "k")
		try := writer
		try.Try = true
		if s := c.joins(try, driver.Refused); !s.More || s.Ahead != readers-64 || s.Holder != "" {
			t.Errorf("%+v", s)
		}
		if s := c.joins(writer, driver.Waiting); !s.More || s.Ahead != readers-128 {
			t.Errorf("%+v", s)
		}
		if s := c.renews(writer, driver.Holding); s.More || s.Ahead != 0 {
			t.Errorf("%+v", s)
		}
	})
}

func TestAClaimThatFitsBesideTheDeadLeftInFrontDoesNotHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		const dead, permits = 200, 300
		for range dead {
			c.joins(c.share(1, permits, "k"), driver.Holding)
		}
		time.Sleep(life.Hold - second)
		big := c.share(120, permits, "k")
		c.joins(big, driver.Waiting)
		time.Sleep(second)
		for _, ahead := range []int{dead - 64, dead - 128} { // 64 + 120 permits would fit by then
			if s := c.renews(big, driver.Waiting); !s.More || s.Ahead != ahead || s.LookAgain <= 0 {
				t.Errorf("%+v, want %d ahead", s, ahead)
			}
		}
		c.renews(big, driver.Waiting)
		c.renews(big, driver.Holding)
	})
}

func TestAClaimThatEntersBehindTheDeadLeftInFrontDoesNotHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		for range 100 {
			c.joins(c.share(1, 1<<30, "k"), driver.Holding)
		}
		time.Sleep(life.Hold)
		reader := c.share(1, 1<<30, "k")
		if s := c.joins(reader, driver.Waiting); !s.More || s.Ahead != 36 {
			t.Errorf("%+v", s)
		}
		c.renews(reader, driver.Holding)
	})
}

func TestTenThousandDeadWaitersBehindDoNotStopTheHandOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		line := crowd(c, 10_000)
		alive := line[1]
		for range 3 {
			time.Sleep(3 * second)
			c.renews(line[0], driver.Holding)
			c.renewal(driver.Renewal{Ref: alive.Ref, Mode: driver.Extend, Life: life}, driver.Waiting)
		}
		c.leaves(line[0], driver.Left)
		if h := c.line("k").Holders; len(h) != 1 {
			t.Fatalf("%d hold", len(h))
		}
		c.renews(alive, driver.Holding)
	})
}

func TestForcingMoreThanOneStepMayRemoveEndsThemAll(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	numbers := make([]int64, 200)
	for i := range numbers {
		numbers[len(numbers)-1-i] = c.joins(c.share(1, 1<<30, "k"), driver.Holding).Number
	}
	found, err := c.End(t.Context(), "k", numbers, true)
	if err != nil || len(found) != len(numbers) || len(c.line("k").Holders) != 0 {
		t.Errorf("%d found, %v, %d hold", len(found), err, len(c.line("k").Holders))
	}
}
