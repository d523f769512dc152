package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// user is a client of one library.
type user struct {
	name string
	locker
	cancellable bool // its locks are taken with a context that can end
}

// measureFree: every goroutine takes and releases a lock of its own that nobody else
// wants, over and over.
func measureFree(ctx context.Context, p plan) ([]row, error) {
	var rows []row
	err := p.withRedis(func(s *redisServer) error {
		var users []user
		defer func() {
			for _, u := range users {
				_ = u.close()
			}
		}()
		for _, lib := range libraries() {
			l, err := lib.open(s.Addr)
			if err != nil {
				return fmt.Errorf("%s: %w", lib.name, err)
			}
			users = append(users, user{lib.name, l, true})
		}
		var err error
		if rows, err = p.alone(ctx, users); err != nil {
			return err
		}
		for _, g := range p.goroutines {
			more, err := p.together(ctx, users, g)
			if err != nil {
				return err
			}
			rows = append(rows, more...)
		}
		return nil
	})
	return rows, err
}

// background marks who is measured with a context that cannot end.
const background = ", background"

// alone is one goroutine.
func (p plan) alone(ctx context.Context, users []user) ([]row, error) {
	all := slices.Clone(users)
	for _, u := range users {
		if u.name == nameHasp || u.name == nameRaw { // once more
			u.name, u.cancellable = u.name+background, false
			all = append(all, u)
		}
	}
	r, err := interleave(ctx, p.pairRounds, p.pairSides(all, 1)...)
	if err != nil {
		return nil, err
	}
	const what, p50 = "lock + release, 1 goroutine, p50", "p50"
	measured := func(name string) string { return micros(r.median(name, p50)) }
	ours, ending := r.ratio(nameHasp+background, nameRaw+background, p50), r.ratio(nameHasp, nameRaw, p50)
	rows := []row{
		atMost(1.10, "≤ 1.10 x raw").judged("free-background", what+": hasp, background context", ours, measured(nameHasp+background), times(ours, nameRaw)),
		atMost(1.15, "≤ 1.15 x raw").judged("free-cancellable", what+": hasp, cancellable context", ending,
			measured(nameHasp), times(ending, nameRaw)),
		compared(what+": raw", measured(nameRaw), ""),
	}
	for _, name := range []string{namePipelined, nameBsm, nameRedsync, nameRueidislock} {
		rows = append(rows, compared(what+": "+name, measured(name), times(r.ratio(name, nameRaw, p50), nameRaw)))
	}
	return rows, nil
}

// together is more goroutines, of one client.
func (p plan) together(ctx context.Context, users []user, g int) ([]row, error) {
	r, err := interleave(ctx, p.rounds, p.pairSides(users, g)...)
	if err != nil {
		return nil, err
	}
	const rate = "pairs/s"
	least := atLeast(0.95, "≥ 0.95 x bsm/redislock")
	if g >= 64 {
		least = atLeast(2, "≥ 2.0 x bsm/redislock")
	}
	if g >= 256 {
		least = atLeast(3, "≥ 3.0 x bsm/redislock")
	}
	what := fmt.Sprintf("pairs/s, %d goroutines", g)
	best := nameBsm
	if r.median(nameWideBsm, rate) > r.median(nameBsm, rate) {
		best = nameWideBsm
	}
	ours := r.ratio(nameHasp, best, rate)
	rows := []row{least.judged(fmt.Sprintf("free-%d", g), what+": hasp", ours,
		fmt.Sprintf("%.0f", r.median(nameHasp, rate)), times(ours, best))}
	for _, name := range []string{nameRaw, namePipelined, nameBsm, nameWideBsm, nameRedsync, nameRueidislock} {
		rows = append(rows, compared(what+": "+name, fmt.Sprintf("%.0f", r.median(name, rate)), times(r.ratio(name, best, rate), best)))
	}
	return rows, nil
}

func (p plan) pairSides(users []user, goroutines int) []side {
	var sides []side
	for _, u := range users {
		sides = append(sides, side{u.name, func(ctx context.Context) (figures, error) {
			if !u.cancellable {
				ctx = context.Background()
			}
			return u.pairs(ctx, goroutines, p.window)
		}})
	}
	return sides
}

// pairs takes and releases locks for a while in each goroutine.
func (u user) pairs(ctx context.Context, goroutines int, window time.Duration) (figures, error) {
	if u.cancellable {
		var stop context.CancelFunc
		ctx, stop = context.WithCancel(ctx)
		defer stop()
		defer time.AfterFunc(window+patience, stop).Stop()
	}
	if _, err := u.repeat(ctx, goroutines, window/10); err != nil { // warms up
		return nil, err
	}
	begin := time.Now()
	took, err := u.repeat(ctx, goroutines, window)
	return figures{
		"p50":     quantile(took, 0.5),
		"pairs/s": float64(len(took)) / time.Since(begin).Seconds(), // the last pairs may end late
	}, err
}

// repeat answers how many microseconds each pair took.
func (u user) repeat(ctx context.Context, goroutines int, window time.Duration) ([]float64, error) {
	var mu sync.Mutex
	var all []float64
	var failed error
	var wg sync.WaitGroup
	begin := time.Now()
	for i := range goroutines {
		key := fmt.Sprintf("%s:%d", u.name, i)
		wg.Go(func() {
			took, err := u.repeatOne(ctx, key, begin, window)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, took...)
			if err != nil {
				failed = err
			}
		})
	}
	wg.Wait()
	return all, failed
}

func (u user) repeatOne(ctx context.Context, key string, begin time.Time, window time.Duration) ([]float64, error) {
	took := make([]float64, 0, 4096)
	for now := time.Now(); now.Sub(begin) < window; {
		unlock, err := u.lock(ctx, key)
		if err != nil {
			return took, err
		}
		if err := unlock(); err != nil {
			return took, err
		}
		end := time.Now()
		took = append(took, float64(end.Sub(now))/1e3)
		now = end
	}
	return took, nil
}
