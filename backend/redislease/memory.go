package redislease

import (
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// suspects are claims of which a late copy of the Join may still arrive, since the
// client library sends by itself again what was not answered.
type suspects struct {
	mu sync.Mutex
	of map[driver.ID]suspect
}

type suspect struct {
	since    time.Time
	remember time.Duration
}

const manySuspects = 1024

func (s *suspects) add(id driver.ID, remember time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.of == nil {
		s.of = make(map[driver.ID]suspect)
	}
	if len(s.of) >= manySuspects {
		for id, x := range s.of {
			if time.Since(x.since) > x.remember {
				delete(s.of, id)
			}
		}
	}
	if _, known := s.of[id]; !known {
		s.of[id] = suspect{since: time.Now(), remember: remember}
	}
}

// find answers for how long a suspect must be remembered; 0: it is none.
func (s *suspects) find(id driver.ID) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, ok := s.of[id]
	if !ok || time.Since(x.since) > x.remember {
		return 0
	}
	return x.remember
}

func (s *suspects) drop(id driver.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, id)
}

// keyCache remembers keys in whose line more than one stood lately: their claims are
// renewed by the script for crowds at once. It is a hint only.
type keyCache struct {
	mu   sync.Mutex
	keys map[string]struct{}
}

const manyKeys = 8192

func (k *keyCache) has(key string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	_, ok := k.keys[key]
	return ok
}

func (k *keyCache) set(key string, crowded bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !crowded {
		delete(k.keys, key)
		return
	}
	if k.keys == nil || len(k.keys) >= manyKeys {
		k.keys = make(map[string]struct{})
	}
	k.keys[key] = struct{}{}
}

// note takes in what an answer says about a line.
func (d *Driver) note(keys []string, s *driver.Standing) {
	if len(keys) == 1 {
		d.crowds.set(keys[0], s.State == driver.Waiting || s.Behind || s.Ahead > 0)
	}
}

// warnings are told once each.
type warnings struct {
	mu   sync.Mutex
	told map[string]bool
}

func (d *Driver) warn(topic string, err error) {
	if d.opts.Warn == nil || err == nil {
		return
	}
	w := &d.warned
	w.mu.Lock()
	if w.told == nil {
		w.told = make(map[string]bool)
	}
	known := w.told[topic]
	w.told[topic] = true
	w.mu.Unlock()
	if !known {
		d.opts.Warn(err)
	}
}
