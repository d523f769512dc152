package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// row is one row that remembers a token.
type row struct {
	resource string // for people
	token    int64  // to raise it to
	raise    query  // writes the token unless a larger one is there
	read     query  // reads it and locks the row
	counts   bool   // a raise that changed one row is proof enough
}

// query is a statement with its arguments.
type query struct {
	text string
	args []any
}

// maxRaises bounds how often a raise is repeated that met a row in the making.
const maxRaises = 3

// in raises the token within the transaction: when it returns nil, the row has this token
// and is locked until the transaction ends. It judges by what the row has then, since
// MySQL does not count a row it found as it should be.
func (r row) in(ctx context.Context, tx *sql.Tx) error {
	for range maxRaises {
		result, err := tx.ExecContext(ctx, r.raise.text, r.raise.args...)
		if err != nil {
			return r.failed(err)
		}
		n, err := result.RowsAffected()
		switch {
		case err != nil:
			return r.failed(err)
		case n == 1 && r.counts:
			return nil
		case n > 1 && r.counts:
			return invalidf("%s is %d rows; Key must name one", r.resource, n)
		}
		var seen sql.NullInt64
		if err := tx.QueryRowContext(ctx, r.read.text, r.read.args...).Scan(&seen); err != nil {
			return r.failed(err)
		}
		if seen.Int64 > r.token {
			return &StaleError{Resource: r.resource, Seen: seen.Int64, Given: r.token}
		}
		if seen.Int64 == r.token {
			return nil
		}
		// the row came to be between the two statements, and is locked now
	}
	return fmt.Errorf("fence: %s does not take token %d: a trigger or rule may be in the way", r.resource, r.token)
}

func (r row) failed(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return fmt.Errorf("fence: there is no row %s, so nothing fences it: insert it first: %w", r.resource, err)
	}
	return fmt.Errorf("fence: %s: %w", r.resource, err)
}

func checkTx(tx *sql.Tx) error {
	if tx == nil {
		return invalidf("the transaction is nil; a fence holds only within the transaction of the write")
	}
	return nil
}
