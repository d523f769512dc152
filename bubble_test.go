package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
)

// The TTL of ACCEPTANCE.md, and the margin that is taken from it.
const (
	ttl    = 2 * time.Second
	margin = ttl / 100
)

// world is one store and its clients on virtual time.
type world struct {
	t     *testing.T
	ctx   context.Context
	store *memlease.Store
}

// bubble runs f in a synctest bubble. Every goroutine must have ended with it.
func bubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&world{t: t, ctx: context.WithoutCancel(t.Context()), store: memlease.NewStore()})
	})
}

// client makes a client with a TTL of 2 s that is closed at the end.
func (w *world) client(name string) *hasp.Client {
	w.t.Helper()
	return w.clientWith(w.store.Driver(), hasp.Options{Name: name})
}

// locks makes a client with these lock options.
func (w *world) locks(name string, o hasp.LockOptions) *hasp.Client {
	w.t.Helper()
	return w.clientWith(w.store.Driver(), hasp.Options{Name: name, Lock: o})
}

func (w *world) clientWith(d driver.Driver, o hasp.Options) *hasp.Client {
	w.t.Helper()
	if o.Lock.TTL == 0 {
		o.Lock.TTL = ttl
	}
	c, err := hasp.New(d, &o)
	if err != nil {
		w.t.Fatalf("New: %v", err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// wired makes a client behind a wire.
func (w *world) wired(name string) (*hasp.Client, *wire) {
	w.t.Helper()
	line := newWire(w.store.Driver())
	return w.clientWith(line, hasp.Options{Name: name}), line
}

// lock takes the mutex on keys.
func (w *world) lock(c *hasp.Client, key string, more ...string) *hasp.Lease {
	w.t.Helper()
	l, err := c.Mutex(key, more...).Lock(w.ctx)
	if err != nil {
		w.t.Fatalf("Lock %q: %v", key, err)
	}
	return l
}

// attempt is a call that goes on beside the test.
type attempt struct {
	lease *hasp.Lease
	err   error
	took  time.Duration
	done  chan struct{}
}

// start makes a call beside the test and lets it come to rest.
func (w *world) start(call func() (*hasp.Lease, error)) *attempt {
	a := &attempt{done: make(chan struct{})}
	began := time.Now()
	go func() {
		defer close(a.done)
		a.lease, a.err = call()
		a.took = time.Since(began)
	}()
	synctest.Wait()
	return a
}

// waiting starts a Lock of key.
func (w *world) waiting(c *hasp.Client, key string, more ...string) *attempt {
	return w.start(func() (*hasp.Lease, error) { return c.Mutex(key, more...).Lock(w.ctx) })
}

// ended says whether the call has returned.
func (a *attempt) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// held waits for the call and wants a lease of it.
func (w *world) held(a *attempt) *hasp.Lease {
	w.t.Helper()
	<-a.done
	if a.err != nil || a.lease == nil {
		w.t.Fatalf("lease %v, error %v; want a lease", a.lease, a.err)
	}
	return a.lease
}

// refused waits for the call and wants an error of all these classes.
func (w *world) refused(a *attempt, classes ...error) {
	w.t.Helper()
	<-a.done
	if a.lease != nil {
		w.t.Errorf("a lease came with error %v", a.err)
	}
	wantError(w.t, a.err, classes...)
}

// line answers who stands in the line of key.
func (w *world) line(key string) hasp.Line {
	w.t.Helper()
	page, err := w.store.Driver().Lines(w.ctx, driver.Query{Key: key})
	if err != nil {
		w.t.Fatal(err)
	}
	out := hasp.Line{Key: key, Waiting: page.Lines[0].Waiting}
	for _, e := range page.Lines[0].Holders {
		out.Holders = append(out.Holders, hasp.Standing{Name: e.Name, Token: 64*e.Number + int64(e.Index), ExpiresIn: e.ExpiresIn})
	}
	return out
}

// rest is how long the store keeps the first holder of key; 0: nobody holds.
func (w *world) rest(key string) time.Duration {
	w.t.Helper()
	if h := w.line(key).Holders; len(h) > 0 {
		return h[0].ExpiresIn
	}
	return 0
}

// empty wants nobody in any line.
func (w *world) empty() {
	w.t.Helper()
	page, err := w.store.Driver().Lines(w.ctx, driver.Query{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, l := range page.Lines {
		w.t.Errorf("line %q has %d holders and %d waiters, want nobody", l.Key, len(l.Holders), l.Waiting)
	}
}

// wantError wants err to be of every class, and of no class of hasp's that is not
// among them.
func wantError(t *testing.T, err error, classes ...error) {
	t.Helper()
	all := []error{
		hasp.ErrHeld, hasp.ErrLost, hasp.ErrNotHeld, hasp.ErrReleased, hasp.ErrClosed,
		hasp.ErrUnavailable, hasp.ErrRefused, hasp.ErrInvalid, hasp.ErrUnsupported,
	}
	if len(classes) == 0 {
		if err != nil {
			t.Errorf("error %v, want none", err)
		}
		return
	}
	for _, class := range classes {
		if !errors.Is(err, class) {
			t.Errorf("error %v, want one that is %q", err, class)
		}
	}
	for _, class := range all {
		if errors.Is(err, class) && !slices.Contains(classes, class) {
			t.Errorf("error %v is %q, too; want only %q", err, class, classes)
		}
	}
}

// wantOp wants the outermost error to be *hasp.Error of this operation and key.
func wantOp(t *testing.T, err error, op, key string) {
	t.Helper()
	var e *hasp.Error
	if !errors.As(err, &e) || e.Op != op || e.Key != key {
		t.Errorf("error %v, want *hasp.Error with Op %q and Key %q", err, op, key)
	}
}

// within wants d to be at most limit.
func within(t *testing.T, what string, d, limit time.Duration) {
	t.Helper()
	if d > limit {
		t.Errorf("%s took %s, want at most %s", what, d, limit)
	}
}

// recorder is an observer that keeps what it is told.
type recorder struct {
	mu     sync.Mutex
	events []hasp.Event
}

func (r *recorder) observe(_ context.Context, e hasp.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// all answers what was told so far.
func (r *recorder) all() []hasp.Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]hasp.Event(nil), r.events...)
}

// kinds answers the kinds told so far, but for renewals.
func (r *recorder) kinds() string {
	var b strings.Builder
	for _, e := range r.all() {
		if e.Kind != hasp.EventRenewed {
			b.WriteString(e.Kind.String() + " ")
		}
	}
	return b.String()
}

// count answers how often kind was told.
func (r *recorder) count(kind hasp.EventKind) int {
	n := 0
	for _, e := range r.all() {
		if e.Kind == kind {
			n++
		}
	}
	return n
}

// key names the nth key of many.
func key(n int) string { return fmt.Sprintf("key:%d", n) }

// rounds is n, or a tenth of it with -short, for checks that cost seconds under the
// race detector.
func rounds(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}
