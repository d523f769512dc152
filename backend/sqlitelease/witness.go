package sqlitelease

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

// maxScan is how many names of the database's folder are read to find stray lock files.
const maxScan = 2048

// witness keeps this client's lock file and probes those of others. The kernel frees a
// lock file when the last process that has it open ends.
type witness struct {
	mu   sync.Mutex
	base string   // path of the database; guarded by mu
	file *os.File // guarded by mu; nil: none
}

// Open makes and locks this client's file before anybody can know its name.
func (w *witness) Open(ctx context.Context, db *sql.DB) (sqllease.Proof, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	boot := bootID()
	if boot == "" {
		return sqllease.Proof{}, nil
	}
	base, err := databasePath(ctx, db)
	if err != nil || base == "" {
		return sqllease.Proof{}, err
	}
	w.base = base
	for range 3 { // somebody who tidies up may take a file for a stray one
		f := newLockFile(base)
		if f == nil {
			break
		}
		if lockAlone(f) && isAt(f, f.Name()) {
			w.file = f
			return sqllease.Proof{Boot: boot, File: filepath.Base(f.Name())}, nil
		}
		_ = os.Remove(f.Name())
		_ = f.Close()
	}
	// No lock file can be made, so others must wait for this client's claims to expire.
	// It can still see whether others live.
	return sqllease.Proof{Boot: boot}, nil
}

// databasePath asks SQLite where its file is; "": in memory.
func databasePath(ctx context.Context, db *sql.DB) (string, error) {
	var path sql.NullString
	err := db.QueryRowContext(ctx, "SELECT file FROM pragma_database_list WHERE name = 'main'").Scan(&path)
	return path.String, err
}

func newLockFile(base string) *os.File {
	mode := os.FileMode(0o644)
	if info, err := os.Stat(base); err == nil {
		mode = info.Mode().Perm() // whoever may use the database may probe
	}
	random := make([]byte, 12)
	_, _ = rand.Read(random) // never fails
	f, err := os.OpenFile(base+suffix+hex.EncodeToString(random), os.O_CREATE|os.O_EXCL|os.O_RDWR, mode)
	if err != nil {
		return nil
	}
	return f
}

const suffix = "-hasp-"

func isAt(f *os.File, path string) bool {
	mine, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(path)
	return err == nil && os.SameFile(mine, there)
}

// Dead says whether a lock file is there and free.
func (w *witness) Dead(p sqllease.Proof) bool {
	path, ok := w.path(p)
	if !ok {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return lockShared(f)
}

// Strays finds lock files nobody holds.
func (w *witness) Strays(limit int) []sqllease.Proof {
	w.mu.Lock()
	base := w.base
	w.mu.Unlock()
	if base == "" {
		return nil
	}
	folder, err := os.Open(filepath.Dir(base))
	if err != nil {
		return nil
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(maxScan) // what was read until an error counts
	var strays []sqllease.Proof
	for _, name := range names {
		p := sqllease.Proof{File: name}
		if len(strays) < limit && strings.HasPrefix(name, filepath.Base(base)+suffix) && w.Dead(p) {
			strays = append(strays, p)
		}
	}
	return strays
}

// Discard removes a lock file that nobody holds.
func (w *witness) Discard(p sqllease.Proof) {
	path, ok := w.path(p)
	if !ok {
		return
	}
	f, err := os.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	if lockAlone(f) {
		_ = os.Remove(path) // the next client tidies up
	}
}

// path answers where a proof's file is. A name that is no lock file of this database,
// whoever wrote it into the table, is not touched.
func (w *witness) path(p sqllease.Proof) (string, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.base == "" || !strings.HasPrefix(p.File, filepath.Base(w.base)+suffix) || strings.ContainsAny(p.File, `/\`) {
		return "", false
	}
	return filepath.Join(filepath.Dir(w.base), p.File), true
}

// Close removes the lock file, or leaves it locked until the process ends.
func (w *witness) Close(keep bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.file == nil {
		return
	}
	if keep {
		leak(w.file)
	} else {
		_ = os.Remove(w.file.Name())
	}
	_ = w.file.Close()
	w.file = nil
}

func (w *witness) handle() *os.File {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file
}
