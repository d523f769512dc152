package sqlitelease

import (
	"context"
	"database/sql"
	"os"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Options name the tables.
type Options struct {
	// Prefix begins the name of each table and index: letters, digits and underscores.
	// Defaults to "hasp_".
	Prefix string
}

// Driver is one client's way to a SQLite database.
type Driver struct {
	*sqllease.Driver
	witness *witness
}

// New makes a driver on an open handle, which stays the caller's. It does no I/O; what
// is wrong with the arguments is in Features().Err.
func New(db *sql.DB, opts *Options) *Driver {
	w := new(witness)
	return &Driver{Driver: sqllease.New(db, dialect(w), opts.engine()), witness: w}
}

// LockFile is the locked file that proves to others that this client lives. A process
// that inherits it keeps the client's claims from being freed when this one dies, until
// they expire. It is nil before the first Join, after Close, and where there is none.
func (d *Driver) LockFile() *os.File { return d.witness.handle() }

// Migrate makes the tables, or leaves them where they are there. Many processes may do
// so at once. The database must be in WAL mode.
func Migrate(ctx context.Context, db *sql.DB, opts *Options) error {
	return sqllease.Migrate(ctx, db, dialect(nil), opts.engine())
}

// SchemaSQL answers the statements Migrate runs.
func SchemaSQL(opts *Options) (string, error) {
	return sqllease.SchemaSQL(dialect(nil), opts.engine())
}

func (o *Options) engine() *sqllease.Options {
	if o == nil {
		return nil
	}
	return &sqllease.Options{Prefix: o.Prefix}
}
