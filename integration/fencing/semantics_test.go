package fencing_test

import (
	"context"
	"database/sql"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/hasp-dev/hasp/fence"
)

// admit raises a fence in a transaction of its own that also writes the token as the data.
func (d database) admit(ctx context.Context, db *sql.DB, token int64, raise func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it has nothing to do
	if err := raise(tx); err != nil {
		return err
	}
	var n int64
	if err := tx.QueryRowContext(ctx, "SELECT n FROM counters WHERE id = 1").Scan(&n); err != nil {
		return err
	}
	if n > token {
		return errors.New("written after a greater one")
	}
	if _, err := tx.ExecContext(ctx, d.set(), token); err != nil {
		return err
	}
	return tx.Commit()
}

// set writes the counter.
func (d database) set() string {
	if d.Dialect == fence.PostgreSQL {
		return "UPDATE counters SET n = $1 WHERE id = 1"
	}
	return "UPDATE counters SET n = ? WHERE id = 1"
}

// raises are the ways to raise a fence.
func (d database) raises(ctx context.Context, token int64) map[string]func(*sql.Tx) error {
	return map[string]func(*sql.Tx) error{
		"counters [1]": func(tx *sql.Tx) error { return d.counter().Admit(ctx, tx, token, 1) },
		"order:42":     func(tx *sql.Tx) error { return d.fences().Admit(ctx, tx, token, "order:42") },
	}
}

func TestRaiseTakesTheSameTokenAgainAndRefusesASmallerOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		ctx, db := within(t), handle(t, d)
		for resource := range d.raises(ctx, 1) {
			must(t, db, "UPDATE counters SET n = 0")
			const first, second = 64 << 50, 65 << 50 // beyond what float64 keeps apart
			for _, token := range []int64{first, first, first + 1, second, second} {
				if err := d.admit(ctx, db, token, d.raises(ctx, token)[resource]); err != nil {
					t.Fatalf("%s: token %d: %v", resource, token, err)
				}
			}
			for _, token := range []int64{second - 1, first} {
				err := d.admit(ctx, db, token, d.raises(ctx, token)[resource])
				var stale *fence.StaleError
				if !errors.As(err, &stale) || *stale != (fence.StaleError{Resource: resource, Seen: second, Given: token}) {
					t.Errorf("%s: token %d: %v", resource, token, err)
				}
			}
			if n := number(t, db, "SELECT n FROM counters"); n != second {
				t.Errorf("%s: the data is %d, want %d", resource, n, int64(second))
			}
		}
	})
}

// Twice in one transaction, and undone with it.
func TestRaiseGoesWithTheTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		ctx, db := within(t), handle(t, d)
		for resource, raise := range d.raises(ctx, 640) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(raise(tx), raise(tx), tx.Rollback()); err != nil {
				t.Fatalf("%s: %v", resource, err)
			}
			if err := d.admit(ctx, db, 1, d.raises(ctx, 1)[resource]); err != nil {
				t.Errorf("%s: a token that was rolled back counts: %v", resource, err)
			}
			must(t, db, "UPDATE counters SET n = 0")
		}
	})
}

func TestRaiseOfARowThatIsNotThereIsNoSuccess(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		ctx, db := within(t), handle(t, d)
		err := d.admit(ctx, db, 640, func(tx *sql.Tx) error { return d.counter().Admit(ctx, tx, 640, 2) })
		if !errors.Is(err, sql.ErrNoRows) || errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v, want sql.ErrNoRows", err)
		}
		for what, column := range map[string]fence.Column{
			"a column that is not there": {Dialect: d.Dialect, Table: "counters", Key: []string{"id"}, Fence: "fens"},
			"a key that is not there":    {Dialect: d.Dialect, Table: "counters", Key: []string{"key_id"}},
		} {
			err := d.admit(ctx, db, 640, func(tx *sql.Tx) error { return column.Admit(ctx, tx, 640, 1) })
			if err == nil || errors.Is(err, fence.ErrStale) || errors.Is(err, sql.ErrNoRows) {
				t.Errorf("%s: got %v", what, err)
			}
		}
	})
}

// Keys that differ only in case, in spaces at the end, or in the form of a letter are others.
func TestTableComparesResourcesByteForByte(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		ctx, db := within(t), handle(t, d)
		for i, resource := range []string{"Job-A", "job-a", "Job-A ", "Jöb-A", "Jo\u0308b-A", "\U0001f512"} {
			token := int64(100 - i)
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			if err := errors.Join(d.fences().Admit(ctx, tx, token, resource), tx.Commit()); err != nil {
				t.Errorf("%q: %v", resource, err)
			}
		}
	})
}

// Many writers at once: whoever comes through comes in the order of the tokens.
func TestRaiseIsInOrderUnderContention(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		ctx, db := within(t), handle(t, d)
		for resource := range d.raises(ctx, 1) {
			must(t, db, "UPDATE counters SET n = 0")
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					for range 15 {
						token := 1 + rand.Int64N(1000)
						err := d.admit(ctx, db, token, d.raises(ctx, token)[resource])
						if err != nil && !errors.Is(err, fence.ErrStale) {
							t.Errorf("%s: token %d: %v", resource, token, err)
						}
					}
				})
			}
			all.Wait()
			fenced := "SELECT token FROM hasp_fences"
			if resource != "order:42" {
				fenced = "SELECT fence FROM counters"
			}
			if n, seen := number(t, db, "SELECT n FROM counters"), number(t, db, fenced); n != seen {
				t.Errorf("%s: the data is of token %d, the fence of %d", resource, n, seen)
			}
		}
	})
}

func TestMigrateManyAtOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, d database) {
		ctx := within(t)
		table := fence.Table{Dialect: d.Dialect, Name: "other_fences"}
		var all sync.WaitGroup
		for range 8 {
			db := handle(t, d)
			all.Go(func() {
				for range 3 {
					if err := table.Migrate(ctx, db); err != nil {
						t.Error(err)
					}
				}
			})
		}
		all.Wait()
		if n := number(t, handle(t, d), "SELECT COUNT(*) FROM other_fences"); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}
