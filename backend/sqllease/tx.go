package sqllease

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/hasp-dev/hasp/driver"
)

// schemaVersion is the layout this package reads and writes; hasp_meta holds the
// layout of the tables and the oldest one a client must know to use them.
const schemaVersion = 1

// tx is a transaction: the loads and stores a step is made of.
type tx struct {
	d        *Driver
	ctx      context.Context //nolint:containedctx // of the transaction, which ends with the call
	sql      *sql.Tx         // nil where rows are locked
	conn     *sql.Conn       // the connection
	locks    *locks          // nil where there is one right to write
	foreseen *foresight      // what was read ahead; nil: nothing
	after    []func()        // to run once the transaction is committed

	changed  map[sessionKey]bool // others' sessions that something happened to, to be told at the end
	renewing map[*life]bool      // own lives that claims were enrolled in
}

func newTx(d *Driver, conn *sql.Conn) *tx {
	return &tx{d: d, conn: conn}
}

// lock takes the database's right to write, or the keys', before anything is read.
func (t *tx) lock(ctx context.Context) error {
	t.ctx = ctx
	return t.exec(stLock)
}

func (t *tx) stmt(name string) (*sql.Stmt, error) {
	st, err := t.d.stmts.get(t.ctx, t.d.db, name)
	if err != nil {
		return nil, err
	}
	return t.sql.StmtContext(t.ctx, st), nil
}

func (t *tx) exec(name string, args ...any) error {
	_, err := t.affect(name, args...)
	return err
}

// affect answers how many rows a statement has changed; 0 where it is written later.
func (t *tx) affect(name string, args ...any) (int64, error) {
	later, err := t.later(name, args)
	if err != nil || later {
		return 0, err
	}
	return t.send(name, args...)
}

// send changes rows now.
func (t *tx) send(name string, args ...any) (int64, error) {
	if t.d.dialect.Literal != nil {
		r, err := t.conn.ExecContext(t.ctx, t.d.stmts.fill(name, t.d.dialect.Literal, args))
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	st, err := t.stmt(name) //nolint:sqlclosecheck // ends with the transaction
	if err != nil {
		return 0, err
	}
	r, err := st.ExecContext(t.ctx, args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

func (t *tx) query(name string, args ...any) (*sql.Rows, error) {
	if err := t.write(); err != nil {
		return nil, err
	}
	if t.d.dialect.Literal != nil {
		return t.conn.QueryContext(t.ctx, t.d.stmts.fill(name, t.d.dialect.Literal, args))
	}
	st, err := t.stmt(name) //nolint:sqlclosecheck // ends with the transaction
	if err != nil {
		return nil, err
	}
	return st.QueryContext(t.ctx, args...)
}

// row reads at most one row. Where there is none dest stays as it is.
func (t *tx) row(name string, args []any, dest ...any) error {
	rows, err := t.query(name, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	if !rows.Next() {
		return rows.Err()
	}
	if err := rows.Scan(dest...); err != nil {
		return err
	}
	return rows.Close()
}

func (t *tx) claims(name string, args ...any) ([]claim, error) {
	if all, ok := t.foreseen.claims(name, args); ok {
		return all, nil
	}
	rows, err := t.query(name, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []claim
	for rows.Next() {
		c, err := scanClaim(rows)
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// glance is what one look at a line shows, without counting.
type glance struct {
	now          int64
	oldest       sql.NullInt64 // the oldest layout that may use the tables
	session      sql.NullInt64 // until when the client's session row is safe from sweeping
	last         sql.NullInt64 // number of the line
	sweepAt      sql.NullInt64
	frontExpiry  sql.NullInt64 // of the first claim
	frontWaits   sql.NullInt64 // 1: the first claim waits, so nobody holds
	crowdExpiry  sql.NullInt64 // the earliest, of claims that may stand beside others and live by no life
	firstWaiting sql.NullInt64 // its number
	known        bool          // the ID is somewhere
	lifeExpiry   sql.NullInt64 // the earliest, of all lives
}

func (t *tx) glance(key string, inbox [6]byte, id driver.ID) (glance, error) {
	if g, ok := t.foreseen.glance(key); ok {
		return g, nil
	}
	var g glance
	err := t.row(stGlance, []any{[]byte(key), inbox[:], id[:]}, &g.now, &g.oldest, &g.session, &g.last, &g.sweepAt,
		&g.frontExpiry, &g.frontWaits, &g.crowdExpiry, &g.firstWaiting, &g.known, &g.lifeExpiry)
	return g, err
}

// usable refuses tables that are too new for this package.
func (g glance) usable(name string) error {
	if !g.oldest.Valid || g.oldest.Int64 > schemaVersion {
		return newerSchema(name)
	}
	return nil
}

func newerSchema(name string) error {
	return fmt.Errorf("%s: %w: the hasp tables belong to a newer release, which this one must not touch: upgrade hasp here",
		name, driver.ErrRefused)
}

// dead says whether a claim of the line may have expired.
func (g glance) dead() bool {
	return (g.frontExpiry.Valid && g.frontExpiry.Int64 <= g.now) || (g.crowdExpiry.Valid && g.crowdExpiry.Int64 <= g.now) ||
		(g.fallen() && g.frontExpiry.Valid)
}

// fallen says whether any life has expired.
func (g glance) fallen() bool { return g.lifeExpiry.Valid && g.lifeExpiry.Int64 <= g.now }

// holders says whether anybody holds.
func (g glance) holders() bool { return g.frontWaits.Valid && g.frontWaits.Int64 == 0 }

func (t *tx) held(key string) (held, error) {
	return t.group(stHeld, []byte(key), lookAhead)
}

func (t *tx) group(name string, args ...any) (held, error) {
	if h, ok := t.foreseen.group(name, args); ok {
		return h, nil
	}
	var h held
	err := t.row(name, args, &h.count, &h.weight, &h.lightest, &h.capacity, &h.first, &h.last)
	return h, err
}

// count answers a single number.
func (t *tx) count(name string, args ...any) (int64, error) {
	if n, ok := t.foreseen.count(name, args); ok {
		return n, nil
	}
	var n int64
	err := t.row(name, args, &n)
	return n, err
}
