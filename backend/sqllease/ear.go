package sqllease

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hasp-dev/hasp/driver"
)

// ear is the one who listens, and what for.
type ear struct {
	wake chan struct{} // something to wait for has begun
	idle atomic.Bool   // the poller rests until it is woken

	pushed atomic.Bool // the store brings news by itself
	gap    atomic.Bool // it has begun to, and what came before is to be looked for

	mu      sync.Mutex
	inbox   [6]byte             // guarded by mu
	deliver func(driver.Signal) // guarded by mu; nil: nobody listens
	watched map[string]*watch   // guarded by mu
}

// watch is a key whose line is looked at for its own sake.
type watch struct {
	users int
	seen  Mark
	known bool // seen holds what was seen
}

// Listen calls deliver until ctx ends. A database that is polled is always heard, so
// Missed is delivered at once, and again after the database could not be read.
func (c *Client) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	if c.setup.Err != nil {
		return c.setup.Err
	}
	if err := c.enter(); err != nil {
		return err
	}
	defer c.calls.Done()
	heard, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.base, cancel)() //nolint:contextcheck // Close ends it, too
	if !c.ear.begin(inbox, deliver) {
		return c.explain(fmt.Errorf("%w: the driver has a listener already", driver.ErrInvalid), Fault{})
	}
	defer c.ear.end()
	deliver(driver.Signal{Kind: driver.Missed})
	c.push(heard, inbox)
	p := poller{Client: c, inbox: inbox, deliver: deliver}
	for p.rest(heard) {
		p.poll(heard)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return c.cut(heard, nil)
}

// Watch asks for Wanted and Changed of one key. Only looking brings them: what changes
// and changes back between two looks is not seen. Wanted comes as well where somebody seems
// to wait already at the first look.
func (c *Client) Watch(key string) (stop func()) {
	e := &c.ear
	e.mu.Lock()
	w, ok := e.watched[key]
	if !ok {
		w = new(watch)
		e.watched[key] = w
	}
	w.users++
	e.mu.Unlock()
	e.rouse()
	return sync.OnceFunc(func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if w.users--; w.users == 0 {
			delete(e.watched, key)
		}
	})
}

func (e *ear) begin(inbox [6]byte, deliver func(driver.Signal)) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.deliver != nil {
		return false
	}
	e.inbox, e.deliver = inbox, deliver
	return true
}

func (e *ear) end() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.deliver = nil
}

// hears says whether this client listens for the claims of an inbox.
func (e *ear) hears(inbox [6]byte) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.deliver != nil && e.inbox == inbox
}

func (e *ear) rouse() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

func (e *ear) send(s driver.Signal) {
	e.mu.Lock()
	deliver := e.deliver
	e.mu.Unlock()
	if deliver != nil {
		deliver(s)
	}
}

// watches says whether a key is watched.
func (e *ear) watches() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.watched) > 0
}

// keys names some of the watched keys, others each time where there are more.
func (e *ear) keys(limit int) []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	keys := make([]string, 0, min(limit, len(e.watched)))
	for key := range e.watched {
		if len(keys) == limit {
			break
		}
		keys = append(keys, key)
	}
	return keys
}

// compare notes what was seen of a watched line and answers what to tell.
func (e *ear) compare(key string, m Mark) []driver.Signal {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.watched[key]
	if !ok {
		return nil
	}
	old, known := w.seen, w.known
	w.seen, w.known = m, true
	if !known {
		if m.Holders > 0 && m.Waited > m.Newest { // it may have begun since Watch was called
			return []driver.Signal{{Kind: driver.Wanted, Key: key}}
		}
		return nil
	}
	var news []driver.Signal
	if old.changed(m) {
		news = append(news, driver.Signal{Kind: driver.Changed, Key: key})
	}
	if m.Waited > old.Waited {
		news = append(news, driver.Signal{Kind: driver.Wanted, Key: key})
	}
	return news
}

// push lets the store bring news beside the poller, until ctx ends.
func (c *Client) push(ctx context.Context, inbox [6]byte) {
	if c.setup.Push == nil || c.enter() != nil {
		return
	}
	go func() {
		defer c.calls.Done()
		c.setup.Push(ctx, inbox)
		c.ear.pushed.Store(false)
	}()
}

// Hear notes whether the store brings news by itself. What happened while it did not is
// looked for, and the listener is told.
func (c *Client) Hear(brought bool) {
	if c.ear.pushed.Swap(brought) == brought {
		return
	}
	if brought {
		c.ear.gap.Store(true)
		c.ear.send(driver.Signal{Kind: driver.Missed})
	}
	c.ear.rouse()
}

// Hears says whether this client listens for the claims of an inbox.
func (c *Client) Hears(inbox [6]byte) bool { return c.ear.hears(inbox) }

// News is what happened to one of this client's claims.
type News struct {
	Kind    driver.SignalKind // an addressed one
	Key     string
	ID      driver.ID
	Number  int64
	Revoked bool // with Ended
}

// Tell passes news on to the listener, unless this client knows it, or better.
func (c *Client) Tell(n News) {
	if c.known.news(stay{id: n.ID, number: n.Number}, n.Kind, n.Revoked) {
		c.ear.send(driver.Signal{Kind: n.Kind, Key: n.Key, ID: n.ID, Number: n.Number, Revoked: n.Revoked})
	}
}

// Knows says whether a claim has joined, or tries to, and was not given up.
func (c *Client) Knows(id driver.ID) bool { return c.known.knows(id) }

// Waits says whether a claim is known to wait.
func (c *Client) Waits(id driver.ID) bool { return c.known.waits(id) }

// Settle notes what a step has answered.
func (c *Client) Settle(ref driver.Ref, st driver.Standing) { c.known.settle(c, ref, st) }

// Drop forgets a claim that is not to be looked for any more.
func (c *Client) Drop(id driver.ID) { c.known.drop(id) }
