package drivertest

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// features: what a driver says of its store, and how it treats lives by it.
func features() []Case {
	return []Case{
		{Name: "features never change and are the same for every client", run: featuresAreConstant},
		{Name: "features make sense", run: featuresMakeSense},
		{Name: "check passes on a store in order", run: checkPasses},
		{Name: "a life below the least is invalid", run: lifeBelowLeast},
		{Name: "a life is rounded up, never down, and its answer is never more than is kept", run: lifeIsRoundedUp},
		{Name: "the shortest life is kept or invalid, never endless", run: shortestLife},
		{Name: "the longest life is kept or invalid, never cut", run: longestLife},
	}
}

func featuresAreConstant(b *bench) error {
	plain := func(c *client) driver.Features {
		f := c.d.Features()
		f.Together = nil // functions cannot be compared
		return f
	}
	f, other := plain(b.first), b.client()
	b.first.claim(b.key()).try(holding)
	b.check(reflect.DeepEqual(f, plain(b.first)), "Features changed from %+v to %+v", f, plain(b.first))
	b.check(reflect.DeepEqual(f, plain(other)), "Features of two clients differ: %+v and %+v", f, plain(other))
	return b.result()
}

func featuresMakeSense(b *bench) error {
	f := b.first.d.Features()
	b.check(f.Err == nil, "Err: %v", f.Err)
	b.check(f.MaxKeys >= 0 && f.MaxKeys <= 64, "MaxKeys is %d, want 0 to 64", f.MaxKeys)
	b.check(f.Poll >= 0 && f.MinLife >= 0 && f.Step >= 0, "a negative time in %+v", f)
	if f.Together != nil {
		b.check(f.Together([]string{b.key()}) == nil, "Together refuses a single key")
		pair := b.keys(2)
		if err := f.Together(pair); err != nil {
			b.check(errors.Is(err, driver.ErrUnsupported), "Together answers %v, want ErrUnsupported", err)
		}
	}
	return b.result()
}

func checkPasses(b *bench) error {
	for range 2 {
		if err := b.client().d.Check(b.ctx); err != nil {
			return fmt.Errorf("Check: %w", err)
		}
	}
	return b.result()
}

func lifeBelowLeast(b *bench) error {
	least := b.first.d.Features().MinLife
	if least <= 1 {
		return nil
	}
	x := b.client().claim(b.key())
	x.Life.Hold, x.Life.Wait = least-1, least-1
	_, err := x.c.d.Join(b.ctx, driver.Join{Claim: x.Claim, Try: true})
	b.check(errors.Is(err, driver.ErrInvalid), "a Join with a life below MinLife: %v, want ErrInvalid", err)
	b.free(x.Keys...)
	return b.result()
}

func lifeIsRoundedUp(b *bench) error {
	f := b.first.d.Features()
	for _, asked := range []time.Duration{1500 * time.Millisecond, 2*time.Second + 700*time.Microsecond, 3*time.Second + 1} {
		x := b.client().claim(b.key())
		asked = max(asked, f.MinLife)
		x.Life.Hold = asked
		s := x.try(holding)
		most := asked + f.Step + time.Millisecond
		b.check(s.Life <= most, "asked for a life of %v, answered %v", asked, s.Life)
		b.check(s.Life >= asked-b.slack, "asked for a life of %v, answered only %v", asked, s.Life)
		for _, e := range b.line(x.Keys[0]).Holders {
			b.check(e.ExpiresIn >= asked-b.slack && e.ExpiresIn <= most, "asked for a life of %v, listed with %v", asked, e.ExpiresIn)
		}
	}
	return b.result()
}

func shortestLife(b *bench) error {
	for _, d := range []time.Duration{time.Nanosecond, 300 * time.Microsecond, 999 * time.Microsecond, time.Millisecond} {
		x := b.client().claim(b.key())
		x.Life.Hold, x.Life.Wait = d, d
		s, err := x.c.d.Join(b.ctx, driver.Join{Claim: x.Claim, Try: true})
		b.note("%s tries with a life of %v: %v", x, d, told(s, err))
		if errors.Is(err, driver.ErrInvalid) {
			continue
		}
		if err != nil {
			return fmt.Errorf("a Join with a life of %v: %w, want an answer or ErrInvalid", d, err)
		}
		b.check(s.State == holding && s.Life > 0 && s.Life <= b.tick, "a Join with a life of %v is answered %+v", d, s)
		b.sleep(1)
		b.client().claim(x.Keys[0]).try(holding)
	}
	return b.result()
}

func longestLife(b *bench) error {
	const month = 30 * 24 * time.Hour // the longest hasp asks for
	for _, d := range []time.Duration{month, 400 * 24 * time.Hour} {
		x := b.client().claim(b.key())
		x.Life.Hold = d
		s, err := x.c.d.Join(b.ctx, driver.Join{Claim: x.Claim, Try: true})
		if d > month && errors.Is(err, driver.ErrInvalid) {
			continue
		}
		if err != nil {
			return fmt.Errorf("a Join with a life of %v: %w", d, err)
		}
		b.check(s.State == holding && s.Life > d-time.Minute && s.Life <= d+time.Minute, "a Join with a life of %v is answered %+v", d, s)
		x.leave(left)
	}
	return b.result()
}
