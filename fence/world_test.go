package fence_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/fence"
)

const ttl = 2 * time.Second

// world is one store on virtual time.
type world struct {
	t     *testing.T
	ctx   context.Context
	store *memlease.Store
}

// bubble runs f on virtual time with a store of its own.
func bubble(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f(&world{t: t, ctx: context.WithoutCancel(t.Context()), store: memlease.NewStore()})
	})
}

// client makes a client with a TTL of 2 s that is closed at the end.
func client(t *testing.T, d driver.Driver, o hasp.Options) *hasp.Client {
	t.Helper()
	o.Lock.TTL = ttl
	c, err := hasp.New(d, &o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
		defer stop()
		_ = c.Close(ctx)
	})
	return c
}

func lock(ctx context.Context, t *testing.T, c *hasp.Client, key string, more ...string) *hasp.Lease {
	t.Helper()
	lease, err := c.Mutex(key, more...).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// wantStale checks that an error is a *StaleError of these tokens.
func wantStale(t *testing.T, err error, resource string, seen, given int64) {
	t.Helper()
	var stale *fence.StaleError
	if !errors.Is(err, fence.ErrStale) || !errors.As(err, &stale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	if stale.Resource != resource || stale.Seen != seen || stale.Given != given {
		t.Errorf("got %+v, want resource %q, seen %d, given %d", stale, resource, seen, given)
	}
}

func wantIs(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
	}
}

func wantNil(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
