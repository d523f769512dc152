package integration_test

import (
	"context"
	"database/sql"
	"path/filepath"
	"sync"
	"testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/stores"
)

// events keeps what a client observes.
type events struct {
	mu  sync.Mutex
	all []hasp.Event
}

func (e *events) add(_ context.Context, ev hasp.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, ev)
}

func (e *events) count(kind hasp.EventKind) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	n := 0
	for _, ev := range e.all {
		if ev.Kind == kind {
			n++
		}
	}
	return n
}

// guarded makes a database file with one row, which takes no write with a token smaller
// than it has seen.
func guarded(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guarded.db")
	db := must(sql.Open("sqlite", stores.SQLiteDSN(file)))(t)
	_ = must(db.ExecContext(t.Context(), `create table guarded (body text, fence int); insert into guarded values ('', 0)`))(t)
	wantNil(t, db.Close())
	return file
}
