package hasp_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/internal/simulation"
)

// worker is one of those who use the locks of a run.
type worker struct {
	*simulated
	client int
	throws simulation.Throws
	busy   *string // what it is doing
}

// work does a few things, one after the other.
func (a *worker) work(ctx context.Context) {
	for range 2 + a.throws.IntN(4) {
		if !a.alike || a.throws.Chance(30) {
			a.pause(ctx, a.throws.Often(0, 5*time.Second))
		}
		if ctx.Err() != nil {
			return
		}
		a.one(ctx)
		*a.busy = ""
	}
}

// one does one thing.
func (a *worker) one(ctx context.Context) {
	switch n := a.throws.IntN(100); {
	case n < 60:
		a.hold(ctx)
	case n < 75:
		a.do(ctx)
	case n < 85:
		a.resume(ctx)
	case n < 97:
		a.operate(ctx)
	case a.client > 0: // somebody should be left
		*a.busy = "close"
		a.shutDown(ctx, a.throws.Often(0, 10*time.Second))
	}
}

func (a *worker) pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// options throws the options of a lock.
func (a *worker) options() hasp.LockOptions {
	o := hasp.LockOptions{TTL: simulation.Pick(a.throws, 300*time.Millisecond, time.Second, 2*time.Second, 5*time.Second, 10*time.Second)}
	if a.weather.Crowded {
		o.TTL = min(o.TTL, 2*time.Second)
	}
	if a.throws.Chance(30) {
		o.Grace = a.throws.Often(time.Millisecond, 3*time.Second)
	}
	switch n := a.throws.IntN(20); {
	case n < 3:
		o.NoRenew = true
	case n < 5:
		o.MaxHold = a.throws.Between(o.TTL/4, 2*o.TTL)
	}
	if a.throws.Chance(20) {
		o.Wait = a.throws.Often(time.Millisecond, 20*time.Second)
	}
	if a.throws.Chance(10) {
		o.MaxLine = 1 + a.throws.IntN(2)
	}
	o.Reentrant = a.throws.Chance(30)
	if a.alike && a.throws.Chance(90) { // or else they meet in no gate
		o.TTL, o.Grace, o.NoRenew, o.MaxLine = time.Second, 0, false, 0
	}
	o.Sticky = simulation.Pick(a.throws, 0, 0, 0, 700*time.Millisecond, 5*time.Second)
	o.LocalHandoffs = simulation.Pick(a.throws, 0, 0, 1, 3, 63, -1)
	return o
}

// request is a lock as a worker wants it.
type request struct {
	client *hasp.Client
	opts   hasp.LockOptions
	what   string
	lock   func(context.Context) (*hasp.Lease, error)
	do     func(context.Context, func(context.Context) error) error
	try    bool
	began  time.Duration
}

// request throws what a worker wants: mutex, two keys, read, write, permits; waiting or
// not.
func (a *worker) request() request {
	r := request{opts: a.options(), try: a.throws.Chance(20)}
	r.client = a.clients[a.client].With(r.opts)
	key := simulation.Pick(a.throws, "a", "a", "b")
	if a.weather.Crowded {
		key = "a"
	}
	n := 1 + a.throws.IntN(2)
	permits := 2 + a.throws.IntN(2)
	kind := a.throws.IntN(10)
	if a.alike && kind > 4 && a.throws.Chance(60) {
		kind = 0
	}
	switch {
	case kind < 5:
		m := r.client.Mutex(key)
		r.what, r.lock, r.do = "mutex "+key, m.Lock, m.Do
		if r.try {
			r.lock, r.do = m.TryLock, m.TryDo
		}
	case kind == 5:
		m := r.client.Mutex("b", "a")
		r.what, r.lock, r.do = "mutex a and b", m.Lock, m.Do
		if r.try {
			r.lock, r.do = m.TryLock, m.TryDo
		}
	case kind == 6:
		m := r.client.RWMutex(key)
		r.what, r.lock, r.do = "write "+key, m.Lock, m.Do
		if r.try {
			r.lock, r.do = m.TryLock, m.TryDo
		}
	case kind == 7:
		m := r.client.RWMutex(key)
		r.what, r.lock, r.do = "read "+key, m.RLock, m.RDo
		if r.try {
			r.lock, r.do = m.TryRLock, m.TryRDo
		}
	default:
		s := r.client.Semaphore(key, permits)
		r.what = "permits of " + key
		r.lock = func(ctx context.Context) (*hasp.Lease, error) { return s.Acquire(ctx, n) }
		r.do = func(ctx context.Context, fn func(context.Context) error) error { return s.Do(ctx, n, fn) }
		if r.try {
			r.lock = func(ctx context.Context) (*hasp.Lease, error) { return s.TryAcquire(ctx, n) }
			r.do = func(ctx context.Context, fn func(context.Context) error) error { return s.TryDo(ctx, n, fn) }
		}
	}
	return r
}

