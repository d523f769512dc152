package main

import (
	"context"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

// measureMemory: what the server has allocated with and without locks, all that it keeps
// beside them included.
func measureMemory(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withRedis(func(s *redisServer) error {
		rdb := connect(s.Addr)
		defer rdb.Close()
		ours := newParty(s.Addr)
		defer ours.close(ctx)
		name, err := defaultName(ctx, s)
		if err != nil {
			return err
		}
		const perLock, perWaiter = "hasp, a lock", "hasp, a waiter"
		r, err := interleave(ctx, min(p.rounds, 3), side{nameRaw, func(ctx context.Context) (figures, error) {
			return p.perItem(ctx, s, func() error {
				return pipelined(ctx, rdb, p.locks, func(pipe redis.Pipeliner, i int) {
					pipe.SetNX(ctx, memoryKey(i), random(), 6*ttl)
				})
			})
		}}, side{perLock, func(ctx context.Context) (figures, error) {
			alone := claims(p.locks, memoryKey)
			rename(alone, name)
			return p.perItem(ctx, s, func() error { return ours.join(ctx, alone, driver.Holding) })
		}}, side{perWaiter, func(ctx context.Context) (figures, error) {
			first, rest := p.line(1, 6*ttl)
			rename(rest, name)
			if err := ours.join(ctx, first, driver.Holding); err != nil {
				return nil, err
			}
			return p.perItem(ctx, s, func() error { return ours.join(ctx, rest, driver.Waiting) })
		}})
		measured := func(name string) string { return fmt.Sprintf("%.0f B", r.median(name, "bytes")) }
		ratio, waiter := r.ratio(perLock, nameRaw, "bytes"), r.median(perWaiter, "bytes")
		rows = []row{
			compared("memory of a raw lock", measured(nameRaw), ""),
			atMost(1.3, "≤ 1.3 x raw").judged("memory-alone", "memory of a free-standing lock: hasp", ratio, measured(perLock), times(ratio, nameRaw)),
			atMost(150, "≤ 150 B").judged("memory-waiter", "memory of each further waiter: hasp", waiter, measured(perWaiter), ""),
		}
		return err
	})
	return rows, err
}

func memoryKey(i int) string { return fmt.Sprintf("key:%05d", i) }

func rename(all []driver.Claim, name string) {
	for i := range all {
		all[i].Name = name
	}
}

// perItem answers how many bytes the server has more for each lock or waiter, and then
// deletes everything. It lets the server put its tables in order before it looks.
func (p plan) perItem(ctx context.Context, s *redisServer, f func() error) (figures, error) {
	time.Sleep(p.idle / 16)
	before, err := s.memory(ctx)
	if err != nil {
		return nil, err
	}
	if err := f(); err != nil {
		return nil, err
	}
	time.Sleep(p.idle / 16)
	after, err := s.memory(ctx)
	if err != nil {
		return nil, err
	}
	return figures{"bytes": (after - before) / float64(p.locks)}, s.do(ctx, "FLUSHALL", "SYNC")
}

// defaultName is what hasp calls a client that has no name, as its claims carry it.
func defaultName(ctx context.Context, s *redisServer) (string, error) {
	rdb := connect(s.Addr)
	defer rdb.Close()
	client, err := hasp.New(redislease.New(rdb, nil), nil)
	if err != nil {
		return "", err
	}
	defer client.Close(ctx)
	lease, err := client.Mutex("name").Lock(ctx)
	if err != nil {
		return "", err
	}
	defer lease.Release(ctx)
	line, err := client.Inspect(ctx, "name")
	if err != nil {
		return "", err
	}
	return line.Holders[0].Name, nil
}
