package redislease

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"
)

const (
	maxFlights = 4   // pipelines under way to one server, at most
	maxBatch   = 300 // calls of one pipeline
	// stuck is when a flight without a lane no longer counts: its socket is silent, and a
	// new flight may find a better one. So many at most are under way then.
	stuck    = 2 * time.Second
	maxStuck = 32
	// lookEvery is how often the flights are looked at, while there are any: a call must
	// return within 50 ms of its context's end. After so many looks at none they end.
	lookEvery = 20 * time.Millisecond
	lastLook  = 50
)

// call is one script to be run.
type call struct {
	ctx    context.Context //nolint:containedctx // of who waits for it
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
type flight struct {
	lane  *lane // what it goes by; nil: the user's client
	began time.Time
	calls []*call
}

// batcher lets calls that coincide share round trips. As long as few are under way a
// call flies alone; further ones queue, and whoever lands takes the whole queue.
type batcher struct {
	fly   func(calls []*call, l *lane) // runs them and sets their results
	over  <-chan struct{}              // closed with the driver
	start func(func()) bool            // begins a goroutine that ends with the driver
	lanes func() *lane                 // makes one; nil: flights have none
	limit int                          // flights at a time

	mu       sync.Mutex
	flights  []*flight
	queue    []*call
	idle     []*flight // with their lanes; the last was used last
	made     []*lane   // all lanes
	begun    int       // flights so far
	watching bool
}

// do runs a call and waits for it. A caller with a lane flies on its own goroutine, and
// so does one whose context cannot end. For another a goroutine flies, since nothing
// interrupts the reading of a socket that go-redis waits on; the call goes on without
// its caller.
func (b *batcher) do(ctx context.Context, c *call) error {
	c.ctx = ctx
	f, lead := b.enter(c)
	switch {
	case lead && (f.lane != nil || ctx.Done() == nil):
		b.land(f)
		return b.told(ctx, c.err)
	case lead:
		c.done = make(chan struct{})
		go b.serve(f)
	}
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		b.drop(c)
		return ended(ctx)
	case <-b.over:
		b.drop(c)
		return unavailable(errClosed)
	}
}

// told is the error of a call that its own caller has waited for: of one that was cut, why.
func (b *batcher) told(ctx context.Context, err error) error {
	if !errors.Is(err, errCut) && !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	select {
	case <-b.over:
		return unavailable(errClosed)
	default:
	}
	if ctx.Err() != nil {
		return ended(ctx)
	}
	return err
}

// submit runs a call whose then is told of its end.
func (b *batcher) submit(ctx context.Context, c *call) {
	c.ctx = ctx
	if f, lead := b.enter(c); lead {
		go b.serve(f)
	}
}

// enter takes a place for a flight, or queues.
func (b *batcher) enter(c *call) (f *flight, lead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.flights) >= b.limit && !b.roomForOne() {
		if c.then == nil {
			c.done = make(chan struct{})
		}
		b.queue = append(b.queue, c)
		return nil, false
	}
	if n := len(b.idle); n > 0 {
		f, b.idle = b.idle[n-1], b.idle[:n-1]
	} else {
		f = &flight{}
		if b.lanes != nil {
			f.lane = b.lanes()
			b.made = append(b.made, f.lane)
		}
	}
	b.flights = append(b.flights, f)
	b.begin(f, append(f.calls[:0], c))
	return f, true
}

// begin has a flight take calls; b.mu is held.
func (b *batcher) begin(f *flight, calls []*call) {
	f.began, f.calls = time.Now(), calls
	b.begun++
	if f.lane == nil {
		return
	}
	f.lane.begin()
	if !b.watching {
		b.watching = b.start(b.watch)
	}
}

// roomForOne reports whether so many flights are stuck that one more may begin; b.mu is
// held.
func (b *batcher) roomForOne() bool {
	if b.lanes != nil {
		return false
	}
	moving := 0
	for _, f := range b.flights {
		if time.Since(f.began) < stuck {
			moving++
		}
	}
	return moving < b.limit && len(b.flights) < maxStuck
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
func (b *batcher) serve(f *flight) {
	for more := true; more; more = b.next(f) {
		b.run(f)
	}
}

// land flies once, for a caller that wants to go on; the queue gets a goroutine.
func (b *batcher) land(f *flight) {
	b.run(f)
	if b.next(f) {
		go b.serve(f)
	}
}

func (b *batcher) run(f *flight) {
	calls := f.calls // only this goroutine changes them
	b.fly(calls, f.lane)
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
func (b *batcher) next(f *flight) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(f.calls)
	n := min(len(b.queue), maxBatch)
	if n > 0 {
		b.begin(f, append(f.calls[:0], b.queue[:n]...))
		b.queue = append(b.queue[:0], b.queue[n:]...)
		clear(b.queue[len(b.queue):cap(b.queue)])
		return true
	}
	if i := slices.Index(b.flights, f); i >= 0 {
		b.flights = slices.Delete(b.flights, i, i+1)
	}
	if f.lane != nil {
		f.calls = f.calls[:0]
		b.idle = append(b.idle, f)
	}
	return false
}

// watch cuts the flights nobody waits for any more, as long as there are flights and a
// little longer.
func (b *batcher) watch() {
	t := time.NewTicker(lookEvery)
	defer t.Stop()
	over, before, quiet := b.over, 0, 0
	for closed := false; ; {
		select {
		case <-t.C:
		case <-over:
			closed, over = true, nil
		}
		b.mu.Lock()
		for _, f := range b.flights {
			if closed || f.abandoned() {
				f.lane.end()
			}
		}
		quiet++
		if begun := b.begun; begun != before {
			before, quiet = begun, 0
		}
		if len(b.flights) == 0 && (closed || quiet >= lastLook) {
			b.watching = false
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
	}
}

// abandoned reports whether the contexts of all its calls have ended.
func (f *flight) abandoned() bool {
	return !slices.ContainsFunc(f.calls, func(c *call) bool { return c.ctx.Err() == nil })
}

// close gives the lanes up.
func (b *batcher) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lanes = nil
	for _, l := range b.made {
		l.close()
	}
}
