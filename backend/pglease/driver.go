package pglease

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

const (
	name = "pglease"
	// Pauses between two looks while a claim waits and no notification arrives.
	pollMin, pollMax = 5 * time.Millisecond, 100 * time.Millisecond
	// sweepAfter is how long after a Join this client looks for what has served.
	sweepAfter = 10 * time.Second
	// sweepBatch is how many lines are looked at in one transaction.
	sweepBatch = 64
)

// Driver is one client's way to a PostgreSQL database.
type Driver struct {
	*sqllease.Client
	steps *steps
}

// New makes a driver on a pool, which stays the caller's. It does no I/O; what is wrong
// with the arguments is in Features().Err. One connection, made from the pool's
// configuration, is opened besides the pool to listen.
func New(pool *pgxpool.Pool, opts *Options) *Driver {
	var err error
	if pool == nil {
		err = fmt.Errorf("%w: the *pgxpool.Pool is nil", driver.ErrInvalid)
	}
	return newDriver(func(n names) access { return pooled{pool, n} }, opts, err, pool)
}

// NewSQL makes a driver on an open handle of database/sql, which stays the caller's. It
// cannot listen, so it polls.
func NewSQL(db *sql.DB, opts *Options) *Driver {
	var err error
	if db == nil {
		err = fmt.Errorf("%w: the *sql.DB is nil", driver.ErrInvalid)
	}
	return newDriver(func(n names) access { return plain{db, n} }, opts, err, nil)
}

func newDriver(open func(names) access, opts *Options, err error, pool *pgxpool.Pool) *Driver {
	n, wrong := newNames(opts)
	if err == nil {
		err = wrong
	}
	s := &steps{access: open(n), book: newBook()}
	setup := sqllease.Setup{
		Name: name, Err: err, Writers: 4, PollMin: pollMin, PollMax: pollMax, Marks: 1000, Classify: classify,
		Inspect: func(ctx context.Context) error { return inspect(ctx, s.access, n) },
		Guard:   n.guard,
	}
	if pool != nil {
		p := &pusher{pool: pool, steps: s}
		setup.Push = p.push
	}
	s.Client = sqllease.NewClient(setup, s)
	s.janitor = sqllease.NewJanitor(s.Client, sweepAfter, s.sweep)
	return &Driver{Client: s.Client, steps: s}
}

// Close stops what the driver started and waits for calls in flight, which are cut short.
// Claims still held stay, and expire.
func (d *Driver) Close(ctx context.Context) error {
	d.steps.janitor.Stop()
	return d.Client.Close(ctx)
}

// sweep looks at what is due, batch by batch, and says whether lines are left.
func (s *steps) sweep(ctx context.Context) (left bool, err error) {
	for {
		rows, err := s.transact(ctx, call{"sweep", []any{int64(sweepBatch)}})
		if err != nil {
			return false, err
		}
		swept, remaining := rows[0].number(), rows[0].yes()
		if rows[0].err != nil || swept < sweepBatch {
			return remaining, rows[0].err
		}
	}
}