// note tells the judge what lets the lease end by itself.
func (r *request) note() string {
	if r.opts.MaxHold > 0 {
		return "with MaxHold"
	}
	return ""
}

// bounded gives a call's context an end in a quarter of the cases, and answers when.
func (a *worker) bounded(ctx context.Context) (context.Context, context.CancelFunc, time.Duration) {
	if !a.throws.Chance(25) {
		return ctx, func() {}, 0
	}
	d := a.throws.Often(time.Microsecond, 8*time.Second)
	ctx, stop := context.WithTimeout(ctx, d)
	return ctx, stop, a.history.Now() + d
}

// prompt is G8: a call returns within 50 ms of its context's end.
func (a *worker) prompt(what string, ends time.Duration) {
	if now := a.history.Now(); ends > 0 && now > ends+50*time.Millisecond {
		a.history.Wrongf(a.client, "G8: %s returned %s after its context's end", what, now-ends)
	}
}

// refused judges the error of a call that got no lease.
func (a *worker) refused(what string, ctx context.Context, err error) { //nolint:revive // the context is judged, not used
	expected := errors.Is(err, hasp.ErrHeld) || errors.Is(err, hasp.ErrClosed) ||
		ctx.Err() != nil && errors.Is(err, ctx.Err()) || errors.Is(err, hasp.ErrNotHeld) && strings.HasPrefix(what, "resume")
	weather := errors.Is(err, hasp.ErrUnavailable) || errors.Is(err, hasp.ErrRefused)
	switch {
	case expected, weather && !a.fair():
		a.history.Notef(a.client, "%s: %v", what, err)
	default:
		a.history.Wrongf(a.client, "G10: %s: %v", what, err)
	}
}

// hold locks, works and gives back.
func (a *worker) hold(ctx context.Context) {
	r := a.request()
	*a.busy = r.what
	asked, stop, ends := a.bounded(ctx)
	r.began = a.history.Now()
	lease, err := r.lock(asked)
	a.prompt(r.what, ends)
	stop()
	took := a.history.Now() - r.began
	switch {
	case (lease == nil) == (err == nil):
		a.history.Wrongf(a.client, "G8: %s answered %v and %v", r.what, lease, err)
	case err != nil:
		a.refused(r.what, asked, err)
	default:
		a.take(lease, r).use(ctx, r)
	}
	limit := 12 * time.Second // 5 s for the first call of a client, one to hear a signal, 5 s for its own
	if r.opts.Wait > 0 {
		limit += r.opts.Wait
	}
	if (r.try || r.opts.Wait > 0) && took > limit {
		a.history.Wrongf(a.client, "wait: %s with Wait %s took %s", r.what, r.opts.Wait, took)
	}
}

var errWork = errors.New("the work failed")

// do runs a function under a lock; it may fail, panic, or end its goroutine.
func (a *worker) do(ctx context.Context) {
	r := a.request()
	*a.busy = "do " + r.what
	asked, stop, ends := a.bounded(ctx)
	defer stop()
	r.began = a.history.Now()
	runs, lost := 0, false
	how := a.throws.IntN(10)
	fn := func(inner context.Context) error {
		runs++
		lease, ok := hasp.FromContext(inner, strings.TrimPrefix(r.what, r.what[:len(r.what)-1]))
		if !ok {
			a.history.Wrongf(a.client, "do: the context carries no lease")
			return nil
		}
		x := a.take(lease, r)
		x.spend(ctx, 2*r.opts.TTL)
		lost = errors.Is(lease.Err(), hasp.ErrLost)
		if cause := context.Cause(inner); lost != errors.Is(cause, hasp.ErrLost) && asked.Err() == nil && !errors.Is(cause, hasp.ErrClosed) {
			a.history.Wrongf(a.client, "G2: the lease says %v, its context %v", lease.Err(), cause)
		}
		x.add(simulation.Event{Kind: simulation.Releasing})
		switch how {
		case 0:
			panic("in the work")
		case 1:
			runtime.Goexit()
		case 2:
			return errWork
		}
		return nil
	}
	err, ended := a.guarded(asked, r, fn)
	switch {
	case runs > 1:
		a.history.Wrongf(a.client, "do: ran %d times", runs)
	case runs == 0 && err == nil:
		a.history.Wrongf(a.client, "do: nil, and the function did not run")
	case runs == 0:
		a.prompt(r.what, ends)
		a.refused(r.what, asked, err)
	case ended != (how < 2):
		a.history.Wrongf(a.client, "do: the panic or Goexit of the function did not go on")
	case lost && !ended && !errors.Is(err, hasp.ErrLost):
		a.history.Wrongf(a.client, "do: lost meanwhile, answered %v", err)
	case how == 2 && !errors.Is(err, errWork):
		a.history.Wrongf(a.client, "do: the function's error is gone: %v", err)
	}
}

