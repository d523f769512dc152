package simulation

import (
	"context"
	"hash/fnv"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Inner is the driver a Driver stands before: one that can do everything.
type Inner interface {
	driver.Driver
	driver.Signaler
	driver.Operator
}

// Driver is one client's way through the network.
type Driver struct {
	net    *Network
	inner  Inner
	client uint8
	pauses []span

	closing  chan struct{}
	shut     sync.Once
	listens  sync.WaitGroup
	hearing  sync.Mutex // held while a signal is delivered
	deliver  func(driver.Signal)
	mu       sync.Mutex
	counts   map[count]uint64
	repeated map[Claim]bool // a copy of an answered Join may still arrive
}

// count is whose calls are counted.
type count struct {
	claim Claim
	what  string
}

// Driver answers the way of a client through the network to inner.
func (n *Network) Driver(client int, inner Inner) *Driver {
	return &Driver{
		net: n, inner: inner, client: uint8(client), closing: make(chan struct{}),
		pauses: n.weather.pausesOf(n.dice.For('p', uint64(client))),
		counts: make(map[count]uint64), repeated: make(map[Claim]bool),
	}
}

// throws answers the dice for the next thing of that kind that happens to a claim.
func (d *Driver) throws(c Claim, what string) Throws {
	d.mu.Lock()
	d.counts[count{c, what}]++
	nth := d.counts[count{c, what}]
	d.mu.Unlock()
	h := fnv.New64a()
	_, _ = h.Write([]byte(what))
	return d.net.dice.For(uint64(c.Client), uint64(c.Nth), h.Sum64(), nth)
}

// Features implements driver.Driver: those of the store, and in some runs those of one
// whose grants must be confirmed.
func (d *Driver) Features() driver.Features {
	f := d.inner.Features()
	f.ConfirmGrant = f.ConfirmGrant || d.net.history.Confirm
	return f
}

// Check implements driver.Driver.
func (d *Driver) Check(ctx context.Context) error {
	//nolint:contextcheck // a request on its way does not end with its caller
	return d.begin(Event{Claim: Claim{Client: d.client}, Verb: "check"}, func() answer {
		return answer{err: d.inner.Check(afar())}
	}).wait(ctx).err
}

// afar is the context of what has been sent: nobody can call it back.
func afar() context.Context { return context.Background() } //nolint:forbidigo // see above

// Join implements driver.Driver.
func (d *Driver) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	ask := &Ask{Keys: slices.Clone(j.Keys), Weight: j.Weight, Capacity: j.Capacity, Life: j.Life, Try: j.Try}
	if j.Resume != nil {
		c := ClaimOf(j.Resume.ID)
		ask.Resume, ask.ResumeNumber = &c, j.Resume.Number
	}
	leaves := d.leaving(&j)
	//nolint:contextcheck // a request on its way does not end with its caller
	a := d.begin(Event{Claim: ClaimOf(j.ID), Verb: Join, Number: j.Number, Ask: ask}, func() answer {
		s, err := d.inner.Join(afar(), j)
		if err == nil {
			leaves(Executed, nil)
		}
		return answer{standing: s, err: err}
	}).wait(ctx)
	leaves(Answered, a.err)
	return a.standing, a.err
}

// leaving writes down, as a call of its own, that a claim leaves with the Join of
// another, and answers what writes down the rest of it.
func (d *Driver) leaving(j *driver.Join) func(Kind, error) {
	if j.Leaving == nil {
		return func(Kind, error) {}
	}
	l := *j.Leaving
	with := ClaimOf(j.ID)
	e := Event{Claim: ClaimOf(l.ID), Verb: Leave, Number: l.Number, With: &with}
	l.Unanswered = l.Unanswered || d.mayRepeat(e.Claim)
	j.Leaving = &l
	e.Call = d.net.history.sent(e)
	return func(kind Kind, err error) {
		step := e
		if step.Kind = kind; err != nil {
			step.Text = err.Error()
		} else {
			step.State = driver.Left
		}
		d.net.history.Add(step)
	}
}

// answered notes what a call has come to, as a client library would that repeats calls
// by itself: of a Join that was refused no copy arrives any more, and of one that was
// not, Leave says that a copy may.
func (d *Driver) answered(f *flight, a answer) {
	if f.sent.Verb != Join || !f.fate.copied || a.err != nil {
		return
	}
	if a.standing.State == driver.Refused {
		f.refused.Store(true)
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.repeated[f.sent.Claim] = true
}

func (d *Driver) mayRepeat(c Claim) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.repeated[c]
}

// Renew implements driver.Driver: each item travels by itself.
func (d *Driver) Renew(ctx context.Context, items []driver.Renewal, answered func(i int, s driver.Standing, err error)) {
	flights := make([]*flight, len(items))
	for i := range items {
		flights[i] = d.renewal(items[i]) //nolint:contextcheck // a request on its way does not end with its caller
	}
	if len(items) == 1 {
		a := flights[0].wait(ctx)
		answered(0, a.standing, a.err)
		return
	}
	var one sync.Mutex
	var all sync.WaitGroup
	for i, f := range flights {
		all.Go(func() {
			a := f.wait(ctx)
			one.Lock()
			defer one.Unlock()
			answered(i, a.standing, a.err)
		})
	}
	all.Wait()
}

