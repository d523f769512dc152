package hasp

import (
	"slices"
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
	waiting []chan struct{} // closed for whose turn has come
	unwatch func()          // ends the store's signals of the key; nil: they were not asked for
	holder  string          // that stood in the way when the store was last asked
	expires time.Time       // of that holder; zero: not known
}

// join puts a call behind the others. Its turn has come when the channel is closed.
func (t *turns) join(key string) chan struct{} {
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
	mine := make(chan struct{})
	if q.waiting = append(q.waiting, mine); len(q.waiting) == 1 {
		close(mine)
	}
	return mine
}

// leave takes a call out, wherever it stands, and gives its turn to the next.
func (t *turns) leave(key string, mine chan struct{}) {
	t.mu.Lock()
	q := t.byKey[key]
	first := q.waiting[0] == mine
	q.waiting = slices.DeleteFunc(q.waiting, func(c chan struct{}) bool { return c == mine })
	unwatch := func() {}
	switch {
	case len(q.waiting) == 0:
		delete(t.byKey, key)
		if q.unwatch != nil {
			unwatch = q.unwatch
		}
	case first:
		close(q.waiting[0])
	}
	t.mu.Unlock()
	unwatch()
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

// note keeps who stood in the way, for those whose turn does not come.
func (t *turns) note(key, holder string, expires time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.byKey[key]
	q.holder, q.expires = holder, expires
}

// known answers who stood in the way last.
func (t *turns) known(key string) (holder string, expires time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.byKey[key]
	return q.holder, q.expires
}
