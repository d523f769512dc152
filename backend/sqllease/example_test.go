package sqllease_test

import (
	"context"
	"database/sql"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Where locks and data are in one database, a transaction that is guarded is written under
// the lock or not at all, whatever happens to this process on the way.
func ExampleGuard() {
	pay := func(ctx context.Context, db *sql.DB, client *hasp.Client) error {
		return client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
			lease, _ := hasp.FromContext(ctx, "order:42")
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
			if err := sqllease.Guard(ctx, tx, lease); err != nil {
				return err // hasp.ErrLost: somebody else may hold it by now
			}
			if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = 1 WHERE id = 42"); err != nil {
				return err
			}
			return tx.Commit()
		})
	}
	_ = pay
}
