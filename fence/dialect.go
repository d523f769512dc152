package fence

import (
	"fmt"
	"strconv"
	"strings"
)

// Dialect is how a database writes SQL.
type Dialect uint8

// The databases.
const (
	PostgreSQL Dialect = iota + 1
	MySQL              // and MariaDB
	SQLite
)

// String names the dialect.
func (d Dialect) String() string {
	switch d {
	case PostgreSQL:
		return "PostgreSQL"
	case MySQL:
		return "MySQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("dialect(%d)", uint8(d))
}

func (d Dialect) check() error {
	switch d {
	case PostgreSQL, MySQL, SQLite:
		return nil
	}
	return invalidf("Dialect is %v, want PostgreSQL, MySQL or SQLite", d)
}

// marker writes the n-th parameter, from 1.
func (d Dialect) marker(n int) string {
	if d == PostgreSQL {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

// quote writes a checked name. SQLite takes what stands in double quotes for a text where
// it knows no such column, and what stands in these for a name only.
func (d Dialect) quote(name string) string {
	q := "`"
	if d == PostgreSQL {
		q = `"`
	}
	return q + strings.ReplaceAll(name, ".", q+"."+q) + q
}

// locking ends a SELECT that reads what is there now and keeps it from changing. On SQLite
// the transaction has written already, so it is the only one that can.
func (d Dialect) locking() string {
	if d == SQLite {
		return ""
	}
	return " FOR UPDATE"
}

// checkName holds a name that becomes SQL text to letters, digits and underscores, with at
// most as many dots between.
func checkName(field, name string, dots int) error {
	parts := strings.Split(name, ".")
	ok := len(parts) <= dots+1
	for _, part := range parts {
		for i, r := range part {
			letter := r == '_' || (r >= 'a' && r <= 'z') || (r >= 'A' && r <= 'Z')
			ok = ok && (letter || (r >= '0' && r <= '9' && i > 0))
		}
		ok = ok && part != ""
	}
	if !ok {
		return invalidf("%s is %q; a name has letters, digits and underscores, and begins with no digit", field, name)
	}
	return nil
}
