package sqllease

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// maxInFlight is how many commands the driver has on the user's handle at once.
const maxInFlight = 4

// Driver is one client's way to a database. It is made by a dialect's package.
type Driver struct {
	db      *sql.DB
	dialect Dialect
	tables  Tables
	err     error // what New found wrong

	stmts   statements
	workers workers
	slots   chan struct{} // a place for each command in flight
	writers chan struct{} // a place for each write transaction
	ready   readiness
	known   registry
	session session
	ear     ear
	janitor janitor

	base   context.Context //nolint:containedctx // ends with Close, which every call in flight must see
	cancel context.CancelFunc

	mu     sync.Mutex
	closed bool           // guarded by mu
	calls  sync.WaitGroup // calls in flight; added to under mu
}

var (
	_ driver.Driver   = (*Driver)(nil)
	_ driver.Signaler = (*Driver)(nil)
	_ driver.Operator = (*Driver)(nil)
)

// New makes a driver on the user's handle. It does no I/O; what is wrong with the
// arguments is in Features().Err.
func New(db *sql.DB, dialect Dialect, opts *Options) *Driver {
	n, err := opts.validate()
	if db == nil {
		err = fmt.Errorf("%w: the *sql.DB is nil", driver.ErrInvalid)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", dialect.Name, err)
	}
	d := &Driver{
		db:      db,
		dialect: dialect,
		err:     err,
		slots:   make(chan struct{}, maxInFlight),
		writers: make(chan struct{}, max(1, dialect.Writers)),
	}
	if err == nil {
		d.tables = newTables(&dialect, n)
	}
	d.stmts.text = parse(d.tables.expand(dialect.Statements), dialect.Marker)
	d.stmts.prepared = make(map[string]*sql.Stmt)
	d.known.stays = make(map[driver.ID]*stay)
	d.session.opened = make(map[[6]byte]bool)
	d.ear.wake = make(chan struct{}, 1)
	d.ear.watched = make(map[string]*watch)
	d.base, d.cancel = context.WithCancel(context.Background()) //nolint:forbidigo,gosec // ends with Close; there is no caller's ctx in New
	d.workers = workers{jobs: make(chan func()), done: d.base.Done()}
	return d
}

// Features says what the store can do.
func (d *Driver) Features() driver.Features {
	return driver.Features{Err: d.err, Line: true, Shared: true, Tokens: true, MaxKeys: driver.MaxKeys, Step: time.Microsecond}
}

// Check proves that the database is reachable, is set up as hasp needs it and takes
// writes. It changes nothing.
func (d *Driver) Check(ctx context.Context) error {
	if d.err != nil {
		return d.err
	}
	d.ready.forget()
	_, err := transact(ctx, d, func(t *tx) (bool, error) {
		v, err := t.glance(checkKey, [6]byte{}, driver.ID{})
		if err != nil {
			return false, err
		}
		return false, v.usable(d.dialect.Name)
	})
	return err
}

// checkKey is a key nobody can have, to look at.
const checkKey = "\x00check"

// Close stops the poller and waits for calls in flight, which are cut short. Claims
// still held stay, with the session and, until the process ends, its proof.
func (d *Driver) Close(ctx context.Context) error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	d.mu.Unlock()
	if !first {
		return nil
	}
	d.janitor.stop()
	d.cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		d.calls.Wait()
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return d.cut(ctx, nil)
	}
	err := d.endSession(ctx)
	d.stmts.close()
	return err
}

// enter counts a call in, unless the driver is closed.
func (d *Driver) enter() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return fmt.Errorf("%s: %w: the driver is closed", d.dialect.Name, driver.ErrUnavailable)
	}
	d.calls.Add(1)
	return nil
}
