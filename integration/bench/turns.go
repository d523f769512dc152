package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// turns lets some goroutines of one client want one key all the time, for no time each.
func (p plan) turns(name string, l locker, key string, goroutines int) side {
	return side{name, func(ctx context.Context) (figures, error) {
		if err := new(rota).run(ctx, l, key, goroutines, p.window/10); err != nil { // warms up
			return nil, err
		}
		var r rota
		if err := r.run(ctx, l, key, goroutines, p.window); err != nil {
			return nil, err
		}
		return r.figures(p.window)
	}}
}

// rota is what the goroutines write down about their turns.
type rota struct {
	mu        sync.Mutex // not the lock that is measured: what is measured may be wrong
	last      int        // who had it last
	releasing time.Time  // when that one began to give it back
	turns     int
	passed    []float64 // µs from the one to another
}

// run lets goroutines take turns. What begins after the window is not written down.
func (r *rota) run(ctx context.Context, l locker, key string, goroutines int, window time.Duration) error {
	errs := make([]error, goroutines)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range goroutines {
		wg.Go(func() {
			for time.Since(begin) < window && errs[i] == nil {
				errs[i] = r.turn(ctx, l, key, i, begin.Add(window))
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// figures are how long a turn takes, how many there are in a second, how many of them went
// to another goroutine than the one before, and how long that took.
func (r *rota) figures(window time.Duration) (figures, error) {
	if r.turns == 0 {
		return nil, fmt.Errorf("no turn within %s", window)
	}
	seconds := window.Seconds()
	return figures{
		"each": us(window) / float64(r.turns), "rate": float64(r.turns) / seconds,
		"handed": float64(max(len(r.passed), 1)) / seconds, // where nobody else has come, this is the most it can be
		"p50":    quantile(r.passed, 0.5),
	}, nil
}

// turn is one turn of goroutine i.
func (r *rota) turn(ctx context.Context, l locker, key string, i int, end time.Time) error {
	unlock, err := l.lock(ctx, key)
	if err != nil {
		return err
	}
	now := time.Now()
	r.mu.Lock()
	if now.Before(end) {
		if r.turns > 0 && r.last != i {
			r.passed = append(r.passed, us(now.Sub(r.releasing)))
		}
		r.turns++
	}
	r.last, r.releasing = i, time.Now()
	r.mu.Unlock()
	return unlock()
}
