package sqlitelease

import (
	"database/sql"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Statements and Schema are the pages of SQL.
func Statements() (page, tables string) { return statements, schema }

// Classify is classify.
func Classify(err error) sqllease.Fault { return classify(err) }

// NewSweeping makes a driver whose janitor comes sooner.
func NewSweeping(db *sql.DB, after time.Duration) *Driver {
	w := new(witness)
	d := dialect(w)
	d.SweepAfter = after
	return &Driver{Driver: sqllease.New(db, d, nil), witness: w}
}
