package sqlitelease

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// place remembers which file the database is. One that was deleted or replaced can be
// read and written by those who have it open as if nothing had happened, while everybody
// else is in another file: a lock in it excludes nobody.
type place struct {
	mu   sync.Mutex
	path string      // guarded by mu
	file os.FileInfo // guarded by mu; nil: not known yet, or no file
}

// inspect is the dialect's Inspect. The first time that all is well it looks where the
// file is.
func (p *place) inspect(ctx context.Context, db *sql.DB, t sqllease.Tables) error {
	if err := inspect(ctx, db, t); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.file != nil {
		return nil
	}
	path, err := databasePath(ctx, db)
	if err != nil || path == "" {
		return err
	}
	if info, err := os.Stat(path); err == nil { // else it is no file that others would find
		p.path, p.file = path, info
	}
	return nil
}

// intact is the dialect's Intact.
func (p *place) intact() error {
	p.mu.Lock()
	path, file := p.path, p.file
	p.mu.Unlock()
	if file == nil {
		return nil
	}
	now, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(file, now) {
		return fmt.Errorf("%s: %w: the database file %s was deleted or replaced while it was in use: start the program again",
			name, driver.ErrRefused, path)
	}
	return nil
}
