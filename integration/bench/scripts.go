package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// measureScripts: what the server does, by its own clock.
func measureScripts(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withRedis(func(s *redisServer) error {
		var err error
		rows, err = p.joinCost(ctx, s)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = p.withRedis(func(s *redisServer) error {
		long, err := p.longScripts(ctx, s)
		rows = append(rows, long...)
		return err
	})
	return rows, err
}

// setNX is the least that any lock with a script needs.
const setNX = `return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2])`

// joinCost compares the join of a free mutex with that, each sent alone; and what a join
// costs when many coincide.
func (p plan) joinCost(ctx context.Context, s *redisServer) ([]row, error) {
	ours := newParty(s.Addr)
	defer ours.close(ctx)
	rdb := connect(s.Addr)
	defer rdb.Close()
	script := redis.NewScript(setNX)
	if err := script.Load(ctx, rdb).Err(); err != nil {
		return nil, err
	}
	key := func(i int) string { return fmt.Sprintf("key:%05d", i) }
	fresh, again, many := "free, unused lately", "free, just released", "free, 256 at once"
	join := func(used bool, goroutines int) func(ctx context.Context) (figures, error) {
		return func(ctx context.Context) (figures, error) {
			all := claims(p.locks, key)
			if used {
				if err := ours.join(ctx, all, driver.Holding); err != nil {
					return nil, err
				}
				if err := ours.leave(ctx, all); err != nil {
					return nil, err
				}
			}
			return s.perJoin(ctx, len(all), func() error { return ours.joinBy(ctx, goroutines, all, driver.Holding) })
		}
	}
	r, err := interleave(ctx, p.rounds, side{nameRaw, func(ctx context.Context) (figures, error) {
		value := random()
		return s.perJoin(ctx, p.locks, func() error {
			for i := range p.locks {
				if err := script.EvalSha(ctx, rdb, []string{"hasp:{" + key(i) + "}"}, value, 60_000).Err(); err != nil {
					return err
				}
			}
			return nil
		})
	}}, side{fresh, join(false, 1)}, side{again, join(true, 1)}, side{many, join(false, atOnce)})
	const what, usec = "join of a mutex on the server, each", "usec"
	ratio := r.ratio(fresh, nameRaw, usec)
	beside := func(name string) row {
		return compared(what+": hasp, "+name, fmt.Sprintf("%.2f µs", r.median(name, usec)), times(r.ratio(name, nameRaw, usec), "that EVALSHA"))
	}
	return []row{
		compared(what+": EVALSHA of SET NX PX alone", fmt.Sprintf("%.2f µs", r.median(nameRaw, usec)), ""),
		atMost(1.6, "≤ 1.6 x that EVALSHA").judged("join-fresh", what+": hasp, "+fresh, ratio,
			fmt.Sprintf("%.2f µs", r.median(fresh, usec)), times(ratio, "that EVALSHA")),
		beside(again), beside(many),
	}, err
}

// perJoin answers the microseconds that scripts take on the server for each of n joins,
// however many of them one script does. What was there before and after it is deleted.
func (s *redisServer) perJoin(ctx context.Context, n int, f func() error) (figures, error) {
	if err := s.do(ctx, "CONFIG", "RESETSTAT"); err != nil {
		return nil, err
	}
	if err := f(); err != nil {
		return nil, err
	}
	u, err := s.used(ctx, "evalsha")
	if err != nil {
		return nil, err
	}
	return figures{"usec": u.usec / float64(n)}, s.do(ctx, "FLUSHALL", "SYNC")
}

// longScripts looks for the longest script of any kind.
func (p plan) longScripts(ctx context.Context, s *redisServer) ([]row, error) {
	ours := newParty(s.Addr)
	defer ours.close(ctx)
	var sides []side
	for _, c := range []struct {
		name  string
		stage func(ctx context.Context, ours *party, s *redisServer) (time.Duration, error)
	}{
		{"dead mutexes in line", func(ctx context.Context, ours *party, s *redisServer) (time.Duration, error) {
			return p.dead(ctx, ours, s, 1)
		}},
		{"dead readers in line", func(ctx context.Context, ours *party, s *redisServer) (time.Duration, error) {
			return p.dead(ctx, ours, s, rwCapacity)
		}},
		{"readers granted, renewed and gone", p.readers},
	} {
		sides = append(sides, side{c.name, func(ctx context.Context) (figures, error) {
			d, err := c.stage(ctx, ours, s)
			if err != nil {
				return nil, err
			}
			return figures{"longest": us(d)}, s.do(ctx, "FLUSHALL", "SYNC")
		}})
	}
	r, err := interleave(ctx, p.rounds, sides...)
	var rows []row
	for i, c := range sides {
		longest := r.median(c.name, "longest")
		rows = append(rows, atMost(1000, "≤ 1 ms").judged("longest-"+strconv.Itoa(i),
			fmt.Sprintf("the longest script: %d %s", p.locks, c.name), longest, micros(longest), ""))
	}
	return rows, err
}

const rwCapacity = 1 << 30 // of a read/write lock; its writer's weight, too

// line is n claims of one key behind a first one, which holds all of it.
func (p plan) line(capacity int64, wait time.Duration) (first []driver.Claim, rest []driver.Claim) {
	all := claims(p.locks+1, func(int) string { return "line" })
	for i := range all {
		all[i].Capacity = capacity
		all[i].Life.Wait = wait
	}
	all[0].Weight = capacity
	return all[:1], all[1:]
}

// dead is a line in which all but the first have died; then somebody comes, and the
// first leaves.
func (p plan) dead(ctx context.Context, ours *party, s *redisServer, capacity int64) (time.Duration, error) {
	const life = 2 * time.Second
	first, rest := p.line(capacity, life)
	if err := ours.join(ctx, first, driver.Holding); err != nil {
		return 0, err
	}
	if err := ours.join(ctx, rest, driver.Waiting); err != nil {
		return 0, err
	}
	time.Sleep(life + 50*time.Millisecond)
	next := claims(1, func(int) string { return "line" })
	return s.longest(ctx, func() error {
		if err := ours.join(ctx, next, driver.Waiting); err != nil {
			return err
		}
		if err := ours.leave(ctx, first); err != nil {
			return err
		}
		return ours.untilHolding(ctx, next)
	})
}

// readers is a line of readers behind a writer who leaves; they renew, and leave, too.
func (p plan) readers(ctx context.Context, ours *party, s *redisServer) (time.Duration, error) {
	first, rest := p.line(rwCapacity, time.Minute)
	return s.longest(ctx, func() error {
		if err := ours.join(ctx, first, driver.Holding); err != nil {
			return err
		}
		if err := ours.join(ctx, rest, driver.Waiting); err != nil {
			return err
		}
		if err := ours.leave(ctx, first); err != nil {
			return err
		}
		if err := ours.untilHolding(ctx, rest); err != nil {
			return err
		}
		return ours.leave(ctx, rest)
	})
}

// untilHolding renews claims until all of them hold.
func (p *party) untilHolding(ctx context.Context, all []driver.Claim) error {
	for ctx.Err() == nil {
		n, err := p.renew(ctx, all)
		if err != nil || n == len(all) {
			return err
		}
	}
	return ctx.Err()
}