// guarded calls Do on a goroutine of its own and says whether that ended otherwise than by
// returning.
func (a *worker) guarded(ctx context.Context, r request, fn func(context.Context) error) (err error, ended bool) {
	done := make(chan struct{})
	ended = true
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		err = r.do(ctx, fn)
		ended = false
	}()
	<-done
	return err, ended
}

// resume takes up a lease that somebody has detached, perhaps one that others take up,
// too.
func (a *worker) resume(ctx context.Context) {
	*a.busy = "resume"
	var t *detached
	for range 20 {
		a.mu.Lock()
		if len(a.tickets) > 0 {
			t = a.tickets[a.throws.IntN(len(a.tickets))]
		}
		a.mu.Unlock()
		if t != nil {
			break
		}
		a.pause(ctx, 250*time.Millisecond+a.throws.Between(0, time.Millisecond))
	}
	if t == nil {
		return
	}
	var parsed hasp.Ticket
	if err := parsed.UnmarshalText(t.text); err != nil {
		a.history.Wrongf(a.client, "ticket: %v", err)
		return
	}
	r := request{opts: a.options(), began: a.history.Now()}
	asked, stop, ends := a.bounded(ctx)
	defer stop()
	lease, err := a.clients[a.client].With(r.opts).Resume(asked, parsed)
	a.prompt("resume", ends)
	if (lease == nil) == (err == nil) {
		a.history.Wrongf(a.client, "G8: Resume answered %v and %v", lease, err)
	}
	if err != nil {
		a.refused("resume", asked, err)
		return
	}
	x := a.take(lease, r)
	a.mu.Lock()
	t.resumed++
	twice, token := t.resumed > 1, t.token
	a.mu.Unlock()
	if twice {
		a.history.Wrongf(a.client, "P15: a ticket was resumed twice")
	}
	if lease.Token() <= token {
		a.history.Wrongf(a.client, "G3: resumed with token %d, detached with %d", lease.Token(), token)
	}
	x.spend(ctx, r.opts.TTL)
	if errors.Is(lease.Err(), hasp.ErrLost) {
		x.lost(ctx, r)
		return
	}
	x.release(ctx)
}

// operate looks at a key and perhaps takes it from its holders.
func (a *worker) operate(ctx context.Context) {
	client := a.clients[a.client]
	key := simulation.Pick(a.throws, "a", "b")
	*a.busy = "operate " + key
	line, err := client.Inspect(ctx, key)
	a.operated("inspect", err)
	var token int64
	if len(line.Holders) > 0 && a.throws.Chance(50) {
		token = line.Holders[0].Token
	}
	switch a.throws.IntN(4) {
	case 0:
		a.operated("revoke", client.Revoke(ctx, key, token))
	case 1:
		a.operated("force", client.ForceRelease(ctx, key, token))
	case 2:
		for _, err := range client.List(ctx, "") {
			a.operated("list", err)
		}
	}
}

func (a *worker) operated(what string, err error) {
	weather := errors.Is(err, hasp.ErrUnavailable) || errors.Is(err, hasp.ErrRefused)
	switch {
	case err == nil, errors.Is(err, hasp.ErrNotHeld), errors.Is(err, hasp.ErrClosed), weather && !a.fair():
	default:
		a.history.Wrongf(a.client, "G10: %s: %v", what, err)
	}
}

// shutDown closes the worker's client while others may use it.
func (a *worker) shutDown(ctx context.Context, limit time.Duration) {
	a.history.Add(simulation.Event{Kind: simulation.Closing, Claim: simulation.Claim{Client: uint8(a.client)}})
	within, stop := context.WithTimeout(ctx, limit)
	defer stop()
	a.mu.Lock()
	a.closing[a.client] = true
	a.mu.Unlock()
	began := a.history.Now()
	err := a.clients[a.client].Close(within)
	a.history.Notef(a.client, "closed: %v", err)
	if took := a.history.Now() - began; took > limit+50*time.Millisecond {
		a.history.Wrongf(a.client, "G11: Close took %s, its context allowed %s", took, limit)
	}
}
