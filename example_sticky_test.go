package hasp_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// Goroutines of one client hand a lease on among themselves: its tokens follow each other,
// and the store is asked once.
func ExampleLockOptions_localHandoffs() {
	ctx := context.Background()
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{
		Lock: hasp.LockOptions{LocalHandoffs: 10}, // so many in a row, also while others wait
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	counter := 0
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			_ = client.Mutex("counter").Do(ctx, func(context.Context) error {
				counter++
				return nil
			})
		})
	}
	all.Wait()
	fmt.Println(counter)
	// Output: 8
}

// A sticky lease stays with the client after its release while nobody else wants it.
func ExampleLockOptions_sticky() {
	ctx := context.Background()
	store := memlease.NewStore()
	mine, err := hasp.New(store.Driver(), &hasp.Options{
		Name: "mine", Lock: hasp.LockOptions{Sticky: time.Minute},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer mine.Close(ctx)
	other, err := hasp.New(store.Driver(), &hasp.Options{Name: "other"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer other.Close(ctx)

	first, _ := mine.Mutex("order:42").Lock(ctx)
	_ = first.Release(ctx)
	line, _ := other.Inspect(ctx, "order:42")
	fmt.Println("still held by", line.Holders[0].Name)

	second, _ := mine.Mutex("order:42").Lock(ctx) // asks no store
	fmt.Println("the next token:", second.Token() == first.Token()+1)
	_ = second.Release(ctx)

	lease, err := other.Mutex("order:42").Lock(ctx) // who waits for it gets it
	fmt.Println(lease != nil, err)
	_ = lease.Release(ctx)
	// Output:
	// still held by mine
	// the next token: true
	// true <nil>
}
