package sqlitelease_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// A deleted file can still be used by those who have it open. Whoever comes then makes a
// new one, so nothing in the old one may count any more.
func TestADeletedOrReplacedFileRenewsAndGrantsNothing(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(path string) error{
		"deleted": os.Remove,
		"moved":   func(path string) error { return os.Rename(path, path+".old") },
		"replaced": func(path string) error {
			return errors.Join(os.WriteFile(path+".new", []byte("SQLite format 3\x00"), 0o600), os.Rename(path+".new", path))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, db := newFile(t)
			db.SetMaxOpenConns(1) // another connection would make a new, empty file
			d := sqlitelease.New(db, nil)
			t.Cleanup(func() {
				ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Second)
				defer cancel()
				_ = d.Close(ctx)
			})
			held := mutex("refuse", "key")
			if st, err := d.Join(t.Context(), driver.Join{Claim: held, Try: true}); err != nil || st.State != driver.Holding {
				t.Fatalf("%v, %v, want a grant", st.State, err)
			}
			if err := lose(path); err != nil {
				t.Fatal(err)
			}
			_, err := d.Join(t.Context(), driver.Join{Claim: mutex("refuse", "other"), Try: true})
			wantRefused(t, err, "deleted or replaced", filepath.Base(path))
			wantRefused(t, d.Check(t.Context()), "deleted or replaced")
			d.Renew(t.Context(), []driver.Renewal{{Ref: held.Ref, Mode: driver.Extend, Life: held.Life}},
				func(_ int, _ driver.Standing, err error) { wantRefused(t, err, "deleted or replaced") })
		})
	}
}

func TestAFileReachedByASymbolicLinkIsInItsPlace(t *testing.T) {
	t.Parallel()
	path, _ := newFile(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	d := sqlitelease.New(openFile(t, link), nil)
	for range 2 {
		if err := d.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
