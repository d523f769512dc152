package hasp

import (
	"sync"
	"time"
)

// turns order the calls of this process that wait for a key of a store without a line:
// one at a time asks for it. A key is in here only while somebody waits for it.
type turns struct {
	mu    sync.Mutex
	byKey map[string]*queue
}

// queue is who waits for one key; the first one asks. The lock of turns guards it.
type queue struct {
	waiting line
	unwatch func()    // ends the store's signals of the key; nil: they were not asked for
	heard   bool      // the store has answered one of them
	holder  string    // that stood in the way when the store was last asked
	expires time.Time // of that holder; zero: not known
}

// join puts a call behind the others.
func (t *turns) join(key string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey = make(map[string]*queue)
	}
	q := t.byKey[key]
	if q == nil {
		q = &queue{}
		t.byKey[key] = q
	}
	mine := &turn{come: make(chan struct{})}
	if q.waiting.add(mine); q.waiting.size == 1 {
		close(mine.come)
	}
	return mine
}

// leave takes a call out, wherever it stands, and gives its turn to the next.
func (t *turns) leave(key string, mine *turn) {
	t.mu.Lock()
	unwatch := func() {}
	if q := t.byKey[key]; mine.queued {
		first := q.waiting.first == mine
		q.waiting.leave(mine)
		switch {
		case q.waiting.size == 0:
			delete(t.byKey, key)
			if q.unwatch != nil {
				unwatch = q.unwatch
			}
		case first:
			close(q.waiting.first.come)
		}
	}
	t.mu.Unlock()
	unwatch()
}

// disperse has all who wait behind the call whose turn it is end with err: what is wrong
// with the store is wrong for them, too.
func (t *turns) disperse(key string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for q := t.byKey[key]; q.waiting.size > 1; {
		next := q.waiting.first.behind
		q.waiting.leave(next)
		next.err = err
		close(next.come)
	}
}

// watched says whether the key's signals were asked for, and has the caller do it if
// not. Only whose turn it is calls it, and so keeps the queue alive.
func (t *turns) watched(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byKey[key].unwatch != nil
}

// watch keeps the key's signals for all who wait, until nobody does.
func (t *turns) watch(key string, unwatch func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[key].unwatch = unwatch
}

// hear notes that the store has answered whose turn it is.
func (t *turns) hear(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.byKey[key].heard = true
}

// note keeps who stood in the way, for those whose turn does not come.
func (t *turns) note(key, holder string, expires time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.byKey[key]
	q.holder, q.expires = holder, expires
}

// known answers who stood in the way last, and whether the store has answered at all.
func (t *turns) known(key string) (holder string, expires time.Time, heard bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.byKey[key]
	if q == nil { // all who waited were sent away a moment ago
		return "", time.Time{}, false
	}
	return q.holder, q.expires, q.heard
}
