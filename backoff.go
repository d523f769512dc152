package hasp

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"
)

// Backoff says when a lock is asked for again at a store that has no line. Where the store
// has one, claims stand in it and none of this is used.
//
// A waiting call ends with its Wait, with its context, or with MaxAttempts, whichever
// comes first. In between it asks again after a pause, or at once when the store or a
// release in this process says that the key may be free. Of all calls of a client that
// wait for a key one asks at a time; the others stand behind it in the order in which they came.
type Backoff struct {
	// Min is the first pause, from 1 ms to 1 h. Defaults to 20 ms, or to Max if that is
	// less.
	Min time.Duration
	// Max is the longest pause, from Min to 1 h; equal to Min it makes all pauses the
	// same. Defaults to 1 s, or to Min if that is more.
	Max time.Duration
	// Factor is how much longer each pause is than the one before, from 1 to 100. Defaults
	// to 2.
	Factor float64
	// Jitter is the share of a pause that is left out at random, up to 1, so that processes
	// that wait for the same key do not ask in step: with 0.2 a pause takes 80 to 100 % of its
	// time. Negative: none. Defaults to 0.2.
	Jitter float64
	// MaxAttempts ends the waiting, with a *HeldError, when that many were refused.
	// Defaults to no limit.
	MaxAttempts int
}

// Bounds and defaults of a Backoff.
const (
	leastPause    = time.Millisecond
	mostPause     = time.Hour
	mostFactor    = 100
	defaultMin    = 20 * time.Millisecond
	defaultMax    = time.Second
	defaultFactor = 2
	defaultJitter = 0.2
)

// with lays p over b, as LockOptions.with does. A pause that p sets alone moves the other
// bound with it where it has to.
func (b Backoff) with(p Backoff) Backoff {
	switch {
	case p.Min > 0 && p.Max == 0 && b.Max > 0:
		b.Max = max(b.Max, p.Min)
	case p.Max > 0 && p.Min == 0 && b.Min > 0:
		b.Min = min(b.Min, p.Max)
	}
	return Backoff{
		Min:         cmp.Or(p.Min, b.Min),
		Max:         cmp.Or(p.Max, b.Max),
		Factor:      cmp.Or(p.Factor, b.Factor),
		Jitter:      cmp.Or(p.Jitter, b.Jitter),
		MaxAttempts: max(0, cmp.Or(p.MaxAttempts, b.MaxAttempts)),
	}
}

// resolve fills in the defaults and says all that is wrong, joined.
func (b Backoff) resolve() (Backoff, error) {
	if b.Min == 0 {
		b.Min = defaultMin
		if b.Max > 0 {
			b.Min = min(b.Min, b.Max)
		}
	}
	b.Max = cmp.Or(b.Max, max(defaultMax, b.Min))
	b.Factor = cmp.Or(b.Factor, defaultFactor)
	b.Jitter = cmp.Or(b.Jitter, defaultJitter)
	var errs []error
	if b.Min < leastPause || b.Min > mostPause {
		errs = append(errs, fmt.Errorf("option Backoff.Min is %s; it must be from %s to %s", b.Min, leastPause, mostPause))
	}
	if b.Max < b.Min || b.Max > mostPause {
		errs = append(errs, fmt.Errorf("option Backoff.Max is %s; it must be from Min, which is %s, to %s", b.Max, b.Min, mostPause))
	}
	if !(b.Factor >= 1 && b.Factor <= mostFactor) { // so that it refuses NaN
		errs = append(errs, fmt.Errorf("option Backoff.Factor is %g; it must be from 1 to %d", b.Factor, mostFactor))
	}
	if !(b.Jitter <= 1) {
		errs = append(errs, fmt.Errorf("option Backoff.Jitter is %g; it must be at most 1, negative for none", b.Jitter))
	}
	return b, errors.Join(errs...)
}

// pause is the one after that many attempts, from 1 on. chance, from 0 to 1, is how much
// of the jitter it gets.
func (b Backoff) pause(attempts int, chance float64) time.Duration {
	longest := math.Min(float64(b.Max), float64(b.Min)*math.Pow(b.Factor, float64(attempts-1)))
	return max(leastPause, time.Duration(longest*(1-max(0, b.Jitter)*chance)))
}

// exhausted says whether that many attempts are all there may be.
func (b Backoff) exhausted(attempts int) bool { return b.MaxAttempts > 0 && attempts >= b.MaxAttempts }
