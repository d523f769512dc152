package hasp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// Run a function while holding a key. README.md shows the same body.
func Example() {
	ctx := context.Background()
	client, err := hasp.New(memlease.NewStore().Driver(), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	err = client.Mutex("order:42").Do(ctx, func(ctx context.Context) error {
		fmt.Println("order 42 is ours alone")
		return ctx.Err() // ctx ends, with cause hasp.ErrLost, if the lease is lost
	})
	fmt.Println("done:", err)
	// Output:
	// order 42 is ours alone
	// done: <nil>
}
