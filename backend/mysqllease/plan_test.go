package mysqllease_test

import (
	"database/sql"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/backend/mysqllease"
	"github.com/hasp-dev/hasp/backend/sqllease"
)

// Small tables tempt the server into walking over all of them. A statement that locks would
// wait for the rows of other lines then, so each of those must look rows up.
func TestEveryStatementThatLocksLooksUpItsRows(t *testing.T) {
	t.Parallel()
	s := sharedServer(t)
	name := s.database(t)
	db, d := s.open(t, name), newDriver(t, s, name)
	for _, key := range []string{"a", "b", "c"} {
		joined(t, d, mutex("client", key))
	}
	names := strings.NewReplacer("{claims}", "hasp_claims", "{lines}", "hasp_lines", "{sessions}", "hasp_sessions", "{meta}", "hasp_meta")
	parameter, limit := regexp.MustCompile(`\$\d+`), regexp.MustCompile(`LIMIT \$\d+`)
	locking := 0
	many := [][]byte{[]byte("a")} // more than the server looks at one by one when it plans
	for i := range 500 {
		many = append(many, fmt.Appendf(nil, "a%d", i))
	}
	for _, part := range strings.Split(withParts(mysqllease.Statements()), "-- name: ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, ";")
		if strings.HasPrefix(text, "INSERT") {
			continue
		}
		locks := strings.HasPrefix(text, "UPDATE") || strings.HasPrefix(text, "DELETE") || strings.Contains(text, "FOR UPDATE")
		if !locks {
			continue
		}
		locking++
		text = parameter.ReplaceAllString(limit.ReplaceAllString(strings.ReplaceAll(names.Replace(text), "IN ($1)", "IN (LIST)"), "LIMIT 9"), "X'61'")
		text = strings.ReplaceAll(text, "FROM (X'61')", "FROM ("+mysqllease.Literal(sqllease.Selected(many))+")")
		for _, list := range []string{"X'61'", "X'61', X'62'", mysqllease.Literal(many)} {
			for _, step := range plan(t, db, "EXPLAIN "+strings.ReplaceAll(text, "LIST", list)) {
				if strings.HasPrefix(step["table"], "<") { // what was read before
					continue
				}
				if step["type"] == "ALL" || step["type"] == "index" {
					t.Errorf("%s walks over %s for a list of %d: %v", name, step["table"], 1+strings.Count(list, ","), step)
				}
			}
		}
	}
	if locking < 12 {
		t.Errorf("only %d statements seen", locking)
	}
}

// withParts puts the page's parts where they are named.
func withParts(page string) string {
	for {
		before, rest, found := strings.Cut(page, "-- part: ")
		if !found {
			return page
		}
		name, rest, _ := strings.Cut(rest, "\n")
		text, rest, _ := strings.Cut(rest, "\n\n")
		page = before + strings.ReplaceAll(rest, "{"+name+"}", text)
	}
}

// plan is how the server would run a statement, step by step.
func plan(t *testing.T, db *sql.DB, text string) []map[string]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var steps []map[string]string
	for rows.Next() {
		values := make([]sql.NullString, len(columns))
		into := make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rows.Scan(into...); err != nil {
			t.Fatal(err)
		}
		step := make(map[string]string)
		for i, c := range columns {
			step[c] = values[i].String
		}
		steps = append(steps, step)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return steps
}
