package hasp_test

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/internal/simulation"
)

// trusted is a lease that a worker has.
type trusted struct {
	*worker
	lease  *hasp.Lease
	claim  simulation.Claim
	number int64
	token  int64
}

// take writes down that a call has returned a lease, and watches its end.
func (a *worker) take(lease *hasp.Lease, r request) *trusted {
	until := lease.TrustedUntil()
	ref := lease.Ref()
	x := &trusted{worker: a, lease: lease, claim: simulation.ClaimOf(ref.ID), number: ref.Number, token: lease.Token()}
	x.add(simulation.Event{Kind: simulation.Acquired, Until: a.history.At(until), Text: r.note(), Passes: r.opts.LocalHandoffs, Asked: r.began})
	done := lease.Done()
	go func() {
		<-done
		x.add(simulation.Event{Kind: simulation.Over, Text: outcome(lease.Err())})
	}()
	return x
}

// add writes something down about the lease.
func (x *trusted) add(e simulation.Event) {
	e.Claim, e.Number, e.Token = x.claim, x.number, x.token
	x.history.Add(e)
}

// outcome is the word of the history for what an operation on a lease has come to.
func outcome(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, hasp.ErrLost):
		return "lost"
	case errors.Is(err, hasp.ErrReleased):
		return "released"
	case errors.Is(err, hasp.ErrClosed):
		return "closed"
	case errors.Is(err, hasp.ErrUnavailable), errors.Is(err, hasp.ErrRefused):
		return "unknown"
	}
	return "unexpected: " + err.Error()
}

// use works under the lease and then ends it in one of several ways.
func (x *trusted) use(ctx context.Context, r request) {
	*x.busy = "holding " + x.claim.String()
	if x.client > 0 && x.throws.Chance(3) {
		limit := x.throws.Often(0, 10*time.Second)
		x.beside.Go(func() { x.shutDown(ctx, limit) })
	}
	for range x.throws.IntN(3) {
		x.spend(ctx, r.opts.TTL/2)
		x.look()
		switch x.throws.IntN(4) {
		case 0:
			x.extend(ctx)
		case 1:
			x.nest(ctx, r)
		}
	}
	x.spend(ctx, 2*r.opts.TTL)
	x.look()
	if errors.Is(x.lease.Err(), hasp.ErrLost) {
		x.lost(ctx, r)
		return
	}
	switch n := x.throws.IntN(20); {
	case n < 2:
		x.keep(ctx)
	case n < 5:
		x.detach(ctx)
	default:
		x.release(ctx)
	}
}

// spend holds the lease for a while, or until it is over; some do not notice that at once.
func (x *trusted) spend(ctx context.Context, most time.Duration) {
	t := time.NewTimer(x.throws.Often(0, most))
	defer t.Stop()
	select {
	case <-t.C:
	case <-x.lease.Done():
		if x.throws.Chance(30) {
			x.pause(ctx, x.throws.Often(0, most))
		}
	}
}

// look asks the lease what it knows.
func (x *trusted) look() {
	until, err := x.lease.TrustedUntil(), x.lease.Err()
	if err != nil {
		return
	}
	if now := time.Now(); !now.Before(until) {
		x.history.Wrongf(x.client, "G2: %s says it is held, and trusted until %s ago", x.claim, now.Sub(until))
	}
	x.add(simulation.Event{Kind: simulation.Looked, Until: x.history.At(until)})
}

func (x *trusted) extend(ctx context.Context) {
	ttl := x.throws.Between(200*time.Millisecond, 8*time.Second)
	began := time.Now()
	err := x.lease.Extend(ctx, ttl)
	x.history.Notef(x.client, "extend %s by %s: %v", x.claim, ttl, err)
	if word := outcome(err); strings.HasPrefix(word, "unexpected") {
		x.history.Wrongf(x.client, "G10: extend: %v", err)
	}
	if until := x.lease.TrustedUntil(); err == nil && until.Before(began.Add(ttl-max(ttl/100, 5*time.Millisecond))) {
		x.history.Wrongf(x.client, "extend: %s was extended by %s at %s and is trusted until %s",
			x.claim, ttl, x.history.At(began), x.history.At(until))
	}
}

