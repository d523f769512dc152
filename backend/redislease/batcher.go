package redislease

import (
	"context"
	"errors"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
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
	// few flights are enough where many calls are under way: those that wait gather for the
	// next one, and bigger flights cost less for each call.
	few, many = 2, 16
)

// call is one script to be run.
type call struct {
	ctx    context.Context //nolint:containedctx // of who waits for it
	script *script
	keys   int
	args   []any // keys, then arguments
	counts bool  // it moves a trust window, so replicas must have it
	many   bool  // the script's many may do it with others

	reply any
	err   error
	slow  bool        // the client library may have sent it more than once
	then  func(*call) // called when reply and err are set, on the flight's goroutine
	heard chan bool   // or says so (true), or that its caller shall not wait on; has room for one
	told  atomic.Bool // heard was spoken to
}

// tell lets the caller go on, once.
func (c *call) tell(landed bool) {
	if c.told.CompareAndSwap(false, true) {
		c.heard <- landed
	}
}

// flight is one pipeline under way.
type flight struct {
	lane  *lane // what it goes by; nil: the user's client
	began time.Time
	calls []*call // none once it has landed
	told  int     // how many it had then
}

// batcher lets calls that coincide share round trips. As long as few are under way a
// call flies alone; further ones queue, and whoever lands takes the whole queue.
type batcher struct {
	fly   func(calls []*call, l *lane) // runs them and sets their results
	over  <-chan struct{}              // closed with the driver
	start func(func()) bool            // begins a goroutine that ends with the driver
	lanes func() *lane                 // makes one; nil: flights have none
	laned bool                         // they have
	limit int                          // flights at a time

	mu       sync.Mutex
	flights  []*flight
	queue    []*call
	idle     []*flight // with their lanes; the last was used last
	made     []*lane   // all lanes
	under    int       // calls of the flights, those that have just landed among them
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
		c.heard = make(chan bool, 1)
		go b.serve(f)
	case b.laned: // the flights are watched, and so are those who wait for them
		if <-c.heard {
			return b.told(ctx, c.err)
		}
		return b.why(ctx)
	}
	select {
	case <-c.heard:
		return c.err
	case <-ctx.Done():
	case <-b.over:
	}
	b.drop(c)
	return b.why(ctx)
}

// why is the error of a call whose caller does not wait on.
func (b *batcher) why(ctx context.Context) error {
	select {
	case <-b.over:
		return unavailable(errClosed)
	default:
		return ended(ctx)
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
		runtime.Gosched() // the server can work on it while more calls are made
	}
}

// enter takes a place for a flight, or queues.
func (b *batcher) enter(c *call) (f *flight, lead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.flights) >= b.limit && !b.roomForOne() || b.enough(len(b.flights)) {
		if c.then == nil {
			c.heard = make(chan bool, 1)
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
	b.begin(f, append(f.calls, c))
	return f, true
}

// begin has a flight take calls; b.mu is held.
func (b *batcher) begin(f *flight, calls []*call) {
	f.began, f.calls = time.Now(), calls
	b.under += len(calls)
	b.begun++
	if f.lane == nil {
		return
	}
	f.lane.begin()
	if !b.watching {
		b.watching = b.start(b.watch)
	}
}

// enough reports whether so many flights can do what there is to do; b.mu is held.
func (b *batcher) enough(flights int) bool {
	return b.laned && flights >= few && b.under+len(b.queue) >= many
}

// roomForOne reports whether so many flights are stuck that one more may begin; b.mu is
// held.
func (b *batcher) roomForOne() bool {
	if b.laned {
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
	b.mu.Lock()
	f.calls, f.told = calls[:0], len(calls)
	b.mu.Unlock()
	for _, c := range calls {
		switch {
		case c.then != nil:
			c.then(c)
		case c.heard != nil:
			c.tell(true)
		}
	}
	if len(calls) > 1 { // they may well come back at once, and can then share the next flight
		runtime.Gosched()
	}
	clear(calls)
}

// next takes what has queued, or ends the flight.
func (b *batcher) next(f *flight) (more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.under -= f.told
	f.told = 0
	n := min(len(b.queue), maxBatch)
	if n > 0 && !b.enough(len(b.flights)-1) {
		b.begin(f, append(f.calls, b.queue[:n]...))
		b.queue = append(b.queue[:0], b.queue[n:]...)
		clear(b.queue[len(b.queue):cap(b.queue)])
		return true
	}
	if i := slices.Index(b.flights, f); i >= 0 {
		b.flights = slices.Delete(b.flights, i, i+1)
	}
	if f.lane != nil {
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
		b.look(closed)
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

// look cuts the flights nobody waits for, and lets those go on who do not wait any more;
// b.mu is held.
func (b *batcher) look(closed bool) {
	over := func(c *call) bool {
		gone := closed || c.ctx.Err() != nil
		if gone && c.heard != nil {
			c.tell(false)
		}
		return gone
	}
	b.queue = slices.DeleteFunc(b.queue, func(c *call) bool { return over(c) && c.heard != nil })
	for _, f := range b.flights {
		waiting := false
		for _, c := range f.calls {
			waiting = !over(c) || waiting
		}
		if !waiting && (closed || len(f.calls) > 0) {
			f.lane.end()
		}
	}
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
