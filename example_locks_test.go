package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

func Example_locks() {
	ctx := context.Background()
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	fmt.Println(locks(ctx, client))
	// Output: <nil>
}

// locks is the second half of README.md's introduction.
func locks(ctx context.Context, client *hasp.Client) error {
	lease, err := client.Mutex("order:42").Lock(ctx) // waits in line; TryLock does not
	if err != nil {
		return err
	}
	defer lease.Release(ctx)
	if err := pay(lease.Context(ctx), lease.Token()); err != nil { // ctx ends on loss; tokens rise
		return err
	}
	return errors.Join(
		client.Mutex("account:a", "account:b").Do(ctx, work), // both or none
		client.RWMutex("catalog").RDo(ctx, work),             // readers together, a writer alone
		client.Semaphore("gpu", 4).Do(ctx, 2, work),          // two of four permits
		client.Mutex("nightly").TryDo(ctx, work),             // hasp.ErrHeld if somebody has it
	)
}

func pay(context.Context, int64) error { return nil }

func work(context.Context) error { return nil }
