package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// A client with a name, a prefix, defaults for its locks, a log and metrics.
func ExampleNew() {
	ctx := context.Background()
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{
		Name:   "worker-1",
		Prefix: "shop:",
		Lock:   hasp.LockOptions{TTL: 30 * time.Second, Wait: time.Minute, Label: "orders"},
		Logger: slog.New(slog.DiscardHandler),
		Observe: func(_ context.Context, e hasp.Event) {
			fmt.Println(e.Kind, e.Op, e.Keys, e.Label, e.Err)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = client.Mutex("order:42").Do(ctx, func(context.Context) error { return nil })
	_ = client.Close(ctx)
	// Output:
	// acquired acquire [order:42] orders <nil>
	// released release [order:42] orders <nil>
	// closed close []  <nil>
}

// Find out at the start whether the store can be used.
func ExampleClient_Ping() {
	ctx := context.Background()
	store := memlease.NewStore()
	client, _ := hasp.New(store.Driver(), nil)
	defer client.Close(ctx)

	fmt.Println(client.Ping(ctx))
	store.Fail(fmt.Errorf("%w: read-only", hasp.ErrRefused))
	fmt.Println(errors.Is(client.Ping(ctx), hasp.ErrRefused))
	// Output:
	// <nil>
	// true
}

// Shut down: contexts end, owners release, and what is still held is named.
func ExampleClient_Close() {
	client := newClient()
	lease, _ := client.Mutex("order:42").Lock(context.Background())

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	fmt.Println(client.Close(ctx))
	fmt.Println(lease.Err())
	// Output:
	// hasp: close: still held and not released, so that they expire by themselves: ["order:42"]
	// client closed
}

// Who holds a key, and who waits for it.
func ExampleClient_Inspect() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	lease, _ := client.Mutex("order:42").Lock(ctx)
	defer lease.Release(ctx)

	line, err := client.Inspect(ctx, "order:42")
	for _, holder := range line.Holders {
		fmt.Println(holder.Name, holder.Token == lease.Token(), holder.ExpiresIn > 9*time.Second)
	}
	fmt.Println(line.Waiting, err)
	// Output:
	// worker-1 true true
	// 0 <nil>
}

// All keys that begin so.
func ExampleClient_List() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	for _, key := range []string{"order:2", "order:1", "report"} {
		lease, _ := client.Mutex(key).Lock(ctx)
		defer lease.Release(ctx)
	}

	for line, err := range client.List(ctx, "order:") {
		fmt.Println(line.Key, len(line.Holders), err)
	}
	// Output:
	// order:1 1 <nil>
	// order:2 1 <nil>
}

// End a lease in an orderly way: nobody else holds before its holder has left.
func ExampleClient_Revoke() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	lease, _ := client.Mutex("order:42").Lock(ctx)

	fmt.Println(client.Revoke(ctx, "order:42", lease.Token()))
	<-lease.Done()
	fmt.Println(lease.Err())
	_, err := client.Mutex("order:42").TryLock(ctx)
	fmt.Println("held until it is released:", errors.Is(err, hasp.ErrHeld))
	fmt.Println(errors.Is(lease.Release(ctx), hasp.ErrLost))
	// Output:
	// <nil>
	// lease lost: revoked by an operator
	// held until it is released: true
	// true
}

// Take a lease away at once, from a holder that hangs.
func ExampleClient_ForceRelease() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	hung, _ := client.Mutex("order:42").Lock(ctx)

	fmt.Println(client.ForceRelease(ctx, "order:42", hung.Token()))
	lease, err := client.Mutex("order:42").TryLock(ctx)
	fmt.Println(lease.Token() > hung.Token(), err)
	fmt.Println(lease.Release(ctx))
	fmt.Println(errors.Is(client.ForceRelease(ctx, "order:42", hung.Token()), hasp.ErrNotHeld))
	// Output:
	// <nil>
	// true <nil>
	// <nil>
	// true
}
