package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// closing: Close.
func closing() []Case {
	return []Case{
		{Name: "closing frees nothing", run: closeFreesNothing},
		{Name: "calls after closing find the store unavailable", run: callsAfterClose},
		{Name: "closing twice is allowed", run: closeTwice},
		{Name: "closing one client disturbs no other", needs: line, run: closeDisturbsNobody},
		{Name: "closing ends listening", needs: signaler, run: closeEndsListen},
		{Name: "closing cuts calls short", needs: stallHook, run: closeCutsShort},
		{Name: "a claim outlives its closed client by its life alone", run: closedClaimExpires},
	}
}

// shut closes a client's driver.
func (c *client) shut() {
	ctx, stop := context.WithTimeout(c.b.ctx, patience)
	defer stop()
	if err := c.d.Close(ctx); err != nil {
		c.b.fail("Close: %w", err)
	}
}

func closeFreesNothing(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	x.c.shut()
	b.heldBy(x.Keys[0], x)
	y.try(refused)
	return b.result()
}

func callsAfterClose(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	before := b.line(x.Keys[0])
	x.c.shut()
	x.c.d.Features()
	calls := x.calls(b)
	if s, ok := x.c.d.(driver.Signaler); ok {
		calls["Listen"] = func(ctx context.Context) (driver.Standing, error) {
			err := s.Listen(ctx, x.c.inbox, func(driver.Signal) {})
			return unlessFailed(err), err
		}
	}
	for what, call := range calls {
		ctx, stop := context.WithTimeout(b.ctx, patience)
		s, err := call(ctx)
		stop()
		b.check(errors.Is(err, driver.ErrUnavailable), "%s after Close answers %v, %v, want ErrUnavailable", what, s.State, err)
		b.outcome(what, s, err)
	}
	after := b.line(x.Keys[0])
	b.check(len(before.Holders) == 1 && len(after.Holders) == 1, "a call after Close changed the line from %+v to %+v", before, after)
	return b.result()
}

func closeTwice(b *bench) error {
	c := b.client()
	c.claim(b.key()).try(holding)
	c.shut()
	c.shut()
	b.atOnce(4, func(int) { c.shut() })
	return b.result()
}

func closeDisturbsNobody(b *bench) error {
	h, w, o := b.trio(b.key())
	h.join(holding)
	w.join(waiting)
	o.c.shut()
	h.renew(holding)
	h.leave(left)
	h.c.shut()
	w.renew(holding)
	b.client().claim(h.Keys[0]).try(refused)
	return b.result()
}

func closeEndsListen(b *bench) error {
	c := b.client().listens()
	if b.failed() {
		return b.result()
	}
	c.shut()
	select {
	case err := <-c.ear.ended:
		c.ear.ended <- err
		b.check(errors.Is(err, driver.ErrUnavailable), "Listen cut short by Close answers %v, want ErrUnavailable", err)
	case <-time.After(patience):
		b.fail("Listen goes on after Close")
	}
	return b.result()
}

func closeCutsShort(b *bench) error {
	x := b.client().claim(b.key())
	resume, err := b.store.Stall()
	if err != nil {
		return err
	}
	defer resume()
	j := joinAs(b)
	j.Claim = x.Claim
	ended := make(chan error, 1)
	go func() {
		_, err := x.c.d.Join(b.ctx, j)
		ended <- err
	}()
	b.sleep(1)
	go x.c.shut()
	select {
	case err := <-ended:
		b.check(errors.Is(err, driver.ErrUnavailable), "a Join cut short by Close answers %v, want ErrUnavailable", err)
	case <-time.After(patience):
		b.fail("a Join goes on after Close")
	}
	resume()
	return b.result()
}

func closedClaimExpires(b *bench) error {
	x, y := b.pair(b.key())
	x.lives(3, 3).try(holding)
	b.sleep(1)
	x.c.shut()
	b.sleep(1)
	y.try(refused)
	b.sleep(2)
	y.try(holding)
	return b.result()
}
