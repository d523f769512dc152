package elect_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/elect"
)

// ttl is that of every client, unless it says otherwise.
const ttl = 2 * time.Second

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

// client makes a client that is closed at the end, and answers its way to the store.
func (w *world) client(name string) (*hasp.Client, *memlease.Driver) {
	w.t.Helper()
	d := w.store.Driver()
	return w.clientOn(name, d), d
}

func (w *world) clientOn(name string, d driver.Driver) *hasp.Client {
	w.t.Helper()
	c, err := hasp.New(d, &hasp.Options{Name: name, Lock: hasp.LockOptions{TTL: ttl}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(w.ctx, time.Minute)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// node is a process that stands in the election "e".
type node struct {
	*elect.Elector
	name   string
	client *hasp.Client
	way    *memlease.Driver
	stop   context.CancelFunc
	done   chan struct{}
	err    error // what Run returned; read after done
}

// node starts a candidate.
func (w *world) node(name string, lead func(context.Context) error, opts *elect.Options) *node {
	w.t.Helper()
	n := &node{name: name}
	n.client, n.way = w.client(name)
	e, err := elect.New(n.client, "e", lead, opts)
	if err != nil {
		w.t.Fatal(err)
	}
	n.Elector = e
	n.run(w)
	return n
}

// run starts the candidate and lets it come to rest.
func (n *node) run(w *world) {
	ctx, cancel := context.WithCancel(w.ctx)
	n.stop, n.done = cancel, make(chan struct{})
	go func() {
		defer close(n.done)
		n.err = n.Run(ctx)
	}()
	synctest.Wait()
}

// end stops the candidate and answers what Run returned.
func (n *node) end() error {
	n.stop()
	<-n.done
	synctest.Wait() // a place in line is left in the background
	return n.err
}

// ended says whether Run has returned.
func (n *node) ended() bool {
	select {
	case <-n.done:
		return true
	default:
		return false
	}
}

// diary is what happened in an election, in order.
type diary struct {
	mu    sync.Mutex
	began time.Time
	pages []page
}

// page is one entry: a term that began or ended.
type page struct {
	who   string
	token int64
	start bool
	at    time.Duration
	until time.Duration // at an end: until when it led, or kept others from leading
	cause error
}

func newDiary() *diary { return &diary{began: time.Now()} }

func (d *diary) write(p page) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.at = time.Since(d.began)
	d.pages = append(d.pages, p)
}

func (d *diary) all() []page {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.pages)
}

// starts answers who began a term, in order.
func (d *diary) starts() (names []string) {
	for _, p := range d.all() {
		if p.start {
			names = append(names, p.who)
		}
	}
	return names
}

// work is a leader that writes into the diary and returns when its context has ended and
// drain has passed.
func (d *diary) work(who string, drain time.Duration) func(context.Context) error {
	return func(ctx context.Context) error {
		lease, ok := hasp.FromContext(ctx, "e")
		if !ok {
			return errors.New("the context carries no lease")
		}
		d.write(page{who: who, token: lease.Token(), start: true})
		<-ctx.Done()
		until := time.Since(d.began)
		time.Sleep(drain)
		if lease.Err() == nil {
			until = time.Since(d.began)
		}
		d.write(page{who: who, token: lease.Token(), cause: context.Cause(ctx), until: until})
		return ctx.Err()
	}
}

// judge wants every term to end once, and before the next of its process; no term to
// begin while an earlier one is trusted; and tokens to rise.
func (d *diary) judge(t *testing.T) {
	t.Helper()
	open := map[string]int64{}
	var last int64
	pages := d.all()
	for i, p := range pages {
		token, leads := open[p.who]
		switch {
		case p.start && leads:
			t.Errorf("%d: %s begins term %d inside its term %d", i, p.who, p.token, token)
		case p.start && p.token <= last:
			t.Errorf("%d: %s begins term %d after term %d", i, p.who, p.token, last)
		case !p.start && (!leads || token != p.token):
			t.Errorf("%d: %s ends term %d, which it is not in", i, p.who, p.token)
		}
		if p.start {
			open[p.who] = p.token
			last = p.token
			continue
		}
		delete(open, p.who)
		for _, other := range pages { // also those that began while this one drained
			if other.start && other.token > p.token && other.at < p.until {
				t.Errorf("%d: %s led term %d until %s, %s began term %d at %s", i, p.who, p.token, p.until, other.who, other.token, other.at)
			}
		}
	}
	for who, token := range open {
		t.Errorf("%s never ended its term %d", who, token)
	}
}

// wantClass wants err to be of every class.
func wantClass(t *testing.T, err error, classes ...error) {
	t.Helper()
	for _, class := range classes {
		if !errors.Is(err, class) {
			t.Errorf("error %v, want one that is %q", err, class)
		}
	}
	if len(classes) == 0 && err != nil {
		t.Errorf("error %v, want none", err)
	}
}

// wantOp wants the outermost error to be *hasp.Error of this operation on "e".
func wantOp(t *testing.T, err error, op string) {
	t.Helper()
	var e *hasp.Error
	if !errors.As(err, &e) || e.Op != op || e.Key != "e" {
		t.Errorf("error %v, want *hasp.Error with Op %q and Key \"e\"", err, op)
	}
}

// within wants d to be at most limit.
func within(t *testing.T, what string, d, limit time.Duration) {
	t.Helper()
	if d > limit {
		t.Errorf("%s took %s, want at most %s", what, d, limit)
	}
}

// line answers how many lead and how many stand by.
func (w *world) line() string {
	w.t.Helper()
	page, err := w.store.Driver().Lines(w.ctx, driver.Query{Key: "e"})
	if err != nil {
		w.t.Fatal(err)
	}
	if len(page.Lines) == 0 {
		return "0+0"
	}
	return fmt.Sprintf("%d+%d", len(page.Lines[0].Holders), page.Lines[0].Waiting)
}

// wants compares who stands in the store.
func (w *world) wants(want string) {
	w.t.Helper()
	if got := w.line(); got != want {
		w.t.Errorf("leaders+candidates are %s, want %s", got, want)
	}
}
