package hasp

import (
	"context"
	"sync"
	"time"
)

// budget is a context with a deadline whose timer is made only when somebody asks for
// Done: most calls to a store are answered at once, and then none is needed.
type budget struct {
	parent   context.Context //nolint:containedctx // a budget is a context
	made     time.Time
	deadline time.Time

	mu     sync.Mutex
	timed  context.Context //nolint:containedctx // made by the first Done
	cancel context.CancelFunc
	spent  bool
}

// newBudget bounds parent by d from now. The caller calls end.
func newBudget(parent context.Context, d time.Duration) *budget {
	made := time.Now()
	deadline := made.Add(d)
	if earlier, ok := parent.Deadline(); ok && earlier.Before(deadline) {
		deadline = earlier
	}
	return &budget{parent: parent, made: made, deadline: deadline}
}

// Deadline is the earlier of the budget's and its parent's.
func (b *budget) Deadline() (time.Time, bool) { return b.deadline, true }

// Done closes at the deadline, at the parent's end, or at end.
func (b *budget) Done() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.timed == nil {
		b.timed, b.cancel = context.WithDeadline(b.parent, b.deadline)
		if b.spent {
			b.cancel()
		}
	}
	return b.timed.Done()
}

// Err says why the budget is over.
func (b *budget) Err() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.timed != nil:
		return b.timed.Err()
	case b.parent.Err() != nil:
		return b.parent.Err()
	case b.spent:
		return context.Canceled
	case time.Until(b.deadline) <= 0:
		return context.DeadlineExceeded
	}
	return nil
}

// Value asks the timed context where there is one, so that contexts made below a
// budget join it without a goroutine.
func (b *budget) Value(key any) any {
	b.mu.Lock()
	timed := b.timed
	b.mu.Unlock()
	if timed != nil {
		return timed.Value(key)
	}
	return b.parent.Value(key)
}

// end frees the timer.
func (b *budget) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.spent = true
	if b.cancel != nil {
		b.cancel()
	}
}
