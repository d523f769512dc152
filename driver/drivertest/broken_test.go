package drivertest_test

import (
	"context"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// breach is one way to break the contract: what stands in for a method of a driver
// that keeps it. A nil field keeps it too.
type breach struct {
	name     string // what the driver does wrong
	caughtBy string // the case that must find it, by its name

	join   func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error)
	renew  func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error)
	leave  func(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error)
	lines  func(ctx context.Context, d *broken, q driver.Query) (driver.Page, error)
	end    func(ctx context.Context, d *broken, key string, numbers []int64, force bool) ([]int64, error)
	hear   func(s driver.Signal) (driver.Signal, bool)
	answer func(items int, answer func(int, driver.Standing, error)) func(int, driver.Standing, error)
	close  func(ctx context.Context, d *broken)
}

func TestABrokenDriverIsCaught(t *testing.T) {
	for _, br := range breaches() {
		t.Run(br.name, func(t *testing.T) {
			caught := caughtBy(t, br)
			if !slices.Contains(caught, br.caughtBy) {
				t.Errorf("not caught by %q, but by %q", br.caughtBy, caught)
				return
			}
			t.Logf("caught by %q and %d more", br.caughtBy, len(caught)-1)
		})
	}
}

func TestTheWrapperOfBrokenDriversBreaksNothing(t *testing.T) {
	drivertest.Run(t, suiteOf(breach{}))
}

// caughtBy names the cases that find something wrong.
func caughtBy(t *testing.T, br breach) []string {
	t.Helper()
	var names []string
	for _, c := range drivertest.Cases() {
		if testing.Short() && c.Name != br.caughtBy {
			continue
		}
		if err := suiteOf(br).Check(t, c); err != nil {
			names = append(names, c.Name)
		}
	}
	return names
}

func suiteOf(br breach) drivertest.Suite {
	return drivertest.Suite{Virtual: true, Open: func() (*drivertest.Store, error) {
		m := memlease.NewStore()
		w := &world{breach: br, store: m, known: map[driver.ID]*known{}, taken: map[driver.ID]driver.Ref{}, counts: map[string]int64{}}
		return storeOf(m, func(d driver.Driver) driver.Driver { return &broken{Driver: d.(*memlease.Driver), world: w} }), nil
	}}
}

// world is what the broken drivers of one store share.
type world struct {
	breach breach
	store  *memlease.Store

	mu      sync.Mutex // guards what follows
	known   map[driver.ID]*known
	pending []driver.Leaving
	taken   map[driver.ID]driver.Ref
	counts  map[string]int64
}

// known is a claim that was answered Holding or Waiting.
type known struct {
	d        *broken
	claim    driver.Claim
	standing driver.Standing
	until    time.Time // when a driver that is wrong about it believes it ends
	left     bool
}

// broken is a driver that breaks the contract in one way.
type broken struct {
	*memlease.Driver
	*world
}

func (d *broken) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if d.breach.join == nil || len(j.Keys) == 0 || j.Keys[0] == "" {
		return d.joinAsIs(ctx, j)
	}
	s, err := d.breach.join(ctx, d, j)
	d.learn(j.Claim, s)
	return s, err
}

func (d *broken) joinAsIs(ctx context.Context, j driver.Join) (driver.Standing, error) {
	s, err := d.Driver.Join(ctx, j)
	d.learn(j.Claim, s)
	return s, err
}

func (d *broken) Renew(ctx context.Context, items []driver.Renewal, answer func(int, driver.Standing, error)) {
	if d.breach.answer != nil {
		answer = d.breach.answer(len(items), answer)
	}
	for i, r := range items {
		renew := d.breach.renew
		if renew == nil {
			renew = func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
				return d.renewAsIs(ctx, r)
			}
		}
		s, err := renew(ctx, d, r)
		answer(i, s, err)
	}
}

func (d *broken) renewAsIs(ctx context.Context, r driver.Renewal) (s driver.Standing, err error) {
	d.Driver.Renew(ctx, []driver.Renewal{r}, func(_ int, answer driver.Standing, e error) { s, err = answer, e })
	if k := d.of(r.ID); k != nil && s.State != 0 {
		d.learn(k.claim, s)
	}
	return s, err
}

func (d *broken) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	d.mu.Lock()
	if k := d.known[l.ID]; k != nil {
		k.left = true
	}
	d.mu.Unlock()
	if d.breach.leave != nil {
		return d.breach.leave(ctx, d, l)
	}
	return d.Driver.Leave(ctx, l)
}

func (d *broken) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	if d.breach.lines != nil {
		return d.breach.lines(ctx, d, q)
	}
	return d.Driver.Lines(ctx, q)
}

func (d *broken) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	if d.breach.end != nil {
		return d.breach.end(ctx, d, key, numbers, force)
	}
	return d.Driver.End(ctx, key, numbers, force)
}

func (d *broken) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	return d.Driver.Listen(ctx, inbox, func(s driver.Signal) {
		ok := true
		if d.breach.hear != nil {
			s, ok = d.breach.hear(s)
		}
		if ok {
			deliver(s)
		}
	})
}

func (d *broken) Close(ctx context.Context) error {
	if d.breach.close != nil {
		d.breach.close(ctx, d)
	}
	return d.Driver.Close(ctx)
}

// learn keeps what a claim was last answered.
func (d *broken) learn(c driver.Claim, s driver.Standing) {
	if s.State != driver.Holding && s.State != driver.Waiting {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	k := d.known[c.ID]
	if k == nil {
		k = &known{claim: c}
		d.known[c.ID] = k
	}
	k.d, k.standing, k.left = d, s, false
	c.Number = s.Number
	k.claim = c
}

// of is what is known of an ID, or nil. It is a copy.
func (w *world) of(id driver.ID) *known {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.known[id]
	if k == nil {
		return nil
	}
	one := *k
	return &one
}

// all are the claims known, in the order of their numbers. They are copies.
func (w *world) all() []*known {
	w.mu.Lock()
	defer w.mu.Unlock()
	ks := slices.SortedFunc(maps.Values(w.known), func(x, y *known) int {
		return int(x.standing.Number - y.standing.Number)
	})
	for i, k := range ks {
		one := *k
		ks[i] = &one
	}
	return ks
}

// holder is the first holder listed of a key, as far as it is known.
func (w *world) holder(ctx context.Context, d *broken, key string) *known {
	p, err := d.Driver.Lines(ctx, driver.Query{Key: key})
	if err != nil || len(p.Lines[0].Holders) == 0 {
		return nil
	}
	for _, k := range w.all() {
		if k.standing.Number == p.Lines[0].Holders[0].Number {
			return k
		}
	}
	return nil
}

// empty says whether nobody stands in the line of a key.
func (d *broken) empty(ctx context.Context, key string) bool {
	p, err := d.Driver.Lines(ctx, driver.Query{Key: key})
	return err == nil && len(p.Lines[0].Holders)+p.Lines[0].Waiting == 0
}

// renewKnown renews a claim for its client, behind its client's back.
func (k *known) renewKnown(ctx context.Context, life driver.Life) driver.Standing {
	s, _ := k.d.renewAsIs(ctx, driver.Renewal{Ref: k.claim.Ref, Mode: driver.Extend, Life: life})
	return s
}

// least is a life that moves no expiry.
var least = driver.Life{Hold: 1, Wait: 1}