// nest locks the same once more below the lease: it shares, or is refused at once.
func (x *trusted) nest(ctx context.Context, r request) {
	below := x.lease.Context(ctx)
	if x.lease.Err() != nil {
		return
	}
	inner, err := r.lock(below)
	switch {
	case r.opts.Reentrant && err == nil:
		if inner.Token() != x.lease.Token() {
			x.history.Wrongf(x.client, "nested: token %d under %d", inner.Token(), x.lease.Token())
		}
		_ = inner.Release(ctx)
		if errors.Is(x.lease.Err(), hasp.ErrReleased) {
			x.history.Wrongf(x.client, "nested: the inner release ended %s", x.claim)
		}
	case !r.opts.Reentrant && !errors.Is(err, hasp.ErrInvalid):
		x.history.Wrongf(x.client, "nested: a lock that would wait for itself answered %v", err)
	case errors.Is(err, hasp.ErrInvalid) == r.opts.Reentrant && !errors.Is(err, hasp.ErrClosed):
		x.history.Wrongf(x.client, "nested: reentrant and refused: %v", err)
	}
}

// release gives the lease back, again where the outcome is unknown.
func (x *trusted) release(ctx context.Context) {
	for range 3 {
		x.add(simulation.Event{Kind: simulation.Releasing})
		began := x.history.Now()
		err := x.lease.Release(ctx)
		word := outcome(err)
		x.add(simulation.Event{Kind: simulation.Released, Text: word})
		if took := x.history.Now() - began; took > 5100*time.Millisecond {
			x.history.Wrongf(x.client, "G8: Release took %s", took)
		}
		switch word {
		case "", "lost", "closed":
			return
		case "unknown":
		default:
			x.history.Wrongf(x.client, "G10: Release answered %v", err)
		}
		x.pause(ctx, x.throws.Often(0, 3*time.Second))
		if x.throws.Chance(30) {
			return
		}
	}
}

// keep leaves the keys held for a while.
func (x *trusted) keep(ctx context.Context) {
	d := x.throws.Often(time.Millisecond, 5*time.Second)
	x.give(ctx, "Keep", func() error { return x.lease.Keep(ctx, d) })
}

// detach sends the lease on its way to somebody.
func (x *trusted) detach(ctx context.Context) {
	d := x.throws.Often(10*time.Millisecond, 8*time.Second)
	x.give(ctx, "Detach", func() error {
		t, err := x.lease.Detach(ctx, d)
		if err != nil {
			return err
		}
		text, err := t.MarshalText()
		if err != nil {
			return err
		}
		x.mu.Lock()
		defer x.mu.Unlock()
		x.tickets = append(x.tickets, &detached{text: text, token: x.lease.Token()})
		return nil
	})
}

func (x *trusted) give(ctx context.Context, what string, call func() error) {
	for range 3 {
		x.add(simulation.Event{Kind: simulation.Parking, Text: what})
		err := call()
		switch word := outcome(err); word {
		case "":
			x.add(simulation.Event{Kind: simulation.Parked, Text: what})
			if x.throws.Chance(50) {
				x.release(ctx) // says nil and does nothing
			}
			return
		case "unknown":
			x.history.Notef(x.client, "%s: %v", what, err)
			x.pause(ctx, x.throws.Often(0, time.Second))
		case "lost":
			x.add(simulation.Event{Kind: simulation.Note, Text: what + " says it was lost"})
			x.release(ctx)
			return
		case "closed":
			x.release(ctx)
			return
		default:
			x.history.Wrongf(x.client, "G10: %s answered %v", what, err)
			return
		}
	}
}

// lost is what a worker does whose lease is lost: take it up again, or give it back.
func (x *trusted) lost(ctx context.Context, r request) {
	if x.throws.Chance(60) {
		lease, err := x.lease.Reclaim(ctx)
		switch word := outcome(err); {
		case (lease == nil) == (err == nil):
			x.history.Wrongf(x.client, "G8: Reclaim answered %v and %v", lease, err)
		case err == nil:
			x.add(simulation.Event{Kind: simulation.Reclaimed})
			if lease.Token() <= x.lease.Token() {
				x.history.Wrongf(x.client, "G3: reclaimed with token %d, before it was %d", lease.Token(), x.lease.Token())
			}
			again := x.take(lease, r)
			again.spend(ctx, r.opts.TTL)
			again.release(ctx)
		case word == "lost", word == "unknown", word == "closed":
			x.history.Notef(x.client, "reclaim: %v", err)
		default:
			x.history.Wrongf(x.client, "G10: Reclaim answered %v", err)
		}
	}
	if x.throws.Chance(90) {
		x.release(ctx)
	}
}
