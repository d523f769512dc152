package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver of the file

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/backend/sqlitelease"
)

// measureLocal: what goes on within one process, and what hasp itself costs.
func measureLocal(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withRedis(func(s *redisServer) error {
		for _, part := range []func(context.Context, plan, *redisServer) ([]row, error){localTurns, localCrowd, localShares} {
			more, err := part(ctx, p, s)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		return nil
	})
	return rows, err
}

// stock are clients of hasp in this process.
type stock struct{ open []locker }

// add opens a client, unless that fails.
func (k *stock) add(l locker, err error) (locker, error) {
	if err == nil {
		k.open = append(k.open, l)
	}
	return l, err
}

func (k *stock) close() {
	for _, l := range k.open {
		_ = l.close()
	}
}

// onRedis is hasp on a connection pool of its own.
func onRedis(addr string, opts *hasp.Options) (locker, error) {
	rdb := connect(addr)
	return newOurs(redislease.New(rdb, nil), opts, rdb.Close)
}

// onFile is hasp on a new file.
func onFile(ctx context.Context, dir string) (locker, error) {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "hasp.db")+"?_pragma=journal_mode(wal)&_pragma=synchronous(normal)")
	if err != nil {
		return nil, err
	}
	if err := sqlitelease.Migrate(ctx, db, nil); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return newOurs(sqlitelease.New(db, nil), nil, db.Close)
}

// localTurns is a lock that one goroutine wants over and over, or two do.
func localTurns(ctx context.Context, p plan, s *redisServer) ([]row, error) {
	const pair, turns, far, sticky = "pair, ", "turns, ", "between processes", "sticky"
	dir, err := os.MkdirTemp("", "hasp-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var all stock
	defer all.close()
	memory, err := all.add(newOurs(memlease.NewStore().Driver(), nil, func() error { return nil }))
	if err != nil {
		return nil, err
	}
	file, err := all.add(onFile(ctx, dir))
	if err != nil {
		return nil, err
	}
	plain, err := all.add(onRedis(s.Addr, nil))
	if err != nil {
		return nil, err
	}
	kept, err := all.add(onRedis(s.Addr, &hasp.Options{Lock: hasp.LockOptions{Sticky: time.Minute}}))
	if err != nil {
		return nil, err
	}
	others, err := p.redisStage(s).sides(2, 0, p.longWindow, nameHasp)
	if err != nil {
		return nil, err
	}
	r, err := interleave(ctx, p.rounds,
		p.turns(pair+"memory", memory, "pair", 1), p.turns(pair+"SQLite", file, "pair", 1),
		p.turns(pair+"Redis", plain, "pair", 1), p.turns(sticky, kept, "sticky", 1),
		p.turns(turns+"memory", memory, "turns", 2), p.turns(turns+"Redis", plain, "turns", 2),
		side{far, others[0].measure})
	if err != nil {
		return nil, err
	}
	var rows []row
	for _, store := range []string{"memory", "SQLite"} {
		rows = append(rows, compared("lock + release, "+store, micros(r.median(pair+store, "each")), ""))
	}
	for _, store := range []string{"memory", "Redis"} {
		p50 := r.median(turns+store, "p50")
		rows = append(rows, atMost(5, "≤ 5 µs").judged("goroutines-"+store, "hand-over between goroutines of one process, p50, "+store, p50, micros(p50), ""))
	}
	rate := func(side, figure string) string { return fmt.Sprintf("%.0f", r.median(side, figure)) }
	near := r.ratio(turns+"Redis", far, "handed")
	hot := r.ratio(sticky, pair+"Redis", "rate")
	return append(rows,
		compared("hand-overs/s between two processes, no hold, Redis", rate(far, "handed"), ""),
		atLeast(20, "≥ 20 x between processes").judged("goroutines-rate", "hand-overs/s between two goroutines of one process, no hold, Redis", near,
			rate(turns+"Redis", "handed"), times(near, "between processes")),
		compared("pairs/s, 1 goroutine, one key, Redis", rate(pair+"Redis", "rate"), ""),
		atLeast(100, "≥ 100 x without").judged("sticky-rate", "pairs/s, 1 goroutine, one key, Redis, Sticky", hot,
			rate(sticky, "rate"), times(hot, "without")),
	), nil
}

// localCrowd is many goroutines of one process that want one key on Redis, all with one
// client.
func localCrowd(ctx context.Context, p plan, s *redisServer) ([]row, error) {
	var all stock
	defer all.close()
	var sides []side
	p.window = p.longWindow
	for _, name := range []string{nameHasp, nameBsm, nameRueidislock} {
		lib, err := named(name)
		if err != nil {
			return nil, err
		}
		l, err := all.add(lib.open(s.Addr))
		if err != nil {
			return nil, err
		}
		sides = append(sides, p.turns(name, l, "crowd:"+name, p.contenders))
	}
	r, err := interleave(ctx, p.rounds, sides...)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("hand-overs/s, %d goroutines of one process, no hold, Redis: ", p.contenders)
	measured := func(name string) string {
		return fmt.Sprintf("%.0f (%.0f locks/s)", r.median(name, "handed"), r.median(name, "rate"))
	}
	var rows []row
	for _, name := range []string{nameBsm, nameRueidislock} {
		ratio := r.ratio(nameHasp, name, "handed")
		rows = append(rows, compared(what+name, measured(name), ""),
			atLeast(20, "≥ 20 x").judged("crowd-"+name, what+"hasp beside "+name, ratio, measured(nameHasp), times(ratio, name)))
	}
	return rows, nil
}

// localShares is goroutines of two processes that want one key on Redis. The processes wait
// for each other, so they have it equally often.
func localShares(ctx context.Context, p plan, s *redisServer) ([]row, error) {
	g := p.redisStage(s)
	g.processes = 2
	sides, err := g.sides(2*p.fair, 0, max(p.longWindow, time.Second), nameOneHasp)
	if err != nil {
		return nil, err
	}
	r, err := interleave(ctx, p.rounds, sides...)
	if err != nil {
		return nil, err
	}
	var parts []float64
	one, other := r.all(nameOneHasp, "of 0"), r.all(nameOneHasp, "of 1")
	for i := range one {
		parts = append(parts, min(one[i], other[i])/max(one[i], other[i]))
	}
	part := quantile(parts, 0.5)
	what := fmt.Sprintf("grants within a second, 2 processes of %d goroutines each, no hold, Redis: the two processes", p.fair)
	return []row{atLeast(0.9, "within 10 %").judged("shares", what, part,
		fmt.Sprintf("%.0f and %.0f", r.median(nameOneHasp, "of 0"), r.median(nameOneHasp, "of 1")), times(part, "the other"))}, nil
}
