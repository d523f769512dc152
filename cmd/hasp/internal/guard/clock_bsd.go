//go:build darwin || dragonfly || freebsd

package guard

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const sharedClock = unix.CLOCK_MONOTONIC

// alarm rings at instants of the shared clock.
type alarm struct {
	rang chan struct{}

	mu    sync.Mutex
	timer *time.Timer
}

func newAlarm() (*alarm, error) { return &alarm{rang: make(chan struct{}, 1)}, nil }

// set makes the alarm ring at that instant. An earlier one may ring once more.
func (a *alarm) set(at Instant) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.timer != nil {
		a.timer.Stop()
	}
	a.timer = nil
	if at == never {
		return nil
	}
	now, err := Now()
	if err != nil {
		return err
	}
	a.timer = time.AfterFunc(time.Duration(at-now), func() { ring(a.rang) })
	return nil
}
