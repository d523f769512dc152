package drivertest

import (
	"context"
	"errors"
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

// input: what cannot be right is ErrInvalid, and nothing is done.
func input() []Case {
	return []Case{
		{Name: "a join with a weight outside the capacity is invalid", run: badWeights},
		{Name: "a join with keys missing, empty, twice, unsorted or too many is invalid", run: badKeys},
		{Name: "a join with a life of nothing is invalid", run: badLives},
		{Name: "a join with a name too long or a negative limit is invalid", run: badJoins},
		{Name: "a join that first leaves with a claim of bad keys is invalid", run: badReferences},
		{Name: "a renewal that cannot be right is invalid", run: badRenewals},
		{Name: "a key that no store need take is kept as it is or invalid", run: strangeKeys},
		{Name: "a release or an end without keys is invalid", run: badLeaves},
	}
}

// rejects checks that each change of a good claim makes its join invalid, and that
// nothing is left of it.
func (b *bench) rejects(bad map[string]func(*driver.Join)) error {
	c := b.client()
	for what, change := range bad {
		x := c.claim(b.key())
		j := joinAs(b)
		j.Claim = x.Claim
		change(&j)
		s, err := c.d.Join(b.ctx, j)
		b.check(errors.Is(err, driver.ErrInvalid), "a join with %s is answered %v, %v, want ErrInvalid", what, s.State, err)
		b.check(s == driver.Standing{}, "a join with %s is answered a standing and an error", what)
		b.free(x.Keys...)
		x.renew(gone)
	}
	return b.result()
}

func badWeights(b *bench) error {
	return b.rejects(map[string]func(*driver.Join){
		"weight 0":           func(j *driver.Join) { j.Weight = 0 },
		"a negative weight":  func(j *driver.Join) { j.Weight = -1 },
		"weight 2 of 1":      func(j *driver.Join) { j.Weight = 2 },
		"no capacity":        func(j *driver.Join) { j.Weight, j.Capacity = 0, 0 },
		"a capacity below 0": func(j *driver.Join) { j.Weight, j.Capacity = -2, -1 },
	})
}

func badKeys(b *bench) error {
	pair := b.keys(2)
	var many []string
	many = append(many, b.keys(65)...)
	return b.rejects(map[string]func(*driver.Join){
		"no keys":        func(j *driver.Join) { j.Keys = nil },
		"an empty key":   func(j *driver.Join) { j.Keys = []string{""} },
		"a key twice":    func(j *driver.Join) { j.Keys = []string{pair[0], pair[0]} },
		"unsorted keys":  func(j *driver.Join) { j.Keys = []string{pair[1], pair[0]} },
		"65 keys":        func(j *driver.Join) { j.Keys = many },
		"one empty key ": func(j *driver.Join) { j.Keys = []string{"", pair[0]} },
	})
}

func badLives(b *bench) error {
	return b.rejects(map[string]func(*driver.Join){
		"no life":          func(j *driver.Join) { j.Life = driver.Life{} },
		"a negative life":  func(j *driver.Join) { j.Life.Hold = -b.tick },
		"a negative grace": func(j *driver.Join) { j.Life.Grace = -1 },
		"a negative wait":  func(j *driver.Join) { j.Life.Wait = -1 },
	})
}

func badJoins(b *bench) error {
	return b.rejects(map[string]func(*driver.Join){
		"a name of 129 bytes": func(j *driver.Join) { j.Name = strings.Repeat("n", 129) },
		"a limit below 0":     func(j *driver.Join) { j.MaxLine = -1 },
	})
}

func badReferences(b *bench) error {
	c := b.client()
	h := c.claim(b.key())
	h.try(holding)
	return b.rejects(map[string]func(*driver.Join){
		"a claim to leave that has no keys":      func(j *driver.Join) { j.Leaving = &driver.Leaving{Ref: driver.Ref{ID: h.ID}} },
		"a claim to leave that has an empty key": func(j *driver.Join) { j.Leaving = &driver.Leaving{Ref: driver.Ref{ID: h.ID, Keys: []string{""}}} },
	})
}

func badRenewals(b *bench) error {
	c := b.client()
	x := c.claim(b.key())
	x.lives(4, 4).try(holding)
	var items []driver.Renewal
	for _, change := range []func(*driver.Renewal){
		func(r *driver.Renewal) { r.Mode = 0 },
		func(r *driver.Renewal) { r.Mode = 9 },
		func(r *driver.Renewal) { r.Life.Hold = 0 },
		func(r *driver.Renewal) { r.Life.Hold = -1 },
		func(r *driver.Renewal) { r.Life.Grace = -1 },
		func(r *driver.Renewal) { r.Keys = nil },
		func(r *driver.Renewal) { r.Mode, r.Keys = driver.Drop, nil },
		func(r *driver.Renewal) { r.Mode, r.Life.Hold = driver.Fix, 0 },
	} {
		r := extension(x)
		change(&r)
		items = append(items, r)
	}
	for i, a := range c.renew(b.ctx, items) {
		b.check(errors.Is(a.err, driver.ErrInvalid), "renewal %+v is answered %v, %v, want ErrInvalid", items[i], a.State, a.err)
	}
	x.renew(holding)
	return b.result()
}

func badLeaves(b *bench) error {
	x := b.client().claim(b.key())
	x.try(holding)
	ends := map[string]func(context.Context) error{
		"Leave without keys": func(ctx context.Context) error {
			_, err := x.c.d.Leave(ctx, driver.Leaving{Ref: driver.Ref{ID: x.ID}})
			return err
		},
	}
	if b.operates() {
		ends["End without a key"] = func(ctx context.Context) error {
			_, err := x.c.d.(driver.Operator).End(ctx, "", []int64{x.Number}, true)
			return err
		}
	}
	for what, call := range ends {
		err := call(b.ctx)
		b.check(errors.Is(err, driver.ErrInvalid), "%s: %v, want ErrInvalid", what, err)
	}
	x.renew(holding)
	return b.result()
}

// hasp sends no such keys; a driver that meets one must not take it for another.
func strangeKeys(b *bench) error {
	fill := func(n int) string { return b.space + strings.Repeat("k", n-len(b.space)) }
	for strange, other := range map[string]string{
		b.space + "a\x00":  b.space + "a",
		b.space + "b\x00b": b.space + "b",
		b.space + "c\xff":  b.space + "c",
		b.space + "d\xc3":  b.space + "d\ufffd",
		fill(513):          fill(512),
		fill(5000):         fill(255),
	} {
		x := b.client().claim(strange)
		_, err := x.c.d.Join(b.ctx, driver.Join{Claim: x.Claim, Try: true})
		if err != nil {
			b.check(errors.Is(err, driver.ErrInvalid), "a key of %d bytes, %.60q: %v, want an answer or ErrInvalid", len(strange), strange, err)
		} else {
			b.client().claim(strange).try(refused)
			x.renew(holding)
		}
		b.client().claim(other).try(holding)
	}
	return b.result()
}
