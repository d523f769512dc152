package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
)

// verb is what a client asks of its store.
type verb string

const (
	check verb = "check"
	join  verb = "join"
	renew verb = "renew" // a call of Renew with an Extend or a Fix
	leave verb = "leave" // also a call of Renew that only leaves
	lines verb = "lines"
	end   verb = "end"
)

// fault is what the wire does to one call.
type fault struct {
	request time.Duration // how long the request is under way
	reply   time.Duration // how long the answer is under way
	lost    bool          // the request never arrives
	mute    bool          // the answer never arrives
	reset   bool          // what is lost is noticed at once, else nothing is heard until the call's context ends
}

// Faults by name.
var (
	lostRequest = fault{lost: true, reset: true}
	lostReply   = fault{mute: true, reset: true}
	swallowed   = fault{lost: true}
	silentReply = fault{mute: true}
)

var errReset = errors.New("connection reset")

// call is one call that went over the wire.
type call struct {
	verb verb
	nth  int // of its verb, from 1
	keys []string
	at   time.Time
}

// wire is a driver with faults between a client and its store.
type wire struct {
	*memlease.Driver

	mu    sync.Mutex
	plan  func(c call) fault
	calls []call
	count map[verb]int

	closed  chan struct{}
	closing sync.Once

	deliver func(driver.Signal)
	sift    func(driver.Signal) bool // false holds a signal back
	kept    []driver.Signal
	seen    func(driver.Join) // is shown every Join
}

func newWire(d *memlease.Driver) *wire {
	return &wire{Driver: d, count: make(map[verb]int), closed: make(chan struct{})}
}

// faults sets what happens to calls from now on; nil mends it.
func (w *wire) faults(plan func(c call) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.plan = plan
}

// nth breaks the nth call of a verb from now on, once.
func (w *wire) nth(v verb, n int, f fault) {
	w.mu.Lock()
	target := w.count[v] + n
	w.mu.Unlock()
	w.faults(func(c call) fault {
		if c.verb == v && c.nth == target {
			return f
		}
		return fault{}
	})
}

// every breaks every call of these verbs, or all.
func (w *wire) every(f fault, verbs ...verb) {
	w.faults(func(c call) fault {
		if len(verbs) == 0 || slices.Contains(verbs, c.verb) {
			return f
		}
		return fault{}
	})
}

// mend ends all faults.
func (w *wire) mend() { w.faults(nil) }

// made answers how many calls of v were made.
func (w *wire) made(v verb) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.count[v]
}

// total answers how many calls were made.
func (w *wire) total() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.calls)
}

// log answers all calls made so far.
func (w *wire) log() []call {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.calls)
}

// deaf holds back every signal from now on.
func (w *wire) deaf() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sift = func(s driver.Signal) bool { return s.Kind == driver.Missed }
}

// hear delivers what was held back, and what comes from now on.
func (w *wire) hear() {
	w.mu.Lock()
	kept := w.kept
	w.kept, w.sift = nil, nil
	deliver := w.deliver
	w.mu.Unlock()
	for _, s := range kept {
		deliver(s)
	}
}

// pass takes one call over the wire.
func (w *wire) pass(ctx context.Context, v verb, keys []string, do func() error) error {
	w.mu.Lock()
	w.count[v]++
	c := call{verb: v, nth: w.count[v], keys: keys, at: time.Now()}
	w.calls = append(w.calls, c)
	var f fault
	if w.plan != nil {
		f = w.plan(c)
	}
	w.mu.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // Close cuts calls short
		select {
		case <-w.closed:
			cancel()
		case <-ctx.Done():
		}
	}()

	if !pause(ctx, f.request) {
		return away(ctx.Err())
	}
	var err error
	if !f.lost {
		err = do()
	}
	switch {
	case (f.lost || f.mute) && f.reset:
		return away(errReset)
	case f.lost || f.mute:
		<-ctx.Done()
		return away(ctx.Err())
	}
	if !pause(ctx, f.reply) {
		return away(ctx.Err())
	}
	return err
}

func pause(ctx context.Context, d time.Duration) bool {
	if d == 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func away(err error) error { return fmt.Errorf("%w: %w", driver.ErrUnavailable, err) }

// Close implements driver.Driver.
func (w *wire) Close(ctx context.Context) error {
	w.closing.Do(func() { close(w.closed) })
	return w.Driver.Close(ctx)
}

// Check implements driver.Driver.
func (w *wire) Check(ctx context.Context) error {
	return w.pass(ctx, check, nil, func() error { return w.Driver.Check(ctx) })
}

// Join implements driver.Driver.
func (w *wire) Join(ctx context.Context, j driver.Join) (s driver.Standing, err error) {
	if w.seen != nil {
		w.seen(j)
	}
	err = w.pass(ctx, join, j.Keys, func() (err error) {
		s, err = w.Driver.Join(ctx, j)
		return err
	})
	if err != nil {
		s = driver.Standing{}
	}
	return s, err
}

// Renew implements driver.Driver. A fault is for all items of the call.
func (w *wire) Renew(ctx context.Context, items []driver.Renewal, answer func(i int, s driver.Standing, err error)) {
	v := leave
	var keys []string
	for _, item := range items {
		if item.Mode != driver.Drop {
			v = renew
		}
		keys = append(keys, item.Keys...)
	}
	standings := make([]driver.Standing, len(items))
	errs := make([]error, len(items))
	err := w.pass(ctx, v, keys, func() error {
		w.Driver.Renew(ctx, items, func(i int, s driver.Standing, err error) { standings[i], errs[i] = s, err })
		return nil
	})
	for i := range items {
		if err != nil {
			answer(i, driver.Standing{}, err)
		} else {
			answer(i, standings[i], errs[i])
		}
	}
}

// Leave implements driver.Driver.
func (w *wire) Leave(ctx context.Context, l driver.Leaving) (s driver.Standing, err error) {
	err = w.pass(ctx, leave, l.Keys, func() (err error) {
		s, err = w.Driver.Leave(ctx, l)
		return err
	})
	if err != nil {
		s = driver.Standing{}
	}
	return s, err
}

// Lines implements driver.Driver.
func (w *wire) Lines(ctx context.Context, q driver.Query) (p driver.Page, err error) {
	err = w.pass(ctx, lines, []string{q.Key}, func() (err error) {
		p, err = w.Driver.Lines(ctx, q)
		return err
	})
	if err != nil {
		p = driver.Page{}
	}
	return p, err
}

// End implements driver.Operator.
func (w *wire) End(ctx context.Context, key string, numbers []int64, force bool) (found []int64, err error) {
	err = w.pass(ctx, end, []string{key}, func() (err error) {
		found, err = w.Driver.End(ctx, key, numbers, force)
		return err
	})
	if err != nil {
		found = nil
	}
	return found, err
}

// Listen implements driver.Signaler.
func (w *wire) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	w.mu.Lock()
	w.deliver = deliver
	w.mu.Unlock()
	return w.Driver.Listen(ctx, inbox, func(s driver.Signal) {
		w.mu.Lock()
		keep := w.sift != nil && !w.sift(s)
		if keep {
			w.kept = append(w.kept, s)
		}
		w.mu.Unlock()
		if !keep {
			deliver(s)
		}
	})
}
