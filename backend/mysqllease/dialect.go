package mysqllease

import (
	_ "embed"
	"strconv"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

const name = "mysqllease"

//go:embed statements.sql
var statements string

//go:embed schema.sql
var schema string

// dialect is MySQL for the engine.
func dialect(o *Options) sqllease.Dialect {
	s := new(server)
	if o != nil {
		s.database = o.Database
	}
	return sqllease.Dialect{
		Name:       name,
		Statements: statements,
		Schema:     schema,
		Marker:     func(n int) string { return "$" + strconv.Itoa(n) },
		Literal:    literal,
		Rows:       s,
		Quote: func(schema, name string) string {
			if schema != "" {
				name = schema + "`.`" + name
			}
			return "`" + name + "`"
		},
		LongestKey: 512, // what the column takes
		Grain:      time.Microsecond,
		Writers:    4,
		SweepAfter: 30 * time.Second,
		PollMin:    5 * time.Millisecond,
		PollMax:    100 * time.Millisecond,
		Classify:   classify,
		Inspect:    s.inspect,
		Rehearse:   rehearse,
	}
}
