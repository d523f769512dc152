package hasp

import (
	"context"
	"sync/atomic"
	"time"
)

// budget is a context with a deadline whose timer is made only when somebody asks for
// Done: most calls to a store are answered at once, and then none is needed. Who makes one
// calls end.
type budget struct {
	parent context.Context //nolint:containedctx // a budget is a context
	until  time.Time       // its own deadline; the parent's may be earlier
	spent  atomic.Bool
	timed  atomic.Pointer[timed] // made by the first Done
}

// timed is a context with a timer.
type timed struct {
	context.Context //nolint:containedctx // it is one

	cancel context.CancelFunc
}

// newBudget bounds parent by d from now.
func newBudget(parent context.Context, d time.Duration) *budget {
	return &budget{parent: parent, until: time.Now().Add(d)}
}

// Deadline is the earlier of the budget's and its parent's.
func (b *budget) Deadline() (time.Time, bool) {
	if earlier, ok := b.parent.Deadline(); ok && earlier.Before(b.until) {
		return earlier, true
	}
	return b.until, true
}

// Done closes at the deadline, at the parent's end, or at end.
func (b *budget) Done() <-chan struct{} {
	t := b.timed.Load()
	if t == nil {
		t = b.start()
	}
	return t.Done()
}

// start makes the timer.
func (b *budget) start() *timed {
	ctx, cancel := context.WithDeadline(b.parent, b.until)
	t := &timed{ctx, cancel}
	if !b.timed.CompareAndSwap(nil, t) {
		cancel() // another Done was first
		return b.timed.Load()
	}
	if b.spent.Load() { // end may not have seen it
		cancel()
	}
	return t
}

// Err says why the budget is over.
func (b *budget) Err() error {
	if t := b.timed.Load(); t != nil {
		return t.Err()
	}
	switch err := b.parent.Err(); {
	case err != nil:
		return err
	case b.spent.Load():
		return context.Canceled
	case time.Until(b.until) <= 0:
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the timed context where there is one, so that contexts made below a
// budget join it without a goroutine.
func (b *budget) Value(key any) any {
	if t := b.timed.Load(); t != nil {
		return t.Value(key)
	}
	return b.parent.Value(key)
}

// end frees the timer.
func (b *budget) end() {
	b.spent.Store(true)
	if t := b.timed.Load(); t != nil {
		t.cancel()
	}
}
