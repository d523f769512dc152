package elect_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/elect"
)

// Ten candidates for 30 s, with crashes, cuts and silences of the store.
func TestTenCandidatesNeverLeadTogether(t *testing.T) {
	t.Parallel()
	for seed := range rounds(100) {
		t.Run(strconv.Itoa(seed), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				o := ordeal{world: w, dice: rand.New(rand.NewPCG(1, uint64(seed))), diary: newDiary()}
				o.opts.Grace = time.Duration(seed%3) * time.Second
				for i := range 10 {
					o.nodes = append(o.nodes, o.begin(fmt.Sprintf("n%d", i)))
				}
				for began := time.Now(); time.Since(began) < 30*time.Second; {
					o.step()
				}
				time.Sleep(20 * time.Second)
				if n := o.leaders(); n != 1 {
					t.Errorf("%d lead in the end, want 1", n)
				}
				for _, n := range o.nodes {
					_ = n.end()
				}
				o.diary.judge(t)
				if n := len(o.diary.starts()); n < 3 {
					t.Errorf("only %d terms: the weather was too fine", n)
				}
			})
		})
	}
}

// ordeal is an election in bad weather.
type ordeal struct {
	*world
	dice  *rand.Rand
	diary *diary
	opts  elect.Options
	nodes []*node
	born  int
}

// begin starts a candidate whose work takes a while to stop.
func (o *ordeal) begin(name string) *node {
	o.born++
	drain := time.Duration(o.dice.IntN(300)) * time.Millisecond
	return o.node(name, o.diary.work(fmt.Sprintf("%s.%d", name, o.born), drain), &o.opts)
}

// step lets something happen, mostly to the leader, and looks who leads.
func (o *ordeal) step() {
	i := o.dice.IntN(len(o.nodes))
	if j := slices.IndexFunc(o.nodes, func(n *node) bool { return n.IsLeader() }); j >= 0 && o.dice.IntN(3) > 0 {
		i = j
	}
	n := o.nodes[i]
	span := time.Duration(o.dice.Int64N(int64(2 * ttl)))
	switch o.dice.IntN(6) {
	case 0: // a crash: nothing of it reaches the store any more, and another process is started
		n.way.Stall()
		n.stop()
		o.nodes[i] = o.begin(n.name)
	case 1: // a cut
		time.AfterFunc(span, n.way.Stall())
	case 2: // the store is silent
		time.AfterFunc(span/2, o.store.Stall())
	case 3:
		go func() { _ = n.Resign(o.ctx) }()
	case 4: // a restart in good order
		_ = n.end()
		n.run(o.world)
	case 5:
		go func() { _ = n.client.Revoke(o.ctx, "e", 0) }()
	}
	for end := time.Now().Add(time.Duration(o.dice.Int64N(int64(2 * ttl)))); time.Now().Before(end); {
		if time.Sleep(7 * time.Millisecond); o.leaders() > 1 {
			o.t.Fatalf("%d lead at once", o.leaders())
		}
	}
}

func (o *ordeal) leaders() (n int) {
	for _, node := range o.nodes {
		if node.IsLeader() {
			n++
		}
	}
	return n
}

func TestAResignedLeadersSuccessorLeadsAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		nodes := []*node{w.node("a", d.work("a", 0), nil), w.node("b", d.work("b", 0), nil), w.node("c", d.work("c", 0), nil)}
		began := time.Now()
		for range 6 { // round and round, in order
			i := slices.IndexFunc(nodes, func(n *node) bool { return n.IsLeader() })
			wantClass(t, nodes[i].Resign(w.ctx))
			synctest.Wait()
		}
		if took := time.Since(began); took > 0 {
			t.Errorf("six hand-overs took %s of virtual time, want none: each is one step and one signal", took)
		}
		if got := d.starts(); !slices.Equal(got, []string{"a", "b", "c", "a", "b", "c", "a"}) {
			t.Errorf("terms of %v, want them in order of arrival", got)
		}
		for _, n := range nodes {
			_ = n.end()
		}
		d.judge(t)
	})
}

func TestAnIdleElectionCostsOneRenewalCallAnInterval(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := &counted{memory: w.store.Driver()}
		c := w.clientOn("crowd", d)
		ctx, stop := context.WithCancel(w.ctx)
		defer stop()
		for range 50 {
			go func() { _ = elect.Run(ctx, c, "e", elect.Stay, nil) }()
			time.Sleep(ttl / 3 / 50) // they come at any time of an interval
		}
		time.Sleep(2 * ttl)
		w.wants("1+49")
		before := d.counts()
		time.Sleep(30 * ttl)
		now := d.counts()
		if calls := now.renewals - before.renewals; calls < 90 || calls > 91 {
			t.Errorf("%d renewal calls in 90 intervals, want 90", calls)
		}
		if n := now.others - before.others; n != 0 {
			t.Errorf("%d other calls, want none", n)
		}
	})
}

func TestManyElectionsOfOneProcessAreRenewedTogether(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := &counted{memory: w.store.Driver()}
		c := w.clientOn("many", d)
		ctx, stop := context.WithCancel(w.ctx)
		defer stop()
		for i := range 100 {
			go func() { _ = elect.Run(ctx, c, fmt.Sprint("e", i), elect.Stay, nil) }()
		}
		time.Sleep(2 * ttl)
		before := d.counts()
		time.Sleep(30 * ttl)
		if calls := d.counts().renewals - before.renewals; calls < 90 || calls > 91 {
			t.Errorf("%d renewal calls in 90 intervals, want 90", calls)
		}
	})
}

// memory is a driver with signals.
type memory = *memlease.Driver

// counted counts the calls that reach the store.
type counted struct {
	memory
	renewals, others atomic.Int64
}

type counts struct{ renewals, others int64 }

func (d *counted) counts() counts { return counts{d.renewals.Load(), d.others.Load()} }

// Renew implements driver.Driver.
func (d *counted) Renew(ctx context.Context, items []driver.Renewal, answer func(int, driver.Standing, error)) {
	d.renewals.Add(1)
	d.memory.Renew(ctx, items, answer)
}

// Join implements driver.Driver.
func (d *counted) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	d.others.Add(1)
	return d.memory.Join(ctx, j)
}

// Leave implements driver.Driver.
func (d *counted) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	d.others.Add(1)
	return d.memory.Leave(ctx, l)
}

// Lines implements driver.Driver.
func (d *counted) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	d.others.Add(1)
	return d.memory.Lines(ctx, q)
}
