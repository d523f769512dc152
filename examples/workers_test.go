package examples_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hasp-dev/hasp/backend/memlease"
)

// Twenty jobs on four machines share two licences.
func Example_workerPool() {
	store := memlease.NewStore()
	var busy, most, done atomic.Int64
	jobs := make(chan int)
	var machines sync.WaitGroup
	for i := range 4 {
		machines.Go(func() {
			client, stop := process(store, fmt.Sprint("machine-", i))
			defer stop()
			for range jobs {
				err := client.Semaphore("licence", 2).Do(context.Background(), 1, func(context.Context) error {
					for now := busy.Add(1); ; {
						if seen := most.Load(); now <= seen || most.CompareAndSwap(seen, now) {
							break
						}
					}
					done.Add(1)
					busy.Add(-1)
					return nil
				})
				if err != nil {
					fmt.Println(err)
				}
			}
		})
	}
	for job := range 20 {
		jobs <- job
	}
	close(jobs)
	machines.Wait()
	fmt.Println(done.Load(), "jobs done, never more than two at once:", most.Load() <= 2)
	// Output:
	// 20 jobs done, never more than two at once: true
}
