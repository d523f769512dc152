package sqlitelease_test

import (
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
	names := strings.NewReplacer("{claims}", "hasp_claims", "{lines}", "hasp_lines", "{sessions}", "hasp_sessions", "{meta}", "hasp_meta")
	parameter := regexp.MustCompile(`\$\d+`)
	seen := 0
	for _, part := range strings.Split(page, "-- name: ")[1:] {
		name, text, _ := strings.Cut(part, "\n")
		text, _, _ = strings.Cut(text, ";")
		if name == "named" { // once in a client's life, and sessions are few
			continue
		}
		seen++
		rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+parameter.ReplaceAllString(names.Replace(text), "1"))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for rows.Next() {
			var id, parent, unused int
			var detail string
			if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(detail, "SCAN hasp_") || strings.Contains(detail, "TEMP B-TREE") || strings.Contains(detail, "SCAN s") {
				t.Errorf("%s: %s", name, detail)
			}
		}
		if err := rows.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if seen < 30 {
		t.Errorf("only %d statements seen", seen)
	}
}
