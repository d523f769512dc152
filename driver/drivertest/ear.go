package drivertest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// ear keeps the signals a client heard. A nil ear has heard nothing.
type ear struct {
	stop  context.CancelFunc
	ended chan error // Listen's error, once

	mu      sync.Mutex // guards what follows
	heard   []driver.Signal
	changed chan struct{} // closed and replaced with each signal
}

// listens starts Listen and waits until it hears.
func (c *client) listens() *client {
	if c.b.failed() || c.ear != nil {
		return c
	}
	ctx, stop := context.WithCancel(c.b.ctx)
	e := &ear{stop: stop, ended: make(chan error, 1), changed: make(chan struct{})}
	c.ear = e
	go func() { e.ended <- c.d.(driver.Signaler).Listen(ctx, c.inbox, e.deliver) }()
	if !e.await(func(s driver.Signal) bool { return s.Kind == driver.Missed }, patience) {
		c.b.fail("%s hears no Missed at first", c.name)
	}
	return c
}

func (e *ear) deliver(s driver.Signal) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard = append(e.heard, s)
	close(e.changed)
	e.changed = make(chan struct{})
}

// all are the signals heard so far.
func (e *ear) all() []driver.Signal {
	if e == nil {
		return nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]driver.Signal(nil), e.heard...)
}

// count is how many signals heard so far fit.
func (e *ear) count(fits func(driver.Signal) bool) int {
	n := 0
	for _, s := range e.all() {
		if fits(s) {
			n++
		}
	}
	return n
}

// await waits until a signal has been heard that fits.
func (e *ear) await(fits func(driver.Signal) bool, most time.Duration) bool {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		e.mu.Lock()
		changed := e.changed
		e.mu.Unlock()
		if e.count(fits) > 0 {
			return true
		}
		select {
		case <-changed:
		case <-late.C:
			return false
		}
	}
}

// close ends Listen and checks how it ends.
func (e *ear) close() error {
	if e == nil {
		return nil
	}
	e.stop()
	select {
	case err := <-e.ended:
		e.ended <- err
		if err == nil {
			return errors.New("listening ended without an error")
		}
		return nil
	case <-time.After(patience):
		return errors.New("listening did not end with its context")
	}
}

// addressed fits the signals of one kind for one stay.
func (x *claim) addressed(kind driver.SignalKind) func(driver.Signal) bool {
	return func(s driver.Signal) bool { return s.Kind == kind && s.ID == x.ID && s.Number == x.Number }
}

// hears waits for an addressed signal for the stay of x.
func (x *claim) hears(kind driver.SignalKind) {
	if x.b.failed() {
		return
	}
	ok := x.c.ear.await(x.addressed(kind), patience)
	x.b.note("%s hears %v: %v", x, kind, ok)
	x.b.check(ok, "%s hears no %v for #%d, but %+v", x, kind, x.Number, x.c.ear.all())
}

// deafTo checks that x has heard nothing of that kind, for any of its stays.
func (x *claim) deafTo(kind driver.SignalKind) {
	n := x.c.ear.count(func(s driver.Signal) bool { return s.Kind == kind && s.ID == x.ID })
	x.b.check(n == 0, "%s heard %v: %+v", x, kind, x.c.ear.all())
}
