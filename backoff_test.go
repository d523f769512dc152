package hasp_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

func TestPausesGrowByTheFactorUpToTheLongest(t *testing.T) {
	t.Parallel()
	const ms = time.Millisecond
	cases := map[string]struct {
		backoff hasp.Backoff
		want    []time.Duration
	}{
		"defaults":                     {hasp.Backoff{Jitter: -1}, []time.Duration{20 * ms, 40 * ms, 80 * ms, 160 * ms, 320 * ms, 640 * ms, 1000 * ms, 1000 * ms}},
		"always same":                  {hasp.Backoff{Min: 100 * ms, Max: 100 * ms, Jitter: -1}, []time.Duration{100 * ms, 100 * ms, 100 * ms}},
		"factor 1":                     {hasp.Backoff{Min: 50 * ms, Factor: 1, Jitter: -1}, []time.Duration{50 * ms, 50 * ms, 50 * ms}},
		"factor 1.5":                   {hasp.Backoff{Min: 100 * ms, Factor: 1.5, Jitter: -1}, []time.Duration{100 * ms, 150 * ms, 225 * ms}},
		"Min above the default of Max": {hasp.Backoff{Min: 3 * time.Second, Jitter: -1}, []time.Duration{3 * time.Second, 3 * time.Second}},
		"Max below the default of Min": {hasp.Backoff{Max: 5 * ms, Jitter: -1}, []time.Duration{5 * ms, 5 * ms}},
	}
	for name, c := range cases {
		for i, want := range c.want {
			if got := hasp.PauseOf(c.backoff, i+1, 0.7); got.Round(time.Microsecond) != want {
				t.Errorf("%s: pause %d is %s, want %s", name, i+1, got, want)
			}
		}
	}
	for _, n := range []int{100, 10_000, math.MaxInt32} { // beyond what a float64 can count
		if got := hasp.PauseOf(hasp.Backoff{Factor: 100, Jitter: -1}, n, 0); got != time.Second {
			t.Errorf("pause %d is %s, want the longest", n, got)
		}
	}
}

func TestJitterTakesNoMoreThanItsShareAndAddsNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		jitter              float64
		none, half, allOfIt time.Duration
	}{
		"default":    {0, 100 * time.Millisecond, 90 * time.Millisecond, 80 * time.Millisecond},
		"none":       {-1, 100 * time.Millisecond, 100 * time.Millisecond, 100 * time.Millisecond},
		"half":       {0.5, 100 * time.Millisecond, 75 * time.Millisecond, 50 * time.Millisecond},
		"everything": {1, 100 * time.Millisecond, 50 * time.Millisecond, time.Millisecond},
	}
	for name, c := range cases {
		for chance, want := range map[float64]time.Duration{0: c.none, 0.5: c.half, 1: c.allOfIt} {
			b := hasp.Backoff{Min: 100 * time.Millisecond, Max: 100 * time.Millisecond, Jitter: c.jitter}
			if got := hasp.PauseOf(b, 3, chance); got.Round(time.Microsecond) != want {
				t.Errorf("%s: with a chance of %g the pause is %s, want %s", name, chance, got, want)
			}
		}
	}
}

func TestABackoffThatCannotBeIsRefusedByNewAllAtOnce(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]hasp.Backoff{
		"Min":         {Min: time.Microsecond},
		"Max":         {Min: 2 * time.Second, Max: time.Second},
		"Factor":      {Factor: 0.5},
		"Jitter":      {Jitter: 1.5},
		"MaxAttempts": {MaxAttempts: -1},
	} {
		_, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{Lock: hasp.LockOptions{Backoff: b}})
		wantError(t, err, hasp.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), "Backoff."+name) {
			t.Errorf("%v does not name Backoff.%s", err, name)
		}
	}
	all := hasp.Backoff{Min: -time.Second, Max: 2 * time.Hour, Factor: math.NaN(), Jitter: math.NaN()}
	_, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{Lock: hasp.LockOptions{Backoff: all}})
	for _, name := range []string{"Min", "Max", "Factor", "Jitter"} {
		if err == nil || !strings.Contains(err.Error(), "Backoff."+name) {
			t.Errorf("%v does not name Backoff.%s", err, name)
		}
	}
	_, err = hasp.New(memlease.NewStore().Driver(), &hasp.Options{Lock: hasp.LockOptions{Backoff: hasp.Backoff{Factor: math.Inf(1), Max: -1}}})
	wantError(t, err, hasp.ErrInvalid)
}

func TestWithKeepsTheFieldsOfABackoffThatAreZero(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		base := hasp.Backoff{Min: 30 * time.Millisecond, Max: 2 * time.Second, Factor: 3, Jitter: 0.5, MaxAttempts: 7}
		c := w.locks("a", hasp.LockOptions{Backoff: base})
		for name, step := range map[string]struct{ with, want hasp.Backoff }{
			"nothing": {hasp.Backoff{}, base},
			"all of it": {
				hasp.Backoff{Min: time.Second, Max: time.Minute, Factor: 1, Jitter: 1, MaxAttempts: 1},
				hasp.Backoff{Min: time.Second, Max: time.Minute, Factor: 1, Jitter: 1, MaxAttempts: 1},
			},
			"negative is none": {
				hasp.Backoff{Jitter: -1, MaxAttempts: -1},
				hasp.Backoff{Min: base.Min, Max: base.Max, Factor: 3, Jitter: -1},
			},
			"a Min above the Max that was": {
				hasp.Backoff{Min: 3 * time.Second},
				hasp.Backoff{Min: 3 * time.Second, Max: 3 * time.Second, Factor: 3, Jitter: 0.5, MaxAttempts: 7},
			},
			"a Max below the Min that was": {
				hasp.Backoff{Max: 10 * time.Millisecond},
				hasp.Backoff{Min: 10 * time.Millisecond, Max: 10 * time.Millisecond, Factor: 3, Jitter: 0.5, MaxAttempts: 7},
			},
		} {
			if got := hasp.BackoffOf(c.With(hasp.LockOptions{Backoff: step.with})); got != step.want {
				t.Errorf("%s: %+v, want %+v", name, got, step.want)
			}
		}
		off := c.With(hasp.LockOptions{Backoff: hasp.Backoff{Jitter: -1}}).With(hasp.LockOptions{TTL: time.Minute})
		if got := hasp.BackoffOf(off).Jitter; got != -1 {
			t.Errorf("jitter %g came back", got)
		}
		_, err := c.With(hasp.LockOptions{Backoff: hasp.Backoff{Min: 2, Max: 1}}).Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrInvalid)
	})
}
