package sqllease

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"

	"github.com/hasp-dev/hasp/driver"
)

// Driver is the engine: a client whose steps are made in Go, of a dialect's statements over
// database/sql. It is made by a dialect's package.
type Driver struct {
	*Client

	db      *sql.DB
	dialect Dialect
	tables  Tables
	stmts   statements
	session session
	janitor *Janitor
	roster  *roster      // which claims live by which sessions
	burying atomic.Bool  // what dead sessions have left is being removed
	fresh   atomic.Int64 // lines made
}

// New makes a driver on the user's handle. It does no I/O; what is wrong with the
// arguments is in Features().Err.
func New(db *sql.DB, dialect Dialect, opts *Options) *Driver {
	err := fmt.Errorf("%w: the *sql.DB is nil", driver.ErrInvalid)
	var tables Tables
	if db != nil {
		tables, err = NewTables(dialect.Quote, opts)
	}
	d := &Driver{db: db, dialect: dialect, tables: tables, roster: newRoster()}
	d.stmts.text = parse(tables.Expand(dialect.Statements), dialect.Marker)
	d.stmts.prepared = make(map[string]*sql.Stmt)
	d.session.opened = make(map[[6]byte]bool)
	setup := Setup{
		Name:       dialect.Name,
		Err:        err,
		Writers:    dialect.Writers,
		LongestKey: dialect.LongestKey,
		PollMin:    dialect.PollMin,
		PollMax:    dialect.PollMax,
		Classify:   dialect.Classify,
		Inspect:    func(ctx context.Context) error { return dialect.Inspect(ctx, db, tables) },
		Intact:     dialect.Intact,
	}
	if d.stmts.text[stGuard] != "" {
		setup.Guard = d.guardQueries
	}
	if dialect.Rows != nil {
		setup.Writers, setup.Renewers = dialect.Writers-reserved, rowsAtOnce
		setup.BeforeGuard = d.enrolForGuard
	}
	if dialect.Literal == nil {
		setup.Prepare = func(ctx context.Context) error { return d.stmts.prepareAll(ctx, db) }
	}
	if dialect.Witness != nil {
		setup.Probe = d.buryProcesses
	}
	d.Client = NewClient(setup, steps{d})
	d.janitor = NewJanitor(d.Client, dialect.SweepAfter, d.sweepAll)
	return d
}

// Close stops the poller and waits for calls in flight, which are cut short. Claims
// still held stay, with the session and, until the process ends, its proof.
func (d *Driver) Close(ctx context.Context) error {
	d.janitor.Stop()
	first, err := d.Shut(ctx)
	if !first || err != nil {
		return err
	}
	err = d.endSession(ctx)
	d.stmts.close()
	return err
}

// steps are the engine's steps.
type steps struct{ *Driver }

// Check looks at a line that nobody can have.
func (e steps) Check(ctx context.Context) error {
	if e.dialect.Rehearse != nil {
		_, err := Call(ctx, e.Client, false, func(ctx context.Context) (bool, error) {
			return true, e.dialect.Rehearse(ctx, e.db, e.tables)
		})
		if err != nil {
			return err
		}
	}
	_, err := transact(ctx, e.Driver, nil, func(t *tx) (bool, error) {
		v, err := t.glance(checkKey, [6]byte{}, driver.ID{})
		if err != nil {
			return false, err
		}
		return false, v.usable(e.dialect.Name)
	})
	return err
}

// checkKey is a key nobody can have, to look at.
const checkKey = "\x00check"

// transact runs work in one write transaction. keys are the lines it is known to touch.
func transact[T any](ctx context.Context, d *Driver, keys []string, work func(*tx) (T, error)) (T, error) {
	l := newLocks(keys)
	return Call(ctx, d.Client, true, func(ctx context.Context) (T, error) { return once(ctx, d, l, work) })
}

// once is one try of a write transaction.
func once[T any](ctx context.Context, d *Driver, l *locks, work func(*tx) (T, error)) (T, error) {
	if d.dialect.Rows != nil {
		return locked(ctx, d, l, work)
	}
	return inside(ctx, d, nil, work)
}

// read runs work that reads, and needs no other's consent. Where rows are locked each
// statement sees a moment of its own.
func read[T any](ctx context.Context, d *Driver, work func(*tx) (T, error)) (T, error) {
	if d.dialect.Rows != nil {
		return Call(ctx, d.Client, false, func(ctx context.Context) (T, error) { return loose(ctx, d, work) })
	}
	return snapshot(ctx, d, work)
}

// snapshot runs work in one read transaction, all of whose statements see the same moment.
func snapshot[T any](ctx context.Context, d *Driver, work func(*tx) (T, error)) (T, error) {
	return Call(ctx, d.Client, false, func(ctx context.Context) (T, error) {
		return inside(ctx, d, &sql.TxOptions{ReadOnly: true, Isolation: d.dialect.snapshots()}, work)
	})
}

// inside is one try: a connection, a transaction, and both given back. Once the
// transaction has its lock its work is bounded, so it is not cut short: a cancelled
// call cannot leave a half-done transaction behind.
func inside[T any](ctx context.Context, d *Driver, opts *sql.TxOptions, work func(*tx) (T, error)) (T, error) {
	var none T
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return none, err
	}
	defer conn.Close() // a broken one is dropped by the pool
	inner := context.WithoutCancel(ctx)
	if d.dialect.Rows != nil { // over a network, where an answer may never come
		inner = ctx
	}
	stx, err := conn.BeginTx(inner, opts)
	if err != nil {
		return none, err
	}
	defer stx.Rollback() //nolint:errcheck // after Commit it does nothing
	t := newTx(d, conn)
	t.sql = stx
	if opts == nil {
		if err := t.lock(ctx); err != nil {
			return none, err
		}
	}
	t.ctx = inner
	value, err := work(t)
	if err != nil {
		return none, err
	}
	if err := t.flush(); err != nil {
		return none, err
	}
	if err := stx.Commit(); err != nil {
		return none, err
	}
	for _, f := range t.after {
		f()
	}
	return value, nil
}
