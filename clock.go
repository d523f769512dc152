package hasp

import (
	"sync/atomic"
	"time"
)

// clock tells instants that count suspended time too: the monotonic clock, put
// forward by the time the machine has slept since the clock was made. Instants of
// one clock are only compared with each other.
type clock struct {
	start  time.Time
	asleep func() time.Duration // since boot; never falls
	base   time.Duration        // asleep at start
	extra  atomic.Int64         // asleep since start, as last read
	read   atomic.Int64         // when it was read, since start, monotonic
}

const (
	// sleepTick is how old a reading of the suspended time may be.
	sleepTick = time.Second
	// sleepNoise is the difference below which two readings are the same: they come from two
	// clocks read one after the other.
	sleepNoise = 5 * time.Millisecond
)

func newClock(asleep func() time.Duration) *clock {
	return &clock{start: time.Now(), asleep: asleep, base: asleep()}
}

// now is the present. A sleep is seen at the latest one tick after its end; until
// then now is early, which only makes trust windows shorter.
func (c *clock) now() time.Time {
	since := time.Since(c.start) // which reads the monotonic clock alone
	if since-time.Duration(c.read.Load()) >= sleepTick {
		c.refresh(since)
	}
	return c.start.Add(since + time.Duration(c.extra.Load()))
}

// fresh is the present, with any sleep seen at once.
func (c *clock) fresh() time.Time {
	since := time.Since(c.start)
	c.refresh(since)
	return c.start.Add(since + time.Duration(c.extra.Load()))
}

// local turns an instant of this clock into the program's: one to compare with
// time.Now while the machine stays awake.
func (c *clock) local(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(-time.Duration(c.extra.Load()))
}

func (c *clock) refresh(since time.Duration) {
	c.read.Store(int64(since))
	extra := c.asleep() - c.base
	for {
		old := c.extra.Load()
		if int64(extra)-old < int64(sleepNoise) || c.extra.CompareAndSwap(old, int64(extra)) {
			return
		}
	}
}
