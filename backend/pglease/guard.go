package pglease

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// guardText locks the places of a claim for a guard. Under KEY SHARE a row can be
// rewritten, so renewing goes on, but neither deleted nor locked by who would pass it.
const guardText = `SELECT c.number, c.number <= l.granted, c.revoked FROM {claims} c JOIN {lines} l ON l.key = c.key
WHERE c.id = $1::text::bytea FOR KEY SHARE OF c`

// Guard is [sqllease.Guard] for a transaction of pgx. One of database/sql takes that.
func Guard(ctx context.Context, tx pgx.Tx, lease driver.Proven) error {
	if tx == nil {
		return fmt.Errorf("%s: guard: %w: the transaction is nil", name, driver.ErrInvalid)
	}
	return sqllease.GuardBy(ctx, lease, func(ctx context.Context, q sqllease.Query) (sqllease.Answer, error) {
		return tx.Query(ctx, q.Text, q.Args...) //nolint:sqlclosecheck // what is read to its end is closed
	})
}

// guard is what a guard asks.
func (n names) guard(ref driver.Ref) []sqllease.Query {
	id, _ := parameter(ref.ID[:])
	return []sqllease.Query{{Text: n.expand(guardText), Args: []any{id}}}
}
