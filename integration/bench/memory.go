package main

import (
	"context"
	"fmt"

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
		raw, err := s.perItem(ctx, p.locks, func() error {
			return pipelined(ctx, rdb, p.locks, func(pipe redis.Pipeliner, i int) {
				pipe.SetNX(ctx, fmt.Sprintf("key:%05d", i), random(), ttl)
			})
		})
		if err != nil {
			return err
		}
		ours := newParty(s.Addr)
		defer ours.close(ctx)
		name, err := defaultName(ctx, s)
		if err != nil {
			return err
		}
		alone := claims(p.locks, func(i int) string { return fmt.Sprintf("key:%05d", i) })
		for i := range alone {
			alone[i].Name = name
		}
		free, err := s.perItem(ctx, p.locks, func() error { return ours.join(ctx, alone, driver.Holding) })
		if err != nil {
			return err
		}
		first, rest := p.line(1, ttl*6)
		for i := range rest {
			rest[i].Name = name
		}
		if err := ours.join(ctx, first, driver.Holding); err != nil {
			return err
		}
		waiter, err := s.perItem(ctx, p.locks, func() error { return ours.join(ctx, rest, driver.Waiting) })
		rows = []row{
			compared("memory of a raw lock", fmt.Sprintf("%.0f B", raw), ""),
			atMost(1.3, "≤ 1.3 x raw").judged("memory-alone", "memory of a free-standing lock: hasp", free/raw, fmt.Sprintf("%.0f B", free), times(free/raw, nameRaw)),
			atMost(150, "≤ 150 B").judged("memory-waiter", "memory of each further waiter: hasp", waiter, fmt.Sprintf("%.0f B", waiter), ""),
		}
		return err
	})
	return rows, err
}

// perItem answers how many bytes the server has more for each of n items, and deletes
// them when it is the caller's turn again.
func (s *redisServer) perItem(ctx context.Context, n int, f func() error) (float64, error) {
	before, err := s.memory(ctx)
	if err != nil {
		return 0, err
	}
	if err := f(); err != nil {
		return 0, err
	}
	after, err := s.memory(ctx)
	if err != nil {
		return 0, err
	}
	return (after - before) / float64(n), s.do(ctx, "FLUSHALL", "SYNC")
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
