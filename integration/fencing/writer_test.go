package fencing_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/fence"
)

// roleVariable makes the test binary a writer in a process of its own.
const roleVariable = "HASP_FENCING_ROLE"

// The ways to keep late writes out.
const (
	byColumn = "column"
	byTable  = "table"
	byGuard  = "guard"
	byNobody = "nothing" // to see that a write would be late
)

// role is what a writer's process is told to do.
type role struct {
	Database database
	Way      string
	Play     string // "late", "open", "loop"
	TTL      time.Duration
}

// key is what every writer locks.
const key = "order:42"

// writer increments the counter under the lock.
type writer struct {
	role
	db     *sql.DB
	client *hasp.Client
}

func newWriter(r role) (*writer, error) {
	db, err := r.Database.open()
	if err != nil {
		return nil, err
	}
	client, err := hasp.New(r.Database.driver(db), &hasp.Options{Lock: hasp.LockOptions{TTL: r.TTL}})
	return &writer{role: r, db: db, client: client}, err
}

func (w *writer) close() {
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	_ = w.client.Close(ctx)
	_ = w.db.Close()
}

// proof is of a lease whose owner does not look at it again: a zombie's.
type proof struct {
	lease *hasp.Lease
	token int64
}

func (p proof) Ref() driver.Ref       { return p.lease.Ref() }
func (p proof) Driver() driver.Driver { return p.lease.Driver() }

// enter makes a transaction exclude those that come later.
func (w *writer) enter(ctx context.Context, tx *sql.Tx, p proof) error {
	switch w.Way {
	case byColumn:
		return w.Database.counter().Admit(ctx, tx, p.token, 1)
	case byTable:
		return w.Database.fences().Admit(ctx, tx, p.token, key)
	case byGuard:
		return sqllease.Guard(ctx, tx, p)
	default:
		return nil
	}
}

// inside runs work in a transaction that was entered.
func (w *writer) inside(ctx context.Context, p proof, work func(*sql.Tx) error) error {
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if err := w.enter(ctx, tx, p); err != nil {
		return err
	}
	if err := work(tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// increment reads in one transaction and writes in the next; what happens between is why
// the write may come late.
func (w *writer) increment(ctx context.Context, p proof, between func()) error {
	var n int64
	err := w.inside(ctx, p, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, "SELECT n FROM counters WHERE id = 1").Scan(&n)
	})
	if err != nil {
		return err
	}
	between()
	return w.inside(ctx, p, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, w.Database.set(), n+1)
		return err
	})
}

// lock waits for the lock.
func (w *writer) lock(ctx context.Context) (proof, error) {
	lease, err := w.client.Mutex(key).Lock(ctx)
	if err != nil {
		return proof{}, err
	}
	return proof{lease, lease.Token()}, nil
}

// outcome names how a write ended.
func outcome(err error) string {
	switch {
	case err == nil:
		return "written"
	case errors.Is(err, fence.ErrStale):
		return "stale"
	case errors.Is(err, hasp.ErrLost):
		return "lost"
	}
	return "failed: " + err.Error()
}

// play is the process of a writer. It says how far it is on its output and goes on at
// each line of its input.
func play(text string) int {
	var r role
	err := json.Unmarshal([]byte(text), &r)
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	w, err := newWriter(r)
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	defer w.close()
	ctx := context.Background()
	in := bufio.NewScanner(os.Stdin)
	if r.Play == "loop" {
		w.loop(ctx, in)
		return 0
	}
	p, err := w.lock(ctx)
	if err != nil {
		fmt.Println("failed:", err)
		return 1
	}
	switch r.Play {
	case "late": // between reading and writing
		err = w.increment(ctx, p, func() {
			fmt.Println("read")
			in.Scan()
		})
	case "open": // within the transaction
		err = w.inside(ctx, p, func(tx *sql.Tx) error {
			fmt.Println("open")
			in.Scan()
			_, err := tx.ExecContext(ctx, w.Database.set(), 100)
			return err
		})
	}
	_ = p.lease.Release(ctx)
	fmt.Println("outcome:", outcome(err))
	return 0
}

// loop increments until its input ends, and says how often.
func (w *writer) loop(ctx context.Context, in *bufio.Scanner) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		for in.Scan() {
		}
		cancel()
	}()
	written, refused := w.increments(ctx)
	fmt.Println("written:", written, "refused:", refused)
}

// increments writes under the lock until ctx ends.
func (w *writer) increments(ctx context.Context) (written, refused int) {
	work := context.WithoutCancel(ctx)
	for ctx.Err() == nil {
		p, err := w.lock(ctx)
		if err != nil {
			continue // it ends, or the store was silent
		}
		for range 5 {
			err = w.increment(work, p, func() { time.Sleep(20 * time.Millisecond) }) // into which a stop falls
			switch how := outcome(err); how {
			case "written":
				written++
			case "stale", "lost":
				refused++
			default:
				fmt.Println(how)
			}
			if err != nil || p.lease.Err() != nil {
				break
			}
		}
		_ = p.lease.Release(work)
	}
	return written, refused
}
