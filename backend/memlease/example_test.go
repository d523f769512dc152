package memlease_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
)

// attempt is a mutex over "order:42", as hasp.Client builds it.
func attempt(client byte) driver.Join {
	return driver.Join{Claim: driver.Claim{
		Ref:    driver.Ref{ID: driver.ID{client}, Keys: []string{"order:42"}},
		Weight: 1, Capacity: 1,
		Life: driver.Life{Hold: 10 * time.Second, Wait: 6 * time.Second},
	}}
}

// Two drivers of one store are two clients of one server.
func ExampleNewStore() {
	ctx := context.Background()
	store := memlease.NewStore()
	a, b := store.Driver(), store.Driver()

	first, _ := a.Join(ctx, attempt(1))
	second, _ := b.Join(ctx, attempt(2))
	fmt.Println(first.State, second.State, second.Ahead)
	// Output: holding waiting 1
}

// A lease whose record the store has lost is gone at its next renewal.
func ExampleStore_Drop() {
	ctx := context.Background()
	store := memlease.NewStore()
	d := store.Driver()
	j := attempt(1)
	held, _ := d.Join(ctx, j)

	store.Drop("order:42")
	d.Renew(ctx, []driver.Renewal{{Ref: j.Ref, Mode: driver.Extend, Life: j.Life}},
		func(_ int, s driver.Standing, err error) { fmt.Println(s.State, err) })

	j.ID = driver.ID{2}
	again, _ := d.Join(ctx, j)
	fmt.Println("the number rises:", again.Number > held.Number)
	// Output:
	// gone <nil>
	// the number rises: true
}

// After a Wipe nothing is left, as after FLUSHALL or a restart without data.
func ExampleStore_Wipe() {
	ctx := context.Background()
	store := memlease.NewStore()
	d := store.Driver()
	_, _ = d.Join(ctx, attempt(1))

	store.Wipe()
	page, _ := d.Lines(ctx, driver.Query{})
	fmt.Println(len(page.Lines))
	// Output: 0
}

// Fail takes the class of failure from the error.
func ExampleStore_Fail() {
	ctx := context.Background()
	store := memlease.NewStore()
	d := store.Driver()

	store.Fail(errors.New("connection reset"))
	fmt.Println(errors.Is(d.Check(ctx), driver.ErrUnavailable))

	store.Fail(fmt.Errorf("read-only replica: %w", driver.ErrRefused))
	fmt.Println(errors.Is(d.Check(ctx), driver.ErrRefused))

	store.Fail(nil)
	fmt.Println(d.Check(ctx))
	// Output:
	// true
	// true
	// <nil>
}

// A stalled store takes calls and answers none of them.
func ExampleStore_Stall() {
	ctx := context.Background()
	store := memlease.NewStore()
	d := store.Driver()

	resume := store.Stall()
	short, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	fmt.Println(errors.Is(d.Check(short), context.DeadlineExceeded))

	resume()
	fmt.Println(d.Check(ctx))
	// Output:
	// true
	// <nil>
}

// One client is cut off while the others go on.
func ExampleDriver_Stall() {
	ctx := context.Background()
	store := memlease.NewStore()
	a, b := store.Driver(), store.Driver()

	resume := a.Stall()
	defer resume()
	s, err := b.Join(ctx, attempt(2))
	fmt.Println(s.State, err)
	// Output: holding <nil>
}

// One client's calls fail while the others go on.
func ExampleDriver_Fail() {
	ctx := context.Background()
	store := memlease.NewStore()
	a, b := store.Driver(), store.Driver()

	a.Fail(errors.New("no route to host"))
	fmt.Println(a.Check(ctx) != nil, b.Check(ctx))
	// Output: true <nil>
}
