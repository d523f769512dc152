package drivertest

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// cancellation: calls whose context ends.
func cancellation() []Case {
	return []Case{
		{Name: "a call whose context has ended returns at once", run: endedContext},
		{Name: "a batch whose context has ended answers each item", run: endedBatch},
		{Name: "a cancelled join that is given up leaves nothing", run: cancelledJoin},
		{Name: "a cancelled waiter that gives up leaves nothing", needs: line, run: cancelledWaiter},
		{Name: "on a silent store every call returns when its context ends", needs: stallHook, run: silentStore},
		{Name: "a store that was silent goes on as if nothing had been", needs: stallHook, run: afterSilence},
	}
}

// promptly is how soon a call must return after its context's end.
const promptly = 50 * time.Millisecond

// outcome checks that a call that was cut short answers a standing or an error, and
// no class of error that says the store did nothing.
func (b *bench) outcome(what string, s driver.Standing, err error) {
	if err == nil {
		b.check(s.State != 0, "%s answers neither a standing nor an error", what)
		return
	}
	b.check(s.State == 0, "%s answers both %v and %v", what, s.State, err)
	for _, class := range []error{driver.ErrRefused, driver.ErrInvalid, driver.ErrUnsupported} {
		b.check(!errors.Is(err, class), "%s was cut short, but answers %v", what, err)
	}
}

// calls are one call of each kind, for a claim that may or may not be in line.
func (x *claim) calls(b *bench) map[string]func(context.Context) (driver.Standing, error) {
	j := joinAs(b)
	j.Claim = x.Claim
	m := map[string]func(context.Context) (driver.Standing, error){
		"Join": func(ctx context.Context) (driver.Standing, error) { return x.c.d.Join(ctx, j) },
		"Renew": func(ctx context.Context) (driver.Standing, error) {
			a := x.c.renew(ctx, []driver.Renewal{extension(x), extension(x)})
			return a[1].Standing, a[1].err
		},
		"Leave": func(ctx context.Context) (driver.Standing, error) {
			return x.c.d.Leave(ctx, driver.Leaving{Ref: x.Ref})
		},
		"Lines": func(ctx context.Context) (driver.Standing, error) {
			_, err := x.c.d.Lines(ctx, driver.Query{Key: x.Keys[0]})
			return unlessFailed(err), err
		},
		"Check": func(ctx context.Context) (driver.Standing, error) {
			err := x.c.d.Check(ctx)
			return unlessFailed(err), err
		},
	}
	if b.operates() {
		m["End"] = func(ctx context.Context) (driver.Standing, error) {
			_, err := x.c.d.(driver.Operator).End(ctx, x.Keys[0], []int64{1}, false)
			return unlessFailed(err), err
		}
	}
	return m
}

// unlessFailed is a standing for calls that answer something else.
func unlessFailed(err error) driver.Standing {
	if err != nil {
		return driver.Standing{}
	}
	return driver.Standing{State: left}
}

func endedContext(b *bench) error {
	x := b.client().claim(b.key())
	for what, call := range x.calls(b) {
		ctx, stop := context.WithCancel(b.ctx)
		stop()
		begin := time.Now()
		s, err := call(ctx)
		took := time.Since(begin)
		b.took(took)
		b.outcome(what, s, err)
		b.check(took <= promptly+b.slack, "%s took %v, though its context had ended", what, took)
	}
	x.giveUpEither(60)
	b.free(x.Keys...)
	return b.result()
}

func endedBatch(b *bench) error {
	c := b.client()
	var items []driver.Renewal
	for _, k := range b.keys(50) {
		x := c.claim(k)
		x.try(holding)
		items = append(items, extension(x))
	}
	ctx, stop := context.WithCancel(b.ctx)
	stop()
	for i, a := range c.renew(ctx, items) {
		b.outcome("item "+items[i].Keys[0], a.Standing, a.err)
	}
	for i, a := range c.renew(b.ctx, items) {
		b.check(a.err == nil && a.State == holding, "item %d is %v, %v, want holding", i, a.State, a.err)
	}
	return b.result()
}

// cut joins with a context that ends somewhere under way.
func (x *claim) cut(b *bench) {
	ctx, stop := context.WithTimeout(b.ctx, time.Duration(rand.Int64N(int64(2*time.Millisecond))))
	defer stop()
	j := joinAs(b)
	j.Claim = x.Claim
	s, err := x.c.d.Join(ctx, j)
	b.outcome("a Join cut short", s, err)
	if err == nil && s.State == holding {
		x.Number = s.Number
		x.renew(holding)
	}
}

func cancelledJoin(b *bench) error {
	c, k := b.client(), b.key()
	for range 40 {
		x, y := c.claim(k), c.claim(k)
		x.cut(b)
		l := driver.Leaving{Ref: x.Ref, Unanswered: true, Remember: b.ticks(60)}
		s, err := c.d.Leave(b.ctx, l)
		b.check(err == nil && (s.State == left || s.State == gone), "a release is %v, %v", s.State, err)
		y.try(holding)
		y.leave(left)
		if b.failed() {
			break
		}
	}
	b.sleep(1) // a join still under way would come now
	b.free(k)
	return b.result()
}

func cancelledWaiter(b *bench) error {
	c, k := b.client(), b.key()
	h := b.client().claim(k)
	h.join(holding)
	for range 40 {
		x := c.claim(k)
		x.cut(b)
		l := driver.Leaving{Ref: x.Ref, Unanswered: true, Remember: b.ticks(60)}
		if _, err := c.d.Leave(b.ctx, l); err != nil {
			return err
		}
		if b.failed() {
			break
		}
	}
	b.sleep(1)
	b.heldBy(k, h)
	b.waitedBy(k)
	h.leave(left)
	b.free(k)
	return b.result()
}

func silentStore(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	calls := x.calls(b)
	resume, err := b.store.Stall()
	if err != nil {
		return err
	}
	defer resume()
	for what, call := range calls {
		ctx, stop := context.WithTimeout(b.ctx, b.tick)
		end := time.Now().Add(b.tick)
		s, err := call(ctx)
		late := time.Since(end)
		b.took(late)
		stop()
		b.check(err != nil, "%s is answered by a silent store", what)
		b.outcome(what, s, err)
		b.check(late <= promptly+b.slack, "%s returned %v after its context's end", what, late)
	}
	return b.result()
}

func afterSilence(b *bench) error {
	x, y := b.pair(b.key())
	x.try(holding)
	resume, err := b.store.Stall()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(b.ctx, b.tick)
	defer stop()
	j := joinAs(b)
	j.Claim = y.Claim
	if s, err := y.c.d.Join(ctx, j); err == nil {
		b.fail("Join is answered %v by a silent store", s.State)
	}
	resume()
	y.giveUpEither(60)
	y.try(gone)
	x.renew(holding)
	x.leave(left)
	b.sleep(1)
	b.free(x.Keys...)
	return b.result()
}
