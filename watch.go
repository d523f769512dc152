package hasp

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Watch answers the line of a key as it is, and again each time holders or waiters are
// others than before, until ctx ends. Every answer is newer than the one before it. The
// store's signals make a change seen at once where it has such; if they are lost it is
// seen within two seconds, and what came and went in between is not seen at all. The
// line is read when the loop asks for more, so a slow one misses changes and holds
// nothing up.
//
// A store that does not answer, or refuses, is told once, as an error; the watch goes on,
// and the next line is told whether or not it is another one. Any other error ends it.
func (c *Client) Watch(ctx context.Context, key string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		w := lineWatch{client: c, keys: newKeySet(c.prefix, key), news: make(chan struct{}, 1)}
		if w.keys.err == nil {
			defer c.e.watch(w.keys.full[0], w.news)()
		}
		w.run(ctx, yield)
	}
}

const (
	// watchLimit is how long a change stays unseen at most if no signal tells of it.
	watchLimit = 2 * time.Second
	// deafLimit is that of a client that hears no signals.
	deafLimit = watchLimit / 4
	// watchGap is the least time between two looks: a key that changes hands all the time
	// is looked at a hundred times a second.
	watchGap = 10 * time.Millisecond
)

// lineWatch is one loop over the changes of a line.
type lineWatch struct {
	client *Client
	keys   keySet
	news   chan struct{}

	last   Line
	seen   bool // last is what the loop was told last
	failed bool // or an error
}

func (w *lineWatch) run(ctx context.Context, yield func(Line, error) bool) {
	for ctx.Err() == nil {
		began := time.Now()
		line, err := w.client.lineOf(ctx, w.keys)
		if ctx.Err() != nil || !w.tell(line, err, yield) || !w.rest(ctx, began, line) {
			return
		}
	}
}

// tell hands on what is new, and says whether the watch goes on.
func (w *lineWatch) tell(line Line, err error, yield func(Line, error) bool) bool {
	if err != nil {
		passing := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrRefused)
		if passing && w.failed {
			return true
		}
		w.failed = true
		return yield(Line{}, &Error{Op: "watch", Key: w.keys.first(), Err: err}) && passing
	}
	if w.seen && !w.failed && w.last.same(line) {
		return true
	}
	w.last, w.seen, w.failed = line, true, false
	return yield(line, nil)
}

// rest waits for a reason to look again; false: there is none any more.
func (w *lineWatch) rest(ctx context.Context, looked time.Time, line Line) bool {
	e := w.client.e
	limit := watchLimit
	if !e.heard.Load() {
		limit = deafLimit
	}
	for _, h := range line.Holders { // nobody signals that the last one has expired
		limit = min(limit, h.ExpiresIn)
	}
	timer := time.NewTimer(watchGap - time.Since(looked))
	defer timer.Stop()
	news := (<-chan struct{})(nil)
	for {
		select {
		case <-timer.C:
			if news != nil {
				return true
			}
			news = w.news
			timer.Reset(max(0, limit-watchGap))
		case <-news:
			return true
		case <-e.closing:
			return true // the next look says so
		case <-ctx.Done():
			return false
		}
	}
}

// same says whether the same claims stand in both lines, as far as they are listed.
func (l Line) same(m Line) bool {
	alike := func(a, b Standing) bool {
		a.InLine, a.ExpiresIn, b.InLine, b.ExpiresIn = 0, 0, 0, 0
		return a == b
	}
	return l.Waiting == m.Waiting && slices.EqualFunc(l.Holders, m.Holders, alike) && slices.EqualFunc(l.Waiters, m.Waiters, alike)
}

// watchers are the loops that wait for news of keys.
type watchers struct {
	mu    sync.Mutex
	byKey map[string][]chan struct{}
}

// watch has news rouse a loop until stop is called.
func (e *engine) watch(key string, news chan struct{}) (stop func()) {
	e.launch()
	e.watches.add(key, news)
	silence := func() {}
	if sig, ok := e.drv.(driver.Signaler); ok {
		silence = sig.Watch(key)
	}
	return func() {
		silence()
		e.watches.remove(key, news)
	}
}

func (w *watchers) add(key string, news chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.byKey == nil {
		w.byKey = make(map[string][]chan struct{})
	}
	w.byKey[key] = append(w.byKey[key], news)
}

func (w *watchers) remove(key string, news chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	rest := slices.DeleteFunc(w.byKey[key], func(c chan struct{}) bool { return c == news })
	if w.byKey[key] = rest; len(rest) == 0 {
		delete(w.byKey, key)
	}
}

// rouse tells the loops on one key. It never blocks: who is told already will look.
func (w *watchers) rouse(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, news := range w.byKey[key] {
		poke(news)
	}
}

// rouseAll tells all loops: signals may have been missed.
func (w *watchers) rouseAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, all := range w.byKey {
		for _, news := range all {
			poke(news)
		}
	}
}

func poke(news chan struct{}) {
	select {
	case news <- struct{}{}:
	default:
	}
}
