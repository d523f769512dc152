package drivertest

import (
	"errors"

	"github.com/hasp-dev/hasp/driver"
)

// need is a set of what a case needs of the store.
type need uint16

const (
	line need = 1 << iota // claims may wait
	shared
	together // several keys to a claim
	tokens
	signaler
	operator
	wipeHook
	stepHook
	stallHook
	cutHook
)

// lacking answers what stands for a case that needs more than the store has: nil
// where nothing is missing, an error where the Store has no such hook.
func (b *bench) lacking(n need) (func(*bench) error, error) {
	for _, h := range []struct {
		need need
		name string
		has  bool
	}{
		{wipeHook, "Wipe", b.store.Wipe != nil},
		{stepHook, "Step", b.store.Step != nil},
		{stallHook, "Stall", b.store.Stall != nil},
		{cutHook, "Cut", b.store.Cut != nil},
	} {
		if n&h.need != 0 && !h.has {
			return nil, &skipError{h.name}
		}
	}
	f := b.first.d.Features()
	for _, l := range []struct {
		need  need
		has   bool
		check func(*bench) error
	}{
		{line, f.Line, withoutLine},
		{shared, f.Shared, withoutShares},
		{together, b.holdsTogether(f), withoutTogether},
		{tokens, f.Tokens, withoutTokens},
		{signaler, b.signals(), withoutSignals},
		{operator, b.operates(), withoutOperator},
	} {
		if n&l.need != 0 && !l.has {
			return l.check, nil
		}
	}
	return nil, nil
}

func (b *bench) holdsTogether(f driver.Features) bool {
	pair := b.keys(2)
	return f.MaxKeys != 1 && (f.Together == nil || f.Together(pair) == nil)
}

func (b *bench) signals() bool {
	_, ok := b.first.d.(driver.Signaler)
	return ok
}

// operates says whether the driver can end claims. One that has the method because
// it wraps others may answer that it cannot.
func (b *bench) operates() bool {
	op, ok := b.first.d.(driver.Operator)
	if !ok {
		return false
	}
	_, err := op.End(b.ctx, b.key(), []int64{1}, false)
	return !errors.Is(err, driver.ErrUnsupported)
}

// joinAs is a plain Join for the store: a try where there is no line.
func joinAs(b *bench) driver.Join { return driver.Join{Try: !b.first.d.Features().Line} }

// A store without a line takes a claim only as a try, and keeps nothing of others.
func withoutLine(b *bench) error {
	k, x := b.key(), b.client()
	j := driver.Join{Claim: x.claim(k).Claim}
	if _, err := x.d.Join(b.ctx, j); !errors.Is(err, driver.ErrUnsupported) {
		b.fail("Join without Try, though Features.Line is false: %v, want ErrUnsupported", err)
	}
	b.client().claim(k).try(holding)
	return b.result()
}

func withoutShares(b *bench) error {
	k, x := b.key(), b.client()
	j := driver.Join{Claim: x.claim(k).weighs(1, 2).Claim, Try: true}
	if _, err := x.d.Join(b.ctx, j); !errors.Is(err, driver.ErrUnsupported) {
		b.fail("Join with capacity 2, though Features.Shared is false: %v, want ErrUnsupported", err)
	}
	b.client().claim(k).try(holding)
	return b.result()
}

func withoutTogether(b *bench) error {
	pair, x := b.keys(2), b.client()
	j := driver.Join{Claim: x.claim(pair...).Claim, Try: true}
	if _, err := x.d.Join(b.ctx, j); !errors.Is(err, driver.ErrUnsupported) {
		b.fail("Join with two keys that one step cannot hold: %v, want ErrUnsupported", err)
	}
	b.client().claim(pair[0]).try(holding)
	b.client().claim(pair[1]).try(holding)
	return b.result()
}

// Where numbers may repeat they still tell stays apart while one is alive.
func withoutTokens(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	b.check(x.Number > 0, "a stay has no number")
	return b.result()
}

// Without signals a claim that can wait must say when to look again.
func withoutSignals(b *bench) error {
	if !b.first.d.Features().Line {
		return withoutLine(b)
	}
	k := b.key()
	h, w := b.client().claim(k), b.client().claim(k)
	h.join(holding)
	w.join(waiting) // its LookAgain is checked with every answer
	h.leave(left)
	w.renew(holding)
	return b.result()
}

func withoutOperator(b *bench) error {
	op, ok := b.first.d.(driver.Operator)
	if !ok {
		return nil // there is nothing to ask
	}
	x := b.client().claim(b.key())
	x.try(holding)
	if _, err := op.End(b.ctx, x.Keys[0], []int64{x.Number}, true); !errors.Is(err, driver.ErrUnsupported) {
		b.fail("End: %v, want ErrUnsupported", err)
	}
	x.renew(holding)
	return b.result()
}
