package fence

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Gate keeps in memory the greatest token of each resource and refuses smaller ones. Its
// zero value is ready to use, by any number of goroutines.
//
// It knows what this process has seen. After a restart the first token of each resource
// passes, whichever it is; where that is not enough, keep the fence in the database.
//
// It remembers Limit resources, and forgets the one that was not used for longest. What
// it has forgotten it does not let pass by guess: a resource it does not know must come
// with a token that is not below any it has forgotten. Tokens follow the store's clock, so
// this refuses only holders that had their lock for that long and never wrote.
type Gate struct {
	// Limit is how many resources are remembered, those in use not counted. Set it before
	// the first call. Defaults to 65536.
	Limit int

	mu    sync.Mutex
	known map[string]*entry // guarded by mu
	idle  list.List         // guarded by mu; of *entry, the one used last in front
	floor int64             // guarded by mu; the greatest token forgotten
}

// entry is one resource; the Gate's lock guards it.
type entry struct {
	resource string
	seen     int64
	users    int           // calls that wait or run
	running  []*visit      // functions that run, all with the same token
	changed  chan struct{} // closed when running or seen changes; nil while nobody waits
	place    *list.Element // in idle; nil while there are users
}

// visit is a call of Do.
type visit struct {
	entry  *entry
	token  int64
	cancel context.CancelCauseFunc // of its function's context
}

const defaultLimit = 1 << 16

// Admit takes in a token: nil if none above it was seen for that resource, else a
// *StaleError. The same token passes as often as it comes.
//
// What the caller does after Admit can be overtaken by a holder that comes later. Do
// keeps the gate shut meanwhile.
func (g *Gate) Admit(resource string, token int64) error {
	if err := g.check(resource, token); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	e, err := g.enter(resource, token)
	if err == nil {
		g.leave(e)
	}
	return err
}

// Do admits a token and runs fn, and lets nobody with another token of that resource in
// before fn has returned. Calls with the same token run side by side.
//
// A larger token ends the context of fn with a *StaleError as its cause, and its own
// function begins when fn has returned. An error of fn then matches ErrStale, too.
// If ctx ends while waiting for that, fn does not run and Do answers ctx's cause.
func (g *Gate) Do(ctx context.Context, resource string, token int64, fn func(context.Context) error) error {
	if err := g.check(resource, token); err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	v := &visit{token: token, cancel: cancel}
	if err := g.begin(ctx, resource, v); err != nil {
		return err
	}
	defer g.end(v)
	err := fn(ctx)
	var stale *StaleError
	if err != nil && !errors.Is(err, ErrStale) && errors.As(context.Cause(ctx), &stale) {
		return fmt.Errorf("%w: %w", stale, err)
	}
	return err
}

func (g *Gate) check(resource string, token int64) error {
	if g.Limit < 0 {
		return invalidf("Gate.Limit is %d, want 0 (%d) or more", g.Limit, defaultLimit)
	}
	if err := checkResource(resource); err != nil {
		return err
	}
	return checkToken(token)
}

// begin waits until nobody with a smaller token is inside, and goes in.
func (g *Gate) begin(ctx context.Context, resource string, v *visit) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, err := g.enter(resource, v.token)
	if err != nil {
		return err
	}
	v.entry = e
	for len(e.running) > 0 && e.running[0].token < v.token && ctx.Err() == nil {
		g.wait(ctx, e)
	}
	switch {
	case e.seen > v.token:
		err = e.stale(v.token)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	default:
		e.running = append(e.running, v)
		return nil
	}
	g.leave(e)
	return err
}

// wait opens the lock until something has changed, or ctx ends.
func (g *Gate) wait(ctx context.Context, e *entry) {
	if e.changed == nil {
		e.changed = make(chan struct{})
	}
	changed := e.changed
	g.mu.Unlock()
	defer g.mu.Lock()
	select {
	case <-changed:
	case <-ctx.Done():
	}
}

func (g *Gate) end(v *visit) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := v.entry
	e.running = slices.DeleteFunc(e.running, func(r *visit) bool { return r == v })
	e.tell()
	g.leave(e)
}

// enter finds or makes the entry, takes in the token and counts a user; g.mu is held.
func (g *Gate) enter(resource string, token int64) (*entry, error) {
	e, ok := g.known[resource]
	switch {
	case !ok && token < g.floor:
		return nil, &StaleError{Resource: resource, Seen: g.floor, Given: token, Forgotten: true}
	case ok && token < e.seen:
		return nil, e.stale(token)
	case !ok:
		e = &entry{resource: resource}
		if g.known == nil {
			g.known = make(map[string]*entry)
		}
		g.known[resource] = e
	}
	if token > e.seen {
		e.seen = token
		e.tell()
		for _, v := range e.running {
			v.cancel(e.stale(v.token))
		}
	}
	e.users++
	if e.place != nil {
		g.idle.Remove(e.place)
		e.place = nil
	}
	return e, nil
}

// leave counts a user out and forgets what is beyond the limit; g.mu is held.
func (g *Gate) leave(e *entry) {
	if e.users--; e.users > 0 {
		return
	}
	e.place = g.idle.PushFront(e)
	limit := g.Limit
	if limit == 0 {
		limit = defaultLimit
	}
	for g.idle.Len() > limit {
		last, _ := g.idle.Remove(g.idle.Back()).(*entry) // there is nothing else in it
		delete(g.known, last.resource)
		g.floor = max(g.floor, last.seen)
	}
}

func (e *entry) stale(token int64) *StaleError {
	return &StaleError{Resource: e.resource, Seen: e.seen, Given: token}
}

// tell wakes those who wait.
func (e *entry) tell() {
	if e.changed != nil {
		close(e.changed)
		e.changed = nil
	}
}
