package drivertest

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// bench is what a case works on: one store, some clients, and the history of what
// they did. The first thing found wrong stays; what is asked afterwards does
// nothing, so a case reads as a straight list of steps and ends with result.
type bench struct {
	ctx   context.Context
	end   context.CancelFunc
	store *Store
	first *client
	tick  time.Duration
	slack time.Duration // what an answer may be late by
	exact bool          // time is virtual
	begin time.Time
	space string // what this case's keys begin with

	mu      sync.Mutex // guards what follows
	err     error
	history []string
	waited  time.Duration // for calls, and for sleeps that ended late
	due     time.Time     // when the last sleep should have ended
	made    int
	clients []*client
}

// patience is how long a case waits for something that must happen.
const patience = 5 * time.Second

// limit is how long a case may take.
const limit = 2 * time.Minute

func newBench(s Suite) (*bench, error) {
	store, err := s.Open()
	if err != nil {
		return nil, fmt.Errorf("Suite.Open: %w", err)
	}
	b := &bench{store: store, tick: s.Tick, exact: s.Virtual, begin: time.Now()}
	b.ctx, b.end = context.WithTimeout(context.Background(), limit)
	b.space = "drivertest:" + hex.EncodeToString(randomBytes(8)) + ":"
	b.first = b.client()
	if b.failed() {
		return nil, errors.Join(b.result(), b.close())
	}
	f := b.first.d.Features()
	b.tick = max(b.tick, f.MinLife/2)
	if f.Step > 0 {
		b.tick += (f.Step - b.tick%f.Step) % f.Step
	}
	b.slack = b.tick / 3
	return b, nil
}

// close ends the clients and takes out what they left, so that real stores stay
// clean.
func (b *bench) close() error {
	b.mu.Lock()
	clients := slices.Clone(b.clients)
	b.mu.Unlock()
	var errs []error
	for _, c := range clients {
		errs = append(errs, c.close())
	}
	b.end()
	if b.store.Close != nil {
		errs = append(errs, b.store.Close())
	}
	return errors.Join(errs...)
}

// failed says whether something was found wrong, or time is up.
func (b *bench) failed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err != nil
}

// fail records what was found wrong, if it is the first.
func (b *bench) fail(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.err == nil {
		b.err = fmt.Errorf(format+"%s", append(args, b.told())...)
	}
}

// check fails unless ok.
func (b *bench) check(ok bool, format string, args ...any) {
	if !ok {
		b.fail(format, args...)
	}
}

// result is what a case answers.
func (b *bench) result() error {
	if err := b.ctx.Err(); err != nil {
		b.fail("the case took longer than %v: %w", limit, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.err
}

// note writes a line of history.
func (b *bench) note(format string, args ...any) {
	at := time.Since(b.begin).Round(time.Millisecond)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.history = append(b.history, fmt.Sprintf("%8v  %s", at, fmt.Sprintf(format, args...)))
}

// told is the end of the history, for a message; the caller holds mu.
func (b *bench) told() string {
	const most = 30
	h := b.history
	if len(h) > most {
		h = h[len(h)-most:]
	}
	if len(h) == 0 {
		return ""
	}
	return "\n" + strings.Join(h, "\n")
}

// lagged says that all calls and late sleeps together took longer than the times of a
// case allow for.
func (b *bench) lagged() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.exact && b.waited > b.slack
}

// took notes how long something took that a case takes to be done in no time.
func (b *bench) took(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waited += max(d, 0)
}

// ticks is a time of n ticks.
func (b *bench) ticks(n int) time.Duration { return time.Duration(n) * b.tick }

// sleep lets n ticks pass. They count from the end of the last sleep, so that what the
// steps in between take does not add up.
func (b *bench) sleep(n int) {
	b.mu.Lock()
	if b.due.IsZero() {
		b.due = time.Now()
	}
	b.due = b.due.Add(b.ticks(n))
	due := b.due
	b.mu.Unlock()
	b.wake(due)
}

// until sleeps until n ticks after mark.
func (b *bench) until(mark time.Time, n int) { b.wake(mark.Add(b.ticks(n))) }

// wake sleeps until at.
func (b *bench) wake(at time.Time) {
	if b.failed() {
		return
	}
	time.Sleep(time.Until(at))
	b.took(time.Since(at))
}

// key is a key nobody else uses.
func (b *bench) key() string { return b.keys(1)[0] }

// keys are n such keys in order.
func (b *bench) keys(n int) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	ks := make([]string, n)
	for i := range ks {
		b.made++
		ks[i] = fmt.Sprintf("%s%05d", b.space, b.made)
	}
	return ks
}

