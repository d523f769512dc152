package mysqllease

import (
	"context"
	"database/sql"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Options name the tables.
type Options struct {
	// Database holds the tables: letters, digits and underscores. Defaults to the one
	// the connection is in.
	Database string
	// Prefix begins the name of each table: letters, digits and underscores. Defaults
	// to "hasp_".
	Prefix string
}

// Driver is one client's way to a MySQL or MariaDB database.
type Driver struct{ *sqllease.Driver }

// New makes a driver on an open handle, which stays the caller's. It does no I/O; what
// is wrong with the arguments is in Features().Err.
func New(db *sql.DB, opts *Options) *Driver {
	return &Driver{sqllease.New(db, dialect(opts), opts.engine())}
}

// Migrate makes the tables, or leaves them where they are there. Many processes may do
// so at once.
func Migrate(ctx context.Context, db *sql.DB, opts *Options) error {
	return sqllease.Migrate(ctx, db, dialect(opts), opts.engine())
}

// SchemaSQL answers the statements Migrate runs.
func SchemaSQL(opts *Options) (string, error) {
	return sqllease.SchemaSQL(dialect(opts), opts.engine())
}

func (o *Options) engine() *sqllease.Options {
	if o == nil {
		return nil
	}
	return &sqllease.Options{Schema: o.Database, Prefix: o.Prefix}
}
