package redislease

import (
	"context"
	"sync"
	"time"
)

const (
	maxFlights = 4   // pipelines under way to one server
	maxBatch   = 300 // calls of one pipeline
	// stuck is when a flight no longer counts: its socket is silent, and a new flight may
	// find a better one. So many at most are under way then.
	stuck    = 2 * time.Second
	maxStuck = 32
)

// call is one script to be run.
type call struct {
	script *script
	keys   int
	args   []any // keys, then arguments
	counts bool  // it moves a trust window, so replicas must have it

	reply any
	err   error
	slow  bool          // the client library may have sent it more than once
	done  chan struct{} // closed when reply and err are set; nil: its caller flies itself
	then  func(*call)   // or called then, on the flight's goroutine
}

// flight is one pipeline under way.
type flight struct{ began time.Time }

// batcher lets calls that coincide share round trips. As long as few are under way a
// call flies alone; further ones queue, and whoever lands takes the whole queue.
type batcher struct {
	fly  func(calls []*call) // runs them and sets their results
	over <-chan struct{}     // closed with the driver

	mu      sync.Mutex
	flights []*flight
	queue   []*call
}

// do runs a call and waits for it. A caller whose context cannot end flies on its own
// goroutine. For another a goroutine flies, since nothing interrupts the reading of a
// socket that go-redis waits on; the call goes on without its caller.
func (b *batcher) do(ctx context.Context, c *call) error {
	over := ctx.Done()
	if over != nil {
		c.done = make(chan struct{})
	}
	f, lead := b.enter(c)
	switch {
	case lead && over == nil:
		b.land(f, []*call{c})
		return c.err
	case lead:
		go b.serve(f, c)
	}
	select {
	case <-c.done:
		return c.err
	case <-over:
		b.drop(c)
		return ended(ctx)
	case <-b.over:
		b.drop(c)
		return unavailable(errClosed)
	}
}

// submit runs a call whose then is told of its end.
func (b *batcher) submit(c *call) {
	if f, lead := b.enter(c); lead {
		go b.serve(f, c)
	}
}

// enter takes a place for a flight, or queues.
func (b *batcher) enter(c *call) (f *flight, lead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.flights) >= maxFlights && !b.roomForOne() {
		if c.done == nil {
			c.done = make(chan struct{})
		}
		b.queue = append(b.queue, c)
		return nil, false
	}
	f = &flight{began: time.Now()}
	b.flights = append(b.flights, f)
	return f, true
}

// roomForOne reports whether so many flights are stuck that one more may begin; b.mu is
// held.
func (b *batcher) roomForOne() bool {
	moving := 0
	for _, f := range b.flights {
		if time.Since(f.began) < stuck {
			moving++
		}
	}
	return moving < maxFlights && len(b.flights) < maxStuck
}

// drop takes a call out of the queue, if it is still there.
func (b *batcher) drop(c *call) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, q := range b.queue {
		if q == c {
			b.queue = append(b.queue[:i], b.queue[i+1:]...)
			return
		}
	}
}

// serve flies until the queue is empty.
func (b *batcher) serve(f *flight, first *call) {
	for calls := []*call{first}; calls != nil; calls = b.next(f) {
		b.run(calls)
	}
}

// land flies once, for a caller that wants to go on; the queue gets a goroutine.
func (b *batcher) land(f *flight, calls []*call) {
	b.run(calls)
	if calls = b.next(f); calls != nil {
		go func() {
			for ; calls != nil; calls = b.next(f) {
				b.run(calls)
			}
		}()
	}
}

func (b *batcher) run(calls []*call) {
	b.fly(calls)
	for _, c := range calls {
		switch {
		case c.then != nil:
			c.then(c)
		case c.done != nil:
			close(c.done)
		}
	}
}

// next takes what has queued, or ends the flight.
func (b *batcher) next(f *flight) []*call {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), maxBatch)
	if n == 0 {
		for i, g := range b.flights {
			if g == f {
				b.flights = append(b.flights[:i], b.flights[i+1:]...)
				break
			}
		}
		return nil
	}
	calls := append([]*call(nil), b.queue[:n]...)
	b.queue = append(b.queue[:0], b.queue[n:]...)
	clear(b.queue[len(b.queue):cap(b.queue)])
	f.began = time.Now()
	return calls
}
