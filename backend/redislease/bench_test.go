package redislease_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// release is what everybody writes: delete the key if it is still one's own.
const release = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// BenchmarkRaw is a lock by hand: SET NX PX, and a script that compares and deletes.
func BenchmarkRaw(b *testing.B) {
	rdb := sharedServer(b).client(b)
	unlock := redis.NewScript(release)
	ctx := context.Background() //nolint:usetesting // the benchmark's context can end
	for b.Loop() {
		if ok, err := rdb.SetNX(ctx, "raw:key", "0123456789abcdef", 10*time.Second).Result(); err != nil || !ok {
			b.Fatal(ok, err)
		}
		if err := unlock.Run(ctx, rdb, []string{"raw:key"}, "0123456789abcdef").Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func benchmarkJoinLeave(ctx context.Context, b *testing.B) {
	b.Helper()
	p := newParty(b, sharedServer(b).client(b), nil)
	x := p.claim("bench:key")
	for b.Loop() {
		if s, err := p.Join(ctx, driver.Join{Claim: x}); err != nil || s.State != driver.Holding {
			b.Fatal(s, err)
		}
		if s, err := p.Leave(ctx, driver.Leaving{Ref: x.Ref}); err != nil || s.State != driver.Left {
			b.Fatal(s, err)
		}
	}
}

// BenchmarkJoinLeave is one lock and release, with a context that cannot end.
func BenchmarkJoinLeave(b *testing.B) {
	benchmarkJoinLeave(context.Background(), b) //nolint:usetesting // the benchmark's context can end
}

// BenchmarkJoinLeaveCancellable is the same with one that can.
func BenchmarkJoinLeaveCancellable(b *testing.B) { benchmarkJoinLeave(b.Context(), b) }

// BenchmarkJoinLeaveParallel shares round trips.
func BenchmarkJoinLeaveParallel(b *testing.B) {
	for _, g := range []int{2, 4, 16, 64, 256} {
		b.Run(strconv.Itoa(g), func(b *testing.B) {
			p := newParty(b, sharedServer(b).client(b), nil)
			b.SetParallelism((g + 1) / 2)
			b.RunParallel(func(pb *testing.PB) {
				x := p.claim(newKey())
				for pb.Next() {
					if s, err := p.Join(b.Context(), driver.Join{Claim: x}); err != nil || s.State != driver.Holding {
						b.Error(s, err)
					}
					if s, err := p.Leave(b.Context(), driver.Leaving{Ref: x.Ref}); err != nil || s.State != driver.Left {
						b.Error(s, err)
					}
				}
			})
		})
	}
}

// BenchmarkRenew10000 renews 10,000 claims that stand alone, in one call.
func BenchmarkRenew10000(b *testing.B) {
	p := newParty(b, sharedServer(b).client(b), nil)
	items := make([]driver.Renewal, 10_000)
	for i := range items {
		x := p.claim(fmt.Sprintf("bench:%d", i))
		x.Life.Hold = time.Minute
		p.joins(&x, driver.Holding)
		items[i] = driver.Renewal{Ref: x.Ref, Mode: driver.Extend, Life: x.Life}
	}
	b.ResetTimer()
	for b.Loop() {
		p.Renew(b.Context(), items, func(i int, s driver.Standing, err error) {
			if err != nil || s.State != driver.Holding {
				b.Fatal(i, s, err)
			}
		})
	}
}

// BenchmarkHandOver lets the holder of a line leave and join behind, in one step.
func BenchmarkHandOver(b *testing.B) {
	for _, n := range []int{2, 64, 1000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			p := newParty(b, sharedServer(b).client(b), nil)
			line := make([]driver.Claim, n)
			for i := range line {
				line[i] = p.claim("bench:line")
				line[i].Life = driver.Life{Hold: time.Minute, Wait: time.Minute}
				if _, err := p.Join(b.Context(), driver.Join{Claim: line[i]}); err != nil {
					b.Fatal(err)
				}
			}
			for i := 0; b.Loop(); i++ {
				x := line[i%n]
				s, err := p.Join(b.Context(), driver.Join{Claim: x, Leaving: &driver.Leaving{Ref: x.Ref}})
				if err != nil || s.State != driver.Waiting {
					b.Fatal(s, err)
				}
			}
			for _, x := range line {
				_, _ = p.Leave(b.Context(), driver.Leaving{Ref: x.Ref})
			}
		})
	}
}
