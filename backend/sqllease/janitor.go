package sqllease

import (
	"context"
	"sync"
	"time"
)

// Janitor sweeps some time after it was expected, and comes again as long as something
// is left.
type Janitor struct {
	after time.Duration
	base  context.Context //nolint:containedctx // of the client, with which a sweep ends
	sweep func(ctx context.Context) (left bool, err error)

	mu      sync.Mutex
	timer   *time.Timer // guarded by mu; nil: not expected
	stopped bool        // guarded by mu
}

// NewJanitor makes a janitor for a client that comes after that time.
func NewJanitor(c *Client, after time.Duration, sweep func(ctx context.Context) (left bool, err error)) *Janitor {
	return &Janitor{after: after, base: c.base, sweep: sweep}
}

// Expect makes the janitor come.
func (j *Janitor) Expect() {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.timer == nil && !j.stopped {
		j.timer = time.AfterFunc(j.after, j.come)
	}
}

func (j *Janitor) come() {
	j.mu.Lock()
	j.timer = nil
	j.mu.Unlock()
	if left, err := j.sweep(j.base); err == nil && left {
		j.Expect()
	}
}

// Stop makes the janitor come no more.
func (j *Janitor) Stop() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.stopped = true
	if j.timer != nil {
		j.timer.Stop()
	}
}
