package memlease

import (
	"context"
	"slices"
	"sync"

	"github.com/hasp-dev/hasp/driver"
)

// maxQueue is how many signals wait for one listener before they are dropped for Missed.
const maxQueue = 4096

// mailbox is the queue of one Listen; the store's lock guards it.
type mailbox struct {
	queue  []driver.Signal
	read   int  // of queue
	missed bool // to be delivered before the queue
	wake   chan struct{}
	done   chan struct{} // closed when Listen has ended
}

// watch is one client's interest in a key, as often as it asked.
type watch struct {
	client *Driver
	times  int
}

// Listen implements driver.Signaler. While the store or the client is stalled nothing is
// delivered.
func (d *Driver) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	box := d.listen(inbox)
	if box == nil {
		return errClosed()
	}
	defer d.unlisten(inbox, box)
	for {
		sig, wait := d.next(box)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case d.isClosed():
			return errClosed()
		case wait == nil:
			deliver(sig)
			continue
		}
		select {
		case <-wait:
		case <-ctx.Done():
		case <-d.closed:
		}
	}
}

// Watch implements driver.Signaler.
func (d *Driver) Watch(key string) (stop func()) {
	s := d.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.isClosed() {
		return func() {}
	}
	s.addWatch(key, d, 1)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.addWatch(key, d, -1)
	})
}

// addWatch adds n to how often a client watches a key. A stop after Close finds nothing.
func (s *Store) addWatch(key string, d *Driver, n int) {
	all := s.watches[key]
	i := slices.IndexFunc(all, func(w watch) bool { return w.client == d })
	switch {
	case i >= 0:
		all[i].times += n
	case n > 0:
		i = len(all)
		all = append(all, watch{client: d, times: n})
	default:
		return
	}
	if all[i].times == 0 {
		all = slices.Delete(all, i, i+1)
	}
	s.watches[key] = all
	if len(all) == 0 {
		delete(s.watches, key)
	}
}

// unwatch forgets everything a client watches.
func (s *Store) unwatch(d *Driver) {
	for key, all := range s.watches {
		all = slices.DeleteFunc(all, func(w watch) bool { return w.client == d })
		s.watches[key] = all
		if len(all) == 0 {
			delete(s.watches, key)
		}
	}
}

func (d *Driver) isClosed() bool {
	select {
	case <-d.closed:
		return true
	default:
		return false
	}
}

// listen opens a mailbox; nil: the driver is closed.
func (d *Driver) listen(inbox [6]byte) *mailbox {
	s := d.store
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.isClosed() {
		return nil
	}
	box := &mailbox{missed: true, wake: make(chan struct{}, 1), done: make(chan struct{})}
	d.boxes = append(d.boxes, box)
	s.inboxes[inbox] = append(s.inboxes[inbox], box)
	return box
}

func (d *Driver) unlisten(inbox [6]byte, box *mailbox) {
	s := d.store
	s.mu.Lock()
	defer s.mu.Unlock()
	same := func(b *mailbox) bool { return b == box }
	d.boxes = slices.DeleteFunc(d.boxes, same)
	s.inboxes[inbox] = slices.DeleteFunc(s.inboxes[inbox], same)
	if len(s.inboxes[inbox]) == 0 {
		delete(s.inboxes, inbox)
	}
	close(box.done)
}

// next takes the next signal, or answers what to wait for before there can be one.
func (d *Driver) next(box *mailbox) (driver.Signal, <-chan struct{}) {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	switch lifted := d.stalled(); {
	case lifted != nil:
		return driver.Signal{}, lifted
	case box.missed:
		box.missed = false
		return driver.Signal{Kind: driver.Missed}, nil
	case box.read == len(box.queue):
		return driver.Signal{}, box.wake
	}
	sig := box.queue[box.read]
	box.queue[box.read] = driver.Signal{}
	if box.read++; box.read == len(box.queue) {
		box.queue, box.read = shrunk(box.queue[:0]), 0
	}
	return sig, nil
}

// post puts a signal into a queue; the caller has the store's lock.
func (b *mailbox) post(sig driver.Signal) {
	if len(b.queue)-b.read >= maxQueue {
		b.queue, b.read, b.missed = nil, 0, true
	} else {
		if b.read > len(b.queue)/2 {
			b.queue, b.read = slices.Delete(b.queue, 0, b.read), 0
		}
		b.queue = append(b.queue, sig)
	}
	select {
	case b.wake <- struct{}{}:
	default: // it is awake already
	}
}

// signal tells a claim's client.
func (s *Store) signal(kind driver.SignalKind, c *claim, key string) {
	for _, box := range s.inboxes[c.id.Inbox()] {
		box.post(driver.Signal{Kind: kind, Key: key, ID: c.id, Number: c.number, Revoked: kind == driver.Ended && c.revoked})
	}
}

// announce tells the watchers of a line what the step has done to it.
func (s *Store) announce(l *line) {
	for _, w := range s.watches[l.key] {
		for _, box := range w.client.boxes {
			if l.wanted {
				box.post(driver.Signal{Kind: driver.Wanted, Key: l.key})
			}
			if l.changed {
				box.post(driver.Signal{Kind: driver.Changed, Key: l.key})
			}
		}
	}
}
