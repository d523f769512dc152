package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp"
)

// Hand a lock on to another process: the ticket travels with the job.
func ExampleClient_Resume() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	lease, _ := client.Mutex("order:42").Lock(ctx)
	ticket, err := lease.Detach(ctx, time.Minute)
	fmt.Println(ticket, err)               // it prints masked
	text, _ := ticket.MarshalText()        // this is the secret itself
	job := map[string][]byte{"lock": text} // ... to a queue, and out of it

	var received hasp.Ticket
	fmt.Println(received.UnmarshalText(job["lock"]))
	resumed, err := client.Resume(ctx, received)
	fmt.Println(resumed.Keys(), resumed.Token() > lease.Token(), err)

	_, err = client.Resume(ctx, received)
	fmt.Println("a second time:", errors.Is(err, hasp.ErrNotHeld))
	fmt.Println(resumed.Release(ctx))
	// Output:
	// ticket(masked) <nil>
	// <nil>
	// [order:42] true <nil>
	// a second time: true
	// <nil>
}

// End a lease here so that it can be taken up elsewhere.
func ExampleLease_Detach() {
	ctx := context.Background()
	client := newClient()
	defer client.Close(ctx)

	lease, _ := client.Mutex("order:42").Lock(ctx)
	_, err := lease.Detach(ctx, time.Minute)
	fmt.Println(err, errors.Is(lease.Err(), hasp.ErrReleased))
	_, err = client.Mutex("order:42").TryLock(ctx)
	fmt.Println("still held:", errors.Is(err, hasp.ErrHeld))
	// Output:
	// <nil> true
	// still held: true
}
