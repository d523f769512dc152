package sqllease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// maxInFlight is how many commands a client has on the user's handle at once.
const maxInFlight = 4

// defaultMarks is how many watched lines one look sees, where each is a statement.
const defaultMarks = 64

// Client is what the SQL stores share above their steps: it checks what is asked for, lets
// calls end in time, repeats what another transaction was in the way of, knows this
// client's claims, and looks for news of them. A store's package embeds it in its Driver.
type Client struct {
	setup Setup
	steps Steps

	workers  workers
	slots    chan struct{} // a place for each command in flight
	writers  chan struct{} // a place for each write transaction
	renewals chan struct{} // a place for each that renews; nil: they have no places of their own
	ready    readiness
	known    registry
	ear      ear

	base   context.Context //nolint:containedctx // ends with Close, which every call in flight must see
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool           // guarded by mu
	calls  sync.WaitGroup // calls in flight; added to under mu
}

var (
	_ driver.Driver   = (*Client)(nil)
	_ driver.Signaler = (*Client)(nil)
	_ driver.Operator = (*Client)(nil)
)

// Setup is what a store's package says of its database, once and for all.
type Setup struct {
	// Name begins every error text: the name of the package.
	Name string
	// Err is what the constructor found wrong. No call gets further than it.
	Err error
	// Writers is how many write transactions of one client gain from running at once.
	Writers int
	// Renewers is how many renewals may write at once beside Writers: leases must not be lost
	// behind a queue of Joins. Writers should leave them a place then. 0: they wait like the
	// other calls.
	Renewers int
	// PollMin and PollMax are the shortest and the longest pause between two looks while a claim waits.
	PollMin, PollMax time.Duration
	// Marks is how many watched lines one look sees. Defaults to 64.
	Marks int
	// LongestKey is how many bytes a key may have. 0: any number.
	LongestKey int
	// Classify says what an error of the database means.
	Classify func(error) Fault
	// Inspect looks at what Classify cannot know and at what the database must be like:
	// mode, tables, rights. A nil error: all is well.
	Inspect func(ctx context.Context) error
	// Prepare runs before the first step, after Inspect. Nil: there is nothing to prepare.
	Prepare func(ctx context.Context) error
	// Guard is what a guard asks in the user's transaction. Each row of the answers is a place
	// of the claim: its number, whether it holds, whether it was revoked; the row is locked
	// so that nobody can delete it before that transaction ends. Nil: there is no guard.
	Guard func(ref driver.Ref) []Query
	// BeforeGuard runs before what Guard asks, outside the user's transaction. Nil: nothing does.
	BeforeGuard func(ctx context.Context, ref driver.Ref)
	// Intact runs before each try of a step. Nil: nothing can be wrong.
	Intact func() error
	// Push brings news of this client's claims until ctx ends, and says with
	// [Client.Hear] from when to when it does. Nil: only looking brings news.
	Push func(ctx context.Context, inbox [6]byte)
	// Probe looks for dead processes in these lines. It says whether there were any, and
	// how many claims wait before this client's, where they are the fewest. Nil: it cannot.
	Probe func(ctx context.Context, keys []string) (found bool, before int)
}

// Steps are what one database does for a client. Each of Join, Leave, End, and each item
// of Renew, is one atomic step as package driver describes it. What is asked for has been
// checked. A method carries out each of its transactions by [Call]; when one has
// succeeded it notes that with [Client.Settle] and [Client.Tell], also where its caller
// has left.
type Steps interface {
	// Check proves that steps can be done, and changes nothing.
	Check(ctx context.Context) error
	// Join does one Join.
	Join(ctx context.Context, j driver.Join) (driver.Standing, error)
	// Leave does one Leave.
	Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error)
	// Renew does the items of order, in order or not.
	Renew(ctx context.Context, items []driver.Renewal, order []int, answer func(i int, s driver.Standing, err error))
	// End does one End of at most [driver.MaxKeys] numbers.
	End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error)
	// Lines does one Lines.
	Lines(ctx context.Context, q driver.Query) (driver.Page, error)
	// Look says what is to be seen of some lines and claims.
	Look(ctx context.Context, g Gaze) (Sight, error)
}

