package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hasp-dev/hasp"
)

// Column is a fence in your own table: a column beside the data that keeps the greatest
// token its row was written with.
//
//	ALTER TABLE orders ADD fence BIGINT NOT NULL DEFAULT 0
//
// NULL counts as 0. Names are as the database has them, so on PostgreSQL mostly in lower
// case.
type Column struct {
	Dialect Dialect
	// Table, with its schema if need be: "orders", "shop.orders".
	Table string
	// Key are the columns that name one row: its primary key.
	Key []string
	// Fence is the column of the token. Defaults to "fence".
	Fence string
}

// Raise writes the lease's token into a row, key being the values of Column.Key, and
// locks the row until the transaction ends. From then on the transaction may write that row,
// and whatever else the lease protects: a later holder's Raise waits for its end.
//
// The error is a *StaleError where the row has a larger token: roll back. The same token
// passes as often as it comes. A row that is not there is sql.ErrNoRows. Leases that
// [Token] refuses are refused here.
//
// Let it be the first statement of the transaction: then nothing was read that another
// holder may have changed.
func (c Column) Raise(ctx context.Context, tx *sql.Tx, lease *hasp.Lease, key ...any) error {
	token, err := Token(lease)
	if err != nil {
		return err
	}
	return c.Admit(ctx, tx, token, key...)
}

// Admit is Raise where the token came from elsewhere, as with a request.
func (c Column) Admit(ctx context.Context, tx *sql.Tx, token int64, key ...any) error {
	if err := errors.Join(c.check(len(key)), checkToken(token), checkTx(tx)); err != nil {
		return err
	}
	return c.row(token, key).in(ctx, tx)
}

func (c Column) check(values int) error {
	err := []error{c.Dialect.check(), checkName("Column.Table", c.Table, 1), checkName("Column.Fence", c.fence(), 0)}
	for _, k := range c.Key {
		err = append(err, checkName("Column.Key", k, 0))
	}
	if len(c.Key) == 0 {
		err = append(err, invalidf("Column.Key is empty; it names the columns of the primary key"))
	} else if len(c.Key) != values {
		err = append(err, invalidf("the key has %d values for the %d columns %v", values, len(c.Key), c.Key))
	}
	return errors.Join(err...)
}

func (c Column) fence() string {
	if c.Fence == "" {
		return "fence"
	}
	return c.Fence
}

func (c Column) row(token int64, key []any) row {
	d := c.Dialect
	table, fence := d.quote(c.Table), d.quote(c.fence())
	where := func(first int) string {
		var all []string
		for i, k := range c.Key {
			all = append(all, d.quote(k)+" = "+d.marker(first+i))
		}
		return " WHERE " + strings.Join(all, " AND ")
	}
	return row{
		resource: fmt.Sprintf("%s %v", c.Table, key),
		token:    token,
		counts:   true,
		raise: query{
			text: "UPDATE " + table + " SET " + fence + " = " + d.marker(1) + where(2) +
				" AND (" + fence + " IS NULL OR " + fence + " <= " + d.marker(len(key)+2) + ")",
			args: slices.Concat([]any{token}, key, []any{token}),
		},
		read: query{text: "SELECT " + fence + " FROM " + table + where(1) + d.locking(), args: key},
	}
}
