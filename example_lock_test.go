package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// newClient makes a client of a store of its own.
func newClient() *hasp.Client {
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{Name: "worker-1"})
	if err != nil {
		panic(err)
	}
	return client
}

// Hold a lock across several calls. The context ends when the lease is lost.
func ExampleMutex_Lock() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	lease, err := client.Mutex("order:42").Lock(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer lease.Release(ctx)

	work := lease.Context(ctx)
	fmt.Println(lease.Keys(), lease.Token() > 0, work.Err())
	// Output: [order:42] true <nil>
}

// Take a lock if it is free, else say who has it.
func ExampleMutex_TryLock() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	first, err := client.Mutex("order:42").TryLock(ctx)
	fmt.Println(err)

	_, err = client.Mutex("order:42").TryLock(ctx)
	if held := (*hasp.HeldError)(nil); errors.As(err, &held) {
		fmt.Println(held.Key, "is held by", held.Holder)
	}

	fmt.Println(first.Release(ctx))
	// Output:
	// <nil>
	// order:42 is held by worker-1
	// <nil>
}

// Run a function under several keys, all or nothing.
func ExampleMutex_Do() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	err := client.Mutex("account:a", "account:b").Do(ctx, func(ctx context.Context) error {
		lease, _ := hasp.FromContext(ctx, "account:a")
		fmt.Println("moving money under", lease.Keys())
		return nil
	})
	fmt.Println(err)
	// Output:
	// moving money under [account:a account:b]
	// <nil>
}

// Skip work that somebody else does already.
func ExampleMutex_TryDo() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	report := func(ctx context.Context) error {
		fmt.Println("the nightly report")
		err := client.Mutex("nightly").TryDo(context.WithoutCancel(context.Background()), func(context.Context) error {
			fmt.Println("never twice at once")
			return nil
		})
		fmt.Println("held:", errors.Is(err, hasp.ErrHeld))
		return ctx.Err()
	}
	fmt.Println(client.Mutex("nightly").TryDo(ctx, report))
	// Output:
	// the nightly report
	// held: true
	// <nil>
}

// Many readers or one writer.
func ExampleClient_RWMutex() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	catalog := client.RWMutex("catalog")

	first, _ := catalog.RLock(ctx)
	second, _ := catalog.RLock(ctx)
	_, err := catalog.TryLock(ctx)
	fmt.Println("two readers, and no writer:", errors.Is(err, hasp.ErrHeld))

	first.Release(ctx)
	second.Release(ctx)
	fmt.Println(catalog.Do(ctx, func(context.Context) error {
		fmt.Println("writing")
		return nil
	}))
	// Output:
	// two readers, and no writer: true
	// writing
	// <nil>
}

// Readers by function.
func ExampleRWMutex_RDo() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	err := client.RWMutex("catalog").RDo(ctx, func(ctx context.Context) error {
		lease, _ := hasp.FromContext(ctx, "catalog")
		fmt.Println("shared:", lease.Shared())
		return nil
	})
	fmt.Println(err)
	// Output:
	// shared: true
	// <nil>
}

// Four permits, of which a job may take more than one.
func ExampleClient_Semaphore() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	gpus := client.Semaphore("gpu", 4)

	two, err := gpus.Acquire(ctx, 2)
	fmt.Println("two:", err)
	_, err = gpus.TryAcquire(ctx, 3)
	fmt.Println("three more:", errors.Is(err, hasp.ErrHeld))
	fmt.Println(two.Release(ctx))
	fmt.Println(gpus.TryDo(ctx, 4, func(context.Context) error { return nil }))
	// Output:
	// two: <nil>
	// three more: true
	// <nil>
	// <nil>
}

// Options of one kind of lock.
func ExampleClient_With() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	slow := client.With(hasp.LockOptions{TTL: time.Minute, Wait: 20 * time.Millisecond})
	lease, err := slow.Mutex("import").Lock(ctx)
	fmt.Println(err)
	_, err = slow.Mutex("import").Lock(ctx)
	fmt.Println("held:", errors.Is(err, hasp.ErrHeld))
	fmt.Println(lease.Release(ctx))
	// Output:
	// <nil>
	// held: true
	// <nil>
}

// A part of the program with its own keys.
func ExampleClient_Sub() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)
	billing := client.Sub("billing:")

	lease, _ := billing.Mutex("invoice:7").Lock(ctx)
	line, _ := client.Inspect(ctx, "billing:invoice:7")
	fmt.Println(lease.Keys(), line.Key, len(line.Holders))
	fmt.Println(lease.Release(ctx))
	// Output:
	// [invoice:7] billing:invoice:7 1
	// <nil>
}

// A function that calls another which takes the same lock.
func ExampleLockOptions_reentrant() {
	ctx := context.Background()
	client := newClient().With(hasp.LockOptions{Reentrant: true})

	audit := func(ctx context.Context) error {
		return client.Mutex("order:42").Do(ctx, func(context.Context) error {
			fmt.Println("audited under the same lease")
			return nil
		})
	}
	fmt.Println(client.Mutex("order:42").Do(ctx, audit))
	// Output:
	// audited under the same lease
	// <nil>
}

// Decorate a function so that no two calls for the same order run at once.
func ExampleWrap() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	type order struct{ id int }
	pay := hasp.Wrap(client,
		func(o order) (string, error) { return fmt.Sprintf("order:%d", o.id), nil },
		func(_ context.Context, o order) (string, error) { return fmt.Sprintf("paid %d", o.id), nil },
	)
	fmt.Println(pay(ctx, order{42}))
	// Output: paid 42 <nil>
}

// Goroutines take turns in the order in which they came.
func Example_waiting() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	balance := 0
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			_ = client.Mutex("account").Do(ctx, func(context.Context) error {
				balance++
				return nil
			})
		})
	}
	wg.Wait()
	fmt.Println(balance)
	// Output: 100
}
