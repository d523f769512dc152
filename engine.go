package hasp

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// engine is what all clients derived from one share: the driver, the claims, one
// renewer and one listener.
type engine struct {
	drv   driver.Driver
	feats driver.Features
	name  string
	clk   *clock
	obs   *observer
	ids   idSource

	renewals renewer
	watches  watchers
	turns    turns // of calls that wait where there is no line
	gates    gates
	checked  atomic.Bool   // the store was found fit once
	proving  chan struct{} // one caller at a time proves it
	heard    atomic.Bool   // signals arrive
	listened chan struct{} // closed when they first did, or cannot

	life    context.Context //nolint:containedctx // of the background work; Close ends it
	end     context.CancelFunc
	tasks   sync.WaitGroup
	start   sync.Once
	closing chan struct{} // closed when Close begins
	gone    chan struct{} // closed when Close has ended

	closed atomic.Bool // no calls at all

	mu     sync.Mutex
	claims map[driver.ID]*claim // every claim a signal may be for
	shut   bool                 // no new claims
	change chan struct{}        // closed and renewed when a claim's fate changes while closing
}

func newEngine(d driver.Driver, opts Options) *engine {
	e := &engine{
		drv:      d,
		feats:    d.Features(),
		name:     opts.Name,
		clk:      newClock(asleep),
		obs:      &observer{tell: opts.Observe, logger: opts.Logger},
		proving:  make(chan struct{}, 1),
		listened: make(chan struct{}),
		closing:  make(chan struct{}),
		gone:     make(chan struct{}),
		claims:   make(map[driver.ID]*claim),
		change:   make(chan struct{}),
	}
	e.life, e.end = context.WithCancel(context.Background()) //nolint:forbidigo // it outlives every caller; Close ends it
	rand.Read(e.ids.inbox[:])
	e.renewals.kick = make(chan struct{}, 1)
	return e
}

// idSource makes claim ids, from random bytes read in stock. The engine's lock guards it.
type idSource struct {
	inbox [6]byte
	stock [64 * 10]byte
	left  int
	make  func() driver.ID // tests set it, for ids that follow from a seed
}

func (s *idSource) next() driver.ID {
	if s.make != nil {
		return s.make()
	}
	if s.left == 0 {
		rand.Read(s.stock[:])
		s.left = len(s.stock)
	}
	var id driver.ID
	copy(id[:6], s.inbox[:])
	copy(id[6:], s.stock[s.left-10:s.left])
	s.left -= 10
	return id
}

// ready proves, once before the first join, that the store is fit, and gives the
// listener a moment to be heard. A failure is answered, not remembered.
func (e *engine) ready(ctx context.Context, limit time.Duration) error {
	if e.checked.Load() {
		return nil
	}
	began := time.Now()
	patience := time.NewTimer(limit)
	defer patience.Stop()
	select {
	case e.proving <- struct{}{}:
		defer func() { <-e.proving }()
	case <-patience.C: // whoever asks hears nothing
		return ErrUnavailable
	case <-ctx.Done():
		return errors.Join(ErrUnavailable, ctx.Err())
	case <-e.closing:
		return ErrClosed
	}
	if e.checked.Load() {
		return nil
	}
	e.launch()
	if err := e.persist(ctx, e.closing, limit-time.Since(began), e.drv.Check); err != nil {
		return err
	}
	select {
	case <-e.listened:
	case <-time.After(min(time.Second, limit)): // deaf: waiting claims look again by themselves
	case <-ctx.Done():
		return errors.Join(ErrUnavailable, ctx.Err())
	case <-e.closing:
		return ErrClosed
	}
	e.checked.Store(true)
	return nil
}

// launch starts the renewer and the listener with the first call that needs them.
func (e *engine) launch() {
	e.start.Do(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if e.closed.Load() {
			return
		}
		e.tasks.Go(e.renewLoop)
		sig, ok := e.drv.(driver.Signaler)
		if !ok {
			close(e.listened)
			return
		}
		e.tasks.Go(func() { e.listen(sig) })
	})
}

