package memlease_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

func key(i int) string { return fmt.Sprintf("key%06d", i) }

// crowd has n claims join one mutex.
func crowd(c *client, n int) []driver.Join {
	all := make([]driver.Join, n)
	for i := range all {
		all[i] = c.claim("k")
		c.joins(all[i], map[bool]driver.State{true: driver.Holding, false: driver.Waiting}[i == 0])
	}
	return all
}

func TestAheadIsExactInALongLineWithGaps(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	random := rand.New(rand.NewPCG(1, 2))
	line := crowd(c, 1)
	for range 6000 {
		if random.IntN(3) > 0 {
			j := c.claim("k")
			if s := c.joins(j, driver.Waiting); s.Ahead != len(line) {
				t.Fatalf("%d ahead, want %d", s.Ahead, len(line))
			}
			line = append(line, j)
		} else if i := random.IntN(len(line)); i > 0 {
			c.leaves(line[i], driver.Left)
			line = slices.Delete(line, i, i+1)
		}
		if i := random.IntN(len(line)); i > 0 {
			if s := c.renews(line[i], driver.Waiting); s.Ahead != i {
				t.Fatalf("%d ahead, want %d", s.Ahead, i)
			}
		}
	}
}

func TestWaitersThatComeAndGoBehindALongHoldLeaveNoTrace(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	crowd(c, 3)
	for range 20_000 {
		j := c.claim("k")
		c.joins(j, driver.Waiting)
		c.leaves(j, driver.Left)
	}
	if n := c.store.Blocks("k"); n > 64 {
		t.Errorf("the line counts in %d blocks", n)
	}
}

func TestTheSmallestCapacityCountsUntilTheLastWhoSaidItHasLeft(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	four := []driver.Join{c.share(1, 4, "k"), c.share(1, 4, "k")}
	for _, j := range four {
		c.joins(j, driver.Holding)
	}
	six := make([]driver.Join, 5)
	for i := range six {
		six[i] = c.share(1, 6, "k")
		c.joins(six[i], map[bool]driver.State{true: driver.Holding, false: driver.Waiting}[i < 2])
	}
	c.leaves(four[0], driver.Left)
	c.renews(six[2], driver.Holding)
	c.renews(six[3], driver.Waiting)
	c.leaves(four[1], driver.Left)
	c.renews(six[3], driver.Holding)
	c.renews(six[4], driver.Holding)
}

func TestAMutexOnTheKeyOfAReadWriteLockIsAWriter(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	reader, mutex, late := c.share(1, 1<<30, "k"), c.claim("k"), c.share(1, 1<<30, "k")
	c.joins(reader, driver.Holding)
	c.joins(mutex, driver.Waiting)
	c.joins(late, driver.Waiting)
	c.leaves(reader, driver.Left)
	c.renews(late, driver.Waiting)
	c.renews(mutex, driver.Holding)
}

func TestTheGreatestWeightsDoNotOverflow(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	j := c.share(math.MaxInt64, math.MaxInt64, "k")
	c.joins(j, driver.Holding)
	for range 3 {
		c.joins(c.share(math.MaxInt64, math.MaxInt64, "k"), driver.Waiting)
	}
	c.joins(c.share(1, 1, "k"), driver.Waiting)
	s := c.joins(c.share(1, math.MaxInt64, "k"), driver.Waiting)
	if s.LookAgain <= life.Wait-second || s.LookAgain > life.Hold {
		t.Errorf("look again in %v", s.LookAgain)
	}
}

func TestTheLongestLivesDoNotOverflow(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	j := c.claim("k")
	j.Life = driver.Life{Hold: math.MaxInt64, Grace: math.MaxInt64, Wait: math.MaxInt64}
	if s := c.joins(j, driver.Holding); s.Life < 200*365*24*time.Hour {
		t.Errorf("life %v", s.Life)
	}
	c.renews(j, driver.Holding)
	c.leaves(j, driver.Left)
	c.joins(c.claim("k"), driver.Holding)
}

func TestNumbersOfOneMicrosecondRiseByOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		first := c.joins(c.claim("a"), driver.Holding).Number
		if want := time.Now().UnixMicro(); first != want {
			t.Errorf("the first number is %d, the clock says %d", first, want)
		}
		for i := range int64(5) {
			if n := c.joins(c.claim("a"), driver.Waiting).Number; n != first+1+i {
				t.Errorf("number %d, want %d", n, first+1+i)
			}
		}
		if n := c.joins(c.claim("a", "b"), driver.Waiting).Number; n != first+6 {
			t.Errorf("over both keys number %d, want %d", n, first+6)
		}
		if n := c.joins(c.claim("b"), driver.Waiting).Number; n != first+7 {
			t.Errorf("afterwards number %d, want %d", n, first+7)
		}
	})
}

func TestLookAgainFarBackInALongLineIsEarlyNeverLate(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		line := crowd(c, 200)
		time.Sleep(second)
		s := c.renews(line[150], driver.Waiting)
		if s.LookAgain != life.Hold-second {
			t.Errorf("look again in %v", s.LookAgain)
		}
	})
}

func TestGraceNeverCountsAndAClaimGrantedByOthersHasNoneUntilItRenews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		a, b := c.claim("k"), c.claim("k")
		a.Life.Grace, b.Life.Grace = 5*second, 5*second
		if s := c.joins(a, driver.Holding); s.Life != life.Hold {
			t.Errorf("life %v", s.Life)
		}
		s := c.joins(b, driver.Waiting)
		if s.Life != life.Wait || s.LookAgain != life.Hold+5*second || s.ExpiresIn != s.LookAgain {
			t.Errorf("waiting: %+v", s)
		}
		time.Sleep(2 * second)
		c.leaves(a, driver.Left)
		if e := c.line("k").Holders; len(e) != 1 || e[0].ExpiresIn != life.Wait-2*second {
			t.Errorf("granted: %+v", e)
		}
		if s := c.renews(b, driver.Holding); s.Life != life.Hold {
			t.Errorf("renewed: %+v", s)
		}
		if e := c.line("k").Holders; e[0].ExpiresIn != life.Hold+5*second {
			t.Errorf("renewed: %+v", e)
		}
	})
}

func TestARenewalSentWhenLookAgainSaysFindsTheGrant(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		a, b := c.claim("k"), c.claim("k")
		a.Life.Hold = 5 * second
		c.joins(a, driver.Holding)
		s := c.joins(b, driver.Waiting)
		time.Sleep(s.LookAgain - 1)
		s = c.renews(b, driver.Waiting)
		if s.LookAgain != 1 {
			t.Fatalf("look again in %v", s.LookAgain)
		}
		time.Sleep(s.LookAgain)
		c.renews(b, driver.Holding)
		c.renews(a, driver.Gone)
	})
}
