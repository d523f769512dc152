package redislease

import (
	"context"
	"strconv"
	"sync"
	"time"
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
		select {
		case l.kick <- struct{}{}:
		default:
		}
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

// tend subscribes to what is watched and keeps the lines telling, until ctx ends.
func (l *listener) tend(ctx context.Context) {
	told := make(map[string]bool) // keys subscribed to and asked to tell
	tick := time.NewTicker(watchAgain)
	defer tick.Stop()
	l.arrange(ctx, told, false)
	for {
		select {
		case <-l.kick:
			l.arrange(ctx, told, false)
		case <-tick.C:
			l.arrange(ctx, told, true)
		case <-ctx.Done():
			return
		}
	}
}

func (l *listener) arrange(ctx context.Context, told map[string]bool, again bool) {
	l.mu.Lock()
	ps := l.ps
	l.mu.Unlock()
	wanted := make(map[string]bool)
	for _, key := range l.d.ear.keys() {
		wanted[key] = true
		if !told[key] && ps != nil {
			_ = ps.Subscribe(ctx, watchSpace+l.d.naming.line(key)) // a broken one is begun anew with all channels
		}
		if !told[key] || again {
			l.d.mark(ctx, key)
			told[key] = true
		}
	}
	for key := range told {
		if !wanted[key] {
			delete(told, key)
			if ps != nil {
				_ = ps.Unsubscribe(ctx, watchSpace+l.d.naming.line(key))
			}
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
