package redislease

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	watchFor   = 60 * time.Second // a line tells its changes for so long
	watchAgain = 20 * time.Second // and is asked again
)

// Watch implements driver.Signaler. A line whose record says that it is watched tells
// what changes; watching is written there, and again every 20 s.
func (d *Driver) Watch(key string) (stop func()) {
	if d.err != nil || key == "" || d.life.Err() != nil {
		return func() {}
	}
	d.ear.watch(key, 1)
	return sync.OnceFunc(func() { d.ear.watch(key, -1) })
}

func (e *ear) add(l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.listening == nil {
		e.listening = make(map[*listener]struct{})
	}
	e.listening[l] = struct{}{}
}

func (e *ear) remove(l *listener) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.listening, l)
}

// watch adds n to how often a key is watched and tells the listeners.
func (e *ear) watch(key string, n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.watches == nil {
		e.watches = make(map[string]int)
	}
	e.watches[key] += n
	if e.watches[key] == 0 {
		delete(e.watches, key)
	}
	for l := range e.listening {
		l.rouse()
	}
}

// rouse has tend look at what is watched.
func (l *listener) rouse() {
	select {
	case l.kick <- struct{}{}:
	default:
	}
}

func (e *ear) watching(key string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.watches[key] > 0
}

func (e *ear) keys() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	keys := make([]string, 0, len(e.watches))
	for key := range e.watches {
		keys = append(keys, key)
	}
	return keys
}

// tended is what tend has done.
type tended struct {
	ps   *redis.PubSub
	keys map[string]bool // subscribed to by ps, and asked to tell
}

// tend subscribes to what is watched and keeps the lines telling, until ctx ends.
func (l *listener) tend(ctx context.Context) {
	var done tended
	tick := time.NewTicker(watchAgain)
	defer tick.Stop()
	for {
		select {
		case <-l.kick:
			l.arrange(ctx, &done, false)
		case <-tick.C:
			l.arrange(ctx, &done, true)
		case <-ctx.Done():
			return
		}
	}
}

// arrange brings the subscription up to what is watched. A new subscription, which
// kicks too, may have begun before or after a key came to be watched, so it is asked for
// all of them.
func (l *listener) arrange(ctx context.Context, done *tended, again bool) {
	l.mu.Lock()
	ps := l.ps
	l.mu.Unlock()
	if ps == nil {
		return
	}
	if ps != done.ps {
		done.ps, done.keys = ps, make(map[string]bool)
	}
	wanted := make(map[string]bool)
	for _, key := range l.d.ear.keys() {
		wanted[key] = true
		if !done.keys[key] {
			_ = ps.Subscribe(ctx, watchSpace+l.d.naming.line(key)) // what breaks is begun anew
		}
		if !done.keys[key] || again {
			l.d.mark(ctx, key)
			done.keys[key] = true
		}
	}
	for key := range done.keys {
		if !wanted[key] {
			delete(done.keys, key)
			_ = ps.Unsubscribe(ctx, watchSpace+l.d.naming.line(key))
		}
	}
}

// mark asks a line to tell its changes.
func (d *Driver) mark(ctx context.Context, key string) {
	ctx, cancel := context.WithTimeout(ctx, quiet)
	defer cancel()
	c := &call{script: &d.scripts.watch, keys: 4}
	c.args = append(d.naming.appendKeys(make([]any, 0, 5), key), watchFor.Milliseconds())
	_ = d.call(ctx, c) // signals are hints
}

func hexNumber(s string) int64 {
	n, _ := strconv.ParseInt(s, 16, 64)
	return n
}
