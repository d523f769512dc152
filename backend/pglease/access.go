package pglease

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

const (
	// lingering is how long a step that was sent may go on after its caller has left: its
	// connection can then be used again.
	lingering = 250 * time.Millisecond
	// fullPool is after what time a wait for a connection is worth a word.
	fullPool = 20 * time.Millisecond
)

var (
	errFull    = errors.New("no connection of the pool is free")
	errColumns = errors.New("a function of hasp's answers other columns than this release knows")
)

// access is a way to the database. A method uses one connection, and gives it back.
type access interface {
	// run carries out the calls in one transaction and answers the rows of each.
	run(ctx context.Context, calls ...call) ([][]*row, error)
	// each carries out the calls in a transaction each, which are not delayed by each other's
	// way to the server and back.
	each(ctx context.Context, calls []call) ([][]*row, error)
	// query runs one statement that only reads.
	query(ctx context.Context, text string) ([]*row, error)
	// script runs several statements in one transaction.
	script(ctx context.Context, text string) error
}

// pooled is access by a pgx pool. A transaction is one message, in the simple protocol.
type pooled struct {
	pool  *pgxpool.Pool
	names names
}

func (p pooled) run(ctx context.Context, calls ...call) ([][]*row, error) {
	return p.transact(ctx, calls)
}

func (p pooled) each(ctx context.Context, calls []call) ([][]*row, error) {
	return p.transact(ctx, slices.Collect(slices.Chunk(calls, 1))...)
}

// transact carries out transactions, in one message.
func (p pooled) transact(ctx context.Context, transactions ...[]call) ([][]*row, error) {
	var b strings.Builder
	for _, calls := range transactions {
		b.WriteString("BEGIN ISOLATION LEVEL READ COMMITTED; ")
		for _, c := range calls {
			p.names.literal(&b, c)
			b.WriteString("; ")
		}
		b.WriteString("COMMIT; ")
	}
	results, err := p.send(ctx, b.String())
	if err != nil {
		return nil, err
	}
	var all [][]*row
	for _, calls := range transactions {
		if len(results) < len(calls)+2 {
			return nil, errColumns
		}
		for _, r := range results[1 : len(calls)+1] {
			all = append(all, rowsOf(r))
		}
		results = results[len(calls)+2:]
	}
	return all, nil
}

func (p pooled) query(ctx context.Context, text string) ([]*row, error) {
	results, err := p.send(ctx, text)
	if err != nil || len(results) == 0 {
		return nil, err
	}
	return rowsOf(results[0]), nil
}

func (p pooled) script(ctx context.Context, text string) error {
	_, err := p.send(ctx, "BEGIN ISOLATION LEVEL READ COMMITTED;\n"+text+"\nCOMMIT")
	return err
}

func (p pooled) send(ctx context.Context, text string) ([]*pgconn.Result, error) {
	conn, err := p.acquire(ctx)
	if err != nil {
		return nil, err
	}
	sent, cancel := linger(ctx)
	defer cancel()
	pg := conn.Conn().PgConn()
	defer func() {
		if pg.IsClosed() {
			conn.Hijack() // which pgx closes; the pool would keep its place for 15 s where the server is silent
		} else {
			conn.Release()
		}
	}()
	results, err := pg.Exec(sent, text).ReadAll()
	if err == nil {
		return results, nil
	}
	if pg.TxStatus() == 'E' && !pg.IsClosed() {
		_, _ = pg.Exec(sent, "ROLLBACK").ReadAll() // else the pool closes a good connection
	}
	return nil, err
}

func (p pooled) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	return patiently(ctx, p.pool.Acquire, func() bool {
		s := p.pool.Stat()
		return s.AcquiredConns() >= s.MaxConns()
	})
}

// patiently waits for a connection, and leaves word where the pool is full.
func patiently[C any](ctx context.Context, acquire func(context.Context) (C, error), full func() bool) (C, error) {
	waited := make(chan bool, 1)
	word := time.AfterFunc(fullPool, func() {
		isFull := full()
		if isFull {
			sqllease.Note(ctx, errFull)
		}
		waited <- isFull
	})
	conn, err := acquire(ctx)
	if !word.Stop() && <-waited && err == nil {
		sqllease.Note(ctx, nil)
	}
	return conn, err
}

func rowsOf(r *pgconn.Result) []*row {
	rows := make([]*row, len(r.Rows))
	for i, columns := range r.Rows {
		rows[i] = &row{columns: make([]*string, len(columns))}
		for k, c := range columns {
			if c != nil {
				text := string(c)
				rows[i].columns[k] = &text
			}
		}
	}
	return rows
}

// linger is ctx, ended some time after it has ended.
func linger(ctx context.Context) (context.Context, context.CancelFunc) {
	out, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lingering, cancel) })
	return out, func() {
		stop()
		cancel()
	}
}

// plain is access by database/sql. A transaction takes a message for each statement.
type plain struct {
	db    *sql.DB
	names names
}

func (p plain) run(ctx context.Context, calls ...call) ([][]*row, error) {
	all := make([][]*row, 0, len(calls))
	err := p.inside(ctx, func(ctx context.Context, tx *sql.Tx) error {
		for _, c := range calls {
			text, params := p.names.prepared(c)
			rows, err := tx.QueryContext(ctx, text, params...)
			if err != nil {
				return err
			}
			scanned, err := scan(rows)
			if err != nil {
				return err
			}
			all = append(all, scanned)
		}
		return nil
	})
	return all, err
}

func (p plain) each(ctx context.Context, calls []call) ([][]*row, error) {
	var all [][]*row
	for _, c := range calls {
		rows, err := p.run(ctx, c)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func (p plain) query(ctx context.Context, text string) ([]*row, error) {
	var rows []*row
	err := p.inside(ctx, func(ctx context.Context, tx *sql.Tx) error {
		found, err := tx.QueryContext(ctx, text)
		if err != nil {
			return err
		}
		rows, err = scan(found)
		return err
	})
	return rows, err
}

func (p plain) script(ctx context.Context, text string) error {
	return p.inside(ctx, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text)
		return err
	})
}

func (p plain) inside(ctx context.Context, work func(context.Context, *sql.Tx) error) error {
	conn, err := p.acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() // a broken one is dropped by the pool
	sent, cancel := linger(ctx)
	defer cancel()
	tx, err := conn.BeginTx(sent, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if err := work(sent, tx); err != nil {
		return err
	}
	return tx.Commit()
}

func (p plain) acquire(ctx context.Context) (*sql.Conn, error) {
	return patiently(ctx, p.db.Conn, func() bool {
		s := p.db.Stats()
		return s.MaxOpenConnections > 0 && s.InUse >= s.MaxOpenConnections
	})
}

func scan(rows *sql.Rows) ([]*row, error) {
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		return nil, err
	}
	var all []*row
	for rows.Next() {
		values := make([]sql.NullString, len(names))
		dest := make([]any, len(names))
		for i := range values {
			dest[i] = &values[i]
		}
		if err := rows.Scan(dest...); err != nil {
			return nil, err
		}
		r := &row{columns: make([]*string, len(names))}
		for i, v := range values {
			if v.Valid {
				r.columns[i] = &values[i].String
			}
		}
		all = append(all, r)
	}
	return all, rows.Err()
}
