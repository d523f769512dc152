package hasp

import (
	"context"
	"slices"
)

// rwCapacity is the capacity of a read/write lock: a reader weighs 1, a writer all.
const rwCapacity = 1 << 30

// Mutex is a lock that one at a time holds. It is a handle without state: cheap,
// shared freely, and locked by many goroutines, each for itself.
type Mutex struct{ handle }

// Mutex answers the lock on key, or on several keys, all or nothing, up to 64. A key
// is valid UTF-8 without NUL, 1 to 512 bytes with its prefix; keys are told apart byte
// by byte.
func (c *Client) Mutex(key string, more ...string) *Mutex {
	keys := newKeySet(c.prefix, slices.Concat([]string{key}, more)...)
	return &Mutex{newHandle(c, want{keys: keys, kind: mutexKind, weight: 1, capacity: 1})}
}

// Err says what is wrong with the keys or the options, as the first call would: for
// programs that want to know when they start. It does no I/O.
func (m *Mutex) Err() error {
	if err := m.client.check(&m.patient); err != nil {
		return &Error{Op: "acquire", Key: m.patient.keys.first(), Err: err}
	}
	return nil
}

// Lock waits in line for the lock. See LockOptions.Wait for how long.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) { return m.client.acquire(ctx, &m.patient) }

// TryLock takes the lock if it is free and nobody waits, else it is ErrHeld.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) { return m.client.acquire(ctx, &m.hasty) }

// Do waits for the lock and runs fn, at most once, with a context that carries the
// lease and ends with cause ErrLost if that is lost. It returns when fn has returned
// and the lock is given back.
//
// An *Error with Op "acquire" says that fn did not run; one with Op "hold" that the
// lease was lost while fn ran, whatever fn returned. fn's own error comes back as it
// is, joined with such an error if there is one. A panic or Goexit of fn releases and
// goes on.
func (m *Mutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return m.client.do(ctx, &m.patient, fn)
}

// TryDo is Do without waiting: ErrHeld if somebody else has the lock.
func (m *Mutex) TryDo(ctx context.Context, fn func(context.Context) error) error {
	return m.client.do(ctx, &m.hasty, fn)
}

// handle is what all locks have in common: what to ask for, waiting and not.
type handle struct {
	client         *Client
	patient, hasty want
}

func newHandle(c *Client, w want) handle {
	w.opts, w.err = c.lock, c.err
	h := handle{client: c, patient: w, hasty: w}
	h.hasty.opts.Wait = NoWait
	return h
}

// RWMutex is a lock that many readers or one writer hold, in the order in which they
// came: a reader does not overtake a writer that waits.
type RWMutex struct{ read, write handle }

// RWMutex answers the read/write lock on key. A Mutex on the same key is a writer.
func (c *Client) RWMutex(key string) *RWMutex {
	keys := newKeySet(c.prefix, key)
	return &RWMutex{
		read:  newHandle(c, want{keys: keys, kind: readKind, weight: 1, capacity: rwCapacity}),
		write: newHandle(c, want{keys: keys, kind: writeKind, weight: rwCapacity, capacity: rwCapacity}),
	}
}

// Lock waits in line to write.
func (m *RWMutex) Lock(ctx context.Context) (*Lease, error) {
	return m.write.client.acquire(ctx, &m.write.patient)
}

// TryLock takes the lock to write if nobody holds it, else it is ErrHeld.
func (m *RWMutex) TryLock(ctx context.Context) (*Lease, error) {
	return m.write.client.acquire(ctx, &m.write.hasty)
}

// Do runs fn as the writer; see Mutex.Do.
func (m *RWMutex) Do(ctx context.Context, fn func(context.Context) error) error {
	return m.write.client.do(ctx, &m.write.patient, fn)
}

// TryDo is Do without waiting.
func (m *RWMutex) TryDo(ctx context.Context, fn func(context.Context) error) error {
	return m.write.client.do(ctx, &m.write.hasty, fn)
}

// RLock waits in line to read.
func (m *RWMutex) RLock(ctx context.Context) (*Lease, error) {
	return m.read.client.acquire(ctx, &m.read.patient)
}

// TryRLock takes the lock to read if no writer holds it or waits, else it is ErrHeld.
func (m *RWMutex) TryRLock(ctx context.Context) (*Lease, error) {
	return m.read.client.acquire(ctx, &m.read.hasty)
}

// RDo runs fn as a reader; see Mutex.Do.
func (m *RWMutex) RDo(ctx context.Context, fn func(context.Context) error) error {
	return m.read.client.do(ctx, &m.read.patient, fn)
}

// TryRDo is RDo without waiting.
func (m *RWMutex) TryRDo(ctx context.Context, fn func(context.Context) error) error {
	return m.read.client.do(ctx, &m.read.hasty, fn)
}

// Semaphore is a number of permits. Clients that disagree about the number keep to the
// smallest among those in line.
type Semaphore struct {
	client *Client
	keys   keySet
	limit  int
}

// maxPermits bounds a semaphore.
const maxPermits = rwCapacity

// Semaphore answers the semaphore of that many permits, 1 to 2^30, on key.
func (c *Client) Semaphore(key string, permits int) *Semaphore {
	return &Semaphore{client: c, keys: newKeySet(c.prefix, key), limit: permits}
}

// Acquire waits in line for n permits, which come in one lease.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return s.client.acquire(ctx, s.want(n, s.client.lock))
}

// TryAcquire takes n permits if they are free and nobody waits, else it is ErrHeld.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return s.client.acquire(ctx, s.want(n, s.hasty()))
}

// Do runs fn with n permits; see Mutex.Do.
func (s *Semaphore) Do(ctx context.Context, n int, fn func(context.Context) error) error {
	return s.client.do(ctx, s.want(n, s.client.lock), fn)
}

// TryDo is Do without waiting.
func (s *Semaphore) TryDo(ctx context.Context, n int, fn func(context.Context) error) error {
	return s.client.do(ctx, s.want(n, s.hasty()), fn)
}

func (s *Semaphore) hasty() LockOptions {
	o := s.client.lock
	o.Wait = NoWait
	return o
}

func (s *Semaphore) want(n int, o LockOptions) *want {
	w := &want{keys: s.keys, kind: permitKind, weight: int64(n), capacity: int64(s.limit), opts: o, err: s.client.err}
	switch {
	case s.limit < 1 || s.limit > maxPermits:
		w.err = invalidf("a semaphore of %d permits; it can have 1 to %d", s.limit, maxPermits)
	case n < 1 || n > s.limit:
		w.err = invalidf("%d permits of a semaphore that has %d", n, s.limit)
	}
	return w
}
