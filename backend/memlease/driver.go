package memlease

import (
	"context"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// Driver is one client of a Store. It implements driver.Driver, driver.Signaler and
// driver.Operator.
type Driver struct {
	store  *Store
	closed chan struct{} // closed by Close, under the store's lock

	// The store's lock guards these.
	faults faults
	boxes  []*mailbox // of the Listens under way
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Signaler = (*Driver)(nil)
	_ driver.Operator = (*Driver)(nil)
)

// Features implements driver.Driver: everything but guards, with exact lives.
func (d *Driver) Features() driver.Features {
	return driver.Features{Line: true, Shared: true, Tokens: true, MaxKeys: driver.MaxKeys}
}

// Check implements driver.Driver.
func (d *Driver) Check(ctx context.Context) error {
	if err := d.enter(ctx); err != nil {
		return err
	}
	d.store.mu.Unlock()
	return nil
}

// Join implements driver.Driver.
func (d *Driver) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if err := named(j.Validate()); err != nil {
		return driver.Standing{}, err
	}
	if err := d.enter(ctx); err != nil {
		return driver.Standing{}, err
	}
	defer d.store.mu.Unlock()
	p := d.store.begin()
	s := p.join(&j)
	p.finish()
	return s, nil
}

// Renew implements driver.Driver. Each item is a step of its own.
func (d *Driver) Renew(ctx context.Context, items []driver.Renewal, answer func(i int, s driver.Standing, err error)) {
	for i := range items {
		s, err := d.renewal(ctx, &items[i])
		answer(i, s, err)
	}
}

func (d *Driver) renewal(ctx context.Context, r *driver.Renewal) (driver.Standing, error) {
	if err := named(r.Validate()); err != nil {
		return driver.Standing{}, err
	}
	if err := d.enter(ctx); err != nil {
		return driver.Standing{}, err
	}
	defer d.store.mu.Unlock()
	p := d.store.begin()
	s := p.renewal(r)
	p.finish()
	return s, nil
}

// Leave implements driver.Driver.
func (d *Driver) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	if err := named(driver.ValidateKeys(l.Keys)); err != nil {
		return driver.Standing{}, err
	}
	if err := d.enter(ctx); err != nil {
		return driver.Standing{}, err
	}
	defer d.store.mu.Unlock()
	p := d.store.begin()
	s := p.leave(&l)
	p.finish()
	return s, nil
}

// End implements driver.Operator. More numbers than one step may remove are taken in
// several steps.
func (d *Driver) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	if err := named(driver.ValidateKeys([]string{key})); err != nil {
		return nil, err
	}
	var found []int64
	for some := range slices.Chunk(slices.Sorted(slices.Values(numbers)), maxRemovals) {
		if err := d.enter(ctx); err != nil {
			return nil, err
		}
		p := d.store.begin()
		found = append(found, p.end(key, some, force)...)
		p.finish()
		d.store.mu.Unlock()
	}
	return found, nil
}

// Close implements driver.Driver. It ends every Listen and waits for it, so that no
// signal is delivered afterwards.
func (d *Driver) Close(ctx context.Context) error {
	for _, box := range d.shut() {
		select {
		case <-box.done:
		case <-ctx.Done():
			return unavailable(ctx.Err())
		}
	}
	return nil
}

// shut refuses further calls and answers who still listens.
func (d *Driver) shut() []*mailbox {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if !d.isClosed() {
		close(d.closed)
		d.store.unwatch(d)
	}
	return slices.Clone(d.boxes)
}
