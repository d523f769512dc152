package redislease_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
)

// What anybody does in a line is answered as the reference answers it, whichever of the
// scripts' ways it takes.
func TestAnswersAreThoseOfTheReference(t *testing.T) {
	t.Parallel()
	for _, mix := range []struct {
		name       string
		capacities []int64
		keys       int
	}{
		{"mutexes", []int64{1}, 1},
		{"mutexes of several keys", []int64{1}, 3},
		{"readers and writers", []int64{1 << 30}, 1},
		{"permits of several keys", []int64{2, 3}, 2},
		{"anything", []int64{1, 1, 1, 2, 5, 1 << 30}, 2},
	} {
		t.Run(mix.name, func(t *testing.T) {
			t.Parallel()
			p := newParty(t, sharedServer(t).client(t), nil)
			for game := range 12 {
				seed := uint64(game)
				if os.Getenv("HASP_SOAK") != "" {
					seed = rand.Uint64()
				}
				d := &duel{party: p, t: t, ref: memlease.NewStore().Driver(), rng: rand.New(rand.NewPCG(seed, 1)), capacities: mix.capacities}
				for range mix.keys {
					d.keys = append(d.keys, newKey())
				}
				slices.Sort(d.keys)
				d.play(150)
				if t.Failed() {
					t.Fatalf("seed %d:\n%s", seed, d.told)
				}
			}
		})
	}
}

// duel plays the same on both stores.
type duel struct {
	*party
	t          *testing.T
	ref        *memlease.Driver
	rng        *rand.Rand
	keys       []string
	capacities []int64
	claims     []*both
	told       string
}

// both is a claim and its number in each store.
type both struct {
	driver.Claim
	other int64
	label int
}

func (d *duel) play(steps int) {
	for i := 0; i < steps && !d.t.Failed(); i++ {
		switch d.rng.IntN(9) {
		case 0, 1, 2:
			d.join(d.add(), d.rng.IntN(3) == 0)
		case 3:
			d.join(d.any(), false)
		case 4, 5:
			d.leave(d.any())
		case 6:
			d.end(d.any(), d.rng.IntN(2) == 0)
		default:
			d.renew(d.any(), driver.Mode(1+d.rng.IntN(20)/19))
		}
	}
}

// add makes a claim of some of the keys.
func (d *duel) add() *both {
	capacity := d.capacities[d.rng.IntN(len(d.capacities))]
	weight := int64(1)
	if d.rng.IntN(3) == 0 {
		weight = capacity
	}
	keys := slices.Clone(d.keys)
	d.rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	x := &both{Claim: d.claim(keys[:1+d.rng.IntN(len(keys))]...), label: len(d.claims)}
	x.Weight, x.Capacity, x.Name = weight, capacity, fmt.Sprint("c", x.label)
	x.Life = driver.Life{Hold: time.Hour, Wait: time.Hour}
	if d.rng.IntN(8) == 0 {
		x.Life.Grace = time.Minute
	}
	d.claims = append(d.claims, x)
	return x
}

func (d *duel) any() *both {
	if len(d.claims) == 0 {
		return d.add()
	}
	return d.claims[max(0, len(d.claims)-1-d.rng.IntN(12))]
}

func (d *duel) join(x *both, try bool) {
	j := driver.Join{Claim: x.Claim, Try: try}
	if d.rng.IntN(5) == 0 {
		j.MaxLine = 1 + d.rng.IntN(3)
	}
	got, err := d.Join(d.t.Context(), j)
	j.Number = x.other
	want, wrong := d.ref.Join(d.t.Context(), j)
	d.compare(x, fmt.Sprintf("join try %v, line %d", try, j.MaxLine), got, want, errors.Join(err, wrong))
	if got.State == driver.Holding || got.State == driver.Waiting {
		x.Number, x.other = got.Number, want.Number
	}
}

func (d *duel) leave(x *both) {
	l := driver.Leaving{Ref: x.Ref, Unanswered: d.rng.IntN(6) == 0, Remember: time.Hour}
	got, err := d.Leave(d.t.Context(), l)
	want, wrong := d.ref.Leave(d.t.Context(), l)
	d.compare(x, fmt.Sprintf("leave %v", l.Unanswered), got, want, errors.Join(err, wrong))
}

func (d *duel) renew(x *both, mode driver.Mode) {
	one := func(s driver.Driver, number int64) (got driver.Standing, err error) {
		r := driver.Renewal{Ref: x.Ref, Mode: mode, Life: x.Life}
		r.Number = number
		s.Renew(d.t.Context(), []driver.Renewal{r}, func(_ int, s driver.Standing, e error) { got, err = s, e })
		return got, err
	}
	got, err := one(d.Driver, x.Number)
	want, wrong := one(d.ref, x.other)
	d.compare(x, mode.String(), got, want, errors.Join(err, wrong))
}

func (d *duel) end(x *both, force bool) {
	key := x.Keys[d.rng.IntN(len(x.Keys))]
	got, err := d.End(d.t.Context(), key, []int64{x.Number}, force)
	want, wrong := d.ref.End(d.t.Context(), key, []int64{x.other}, force)
	d.told += fmt.Sprintf("c%d end %v: %v, %v\n", x.label, force, len(got), len(want))
	if err != nil || wrong != nil || len(got) != len(want) {
		d.t.Errorf("end of c%d: %d found, %v, want %d, %v", x.label, len(got), err, len(want), wrong)
	}
}

func (d *duel) compare(x *both, what string, got, want driver.Standing, err error) {
	d.told += fmt.Sprintf("c%d of %d key(s), %d of %d: %s: %+v\n", x.label, len(x.Keys), x.Weight, x.Capacity, what, got)
	if err != nil {
		d.t.Errorf("%s: %v", what, err)
		return
	}
	type seen struct {
		State                 driver.State
		Behind, Revoked, More bool
		Ahead                 int
		Holder                string
	}
	of := func(s driver.Standing) seen {
		return seen{s.State, s.Behind, s.Revoked, s.More, s.Ahead, s.Holder}
	}
	if of(got) != of(want) {
		d.t.Errorf("c%d %s: %+v, want %+v", x.label, what, of(got), of(want))
	}
	if (got.LookAgain > 0) != (want.LookAgain > 0) || got.Life.Round(time.Second) != want.Life.Round(time.Second) {
		d.t.Errorf("c%d %s: life %v, look %v, want %v, %v", x.label, what, got.Life, got.LookAgain, want.Life, want.LookAgain)
	}
}
