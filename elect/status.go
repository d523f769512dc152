package elect

import (
	"context"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp"
)

// State is what a candidate does.
type State uint8

const (
	// Stopped says: it does not run.
	Stopped State = iota
	// Following says: it stands in line, or tries to.
	Following
	// Leading says: its work runs, inside the trust window.
	Leading
	// Draining says: its term is ending, and the work has not returned.
	Draining
)

// String names the state.
func (s State) String() string {
	switch s {
	case Stopped:
		return "stopped"
	case Following:
		return "following"
	case Leading:
		return "leading"
	case Draining:
		return "draining"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Status is how a candidate stands, as this process knows.
type Status struct {
	Election     string
	State        State
	Since        time.Time // of the state
	Terms        int       // begun so far
	Token        int64     // of the present term; 0 without one
	TrustedUntil time.Time // the end of its trust window, which moves with every renewal; zero without a term
	Overrun      bool      // the work goes on, longer than Options.Overrun after its context has ended
	Err          error     // Following: why no place in line could be had lately; Stopped: what Run returned
}

// stoodFor is how long an attempt to stand in line goes on at most while the store is
// silent: one that has gone on for longer stands in line.
const stoodFor = 6 * time.Second

// Status answers how the candidate stands. It does no I/O.
func (e *Elector) Status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := Status{Election: e.name, State: e.state, Since: e.since, Terms: e.terms, Overrun: e.overrun, Err: e.fault}
	if e.state == Following && time.Since(e.tried) > stoodFor {
		s.Err = nil
	}
	if t := e.term; t != nil {
		s.Token, s.TrustedUntil = t.lease.Token(), t.lease.TrustedUntil()
		if s.State == Leading && !t.leads() {
			s.State = Draining // and the work will soon know
		}
	}
	return s
}

// IsLeader says whether this process leads: it does only inside its trust window, and
// no longer once the context of the work has ended. It does no I/O.
func (e *Elector) IsLeader() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.term != nil && e.term.leads()
}

func (t *term) leads() bool { return t.ctx.Err() == nil && t.lease.Err() == nil }

// block is how many tokens belong to one number of a line.
const block = 64

// Leader asks the store who leads. The zero Leader is nobody.
func (e *Elector) Leader(ctx context.Context) (Leader, error) {
	line, err := e.client.Inspect(ctx, e.name)
	if err != nil {
		return Leader{}, failed("leader", e.name, reason(err))
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := leaderOf(line, e.seen)
	if t := e.term; t != nil && t.lease.Token()/block == now.Token/block { // a listing need not know the token within its block
		now.Token, now.Since = t.lease.Token(), t.began
	}
	e.seen = now
	return now, nil
}

// Resign ends the present term: the context of the work ends with cause ErrResigned,
// and when the work has returned, the next in line leads. This process goes to the end
// of the line. Resign returns when it has left, or when ctx ends, which does not undo
// it; called with the context of the work, it does not wait. Without a term it is
// hasp.ErrNotHeld; if leadership was lost before the work returned, hasp.ErrLost.
func (e *Elector) Resign(ctx context.Context) error {
	e.mu.Lock()
	t := e.term
	e.mu.Unlock()
	if t == nil {
		return failed("resign", e.name, hasp.ErrNotHeld)
	}
	t.gives.Store(true)
	t.cancel(ErrResigned)
	if e.within(ctx, t) {
		return nil
	}
	select {
	case <-t.over:
		return failed("resign", e.name, reason(t.err))
	case <-ctx.Done():
		return failed("resign", e.name, ctx.Err())
	}
}

// within says whether ctx is the context of the term's work, or a child of it.
func (e *Elector) within(ctx context.Context, t *term) bool {
	lease, ok := hasp.FromContext(ctx, e.name)
	return ok && lease == t.lease
}