func (d *Driver) renewal(r driver.Renewal) *flight {
	c := ClaimOf(r.ID)
	r.Keys = slices.Clone(r.Keys)
	verb := Extend
	switch r.Mode {
	case driver.Extend:
	case driver.Fix:
		verb = Fix
	case driver.Drop:
		verb = Drop
		r.Unanswered = r.Unanswered || d.mayRepeat(c)
	}
	return d.begin(Event{Claim: c, Verb: verb, Number: r.Number}, func() (a answer) {
		d.inner.Renew(afar(), []driver.Renewal{r}, func(_ int, s driver.Standing, err error) {
			a = answer{standing: s, err: err}
		})
		return a
	})
}

// Leave implements driver.Driver.
func (d *Driver) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	c := ClaimOf(l.ID)
	l.Unanswered = l.Unanswered || d.mayRepeat(c)
	//nolint:contextcheck // a request on its way does not end with its caller
	a := d.begin(Event{Claim: c, Verb: Leave, Number: l.Number}, func() answer {
		s, err := d.inner.Leave(afar(), l)
		return answer{standing: s, err: err}
	}).wait(ctx)
	return a.standing, a.err
}

// Lines implements driver.Driver.
func (d *Driver) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	//nolint:contextcheck // a request on its way does not end with its caller
	a := d.begin(Event{Claim: Claim{Client: d.client}, Verb: "lines", Key: q.Key}, func() answer {
		page, err := d.inner.Lines(afar(), q)
		return answer{page: page, err: err}
	}).wait(ctx)
	return a.page, a.err
}

// End implements driver.Operator.
func (d *Driver) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	//nolint:contextcheck // a request on its way does not end with its caller
	a := d.begin(Event{Claim: Claim{Client: d.client}, Verb: End, Key: key, Force: force}, func() answer {
		found, err := d.inner.End(afar(), key, numbers, force)
		return answer{found: found, err: err}
	}).wait(ctx)
	return a.found, a.err
}

// Close implements driver.Driver. What was sent still arrives.
func (d *Driver) Close(context.Context) error {
	d.shut.Do(func() { close(d.closing) })
	d.listens.Wait()
	return nil
}

// Watch implements driver.Signaler.
func (d *Driver) Watch(key string) (stop func()) { return d.inner.Watch(key) }

// Listen implements driver.Signaler.
func (d *Driver) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	d.listens.Go(func() {
		select {
		case <-d.closing:
			stop()
		case <-ctx.Done():
		}
	})
	d.hearing.Lock()
	d.deliver = deliver
	d.hearing.Unlock()
	err := d.inner.Listen(ctx, inbox, d.relay)
	d.hearing.Lock()
	d.deliver = nil
	d.hearing.Unlock()
	return err
}

// relay sends a signal of the store on its way to the client.
func (d *Driver) relay(s driver.Signal) {
	n := d.net
	e := Event{Kind: Made, Claim: Claim{Client: d.client}, Signal: s.Kind.String(), Number: s.Number, Key: s.Key}
	if addressed(s) {
		e.Claim = ClaimOf(s.ID)
	}
	if s.Kind != driver.Missed {
		n.history.Add(e)
	}
	now := n.history.Now()
	throws := d.throws(e.Claim, e.Signal)
	fate := n.weather.ofSignal(throws, now)
	if !fate.lost || s.Kind == driver.Missed && throws.Chance(50) {
		d.hear(s, fate.after, throws)
	}
	if fate.again > 0 {
		d.hear(s, fate.again, throws)
	}
	if fate.missed > 0 {
		d.hear(driver.Signal{Kind: driver.Missed}, fate.missed, throws)
	}
}

// addressed says whether a signal is for a claim.
func addressed(s driver.Signal) bool {
	return s.Kind == driver.Granted || s.Kind == driver.Turn || s.Kind == driver.Ended
}

// hear delivers a signal that far from now, or when the pause around that has ended.
func (d *Driver) hear(s driver.Signal, in time.Duration, throws Throws) {
	n := d.net
	now := n.history.Now()
	at := past(d.pauses, now+in, func() time.Duration { return throws.Between(quick, usual) })
	n.after(at-now, func() {
		d.hearing.Lock()
		defer d.hearing.Unlock()
		if d.deliver == nil {
			return
		}
		e := Event{Kind: Heard, Claim: Claim{Client: d.client}, Signal: s.Kind.String(), Number: s.Number, Key: s.Key}
		if addressed(s) {
			e.Claim = ClaimOf(s.ID)
		}
		n.history.Add(e)
		d.deliver(s)
	})
}

// forget has a failover tell a waiting claim that it holds, which the new server does
// not know any more.
func (d *Driver) forget(e Event) {
	n := d.net
	now := n.history.Now()
	throws := d.throws(e.Claim, "forget")
	if now >= n.weather.Ends || !throws.Chance(n.weather.Forget) {
		return
	}
	n.history.Add(Event{Kind: Forgot, Claim: e.Claim, Number: e.Number})
	id := e.Claim.ID()
	d.hear(driver.Signal{Kind: driver.Granted, ID: id, Number: e.Number}, throws.Often(quick, usual), throws)
}
