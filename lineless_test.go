package hasp_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// lineless is the driver of a store that has no line: it takes tries only.
type lineless struct {
	driver.Driver // hides what else it implements

	mu       sync.Mutex
	flying   map[string]int // Joins under way, by key
	most     int            // Joins of one key that were under way at once
	attempts []driver.ID    // of every Join
	times    []time.Duration
	began    time.Time
}

func (d *lineless) Features() driver.Features {
	f := d.Driver.Features()
	f.Line, f.Poll = false, 0
	return f
}

func (d *lineless) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if !j.Try && j.Resume == nil {
		return driver.Standing{}, fmt.Errorf("waiting is %w", driver.ErrUnsupported)
	}
	d.count(j, 1)
	defer d.count(j, -1)
	return d.Driver.Join(ctx, j)
}

func (d *lineless) count(j driver.Join, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n > 0 {
		d.attempts = append(d.attempts, j.ID)
		d.times = append(d.times, time.Since(d.began).Round(time.Millisecond))
	}
	for _, k := range j.Keys {
		d.flying[k] += n
		d.most = max(d.most, d.flying[k])
	}
}

// asked answers how often the store was asked.
func (d *lineless) asked() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.attempts)
}

// when answers when it was asked, from its making on.
func (d *lineless) when() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.times)
}

// ids answers the ids it was asked with.
func (d *lineless) ids() []driver.ID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.attempts)
}

// atOnce answers how many attempts for one key were under way at the same time.
func (d *lineless) atOnce() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most
}

// freeing is a lineless driver whose store says when a key may be free, and nothing
// else.
type freeing struct {
	*lineless
	ears driver.Signaler

	mu      sync.Mutex
	lost    bool // signals get lost
	watches int  // keys watched now
	watched int  // and ever
	deliver func(driver.Signal)
}

func (d *freeing) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	d.mu.Lock()
	d.deliver = deliver
	d.mu.Unlock()
	return d.ears.Listen(ctx, inbox, func(s driver.Signal) {
		d.mu.Lock()
		lost := d.lost
		d.mu.Unlock()
		switch {
		case s.Kind == driver.Missed:
			deliver(s)
		case s.Kind == driver.Changed && !lost:
			deliver(driver.Signal{Kind: driver.Freed, Key: s.Key})
		}
	})
}

func (d *freeing) Watch(key string) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches++
	d.watched++
	silence := d.ears.Watch(key)
	return func() {
		silence()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.watches--
	}
}

// lose has the signals lost from now on.
func (d *freeing) lose() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lost = true
}

// miss tells that signals may have been lost.
func (d *freeing) miss() {
	d.mu.Lock()
	deliver := d.deliver
	d.mu.Unlock()
	deliver(driver.Signal{Kind: driver.Missed})
}

// watching answers how many keys are watched now, and how many ever were.
func (d *freeing) watching() (now, ever int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.watches, d.watched
}

// lineless makes a client of a store that has no line and no signals.
func (w *world) lineless(o hasp.LockOptions) (*hasp.Client, *lineless, *wire) {
	w.t.Helper()
	line := newWire(w.store.Driver())
	d := &lineless{Driver: line, flying: map[string]int{}, began: time.Now()}
	return w.clientWith(d, hasp.Options{Name: "lineless", Lock: o}), d, line
}

// freeing makes a client of a store that has no line, but says when a key may be free.
func (w *world) freeing(o hasp.LockOptions) (*hasp.Client, *freeing) {
	w.t.Helper()
	line := newWire(w.store.Driver())
	d := &freeing{lineless: &lineless{Driver: line, flying: map[string]int{}, began: time.Now()}, ears: line}
	return w.clientWith(d, hasp.Options{Name: "freeing", Lock: o}), d
}
