package elect_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/elect"
)

// lineless is the driver of a store without a line and without signals.
type lineless struct{ driver.Driver }

func (d lineless) Features() driver.Features {
	f := d.Driver.Features()
	f.Line = false
	return f
}

func TestCandidatesWithoutALineAskUntilTheyLead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlease.NewStore()
		leads := make(chan string)
		run := func(name string) (stop func()) {
			client, err := hasp.New(lineless{store.Driver()}, &hasp.Options{
				Name: name, Lock: hasp.LockOptions{Backoff: hasp.Backoff{MaxAttempts: 1}},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
			ended := make(chan error)
			go func() {
				ended <- elect.Run(ctx, client, "leader", func(ctx context.Context) error {
					leads <- name
					<-ctx.Done()
					return nil
				}, nil)
			}()
			return func() {
				cancel()
				if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
					t.Error(err)
				}
			}
		}
		stopFirst := run("first")
		if got := <-leads; got != "first" {
			t.Errorf("%s leads", got)
		}
		stopSecond := run("second")
		time.Sleep(time.Minute)
		synctest.Wait()
		select {
		case got := <-leads:
			t.Fatalf("%s leads beside the first", got)
		default:
		}
		stopFirst()
		if got := <-leads; got != "second" {
			t.Errorf("%s leads", got)
		}
		stopSecond()
	})
}
