package memlease

import (
	"math"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Store is the memory that clients share. It is safe for concurrent use.
type Store struct {
	start time.Time // of the store's clock; carries the monotonic reading
	wall  int64     // start in ns since 1970

	mu         sync.Mutex // guards everything below and every fault and mailbox
	faults     faults
	lines      map[string]*line
	claims     map[driver.ID]*claim
	remembered map[driver.ID]int64 // IDs whose late Join is Gone, and until when
	memos      memos
	inboxes    map[[6]byte][]*mailbox
	watches    map[string][]watch
	step       step // of the call that has mu; kept for its buffers
	peak       peak
}

// NewStore makes an empty store.
func NewStore() *Store {
	start := time.Now()
	s := &Store{
		start:   start,
		wall:    start.UnixNano(), //nolint:forbidigo // numbers start at the wall clock, read this once
		inboxes: make(map[[6]byte][]*mailbox),
		watches: make(map[string][]watch),
	}
	s.step.store = s
	s.empty()
	return s
}

// Driver answers a new client of the store. Give each hasp client its own.
func (s *Store) Driver() *Driver {
	return &Driver{store: s, closed: make(chan struct{})}
}

// Drop makes every claim in the line of key vanish, from its other lines too, as if
// the store had lost them: nobody is signalled, and their owners learn of it by their
// next call. The numbers of the key go on from where they were.
func (s *Store) Drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.lines[key]
	if l == nil {
		return
	}
	now := s.now()
	for l.head != nil {
		s.unlink(l.head.claim, now)
	}
}

// Wipe makes everything vanish, the last numbers and remembered IDs too, as FLUSHALL or
// an empty restart would. Nobody is signalled. Numbers still rise, by the clock.
func (s *Store) Wipe() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.empty()
}

func (s *Store) empty() {
	s.lines = make(map[string]*line)
	s.claims = make(map[driver.ID]*claim)
	s.remembered = make(map[driver.ID]int64)
	s.memos = nil
	s.peak = peak{}
}

// now reads the store's clock: ns since start.
func (s *Store) now() int64 { return int64(time.Since(s.start)) }

// line answers the line of key and makes it where there is none.
func (s *Store) line(key string, now int64) *line {
	l := s.lines[key]
	if l == nil {
		l = &line{key: key, smallest: math.MaxInt64}
		s.lines[key] = l
		s.peak.lines = max(s.peak.lines, len(s.lines))
		s.memos.push(memo{at: later(now, keepNumbers), line: l})
	}
	return l
}

// unlink takes a claim out of the store and all its lines, without a word to anybody.
func (s *Store) unlink(c *claim, now int64) {
	delete(s.claims, c.id)
	s.peak.shrink(s)
	for i := range c.stands {
		l := c.stands[i].line
		l.remove(&c.stands[i])
		if l.head == nil {
			l.forgetAt = max(l.forgetAt, later(now, max(l.keep, keepNumbers)))
			l.keep = 0
		}
	}
}

// later is now + d, at the end of time rather than beyond it.
func later(now int64, d time.Duration) int64 {
	if int64(d) > math.MaxInt64-now {
		return math.MaxInt64
	}
	return now + int64(d)
}
