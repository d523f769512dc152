package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/bsm/redislock"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

// measureRenewal: locks that are held and wanted by nobody else.
func measureRenewal(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withRedis(func(s *redisServer) error {
		ours := newParty(s.Addr)
		defer ours.close(ctx)
		held := claims(p.locks, func(i int) string { return fmt.Sprintf("held:%d", i) })
		if err := ours.join(ctx, held, driver.Holding); err != nil {
			return err
		}
		theirs, closeTheirs, err := p.obtain(ctx, s)
		if err != nil {
			return err
		}
		defer closeTheirs()
		renew := func(ctx context.Context) (figures, error) {
			return s.spent(ctx, func() error {
				n, err := ours.renew(ctx, held)
				if err == nil && n != len(held) {
					err = fmt.Errorf("%d of %d claims hold", n, len(held))
				}
				return err
			})
		}
		r, err := interleave(ctx, p.rounds, side{nameHasp, renew}, side{"longest", func(ctx context.Context) (figures, error) {
			d, err := s.longest(ctx, func() error { _, err := renew(ctx); return err })
			return figures{"longest": us(d)}, err
		}}, side{nameBsm, func(ctx context.Context) (figures, error) {
			return s.spent(ctx, func() error {
				for _, lock := range theirs {
					if err := lock.Refresh(ctx, time.Minute, nil); err != nil {
						return err
					}
				}
				return nil
			})
		}})
		rows = renewalRows(p, r)
		return err
	})
	if err != nil {
		return nil, err
	}
	idle, err := measureIdle(ctx, p)
	return append(rows, idle...), err
}

// obtain takes as many locks with bsm/redislock.
func (p plan) obtain(ctx context.Context, s *redisServer) (locks []*redislock.Lock, end func(), err error) {
	rdb := connect(s.Addr)
	client := redislock.New(rdb)
	for i := range p.locks {
		lock, err := client.Obtain(ctx, fmt.Sprintf("theirs:%d", i), 5*time.Minute, nil)
		if err != nil {
			_ = rdb.Close()
			return nil, nil, err
		}
		locks = append(locks, lock)
	}
	return locks, func() { _ = rdb.Close() }, nil
}

// spent answers the wall time and the server's processor time that something takes.
func (s *redisServer) spent(ctx context.Context, f func() error) (figures, error) {
	before, err := s.cpu(ctx)
	if err != nil {
		return nil, err
	}
	begin := time.Now()
	if err := f(); err != nil {
		return nil, err
	}
	wall := time.Since(begin)
	after, err := s.cpu(ctx)
	return figures{"wall": us(wall), "cpu": us(after - before)}, err
}

func renewalRows(p plan, r results) []row {
	what := fmt.Sprintf("renewal of %d held locks", p.locks)
	wall, cpu, longest := r.median(nameHasp, "wall"), r.median(nameHasp, "cpu"), r.median("longest", "longest")
	ratio := func(figure string) string { return times(r.ratio(nameHasp, nameBsm, figure), "bsm, one by one") }
	return []row{
		atMost(30_000, "≤ 30 ms").judged("renewal-wall", what+": wall", wall, micros(wall), ratio("wall")),
		atMost(25_000, "≤ 25 ms").judged("renewal-cpu", what+": server CPU", cpu, micros(cpu), ratio("cpu")),
		atMost(250, "≤ 0.25 ms").judged("renewal-longest", what+": longest call", longest, micros(longest), ""),
	}
}

// measureIdle counts what the keeping of locks costs while nothing else happens.
func measureIdle(ctx context.Context, p plan) ([]row, error) {
	numbers := []int{1, p.locks / 10}
	rows, errs := make([]row, len(numbers)), make([]error, len(numbers))
	var wg sync.WaitGroup
	for i, n := range numbers {
		s, err := p.startRedis()
		if err != nil {
			return nil, err
		}
		defer s.Close()
		wg.Go(func() { // side by side: nothing is timed
			perSecond, err := p.idleCommands(ctx, s, n)
			what := fmt.Sprintf("commands per second and lock, %d held with a TTL of %s, nothing happens: hasp", n, p.idleTTL())
			rows[i], errs[i] = compared(what, fmt.Sprintf("%.4f", perSecond/float64(n)), ""), err
		})
	}
	wg.Wait()
	return rows, errors.Join(errs...)
}

// idleTTL makes some renewals happen while it is watched.
func (p plan) idleTTL() time.Duration { return p.idle }

func (p plan) idleCommands(ctx context.Context, s *redisServer, locks int) (float64, error) {
	rdb := connect(s.Addr)
	defer rdb.Close()
	client, err := hasp.New(redislease.New(rdb, nil), &hasp.Options{Lock: hasp.LockOptions{TTL: p.idleTTL()}})
	if err != nil {
		return 0, err
	}
	defer client.Close(ctx)
	for i := range locks {
		lease, err := client.Mutex(fmt.Sprintf("idle:%d", i)).Lock(ctx)
		if err != nil {
			return 0, err
		}
		defer lease.Release(ctx)
	}
	sends := []string{"evalsha", "eval", "ping", "subscribe", "publish"}
	before, err := s.used(ctx, sends...)
	if err != nil {
		return 0, err
	}
	time.Sleep(p.idle)
	after, err := s.used(ctx, sends...)
	return float64(after.calls-before.calls) / p.idle.Seconds(), err
}
