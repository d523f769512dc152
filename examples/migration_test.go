package examples_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// All replicas start at once, one migrates the schema, and none serves before that is
// done.
func Example_migrationGuard() {
	store := memlease.NewStore()
	version, migrations := 1, 0 // in the database
	var replicas sync.WaitGroup
	for i := range 3 {
		replicas.Go(func() {
			client, stop := process(store, fmt.Sprint("replica-", i))
			defer stop()
			guarded := client.With(hasp.LockOptions{TTL: 30 * time.Second, Wait: 10 * time.Minute})
			err := guarded.Mutex("migrate").Do(context.Background(), func(context.Context) error {
				if version < 2 { // looked at under the lock: another may have been here
					version, migrations = 2, migrations+1
				}
				return nil
			})
			if err != nil {
				fmt.Println("this replica does not serve:", err)
			}
		})
	}
	replicas.Wait()
	fmt.Println("version", version, "after", migrations, "migration")
	// Output:
	// version 2 after 1 migration
}
