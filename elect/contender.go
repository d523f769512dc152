package elect

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/hasp-dev/hasp"
)

// Contender is a candidate in the form of two callbacks, as Simba has it. Set its fields,
// then Start and Stop it, as often as you like; it must not be copied.
//
// The callbacks never run at the same time. Each OnAcquired is followed by exactly one
// OnReleased, before the next OnAcquired. Their context is that of the term: it carries
// the lease and ends with it. OnReleased is called when it has ended, and when OnAcquired
// has returned; the claim leaves when OnReleased has returned, so what OnAcquired has
// started is stopped there.
type Contender struct {
	Client *hasp.Client
	Name   string // of the election
	// OnAcquired is called when this process has begun to lead. context.Cause of its context
	// tells later why that ended.
	OnAcquired func(ctx context.Context)
	// OnReleased is called when it no longer leads, with the same context, which has ended.
	OnReleased func(ctx context.Context)
	Options    *Options // as for Run

	mu      sync.Mutex
	state   ContenderState
	elector *Elector
	cancel  context.CancelFunc
	ran     chan struct{} // closed when the run has returned
	err     error         // what it returned, until Stop has told it
}

// ContenderState is what a Contender does.
type ContenderState uint8

const (
	// Initial says: not started, or stopped again.
	Initial ContenderState = iota
	// Starting says: Start was called.
	Starting
	// Running says: it campaigns.
	Running
	// Stopping says: Stop was called, and not everything has ended.
	Stopping
)

// String names the state.
func (s ContenderState) String() string {
	switch s {
	case Initial:
		return "initial"
	case Starting:
		return "starting"
	case Running:
		return "running"
	case Stopping:
		return "stopping"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Start begins to campaign in the background, until Stop is called or ctx ends. It
// returns at once, with an error if a field is wrong or the contender is started
// already.
func (c *Contender) Start(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state != Initial {
		return failed("start", c.Name, invalidf("the contender is %s, not %s", c.state, Initial))
	}
	if c.OnAcquired == nil && c.OnReleased == nil {
		return failed("start", c.Name, invalidf("the contender has neither OnAcquired nor OnReleased"))
	}
	e, err := New(c.Client, c.Name, c.lead, c.Options)
	if err != nil {
		return failed("start", c.Name, reason(err))
	}
	ctx, c.cancel = context.WithCancel(ctx)
	c.elector, c.err, c.ran = e, nil, make(chan struct{})
	c.state = Starting
	go c.run(ctx, e, c.ran)
	return nil
}

// Stop ends the campaign. If this process leads, OnReleased is called and the next in
// line follows. It returns when all of that is done, with what ended the campaign before
// Stop did, if something had; or when ctx ends, which does not undo it. Called with the
// context of a callback it does not wait. On a contender that is not started it is
// hasp.ErrInvalid.
func (c *Contender) Stop(ctx context.Context) error {
	c.mu.Lock()
	ran, e := c.ran, c.elector
	switch c.state {
	case Starting, Running:
		c.state = Stopping
		c.cancel()
	case Stopping:
	case Initial:
		err := c.err
		c.err = nil
		c.mu.Unlock()
		if err == nil {
			err = failed("stop", c.Name, invalidf("the contender is not started"))
		}
		return err
	}
	c.mu.Unlock()
	if lease, ok := hasp.FromContext(ctx, c.Name); ok && e.owns(lease) {
		return nil
	}
	select {
	case <-ran:
	case <-ctx.Done():
		return failed("stop", c.Name, ctx.Err())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.err
	c.err = nil
	return err
}

// State answers what the contender does.
func (c *Contender) State() ContenderState {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state
}

// Elector answers the candidate of the present or last run, to ask it who leads; nil
// before the first Start.
func (c *Contender) Elector() *Elector {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elector
}

// run campaigns once.
func (c *Contender) run(ctx context.Context, e *Elector, ran chan<- struct{}) {
	c.enter(Starting, Running)
	err := e.Run(ctx)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = nil
	}
	if err != nil {
		e.opts.Logger.LogAttrs(ctx, slog.LevelError, "contender stopped by itself", slog.String("election", c.Name), slog.Any("error", err))
	}
	c.enter(Running, Stopping)
	c.mu.Lock()
	c.err = err
	c.cancel()
	c.mu.Unlock()
	select {
	case <-e.idle: // nobody but the callbacks is waited for
		c.enter(Stopping, Initial)
		close(ran)
	default: // Drain is over: Stop is told, and Start is refused while a callback runs
		close(ran)
		<-e.idle
		c.enter(Stopping, Initial)
	}
}

// enter goes from one state to the next, unless it was left already.
func (c *Contender) enter(from, to ContenderState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state == from {
		c.state = to
	}
}

// lead is one term.
func (c *Contender) lead(ctx context.Context) error {
	if c.OnReleased != nil {
		defer c.OnReleased(ctx) // after a panic of OnAcquired, too
	}
	if c.OnAcquired != nil {
		c.OnAcquired(ctx)
	}
	<-ctx.Done()
	return nil
}

// owns says whether the lease is that of the present term.
func (e *Elector) owns(l *hasp.Lease) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term != nil && e.term.lease == l
}
