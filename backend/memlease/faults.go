package memlease

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hasp-dev/hasp/driver"
)

// faults is what a user's test has done to a store or to one client's way to it. The
// store's lock guards it.
type faults struct {
	err    error
	stalls int           // Stall calls that are not lifted
	lifted chan struct{} // closed when the last of them is; nil without any
}

// Fail makes every call of every client answer err until Fail(nil), as a store that is
// down or refuses would. An err that wraps none of the classes of package driver is
// taken for driver.ErrUnavailable. Signals are not affected.
func (s *Store) Fail(err error) { s.fail(&s.faults, err) }

// Stall makes every call of every client hang, and holds back all signals, until resume
// is called: a server that is silent. A call whose context ends, or whose client is
// closed, ends with driver.ErrUnavailable and has done nothing; the others then go on.
// Calling resume more than once is allowed.
func (s *Store) Stall() (resume func()) { return s.stall(&s.faults) }

// Fail is Store.Fail for this client alone.
func (d *Driver) Fail(err error) { d.store.fail(&d.faults, err) }

// Stall is Store.Stall for this client alone: a partition between it and the store.
func (d *Driver) Stall() (resume func()) { return d.store.stall(&d.faults) }

func (s *Store) fail(f *faults, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.err = nil
	if err != nil {
		f.err = classify(err)
	}
}

func (s *Store) stall(f *faults) (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.stalls == 0 {
		f.lifted = make(chan struct{})
	}
	f.stalls++
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.stalls--; f.stalls == 0 {
			close(f.lifted)
			f.lifted = nil
		}
	})
}

// stalled answers what to wait for before anything reaches or leaves the client; nil:
// nothing. The caller has the store's lock.
func (d *Driver) stalled() <-chan struct{} {
	if d.store.faults.lifted != nil {
		return d.store.faults.lifted
	}
	return d.faults.lifted
}

// enter begins a call. On nil the caller has the store's lock.
func (d *Driver) enter(ctx context.Context) error {
	for {
		if err := ctx.Err(); err != nil {
			return unavailable(err)
		}
		d.store.mu.Lock()
		lifted, err := d.stalled(), d.broken()
		if lifted == nil && err == nil {
			return nil
		}
		d.store.mu.Unlock()
		if lifted == nil {
			return err
		}
		select {
		case <-lifted:
		case <-ctx.Done():
		case <-d.closed:
			return errClosed()
		}
	}
}

// broken answers why no call can be served.
func (d *Driver) broken() error {
	if d.isClosed() {
		return errClosed()
	}
	if d.store.faults.err != nil {
		return d.store.faults.err
	}
	return d.faults.err
}

// classify wraps err so that it has a class.
func classify(err error) error {
	for _, class := range []error{driver.ErrUnavailable, driver.ErrRefused, driver.ErrInvalid, driver.ErrUnsupported} {
		if errors.Is(err, class) {
			return fmt.Errorf("memlease: %w", err)
		}
	}
	return unavailable(err)
}

// named puts the package's name before what package driver found wrong.
func named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("memlease: %w", err)
}

func unavailable(err error) error {
	return fmt.Errorf("memlease: %w: %w", driver.ErrUnavailable, err)
}

func errClosed() error {
	return fmt.Errorf("memlease: %w: the driver is closed", driver.ErrUnavailable)
}
