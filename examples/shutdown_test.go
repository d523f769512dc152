package examples_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// On TERM a program ends its work, gives its locks back, and only then leaves: whoever
// waits goes on at once instead of after the TTL.
func Example_gracefulShutdown() {
	ctx := context.Background()
	store := memlease.NewStore()
	client, _ := process(store, "old")
	next, stop := process(store, "new")
	defer stop()

	working, ended := make(chan struct{}), make(chan error)
	go func() {
		ended <- client.Mutex("stock").Do(ctx, func(ctx context.Context) error {
			close(working)
			<-ctx.Done() // the step at hand is finished, and no other is begun
			fmt.Println("told to end:", errors.Is(context.Cause(ctx), hasp.ErrClosed))
			return nil
		})
	}()
	<-working

	within, cancel := context.WithTimeout(ctx, 20*time.Second) // less than Kubernetes gives
	defer cancel()
	fmt.Println("closed:", client.Close(within)) // returns when the work has; else it names the keys
	fmt.Println("work:", <-ended)
	lease, err := next.Mutex("stock").TryLock(ctx)
	fmt.Println("the next has it at once:", err)
	fmt.Println(lease.Release(ctx))
	// Output:
	// told to end: true
	// closed: <nil>
	// work: <nil>
	// the next has it at once: <nil>
	// <nil>
}
