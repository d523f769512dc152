package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/pglease"
)

// with makes a client of hasp with a pool of its own.
func (s *postgres) with(ctx context.Context, ttl time.Duration, use func(c *hasp.Client) error) error {
	pool, err := pgxpool.New(ctx, s.URL())
	if err != nil {
		return err
	}
	defer pool.Close()
	client, err := hasp.New(pglease.New(pool, nil), &hasp.Options{Lock: hasp.LockOptions{TTL: ttl}})
	if err != nil {
		return err
	}
	err = use(client)
	short, stop := context.WithTimeout(ctx, patience)
	defer stop()
	if closed := client.Close(short); err == nil {
		err = closed
	}
	return err
}

// heldRows counts the rows that renewals of many held locks update.
func (p plan) heldRows(ctx context.Context, s *postgres) ([]row, error) {
	const interval = ttl / 3
	var each float64
	var lost atomic.Int64
	err := s.with(ctx, ttl, func(c *hasp.Client) error {
		leases := make([]*hasp.Lease, p.locks)
		if err := spread(p.locks, func(i int) (err error) {
			for range 5 { // the first renewals of so many may keep the others waiting
				leases[i], err = c.Mutex(fmt.Sprintf("held:%d", i)).Lock(ctx)
				if !errors.Is(err, hasp.ErrUnavailable) {
					break
				}
			}
			return err
		}); err != nil {
			return err
		}
		time.Sleep(p.idle) // the first renewal moves each claim into the client's session
		before, err := s.updated(ctx)
		if err != nil {
			return err
		}
		begin := time.Now()
		time.Sleep(p.idle)
		after, err := s.updated(ctx)
		if err != nil {
			return err
		}
		each = (after - before) / (time.Since(begin).Seconds() / interval.Seconds())
		return spread(p.locks, func(i int) error {
			err := leases[i].Release(ctx)
			if errors.Is(err, hasp.ErrLost) {
				lost.Add(1)
				return nil
			}
			return err
		})
	})
	what := fmt.Sprintf("rows updated in each interval by the renewal of %d held locks", p.locks)
	measured, value := fmt.Sprintf("%.1f", each), each
	if n := lost.Load(); n > 0 {
		measured, value = fmt.Sprintf("%.1f; %d locks were lost", each, n), math.Inf(1)
	}
	return []row{atMost(1.25, "1").judged("postgres-held", what, value, measured, "")}, err
}

// updated counts the updates of hasp's rows so far.
func (s *postgres) updated(ctx context.Context) (float64, error) {
	time.Sleep(1100 * time.Millisecond) // sessions report what they have counted once a second
	return s.number(ctx, `SELECT sum(n_tup_upd) FROM pg_stat_user_tables WHERE relname LIKE 'hasp\_%'`)
}

// spread does something n times, some at once.
func spread(n int, do func(i int) error) error {
	const atOnce = 32
	var wg sync.WaitGroup
	errs := make(chan error, atOnce)
	for from := range atOnce {
		wg.Go(func() {
			for i := from; i < n; i += atOnce {
				if err := do(i); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	wg.Wait()
	select {
	case err := <-errs:
		return err
	default:
		return nil
	}
}

// growth is how much tables and indexes grow while locks come and go, half of them under
// keys that were never used before.
func (p plan) growth(ctx context.Context, s *postgres) ([]row, error) {
	var before, after, pairs float64
	err := s.with(ctx, 10*time.Second, func(c *hasp.Client) error { // hasp's default
		end, stop := context.WithTimeout(ctx, p.churn*4/3)
		defer stop()
		churned := make(chan error, 1)
		go func() { churned <- churn(end, c, &pairs) }()
		time.Sleep(p.churn / 3)
		var err error
		if before, err = s.size(ctx); err != nil {
			return err
		}
		if err := <-churned; err != nil {
			return err
		}
		after, err = s.size(ctx)
		return err
	})
	what := fmt.Sprintf("tables and indexes: after %s of locks that come and go -> after %s more", p.churn/3, p.churn)
	measured := fmt.Sprintf("%.1f MB -> %.1f MB (%.0f locks)", before/1e6, after/1e6, pairs)
	return []row{atMost(1.1, "none").judged("postgres-growth", what, after/before, measured, times(after/before, "before"))}, err
}

func (s *postgres) size(ctx context.Context) (float64, error) {
	return s.number(ctx, `SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables WHERE relname LIKE 'hasp\_%'`)
}

// churn takes and releases locks until ctx ends, at the same pace all the time: what is
// kept for a while after its use would grow with it.
func churn(ctx context.Context, c *hasp.Client, pairs *float64) error {
	const hands, pace = 8, 40 * time.Millisecond
	var mu sync.Mutex
	return spread(hands, func(hand int) error {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for i := 0; ctx.Err() == nil; i++ {
			<-tick.C
			key := fmt.Sprintf("churn:%d:%d", hand, i%100)
			if i%2 == 1 {
				key = fmt.Sprintf("churn:%d:new:%d", hand, i)
			}
			lease, err := c.Mutex(key).Lock(ctx)
			if err == nil {
				err = lease.Release(ctx)
			}
			if err != nil {
				return unlessOver(ctx, err)
			}
			mu.Lock()
			*pairs++
			mu.Unlock()
		}
		return nil
	})
}
