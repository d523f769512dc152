package hasp_test

import (
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

func TestAGateServesInTheOrderOfArrival(t *testing.T) {
	t.Parallel()
	var q hasp.Queue
	for _, label := range []string{"a", "b", "c", "d"} {
		q.Enqueue(label)
	}
	if !q.Leave("b") || q.Leave("b") || q.Waits() != 3 {
		t.Errorf("%d wait after one of four left twice", q.Waits())
	}
	for _, want := range []string{"a", "c"} {
		if got := q.Next(); got != want {
			t.Errorf("%q is next, want %q", got, want)
		}
	}
	if q.Leave("a") {
		t.Error("whose turn has come leaves the queue")
	}
	q.Enqueue("e")
	if one, two, three := q.Next(), q.Next(), q.Next(); one != "d" || two != "e" || three != "" {
		t.Errorf("%q, %q, %q; want d, e and nobody", one, two, three)
	}
}

func TestWhoLeavesAGateIsNotLookedForAmongThousands(t *testing.T) { //nolint:paralleltest // allocations are counted
	var q hasp.Queue
	const n = 3000
	for i := range n {
		q.Enqueue(key(i))
	}
	label := make([]string, n)
	for i := range n {
		label[i] = key(i * 7 % n) // every one, here and there
	}
	i := 0
	if allocs := testing.AllocsPerRun(n-101, func() {
		q.Leave(label[i])
		i++
	}); allocs != 0 {
		t.Errorf("%v allocations to leave", allocs)
	}
	rest := make(map[string]bool)
	for ; i < n; i++ {
		rest[label[i]] = true
	}
	for i := range n {
		if !rest[key(i)] {
			continue
		}
		if got := q.Next(); got != key(i) {
			t.Fatalf("%q is next, want %q", got, key(i))
		}
	}
	if q.Next() != "" || q.Waits() != 0 {
		t.Errorf("%d wait in an empty gate", q.Waits())
	}
}

func TestRivalsAreTakenToWaitWithoutAFreshAnswer(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	at := zero.Add
	alone := hasp.Rivals{}.Answered(at(0), false)
	for name, c := range map[string]struct {
		rivals   hasp.Rivals
		now      time.Duration
		handoffs int
		wait     bool
		allow    bool
	}{
		"nothing answered":                {hasp.Rivals{}, 0, 0, true, false},
		"alone":                           {alone, 0, 0, false, true},
		"alone a second ago":              {alone, time.Second, 0, false, true},
		"alone longer ago":                {alone, time.Second + 1, 0, true, false},
		"after 15 grants":                 {alone.Granted(at(0), 15), 0, 0, false, true},
		"after 16 grants":                 {alone.Granted(at(0), 16), 0, 0, true, false},
		"16 grants, answered since":       {alone.Granted(at(0), 16).Answered(at(1), false), 1, 0, false, true},
		"somebody behind":                 {alone.Answered(at(1), true), 1, 0, true, false},
		"somebody behind, one more":       {alone.Answered(at(1), true), 1, 1, true, true},
		"one more was made":               {alone.Answered(at(1), true).Granted(at(1), 1), 1, 1, true, false},
		"two more of three":               {alone.Answered(at(1), true).Granted(at(1), 2), 1, 3, true, true},
		"unknown counts as a favour, too": {alone.Granted(at(2*time.Second), 3), 2 * time.Second, 3, true, false},
		"who waited has gone":             {alone.Answered(at(1), true).Granted(at(1), 3).Answered(at(2), false), 2, 0, false, true},
		"and a row begins anew": {
			alone.Answered(at(1), true).Granted(at(1), 3).Answered(at(2), false).Answered(at(3), true), 3, 1, true, true,
		},
		"an older answer":           {alone.Answered(at(5), true).Answered(at(4), false), 5, 0, true, false},
		"a signal":                  {alone.Wanted(at(5)), 5, 0, true, false},
		"an answer from before it":  {alone.Wanted(at(5)).Answered(at(4), false), 5, 0, true, false},
		"an answer to a call since": {alone.Wanted(at(5)).Answered(at(6), false), 6, 0, false, true},
	} {
		if got := c.rivals.Wait(at(c.now)); got != c.wait {
			t.Errorf("%s: others wait: %v, want %v", name, got, c.wait)
		}
		if got := c.rivals.Allow(at(c.now), c.handoffs); got != c.allow {
			t.Errorf("%s: a local grant is allowed: %v, want %v", name, got, c.allow)
		}
	}
}

func TestAStayIsHandedOnWithAThirdOfItsTrustOrOwesARenewal(t *testing.T) {
	t.Parallel()
	zero := time.Now()
	at := zero.Add
	life := 3 * time.Second
	held := hasp.Stay{}.Answered(hasp.SendingOf(1, zero, 0), driver.Standing{State: driver.Holding, Number: 7, Life: life}, 1)
	trust := life - 30*time.Millisecond
	for _, c := range []struct {
		name string
		stay hasp.Stay
		now  time.Duration
		want string
	}{
		{"at once", held, 0, "holding"},
		{"with a third left", held, trust - time.Second, "holding"},
		{"with less left", held, trust - time.Second + 1, "told"},
		{"with nothing left", held, trust, "told"},
		{"one that waits keeps its place", hasp.Stay{}.Answered(
			hasp.SendingOf(1, zero, 0), driver.Standing{State: driver.Waiting, Number: 7, Life: life}, 1), 0, "waiting"},
		{"one that is over stays so", held.Ended(7, false), 0, "over"},
	} {
		if got := c.stay.Handed(at(c.now)); got.Phase() != c.want || got.Until() != c.stay.Until() || got.Number() != 7 {
			t.Errorf("%s: %s until %s, want %s", c.name, got.Phase(), got.Until().Sub(zero), c.want)
		}
	}
	late := held.Handed(at(trust - time.Millisecond))
	if got := late.Answered(hasp.SendingOf(2, at(trust), 7), driver.Standing{State: driver.Holding, Number: 7, Life: life}, 2); got.Phase() != "holding" {
		t.Errorf("renewed, it is %s", got.Phase())
	}
	if got := late.Answered(hasp.SendingOf(2, at(trust), 7), driver.Standing{State: driver.Gone, Number: 7}, 2); got.Phase() != "over" {
		t.Errorf("answered gone, it is %s", got.Phase())
	}
}
