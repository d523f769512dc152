package examples_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/fence"
)

// A worker is paused for longer than its lease lives, and wakes up to write. The
// database has seen a later token by then and refuses.
func Example_guardedSQLWrite() {
	ctx := context.Background()
	db, clean, err := database(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer clean()
	client, err := hasp.New(sqlitelease.New(db, nil), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)

	orders := fence.Column{Dialect: fence.SQLite, Table: "orders", Key: []string{"id"}}
	write := func(state string, token int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
		if err := orders.Admit(ctx, tx, token, 42); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET state = ? WHERE id = ?", state, 42); err != nil {
			return err
		}
		return tx.Commit()
	}

	paused, err := client.Mutex("order:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	// It is so slow that an operator takes its lock away, and another worker goes on.
	fmt.Println(client.ForceRelease(ctx, "order:42", paused.Token()))
	next, err := client.Mutex("order:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer next.Release(ctx)
	fmt.Println("the next writes:", write("shipped", next.Token()))
	fmt.Println("the paused one is stale:", errors.Is(write("cancelled", paused.Token()), fence.ErrStale))

	var state string
	err = db.QueryRowContext(ctx, "SELECT state FROM orders WHERE id = 42").Scan(&state)
	fmt.Println(state, err)
	// Output:
	// <nil>
	// the next writes: <nil>
	// the paused one is stale: true
	// shipped <nil>
}

// database makes a file with an order and the tables of the locks.
func database(ctx context.Context) (db *sql.DB, clean func(), err error) {
	folder, err := os.MkdirTemp("", "hasp-example")
	if err != nil {
		return nil, nil, err
	}
	file := filepath.Join(folder, "app.db")
	db, err = sql.Open("sqlite", "file:"+file+"?_pragma=journal_mode(WAL)&_pragma=busy_timeout(5000)&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}
	clean = func() {
		_ = db.Close()
		_ = os.RemoveAll(folder)
	}
	_, err = db.ExecContext(ctx, `CREATE TABLE orders (id INTEGER PRIMARY KEY, state TEXT, fence INTEGER NOT NULL DEFAULT 0);
		INSERT INTO orders (id, state) VALUES (42, 'new')`)
	if err = errors.Join(err, sqlitelease.Migrate(ctx, db, nil)); err != nil {
		clean()
		return nil, nil, err
	}
	return db, clean, nil
}
