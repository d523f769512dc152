package elect

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
)

// Run campaigns in the election called name until ctx ends, and calls lead each time
// this process leads, with a context that carries the lease (hasp.FromContext finds it
// under name, and with it the token). That context ends with cause hasp.ErrLost when
// leadership is lost or resigned, with hasp.ErrClosed when the client closes, and with
// ctx.
//
//   - lead returns while it leads: the process resigns, and Run returns what lead returned.
//   - Leadership is lost: Run campaigns on when lead has returned, whatever it returned;
//     with Options.Once, and where lead did not notice, it returns an *hasp.Error with Op
//     "hold" that matches hasp.ErrLost.
//   - ctx ends: leadership is kept while lead drains and then handed over. Run returns what
//     lead returned, and ctx.Err() where this process did not lead.
//   - lead panics: the process resigns, and Run returns a *PanicError.
//
// A store that is away or refuses does not end Run. What cannot be right (hasp.ErrInvalid,
// hasp.ErrUnsupported) does, before anything is sent, and so does hasp.ErrClosed.
func Run(ctx context.Context, client *hasp.Client, name string, lead func(context.Context) error, opts *Options) error {
	e, err := New(client, name, lead, opts)
	if err != nil {
		return err
	}
	return e.Run(ctx)
}

// Elector is one candidate of one election, for programs that ask whether they lead. Its
// methods may be called from any goroutine.
type Elector struct {
	client *hasp.Client
	mutex  *hasp.Mutex
	name   string
	lead   func(context.Context) error
	opts   Options

	mu      sync.Mutex
	state   State
	since   time.Time // of the state
	term    *term     // nil while this process does not lead
	terms   int       // begun so far
	fault   error     // why the last attempt to stand in line failed
	tried   time.Time // when the present attempt began, or the last one failed
	overrun bool      // the work of the last term was reported
	seen    Leader    // whom the last look found
	idle    chan struct{}
}

// New makes a candidate that does nothing until Run is called. It does no I/O and
// reports what is wrong with its arguments.
func New(client *hasp.Client, name string, lead func(context.Context) error, opts *Options) (*Elector, error) {
	o, err := opts.resolve()
	switch {
	case client == nil:
		err = errors.Join(err, invalidf("no client; make one with hasp.New"))
	case name == "":
		err = errors.Join(err, invalidf("the name of the election is empty"))
	case lead == nil:
		err = errors.Join(err, invalidf("the function to run while leading is nil; Stay is one that does nothing"))
	}
	if err != nil {
		return nil, failed("elect", name, err)
	}
	e := &Elector{client: client, name: name, lead: lead, opts: o, since: time.Now()}
	e.mutex = client.Plain().With(o.lock()).Mutex(name)
	if err := e.mutex.Err(); err != nil {
		return nil, failed("elect", name, reason(err))
	}
	return e, nil
}

// reason takes the operation off an error that gets another one.
func reason(err error) error {
	if e := (*hasp.Error)(nil); errors.As(err, &e) {
		return e.Err
	}
	return err
}

// Stay is the work of a leader that has nothing to run and only wants to be asked
// IsLeader. It returns when its context has ended.
func Stay(ctx context.Context) error {
	<-ctx.Done()
	return ctx.Err()
}

// Run campaigns; see the function Run. A second Run at the same time is hasp.ErrInvalid,
// also while the work of an earlier one, which Run did not wait for, has not returned.
// After that the candidate may run again.
func (e *Elector) Run(ctx context.Context) error {
	if err := e.begin(); err != nil {
		return failed("elect", e.name, err)
	}
	done := make(chan error, 1)
	go func() {
		err := e.campaign(ctx)
		e.end(ctx, err)
		done <- err
	}()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
	}
	if e.opts.Drain == 0 {
		return <-done
	}
	patience := time.NewTimer(e.opts.Drain)
	defer patience.Stop()
	select {
	case err := <-done:
		return err
	case <-patience.C:
		return failed("elect", e.name, ErrOverrun)
	}
}

func (e *Elector) begin() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != Stopped {
		return invalidf("this candidate runs already")
	}
	e.become(Following)
	e.fault, e.idle = nil, make(chan struct{})
	return nil
}

func (e *Elector) end(ctx context.Context, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.become(Stopped)
	e.fault = nil
	if ctx.Err() == nil && err != nil {
		e.fault = err
	}
	close(e.idle)
}

// become changes the state; e.mu is held.
func (e *Elector) become(s State) {
	if s != e.state {
		e.state, e.since = s, time.Now()
	}
}

// campaign stands in line and leads, again and again.
func (e *Elector) campaign(ctx context.Context) error {
	for {
		lease, err := e.stand(ctx)
		if err != nil {
			return err
		}
		for lease != nil {
			next, over, err := e.serve(ctx, lease)
			if over {
				return err
			}
			lease = next
		}
	}
}

// Pauses between attempts to stand in line that failed. An attempt itself asks for five
// seconds.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// stand waits in line until this process leads. A store that is away or refuses is asked
// again.
func (e *Elector) stand(ctx context.Context) (*hasp.Lease, error) {
	p := pacing{}
	for {
		e.try()
		lease, err := e.mutex.Lock(ctx)
		switch {
		case err == nil:
			return lease, nil
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case permanent(err):
			return nil, failed("elect", e.name, reason(err))
		}
		e.failing(ctx, err)
		if !p.rest(ctx) {
			return nil, ctx.Err()
		}
	}
}

// try notes that an attempt begins.
func (e *Elector) try() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tried = time.Now()
}

// failing notes an attempt that failed, and logs the first of several.
func (e *Elector) failing(ctx context.Context, err error) {
	e.mu.Lock()
	first := e.fault == nil || time.Since(e.tried) > stoodFor
	e.fault, e.tried = err, time.Now()
	e.mu.Unlock()
	if first {
		e.opts.Logger.LogAttrs(ctx, slog.LevelWarn, "campaign failed and goes on",
			slog.String("election", e.name), slog.Any("error", err))
	}
}

// permanent says whether trying again is of no use.
func permanent(err error) bool {
	return errors.Is(err, hasp.ErrInvalid) || errors.Is(err, hasp.ErrUnsupported) || errors.Is(err, hasp.ErrClosed)
}

// pacing is a series of pauses, each twice as long as the one before it, up to a limit.
type pacing struct{ last time.Duration }

// rest pauses; false: ctx has ended.
func (p *pacing) rest(ctx context.Context) bool {
	p.last = min(max(2*p.last, firstPause), lastPause)
	t := time.NewTimer(p.last/2 + rand.N(p.last/2)) // candidates that failed together come back apart
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
