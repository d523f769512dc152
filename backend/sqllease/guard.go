package sqllease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Guard makes a transaction of yours exclude by the lease (a *hasp.Lease is one): it locks
// the rows of the lease's claim in the database, in tx, until tx ends. Where it returns nil
// tx can be committed only while the claim is there, and nobody else comes to hold a key of
// it before tx has ended, however long that takes: whoever passes a claim that has expired
// must delete its rows first. Renewals go on meanwhile. So what tx writes is written under
// the lock, also by a process that was paused on the way.
//
// The lease may be shared: a reader's guard keeps writers out.
//
// Begin tx when the lease is held, and let Guard be its first statement. tx must be in the
// database of the locks; end it before the lease is released. An error means that nothing
// is guarded, so roll back: [driver.ErrLost] where the claim is gone or was revoked; the
// lease's own error where that is over, unless its client is closing;
// [driver.ErrUnsupported] where the lease is in no SQL store;
// [driver.ErrUnavailable] where another transaction was in the way, which says begin anew.
func Guard(ctx context.Context, tx *sql.Tx, lease driver.Proven) error {
	if tx == nil {
		return fmt.Errorf("sqllease: guard: %w: the transaction is nil", driver.ErrInvalid)
	}
	return GuardBy(ctx, lease, func(ctx context.Context, q Query) (Answer, error) {
		return tx.QueryContext(ctx, q.Text, q.Args...) //nolint:rowserrcheck // holding does
	})
}

// Query is a statement that answers rows.
type Query struct {
	Text string
	Args []any
}

// Answer is what a query answers, as *sql.Rows does and others do. It is read to its end.
type Answer interface {
	Next() bool
	Scan(dest ...any) error
	Err() error
}

// guardian is a driver that embeds a Client.
type guardian interface{ client() *Client }

func (c *Client) client() *Client { return c }

// GuardBy is [Guard] in a transaction of another kind, which query asks.
func GuardBy(ctx context.Context, lease driver.Proven, query func(context.Context, Query) (Answer, error)) error {
	if lease == nil {
		return fmt.Errorf("sqllease: guard: %w: the lease is nil", driver.ErrInvalid)
	}
	store, ok := lease.Driver().(guardian)
	if !ok || store.client().setup.Guard == nil {
		return fmt.Errorf("sqllease: guard: %w: the lease is held in a %T; a guard needs the locks in the database of the transaction",
			driver.ErrUnsupported, lease.Driver())
	}
	c, ref := store.client(), lease.Ref()
	if err := c.guard(ctx, lease, ref, query); err != nil {
		return fmt.Errorf("sqllease: guard %q: %w", ref.Keys[0], err)
	}
	return nil
}

func (c *Client) guard(ctx context.Context, lease driver.Proven, ref driver.Ref, query func(context.Context, Query) (Answer, error)) error {
	if l, ok := lease.(interface{ Err() error }); ok {
		if err := l.Err(); err != nil && !errors.Is(err, driver.ErrClosed) {
			return err
		}
	}
	if c.setup.BeforeGuard != nil {
		c.setup.BeforeGuard(ctx, ref)
	}
	places := 0
	for _, q := range c.setup.Guard(ref) {
		answer, err := query(ctx, q)
		if err != nil {
			return c.explain(err, c.fault(err))
		}
		n, err := c.holding(answer, ref)
		if err != nil {
			return err
		}
		places += n
	}
	if places != len(ref.Keys) {
		return fmt.Errorf("%w: this transaction finds no claim of it: it was released, forced, or expired and was passed; "+
			"or the transaction began before the lock was there, or in another database", driver.ErrLost)
	}
	return nil
}

// holding counts the places of a claim that were locked. It reads an answer to its end,
// which closes it.
func (c *Client) holding(answer Answer, ref driver.Ref) (int, error) {
	n := 0
	var failed error
	for answer.Next() {
		var number int64
		var holds, revoked bool
		if err := answer.Scan(&number, &holds, &revoked); err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if revoked {
			failed = fmt.Errorf("%w: an operator has revoked it", driver.ErrLost)
		}
		if holds && number == ref.Number {
			n++
		}
	}
	if err := answer.Err(); err != nil {
		failed = c.explain(err, c.fault(err))
	}
	return n, failed
}

// guardQueries asks for each place of a claim by itself: by its whole primary key, which
// locks that row and no gap beside it.
func (d *Driver) guardQueries(ref driver.Ref) []Query {
	all := make([]Query, len(ref.Keys))
	for i, key := range ref.Keys {
		args := []any{[]byte(key), ref.Number, ref.ID[:]}
		if d.dialect.Literal != nil {
			all[i].Text = d.stmts.fill(stGuard, d.dialect.Literal, args)
			continue
		}
		all[i] = Query{Text: d.stmts.text[stGuard], Args: args}
	}
	return all
}

// enrolling bounds how long a guard waits for another connection.
const enrolling = time.Second

// enrolForGuard lets a claim live by its client's life, where a guard's lock keeps the
// claim's row from being rewritten: what renews it then is another row. A claim that cannot
// be enrolled is guarded all the same, and not renewed meanwhile.
func (d *Driver) enrolForGuard(ctx context.Context, ref driver.Ref) {
	life, ok := d.known.life(ref.ID)
	if !ok || life.Own || d.roster.has(ref.ID) || d.db.Stats().MaxOpenConnections == 1 {
		return
	}
	ctx, stop := context.WithTimeout(ctx, enrolling)
	defer stop()
	d.Renew(ctx, []driver.Renewal{{Ref: ref, Mode: driver.Extend, Life: life}}, func(int, driver.Standing, error) {})
}