// NewClient makes the shared part of a driver. It does no I/O.
func NewClient(setup Setup, steps Steps) *Client {
	if setup.Err != nil {
		setup.Err = fmt.Errorf("%s: %w", setup.Name, setup.Err)
	}
	setup.Marks = cmp.Or(setup.Marks, defaultMarks)
	c := &Client{
		setup:   setup,
		steps:   steps,
		slots:   make(chan struct{}, maxInFlight),
		writers: make(chan struct{}, max(1, setup.Writers)),
	}
	if setup.Renewers > 0 {
		c.renewals = make(chan struct{}, setup.Renewers)
	}
	c.known.stays = make(map[driver.ID]*stay)
	c.ear.wake = make(chan struct{}, 1)
	c.ear.watched = make(map[string]*watch)
	c.base, c.cancel = context.WithCancel(context.Background()) //nolint:forbidigo,gosec // ends with Close; there is no caller's ctx in a constructor
	c.workers = workers{jobs: make(chan func()), done: c.base.Done()}
	return c
}

// Features says what the store can do.
func (c *Client) Features() driver.Features {
	return driver.Features{Err: c.setup.Err, Line: true, Shared: true, Tokens: true, Guard: c.setup.Guard != nil, MaxKeys: driver.MaxKeys, Step: time.Microsecond}
}

// Check proves that the database is reachable, is set up as hasp needs it and takes
// writes. It changes nothing.
func (c *Client) Check(ctx context.Context) error {
	if c.setup.Err != nil {
		return c.setup.Err
	}
	c.ready.forget()
	return c.steps.Check(ctx)
}

// Join puts a claim into all its lines, or renews it if it lives.
func (c *Client) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if err := checkJoin(j, c.setup.LongestKey); err != nil {
		return driver.Standing{}, c.explain(err, Fault{})
	}
	if j.Leaving != nil {
		c.known.drop(j.Leaving.ID)
	}
	c.known.expect(j.Ref, j.Life)
	return c.steps.Join(ctx, j)
}

// Renew does the items in few round trips.
func (c *Client) Renew(ctx context.Context, items []driver.Renewal, answer func(i int, s driver.Standing, err error)) {
	order := make([]int, 0, len(items))
	for i, item := range items {
		if err := checkRenewal(item, c.setup.LongestKey); err != nil {
			answer(i, driver.Standing{}, c.explain(err, Fault{}))
			continue
		}
		switch item.Mode {
		case driver.Drop:
			c.known.drop(item.ID)
		case driver.Extend:
			c.known.ask(item.ID, item.Life)
		case driver.Fix:
		}
		order = append(order, i)
	}
	c.steps.Renew(context.WithValue(ctx, renewingKey{}, true), items, order, answer)
}

// Leave takes a claim out of all its lines and hands over.
func (c *Client) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	if err := checkKeys(l.Keys, c.setup.LongestKey); err != nil {
		return driver.Standing{}, c.explain(err, Fault{})
	}
	c.known.drop(l.ID)
	return c.steps.Leave(ctx, l)
}

// End revokes, or with force removes, exactly the named stays of a key. More than one
// step may remove are taken in several.
func (c *Client) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	if err := checkKeys([]string{key}, c.setup.LongestKey); err != nil {
		return nil, c.explain(err, Fault{})
	}
	var found []int64
	for some := range slices.Chunk(slices.Clone(numbers), maxRemovals) {
		ended, err := c.steps.End(ctx, key, some, force)
		found = append(found, ended...)
		if err != nil {
			return found, err
		}
	}
	return found, nil
}

// Lines answers one line or a page of lines, as one moment saw them.
func (c *Client) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	if err := q.Validate(); err != nil {
		return driver.Page{}, c.explain(err, Fault{})
	}
	return c.steps.Lines(ctx, q)
}

// Close stops what the client started and waits for calls in flight, which are cut short.
// Claims still held stay.
func (c *Client) Close(ctx context.Context) error {
	_, err := c.Shut(ctx)
	return err
}

// Shut is Close, and says whether it was the first.
func (c *Client) Shut(ctx context.Context) (first bool, err error) {
	c.mu.Lock()
	first = !c.closed
	c.closed = true
	c.mu.Unlock()
	if !first {
		return false, nil
	}
	c.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.calls.Wait()
	}()
	select {
	case <-done:
		return true, nil
	case <-ctx.Done():
		return true, c.cut(ctx, nil)
	}
}

// enter counts a call in, unless the client is closed.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return fmt.Errorf("%s: %w: the driver is closed", c.setup.Name, driver.ErrUnavailable)
	}
	c.calls.Add(1)
	return nil
}
