package examples_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

// importer is code of yours that works under a lock.
type importer struct {
	client *hasp.Client
	rows   int
}

func (i *importer) run(ctx context.Context) error {
	return i.client.Mutex("import").Do(ctx, func(ctx context.Context) error {
		for range 100 {
			select {
			case <-time.After(time.Second): // a row
				i.rows++
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		return nil
	})
}

// Your own test of what becomes of your work when its lease is lost, in virtual time.
func TestTheImportStopsWhenItsLeaseIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*memlease.Store, *memlease.Driver){
		"the store forgot it":    func(s *memlease.Store, _ *memlease.Driver) { s.Drop("import") },
		"the store is not there": func(_ *memlease.Store, d *memlease.Driver) { d.Fail(errors.New("down")) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memlease.NewStore()
				driver := store.Driver()
				client, err := hasp.New(driver, nil)
				if err != nil {
					t.Fatal(err)
				}
				i := &importer{client: client}
				ended := make(chan error)
				go func() { ended <- i.run(t.Context()) }()
				time.Sleep(20*time.Second + time.Millisecond)
				lose(store, driver)
				if err := <-ended; !errors.Is(err, hasp.ErrLost) {
					t.Errorf("it returned %v, want ErrLost", err)
				}
				if i.rows < 20 || i.rows > 30 {
					t.Errorf("%d rows: it went on for longer than the TTL, 10 s", i.rows)
				}
				driver.Fail(nil)
				if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
