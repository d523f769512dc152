package sqllease

import (
	"bytes"
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

	mu      sync.Mutex
	inbox   [6]byte             // guarded by mu
	deliver func(driver.Signal) // guarded by mu; nil: nobody listens
	watched map[string]*watch   // guarded by mu
}

// watch is a key whose line is looked at for its own sake.
type watch struct {
	users int
	seen  mark
	known bool // seen holds what was seen
}

// mark is enough of a line to see that it has changed.
type mark struct {
	front   []byte // ID of the first holder
	newest  int64  // the greatest number that holds
	holders int64  // counted to a hundred
	last    int64  // the greatest number there was
	waited  int64  // the greatest number that began to wait
}

// Listen calls deliver until ctx ends. A database that is polled is always heard, so
// Missed is delivered at once, and again after the database could not be read.
func (d *Driver) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	if d.err != nil {
		return d.err
	}
	if err := d.enter(); err != nil {
		return err
	}
	defer d.calls.Done()
	heard, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(d.base, cancel)() //nolint:contextcheck // Close ends it, too
	if !d.ear.begin(inbox, deliver) {
		return d.explain(fmt.Errorf("%w: the driver has a listener already", driver.ErrInvalid), Fault{})
	}
	defer d.ear.end()
	deliver(driver.Signal{Kind: driver.Missed})
	p := poller{Driver: d, inbox: inbox, deliver: deliver}
	for p.rest(heard) {
		p.poll(heard)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.cut(heard, nil)
}

// Watch asks for Wanted and Changed of one key. Only looking brings them: what changes
// and changes back between two looks is not seen.
func (d *Driver) Watch(key string) (stop func()) {
	e := &d.ear
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

// keys names the watched keys.
func (e *ear) keys() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	keys := make([]string, 0, len(e.watched))
	for key := range e.watched {
		keys = append(keys, key)
	}
	return keys
}

// compare notes what was seen of a watched line and answers what to tell.
func (e *ear) compare(key string, m mark) []driver.Signal {
	e.mu.Lock()
	defer e.mu.Unlock()
	w, ok := e.watched[key]
	if !ok {
		return nil
	}
	old, known := w.seen, w.known
	w.seen, w.known = m, true
	if !known {
		return nil
	}
	var news []driver.Signal
	if old.changed(m) {
		news = append(news, driver.Signal{Kind: driver.Changed, Key: key})
	}
	if m.waited > old.waited {
		news = append(news, driver.Signal{Kind: driver.Wanted, Key: key})
	}
	return news
}

// changed says whether the holders were others in between, even where they are the same
// again: whoever joined last without waiting has held.
func (m mark) changed(now mark) bool {
	return !bytes.Equal(m.front, now.front) || m.newest != now.newest || m.holders != now.holders ||
		(now.last > m.last && now.last > now.waited) || (now.last > m.last && m.holders == 0)
}

// tell sends this client the news a step of its own has brought one of its claims.
func (d *Driver) tell(t told) {
	c := t.claim
	if d.known.news(stay{id: c.id, number: c.number}, t.kind, t.revoked) {
		d.ear.send(driver.Signal{Kind: t.kind, Key: c.key, ID: c.id, Number: c.number, Revoked: t.revoked})
	}
}
