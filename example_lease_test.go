package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// Work that cannot watch a context asks the lease between its steps.
func ExampleLease_Err() {
	ctx := context.Background()
	store := memlease.NewStore()
	client, err := hasp.New(store.Driver(), &hasp.Options{Lock: hasp.LockOptions{TTL: 100 * time.Millisecond}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)

	lease, _ := client.Mutex("k").Lock(ctx)
	fmt.Println(lease.Err())
	store.Drop("k") // as if the store had lost it
	<-lease.Done()
	fmt.Println(errors.Is(lease.Err(), hasp.ErrLost))
	fmt.Println(errors.Is(lease.Release(ctx), hasp.ErrLost))
	// Output:
	// <nil>
	// true
	// true
}

// A context that tells why it ended.
func ExampleLease_Context() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	lease, _ := client.Mutex("k").Lock(ctx)
	work := lease.Context(ctx)
	fmt.Println(lease.Release(ctx))
	<-work.Done()
	fmt.Println(context.Cause(work))
	// Output:
	// <nil>
	// lease released
}

// Each later grant has a larger token: pass it along with what you write, and have
// the receiver refuse a smaller one.
func ExampleLease_Token() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	first, _ := client.Mutex("k").Lock(ctx)
	first.Release(ctx)
	second, _ := client.Mutex("k").Lock(ctx)
	defer second.Release(ctx)
	fmt.Println(second.Token() > first.Token())
	// Output: true
}

// Ask for more time before a long step; it never adds up.
func ExampleLease_Extend() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	lease, _ := client.With(hasp.LockOptions{NoRenew: true}).Mutex("k").Lock(ctx)
	defer lease.Release(ctx)
	fmt.Println(lease.Extend(ctx, time.Minute))
	fmt.Println(time.Until(lease.TrustedUntil()) > 50*time.Second)
	// Output:
	// <nil>
	// true
}

// Not again within a minute, on no machine.
func ExampleLease_Keep() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	lease, _ := client.Mutex("reminder:42").Lock(ctx)
	fmt.Println("sent; kept:", lease.Keep(ctx, time.Minute))

	_, err := client.Mutex("reminder:42").TryLock(ctx)
	fmt.Println("held:", errors.Is(err, hasp.ErrHeld))
	// Output:
	// sent; kept: <nil>
	// held: true
}

// Take a lost lease up again, from its own place in the line. The work that was done
// under the lost one must be over.
func ExampleLease_Reclaim() {
	ctx := context.Background()
	driver := memlease.NewStore().Driver()
	client, err := hasp.New(driver, &hasp.Options{Lock: hasp.LockOptions{TTL: 100 * time.Millisecond, Grace: time.Minute}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)

	lost, _ := client.Mutex("k").Lock(ctx)
	driver.Fail(errors.New("the network is down"))
	<-lost.Done()
	driver.Fail(nil)

	lease, err := lost.Reclaim(ctx)
	fmt.Println(err, lease.Token() > lost.Token())
	fmt.Println(lease.Release(ctx))
	// Output:
	// <nil> true
	// <nil>
}
