package sqllease

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"maps"
	"slices"
	"time"
)

// Under row locks a step locks the rows of its lines before it looks at their claims, all
// in the order of their keys, so that steps wait for each other and never in a circle. A
// line that turns out to be needed later is locked if nobody has it, else the transaction
// is rolled back and begins anew with that line among the others. Rows of claims are locked
// without waiting: another transaction may have locked the row of a claim to keep it where
// it is, and such a claim counts as alive. Rows of sessions come last, in order.

const (
	// brokenTries is how often a step is done again at once because its connection broke.
	brokenTries = 3
	// lingering is how long the transaction of a caller who has left may take to its end.
	// Cutting it short costs the connection.
	lingering = time.Second
)

// errClaimLocked says that another transaction has locked the row of a claim that must be
// changed.
var errClaimLocked = errors.New("another transaction has locked the claim")

// outsideError says that a step needs a line that is not among those it has locked.
type outsideError struct{ key string }

func (e *outsideError) Error() string { return "a line is needed that is not locked" }

// locks are the lines to lock for a step, over all tries, and what this try has.
type locks struct {
	keys map[string]bool // to lock at the beginning
	have map[string]bool // locked by this transaction
}

func newLocks(keys []string) *locks {
	l := &locks{keys: make(map[string]bool)}
	for _, key := range keys {
		l.keys[key] = true
	}
	return l
}

// locked runs work in a transaction that has locked its lines, and again where more lines
// are needed or the connection broke before the commit.
func locked[T any](ctx context.Context, d *Driver, l *locks, work func(*tx) (T, error)) (T, error) {
	for tries := 1; ; {
		value, committing, err := lockedOnce(ctx, d, l, work)
		var outside *outsideError
		switch {
		case err == nil || ctx.Err() != nil:
			return value, err
		case errors.As(err, &outside):
			l.keys[outside.key] = true
		case !committing && tries < brokenTries && d.fault(err).Kind == Broken:
			tries++
		default:
			return value, err
		}
	}
}

// lockedOnce is one try. committing says whether the outcome may be unknown.
func lockedOnce[T any](ctx context.Context, d *Driver, l *locks, work func(*tx) (T, error)) (value T, committing bool, err error) {
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return value, false, err
	}
	defer conn.Close()
	t := newTx(d, conn)
	t.ctx, t.locks = ctx, l
	defer func() {
		if err != nil {
			t.undo(ctx)
		}
	}()
	if err := d.dialect.Rows.Begin(ctx, conn); err != nil {
		return value, false, err
	}
	if err := t.lockAll(); err != nil {
		return value, false, err
	}
	linger, stop := linger(ctx)
	defer stop()
	t.ctx = linger
	if value, err = work(t); err != nil {
		return value, false, err
	}
	if err := t.flush(); err != nil {
		return value, false, err
	}
	if err := d.dialect.Rows.Commit(linger, conn); err != nil {
		return value, true, err
	}
	for _, f := range t.after {
		f()
	}
	return value, true, nil
}

// linger is a context that ends some time after ctx.
func linger(ctx context.Context) (context.Context, context.CancelFunc) {
	longer, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(lingering, cancel)
		context.AfterFunc(longer, func() { timer.Stop() })
	})
	return longer, func() {
		stop()
		cancel()
	}
}

// undo rolls back and gives the connection back as it was, or not at all.
func (t *tx) undo(ctx context.Context) {
	ctx, stop := linger(ctx)
	defer stop()
	if t.d.dialect.Rows.Rollback(ctx, t.conn) != nil {
		_ = t.conn.Raw(func(any) error { return sqldriver.ErrBadConn }) // closes it
	}
}

// lockAll locks the lines of the step, and makes those that are not there.
func (t *tx) lockAll() error {
	l := t.locks
	l.have = make(map[string]bool)
	if len(l.keys) == 0 {
		return nil
	}
	rows := make([][]any, 0, len(l.keys))
	for _, key := range slices.Sorted(maps.Keys(l.keys)) {
		rows = append(rows, []any{[]byte(key), 0, 0, 0})
	}
	if err := t.exec(stLockLines, rows); err != nil {
		return err
	}
	maps.Copy(l.have, l.keys)
	return nil
}

// lockFree locks those of some lines that nobody has locked, and answers the others.
func (t *tx) lockFree(keys []string) (missing []string, err error) {
	got, err := t.keys(stLockFree, list(keys))
	if err != nil {
		return nil, err
	}
	for _, key := range got {
		t.locks.have[key] = true
	}
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return t.locks.have[key] }), nil
}

// reach makes sure that a line is locked before it is looked at.
func (t *tx) reach(key string) error {
	if t.locks == nil || key == checkKey || t.locks.have[key] {
		return nil
	}
	missing, err := t.lockFree([]string{key})
	if err == nil && len(missing) > 0 {
		return &outsideError{key: key}
	}
	return err
}

// free locks those of some lines that nobody has locked and answers which they are.
func (t *tx) free(keys []string) ([]string, error) {
	if t.locks == nil || len(keys) == 0 {
		return keys, nil
	}
	missing, err := t.lockFree(keys)
	return slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(missing, key) }), err
}

// places are the rows of a claim, locked where nobody else has one of them locked; free
// says whether that is so.
func (t *tx) places(id [16]byte) (rows []claim, free bool, err error) {
	if t.locks == nil {
		rows, err = t.claims(stFind, id[:])
		return rows, true, err
	}
	if rows, ok := t.foreseen.place(id); ok {
		return rows, true, nil
	}
	rows, err = t.claims(stFindFree, id[:])
	if err != nil || (len(rows) > 0 && len(rows) == rows[0].keys) {
		return rows, true, err
	}
	rows, err = t.claims(stFind, id[:])
	return rows, len(rows) == 0, err
}

// loose runs work that reads on a connection without a transaction.
func loose[T any](ctx context.Context, d *Driver, work func(*tx) (T, error)) (T, error) {
	var none T
	for tries := 1; ; tries++ {
		value, err := looseOnce(ctx, d, work)
		if err == nil {
			return value, nil
		}
		if ctx.Err() != nil || tries == brokenTries || d.fault(err).Kind != Broken {
			return none, err
		}
	}
}

func looseOnce[T any](ctx context.Context, d *Driver, work func(*tx) (T, error)) (T, error) {
	var none T
	conn, err := d.db.Conn(ctx)
	if err != nil {
		return none, err
	}
	defer conn.Close()
	return work(&tx{d: d, conn: conn, ctx: ctx})
}

// snapshots is the isolation of a transaction whose statements all see the same moment.
func (d *Dialect) snapshots() sql.IsolationLevel {
	if d.Rows != nil {
		return sql.LevelRepeatableRead
	}
	return sql.LevelDefault
}
