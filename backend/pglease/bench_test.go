package pglease_test

import (
	"context"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// BenchmarkFree is a free lock and its release.
func BenchmarkFree(b *testing.B) {
	c := newClient(b, newPool(b, newDatabase(b)))
	b.ReportAllocs()
	for b.Loop() {
		c.leave(c.holds(time.Minute, "key"), driver.Left)
	}
}

// BenchmarkFreeByHand is the same two messages, without a driver.
func BenchmarkFreeByHand(b *testing.B) {
	url := newDatabase(b)
	pool := newPool(b, url)
	c := newClient(b, pool)
	for b.Loop() {
		x := c.claim(time.Minute, "key")
		id := hex.EncodeToString(x.ID[:])
		for _, text := range []string{
			fmt.Sprintf("hasp_v1_join('', decode('%s', 'hex'), ARRAY[decode('6b6579', 'hex')], '{1,1,0,0}', '{60000000,0,6000000}', false, true, decode('74657374', 'hex'), '', 0, '', '{}', 0)", id),
			fmt.Sprintf("hasp_v1_leave('', decode('%s', 'hex'), ARRAY[decode('6b6579', 'hex')], 0)", id),
		} {
			conn, err := pool.Acquire(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			if _, err := conn.Conn().PgConn().Exec(b.Context(), "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT * FROM "+text+"; COMMIT").ReadAll(); err != nil {
				b.Fatal(err)
			}
			conn.Release()
		}
	}
}

// BenchmarkHandOver is a release until the next holder has heard of it.
func BenchmarkHandOver(b *testing.B) {
	pool := newPool(b, newDatabase(b))
	clients := []*client{newClient(b, pool), newClient(b, pool)}
	heard := make(chan driver.Signal, 64)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	for _, c := range clients {
		hears := make(chan struct{}, 64)
		go func() {
			_ = c.Listen(ctx, c.inbox, func(s driver.Signal) {
				if s.Kind == driver.Missed {
					hears <- struct{}{}
				} else {
					heard <- s
				}
			})
		}()
		<-hears
		<-hears // by notification
	}
	x := clients[0].holds(time.Minute, "key")
	i := 0
	var total time.Duration
	for b.Loop() {
		i = 1 - i
		y := clients[i].claim(time.Minute, "key")
		clients[i].join(driver.Join{Claim: y}, driver.Waiting)
		begin := time.Now()
		clients[1-i].leave(x, driver.Left)
		for s := range heard {
			if s.ID == y.ID {
				break
			}
		}
		total += time.Since(begin)
		x = y
	}
	b.ReportMetric(float64(total.Microseconds())/float64(b.N), "µs/hand-over")
}
