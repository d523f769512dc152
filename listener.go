package hasp

import (
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// listen keeps the driver listening until the client has closed.
func (e *engine) listen(sig driver.Signaler) {
	var once sync.Once
	deliver := func(s driver.Signal) {
		if s.Kind == driver.Missed {
			e.heard.Store(true)
			once.Do(func() { close(e.listened) })
		}
		e.deliver(s)
	}
	for pause := firstPause; e.life.Err() == nil; pause = nextPause(pause) {
		began := time.Now()
		_ = sig.Listen(e.life, e.ids.inbox, deliver) // whatever ended it, it is begun again
		e.heard.Store(false)
		if time.Since(began) > time.Minute {
			pause = firstPause
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-e.life.Done():
		}
		t.Stop()
	}
}

// deliver routes one signal. It never blocks.
func (e *engine) deliver(s driver.Signal) {
	switch s.Kind {
	case driver.Granted, driver.Turn, driver.Ended:
		e.mu.Lock()
		c := e.claims[s.ID]
		e.mu.Unlock()
		if c != nil {
			c.signal(s)
		} else if s.Kind == driver.Granted && s.ID.Inbox() == e.ids.inbox {
			e.dropUnknown(s)
		}
	case driver.Missed:
		now := e.clk.now()
		for _, c := range e.all() {
			c.hurry(now)
		}
		e.watches.rouseAll()
	case driver.Freed, driver.Wanted, driver.Changed:
		if s.Kind == driver.Wanted {
			e.wanted(s.Key)
		}
		e.watches.rouse(s.Key)
	}
}

// dropUnknown leaves with a claim nobody here waits for: a Join that arrived after it
// was given up and forgotten (P10).
func (e *engine) dropUnknown(s driver.Signal) {
	w := &want{keys: keySet{given: []string{s.Key}, full: []string{s.Key}}, opts: LockOptions{TTL: defaultTTL}}
	c := &claim{e: e, want: w, id: s.ID, ttl: defaultTTL, joins: 1}
	c.lease.claim = c
	if e.register(c) != nil {
		return // closing: it expires
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.giveUp(e.clk.now())
}
