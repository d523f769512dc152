package sqlitelease_test

import (
	"database/sql"
	"regexp"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
)

// TestEveryStatementUsesAnIndex looks at the plans: none may walk a table or sort.
func TestEveryStatementUsesAnIndex(t *testing.T) {
	t.Parallel()
	_, db := newFile(t)
	page, _ := sqlitelease.Statements()
	names := strings.NewReplacer("{claims}", "hasp_claims", "{lines}", "hasp_lines", "{sessions}", "hasp_sessions", "{meta}", "hasp_meta", "{prefix}", "hasp_")
	page = withParts(page)
	parameter := regexp.MustCompile(`\$\d+`)
	seen := 0
	for _, part := range strings.Split(page, "-- name: ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, ";")
		if name == "named" { // once in a client's life, and sessions are few
			continue
		}
		seen++
		for _, detail := range plan(t, db, parameter.ReplaceAllString(names.Replace(text), "1")) {
			if strings.Contains(detail, "SCAN hasp_") || strings.Contains(detail, "TEMP B-TREE") || strings.Contains(detail, "SCAN s") {
				t.Errorf("%s: %s", name, detail)
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d statements seen", seen)
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

// plan is how SQLite would run a statement, line by line.
func plan(t *testing.T, db *sql.DB, text string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	defer rows.Close()
	var details []string
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		details = append(details, detail)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return details
}
