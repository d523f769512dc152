package hasp_test

import (
	"testing"

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
