package hasp_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// BenchmarkLockRelease is the cost of the façade itself: a free lock, on the store in
// memory.
func BenchmarkLockRelease(b *testing.B) {
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	mutex := client.Mutex("order:42")
	b.ReportAllocs()
	for b.Loop() {
		lease, err := mutex.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
	if err := client.Close(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkHandOver is the time from one owner to the next, with one waiter.
func BenchmarkHandOver(b *testing.B) {
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	mutex := client.Mutex("order:42")
	turns := func(n int, done chan<- error) {
		for range n {
			lease, err := mutex.Lock(ctx)
			if err == nil {
				err = lease.Release(ctx)
			}
			if err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}
	done := make(chan error, 2)
	b.ResetTimer()
	go turns(b.N/2, done)
	go turns(b.N-b.N/2, done)
	for range 2 {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if err := client.Close(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkLocalHandOver is the time from one owner to the next of the same process, on
// a store of which it may keep the lock.
func BenchmarkLocalHandOver(b *testing.B) {
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{Lock: hasp.LockOptions{LocalHandoffs: 63}})
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	mutex := client.Mutex("order:42")
	took := make([]time.Duration, 0, b.N)
	var released time.Time // written and read under the lock
	worker := func(n int, done chan<- error) {
		for range n {
			lease, err := mutex.Lock(ctx)
			if err != nil {
				done <- err
				return
			}
			if now := time.Now(); !released.IsZero() {
				took = append(took, now.Sub(released))
			}
			for open, waiting := hasp.Gates(client); open > 0 && waiting == 0 && len(took) < b.N-2; _, waiting = hasp.Gates(client) {
				runtime.Gosched() // until the other waits
			}
			released = time.Now()
			if err := lease.Release(ctx); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}
	done := make(chan error, 2)
	b.ResetTimer()
	go worker(b.N/2, done)
	go worker(b.N-b.N/2, done)
	for range 2 {
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	}
	b.StopTimer()
	if slices.Sort(took); len(took) > 0 {
		b.ReportMetric(float64(took[len(took)/2].Nanoseconds()), "p50-ns")
	}
	if err := client.Close(ctx); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkStickyLockRelease is a lock and its release where the store is asked once in
// 64 times.
func BenchmarkStickyLockRelease(b *testing.B) {
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{Lock: hasp.LockOptions{Sticky: time.Minute}})
	if err != nil {
		b.Fatal(err)
	}
	ctx := b.Context()
	mutex := client.Mutex("order:42")
	b.ReportAllocs()
	for b.Loop() {
		lease, err := mutex.Lock(ctx)
		if err != nil {
			b.Fatal(err)
		}
		if err := lease.Release(ctx); err != nil {
			b.Fatal(err)
		}
	}
	if err := client.Close(ctx); err != nil {
		b.Fatal(err)
	}
}