// client is a further client of the store.
func (b *bench) client() *client {
	d, err := b.store.Client()
	b.mu.Lock()
	c := &client{b: b, d: d, name: clientName(len(b.clients)), inbox: [6]byte(randomBytes(6))}
	if err == nil {
		b.clients = append(b.clients, c)
	}
	b.mu.Unlock()
	if err != nil {
		b.fail("Store.Client: %w", err)
	} else if err := d.Features().Err; err != nil {
		b.fail("Features.Err of a driver that should work: %w", err)
	}
	return c
}

// crowd is n claims of the same keys, each of a client of its own.
func (b *bench) crowd(n int, keys ...string) []*claim {
	xs := make([]*claim, n)
	for i := range xs {
		xs[i] = b.client().claim(keys...)
	}
	return xs
}

// pair is two such claims.
func (b *bench) pair(keys ...string) (x, y *claim) {
	xs := b.crowd(2, keys...)
	return xs[0], xs[1]
}

// trio is three such claims.
func (b *bench) trio(keys ...string) (x, y, z *claim) {
	xs := b.crowd(3, keys...)
	return xs[0], xs[1], xs[2]
}

// atOnce runs f n times side by side and waits for all.
func (b *bench) atOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// line is how a key is listed now.
func (b *bench) line(key string) driver.Line {
	if b.failed() {
		return driver.Line{}
	}
	begin := time.Now()
	p, err := b.first.d.Lines(b.ctx, driver.Query{Key: key})
	b.took(time.Since(begin))
	if err != nil {
		b.fail("Lines of one key: %w", err)
		return driver.Line{}
	}
	if len(p.Lines) != 1 || p.Lines[0].Key != key || p.Next != "" {
		b.fail("Lines of the one key %q answered %+v", key, p)
		return driver.Line{}
	}
	return p.Lines[0]
}

// free checks that nobody stands in the line of a key.
func (b *bench) free(keys ...string) {
	for _, k := range keys {
		l := b.line(k)
		b.check(len(l.Holders) == 0 && len(l.Waiters) == 0 && l.Waiting == 0, "%q should have an empty line, is listed as %+v", k, l)
	}
}

// heldBy checks that exactly these claims are listed as holders, in this order.
func (b *bench) heldBy(key string, xs ...*claim) {
	b.listed(b.line(key).Holders, "holders", key, xs)
}

// waitedBy checks that exactly these claims are listed as waiting, in this order.
func (b *bench) waitedBy(key string, xs ...*claim) {
	b.listed(b.line(key).Waiters, "waiters", key, xs)
}

func (b *bench) listed(es []driver.Entry, what, key string, xs []*claim) {
	want := make([]int64, len(xs))
	for i, x := range xs {
		want[i] = x.Number
	}
	got := make([]int64, len(es))
	for i, e := range es {
		got[i] = e.Number
	}
	b.check(slices.Equal(got, want), "%s listed of %q are %d, want %v = %d", what, key, got, xs, want)
}

func randomBytes(n int) []byte {
	p := make([]byte, n)
	_, _ = rand.Read(p) // never fails
	return p
}

func clientName(i int) string {
	if i < 26 {
		return string(rune('A' + i))
	}
	return fmt.Sprintf("%c%d", 'A'+i%26, i/26)
}
