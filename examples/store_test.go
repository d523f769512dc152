package examples_test

import (
	"context"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// process is what each process of a fleet has: a client of its own on the common store.
func process(store *memlease.Store, name string) (client *hasp.Client, stop func()) {
	client, err := hasp.New(store.Driver(), &hasp.Options{Name: name})
	if err != nil {
		panic(err)
	}
	return client, func() { _ = client.Close(context.Background()) }
}
