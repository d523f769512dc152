package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver of the file

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// measureLocal: what hasp itself costs, without a network.
func measureLocal(ctx context.Context, p plan) ([]row, error) {
	dir, err := os.MkdirTemp("", "hasp-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "hasp.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)")
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if err := sqlitelease.Migrate(ctx, db, nil); err != nil {
		return nil, err
	}
	var rows []row
	err = p.withRedis(func(s *redisServer) error {
		rdb := connect(s.Addr)
		defer rdb.Close()
		r, err := interleave(ctx, p.rounds,
			p.pairOf("memory", memlease.NewStore().Driver()), p.pairOf("SQLite", sqlitelease.New(db, nil)),
			p.turnsOf("memory, between goroutines", memlease.NewStore().Driver()),
			p.turnsOf("Redis, between goroutines", redislease.New(rdb, nil)))
		for _, store := range []string{"memory", "SQLite"} {
			rows = append(rows, compared("lock + release, "+store, micros(r.median(store, "each")), ""))
		}
		for _, way := range []string{"memory", "Redis"} {
			each := r.median(way+", between goroutines", "each")
			rows = append(rows, atMost(5, "≤ 5 µs").judged("goroutines-"+way,
				"hand-over between goroutines of one process, "+way, each, micros(each), ""))
		}
		return err
	})
	return rows, err
}

// pairOf locks and releases a free lock.
func (p plan) pairOf(name string, d driver.Driver) side {
	client, failed := hasp.New(d, nil)
	return side{name, func(ctx context.Context) (figures, error) {
		if failed != nil {
			return nil, failed
		}
		return perTurn(ctx, client, 1, p.window)
	}}
}

// turnsOf lets two goroutines of one client want one lock all the time.
func (p plan) turnsOf(name string, d driver.Driver) side {
	client, failed := hasp.New(d, nil)
	return side{name, func(ctx context.Context) (figures, error) {
		if failed != nil {
			return nil, failed
		}
		return perTurn(ctx, client, 2, p.window)
	}}
}

// perTurn answers how long a turn of a lock takes that some goroutines want.
func perTurn(ctx context.Context, client *hasp.Client, goroutines int, window time.Duration) (figures, error) {
	mutex := client.Mutex("turns")
	counts, errs := make([]int, goroutines), make([]error, goroutines)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for time.Since(begin) < window && errs[i] == nil {
				lease, err := mutex.Lock(ctx)
				if err == nil {
					err = lease.Release(ctx)
				}
				errs[i] = err
				counts[i]++
			}
		})
	}
	wg.Wait()
	took, n := time.Since(begin), 0
	for _, c := range counts {
		n += c
	}
	if n == 0 {
		return nil, fmt.Errorf("no turn within %s", window)
	}
	return figures{"each": us(took) / float64(n)}, errors.Join(errs...)
}