// persist repeats a call until it is answered, the limit has passed, ctx has ended or
// stop is closed, which is ErrClosed. Of several failures it answers the last that was
// more than silence, since that one says what to mend.
func (e *engine) persist(
	ctx context.Context, stop <-chan struct{}, limit time.Duration, call func(context.Context) error,
) error {
	b := newBudget(ctx, min(callLimit, limit))
	return e.persistFrom(b, stop, limit, func(b *budget) error { return call(b) }) //nolint:contextcheck // it inherits from ctx
}

// persistFrom is persist with the budget of the first call, which ends min(callLimit,
// limit) from now.
func (e *engine) persistFrom(
	b *budget, stop <-chan struct{}, limit time.Duration, call func(*budget) error,
) error {
	ctx, end := b.parent, b.until.Add(limit-min(callLimit, limit))
	var reason error
	for pause := firstPause; ; pause = nextPause(pause) {
		err := call(b)
		silent := err != nil && b.Err() != nil
		b.end()
		if err == nil || definite(err) {
			return err
		}
		if !silent {
			reason = err
		} else if reason != nil {
			err = reason
		}
		if ctx.Err() != nil {
			return errors.Join(unavailable(err), ctx.Err())
		}
		left := time.Until(end)
		if left < firstPause {
			return unavailable(err)
		}
		if !rest(ctx, stop, min(pause, left/2)) { // the rest is for the answer
			return ErrClosed
		}
		b = newBudget(ctx, max(0, min(callLimit, time.Until(end))))
	}
}

// Pauses between the repeats of a call that was not answered, and how long one
// repeat waits for its answer.
const (
	firstPause = 10 * time.Millisecond
	callLimit  = 2 * time.Second
)

func nextPause(pause time.Duration) time.Duration { return min(2*pause, 500*time.Millisecond) }

// rest pauses, or until ctx ends; false says that stop was closed.
func rest(ctx context.Context, stop <-chan struct{}, pause time.Duration) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	case <-stop:
		return false
	}
	return true
}

// register makes a claim known that was not made by newClaim.
func (e *engine) register(c *claim) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut {
		return ErrClosed
	}
	e.claims[c.id] = c
	return nil
}

// list puts a claim back that may have been unlisted.
func (e *engine) list(c *claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.claims[c.id] = c
	e.changed()
}

// unlist takes out a claim that no signal is for any more.
func (e *engine) unlist(c *claim) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.claims, c.id)
	e.changed()
}

// changed has Close look again; e.mu is held.
func (e *engine) changed() {
	if e.shut {
		close(e.change)
		e.change = make(chan struct{})
	}
}

// forget ends the claim's part in everything; c.mu is held.
func (e *engine) forget(c *claim) {
	c.fate = finished
	e.renewals.remove(c)
	e.unlist(c)
}

// all answers the claims of the moment.
func (e *engine) all() []*claim {
	e.mu.Lock()
	defer e.mu.Unlock()
	claims := make([]*claim, 0, len(e.claims))
	for _, c := range e.claims {
		claims = append(claims, c)
	}
	return claims
}

// usable says whether calls may still be made.
func (e *engine) usable() error {
	select {
	case <-e.closing:
		return ErrClosed
	default:
		return nil
	}
}

// supports answers what the store lacks for w.
func (e *engine) supports(w *want) error {
	limit := e.feats.MaxKeys
	switch {
	case limit > 0 && len(w.keys.full) > limit:
		return fmt.Errorf("%w: %d keys in one lock, at most %d", ErrUnsupported, len(w.keys.full), limit)
	case w.capacity > 1 && !e.feats.Shared:
		return fmt.Errorf("%w: shared locks and permits", ErrUnsupported)
	case w.opts.TTL < e.feats.MinLife:
		return invalidf("TTL is %s, this store keeps at least %s", w.opts.TTL, e.feats.MinLife)
	}
	if len(w.keys.full) > 1 && e.feats.Together != nil {
		return e.feats.Together(w.keys.full)
	}
	return nil
}
