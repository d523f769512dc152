package drivertest

import (
	"context"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// How a claim must stand after a step.
const (
	holding = driver.Holding
	waiting = driver.Waiting
	refused = driver.Refused
	gone    = driver.Gone
	left    = driver.Left
)

// claim is a claim and the steps a case lets it do. Each step says how it must
// stand afterwards.
type claim struct {
	c     *client
	b     *bench
	label string
	driver.Claim
}

// String names the claim in messages.
func (x *claim) String() string { return x.label }

// lives sets how many ticks it lives holding and waiting.
func (x *claim) lives(hold, wait int) *claim {
	x.Life.Hold, x.Life.Wait = x.b.ticks(hold), x.b.ticks(wait)
	return x
}

// grace sets how many ticks the store adds while it holds.
func (x *claim) grace(n int) *claim {
	x.Life.Grace = x.b.ticks(n)
	return x
}

// weighs sets weight and capacity.
func (x *claim) weighs(weight, capacity int64) *claim {
	x.Weight, x.Capacity = weight, capacity
	return x
}

// wide is the capacity of a read/write lock.
const wide = 1 << 30

func (x *claim) reads() *claim  { return x.weighs(1, wide) }
func (x *claim) writes() *claim { return x.weighs(wide, wide) }

// twin is a new claim of the same client with the same keys, weights and life.
func (x *claim) twin() *claim {
	y := x.c.claim(x.Keys...)
	y.Weight, y.Capacity, y.Life = x.Weight, x.Capacity, x.Life
	return y
}

// join joins or repeats the join.
func (x *claim) join(want driver.State) driver.Standing {
	return x.enter(driver.Join{}, want)
}

// try joins only where it holds at once.
func (x *claim) try(want driver.State) driver.Standing {
	return x.enter(driver.Join{Try: true}, want)
}

// enter joins with what j asks besides.
func (x *claim) enter(j driver.Join, want driver.State) driver.Standing {
	j.Claim = x.Claim
	j.Number = 0 // a Join does not know its stay
	what := "joins"
	switch {
	case j.Resume != nil:
		what = "resumes"
	case j.Try:
		what = "tries"
	}
	return x.step(what, 0, want, func(ctx context.Context) (driver.Standing, error) { return x.c.d.Join(ctx, j) })
}

// resume takes the place of y.
func (x *claim) resume(y *claim, want driver.State) driver.Standing {
	ref := y.Ref
	return x.enter(driver.Join{Resume: &ref, Try: !x.c.d.Features().Line}, want)
}

// replace leaves with y and joins in one step.
func (x *claim) replace(y *claim, want driver.State) driver.Standing {
	return x.enter(driver.Join{Leaving: &driver.Leaving{Ref: y.Ref}}, want)
}

// renew extends the claim by its life.
func (x *claim) renew(want driver.State) driver.Standing {
	return x.item("renews", driver.Renewal{Ref: x.Ref, Mode: driver.Extend, Life: x.Life}, want)
}

// fix gives the claim an expiry n ticks from now, for good.
func (x *claim) fix(n int, want driver.State) driver.Standing {
	life := x.Life
	life.Hold = x.b.ticks(n)
	return x.item("fixes", driver.Renewal{Ref: x.Ref, Mode: driver.Fix, Life: life}, want)
}

// drop leaves by a renewal.
func (x *claim) drop(want driver.State) {
	x.item("drops", driver.Renewal{Ref: x.Ref, Mode: driver.Drop}, want)
}

// item renews with one item.
func (x *claim) item(what string, r driver.Renewal, want driver.State) driver.Standing {
	return x.step(what, r.Number, want, func(ctx context.Context) (driver.Standing, error) {
		a := x.c.renew(ctx, []driver.Renewal{r})[0]
		return a.Standing, a.err
	})
}

// leave takes the claim out.
func (x *claim) leave(want driver.State) driver.Standing {
	return x.leaving(driver.Leaving{Ref: x.Ref}, want)
}

// giveUp takes the claim out and asks to remember its ID for n ticks.
func (x *claim) giveUp(n int, want driver.State) {
	x.leaving(driver.Leaving{Ref: x.Ref, Unanswered: true, Remember: x.b.ticks(n)}, want)
}

// giveUpEither is giveUp where a Join may be under way still: it may arrive before the
// Leave or be refused after it, so the claim may have left or not have been there.
func (x *claim) giveUpEither(n int) {
	x.leaving(driver.Leaving{Ref: x.Ref, Unanswered: true, Remember: x.b.ticks(n)}, left, gone)
}

func (x *claim) leaving(l driver.Leaving, want ...driver.State) driver.Standing {
	return x.stepToOne("leaves", l.Number, want, func(ctx context.Context) (driver.Standing, error) { return x.c.d.Leave(ctx, l) })
}

// step does one call, checks its answer, and learns the number of the stay. named
// is the number the call named.
func (x *claim) step(what string, named int64, want driver.State, call func(context.Context) (driver.Standing, error)) driver.Standing {
	return x.stepToOne(what, named, []driver.State{want}, call)
}

// stepToOne is step where one of several answers is right.
func (x *claim) stepToOne(what string, named int64, want []driver.State, call func(context.Context) (driver.Standing, error)) driver.Standing {
	if x.b.failed() {
		return driver.Standing{}
	}
	begin := time.Now()
	s, err := call(x.b.ctx)
	x.b.took(time.Since(begin))
	x.b.note("%s %s: %v", x, what, told(s, err))
	if err != nil {
		x.b.fail("%s %s: %w, want %v", x, what, err, want)
		return s
	}
	if wrong := malformed(s, named); wrong != "" {
		x.b.fail("%s %s: %s in %+v", x, what, wrong, s)
	}
	x.b.check(slices.Contains(want, s.State), "%s %s: it is %v, want %v", x, what, s.State, want)
	if s.State == driver.Holding || s.State == driver.Waiting {
		x.Number = s.Number
	}
	return s
}
