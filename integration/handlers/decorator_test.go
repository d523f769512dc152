package handlers_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/handlers/shop"
)

// till is the service behind the decorator.
type till struct {
	work func(ctx context.Context, id string) (string, error)
}

func (s till) Pay(ctx context.Context, id string) (string, error)       { return s.work(ctx, id) }
func (s till) PayInTurn(ctx context.Context, id string) (string, error) { return s.work(ctx, id) }

func TestTheDecoratorIsWhatHaspgenWrites(t *testing.T) {
	t.Parallel()
	haspgen := filepath.Join(t.TempDir(), "haspgen")
	for _, c := range []struct {
		dir  string
		args []string
	}{
		{"../../cmd/haspgen", []string{"go", "build", "-o", haspgen, "."}},
		{"shop", []string{haspgen, "-check"}},
	} {
		cmd := exec.CommandContext(t.Context(), c.args[0], c.args[1:]...)
		cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(c.args, " "), err, out)
		}
	}
}

func TestOfFiftyDecoratedCallsOneRunsAndTheOthersAreHeld(t *testing.T) {
	t.Parallel()
	_, client := startRedis(t)
	var held, done atomic.Int64
	last := make(chan struct{})
	orders := shop.NewLockedOrders(till{func(ctx context.Context, _ string) (string, error) {
		select {
		case <-last: // all others have their answers
		case <-ctx.Done():
		}
		return "paid", nil
	}}, client)
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			switch got, err := orders.Pay(t.Context(), "42"); {
			case err == nil && got == "paid":
				done.Add(1)
				return
			case !errors.Is(err, hasp.ErrHeld) || got != "":
				t.Errorf("%q, %v", got, err)
			}
			if held.Add(1) == crowd-1 {
				close(last)
			}
		})
	}
	all.Wait()
	if done.Load() != 1 {
		t.Errorf("%d succeeded", done.Load())
	}
}

func TestFiftyDecoratedCallsThatWaitRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	_, client := startRedis(t)
	var inside, done atomic.Int64
	orders := shop.NewLockedOrders(till{func(ctx context.Context, id string) (string, error) {
		if inside.Add(1) != 1 {
			t.Error("two at once")
		}
		defer inside.Add(-1)
		if _, ok := hasp.FromContext(ctx, "order:"+id); !ok {
			t.Error("the call carries no lease")
		}
		return "paid", nil
	}}, client)
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			if got, err := orders.PayInTurn(t.Context(), "42"); err != nil || got != "paid" {
				t.Errorf("%q, %v", got, err)
				return
			}
			done.Add(1)
		})
	}
	all.Wait()
	if done.Load() != crowd {
		t.Errorf("%d of %d succeeded", done.Load(), crowd)
	}
}
