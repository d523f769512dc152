package pglease

import (
	"regexp"
	"strings"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Options are the names of the tables and functions, in letters, digits and underscores.
type Options struct {
	// Schema holds them. Defaults to the first of the connection's search_path.
	Schema string
	// Prefix begins the name of each. Defaults to "hasp_".
	Prefix string
}

// layout is the number in the functions' names.
const layout = "v1_"

// names are the checked options, as they stand in SQL.
type names struct {
	tables   sqllease.Tables
	function func(name string) string
}

func newNames(o *Options) (names, error) {
	if o == nil {
		o = new(Options)
	}
	tables, err := sqllease.NewTables(quote, &sqllease.Options{Schema: o.Schema, Prefix: o.Prefix})
	if err != nil {
		return names{}, err
	}
	return names{tables: tables, function: func(name string) string { return quote(o.Schema, tables.Name(layout+name)) }}, nil
}

func quote(schema, name string) string {
	if schema != "" {
		name = schema + `"."` + name
	}
	return `"` + name + `"`
}

// expand puts the names into a page of SQL.
func (n names) expand(page string) string {
	page = regexp.MustCompile(`\{`+layout+`(\w+)\}`).ReplaceAllStringFunc(page, func(m string) string {
		return n.function(strings.TrimSuffix(strings.TrimPrefix(m, "{"+layout), "}"))
	})
	return n.tables.Expand(page)
}
