package hasp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

func ExampleClient_Watch() {
	ctx := context.Background()
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{Name: "worker-1"})
	if err != nil {
		log.Fatal(err)
	}
	lease, err := client.Mutex("nightly").Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close(ctx)

	for line, err := range client.Watch(ctx, "nightly") {
		switch {
		case err != nil:
			fmt.Println("not known at present:", err)
		case len(line.Holders) > 0:
			fmt.Println("held by", line.Holders[0].Name)
			_ = lease.Release(ctx)
		default:
			fmt.Println("free")
			return
		}
	}
	// Output:
	// held by worker-1
	// free
}
