package hasphttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/hasphttp"
)

func TestHT7_ShutdownAnswersThoseThatWaitAndLetsThoseThatRunFinish(t *testing.T) {
	t.Parallel()
	stop, running, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	var ran atomic.Int64
	s := newStage(t, &hasphttp.Options{Wait: time.Hour, Stop: stop}, func(w http.ResponseWriter, _ *http.Request) {
		ran.Add(1)
		close(running)
		<-goOn
		w.WriteHeader(http.StatusCreated)
	})
	s.server.Config.RegisterOnShutdown(func() { close(stop) })
	first, second := make(chan reply, 1), make(chan reply, 1)
	go func() { first <- s.post(t.Context(), "/orders/42", "") }()
	receive(t, running)
	go func() { second <- s.post(t.Context(), "/orders/42", "{}") }()
	s.line("order:42", 1, 1)
	down := make(chan error, 1)
	go func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
		defer cancel()
		down <- s.server.Config.Shutdown(ctx)
	}()
	if r := receive(t, second); r.status != http.StatusServiceUnavailable {
		t.Errorf("the waiting one: %+v", r)
	}
	select {
	case err := <-down:
		t.Errorf("it shut down under the running request: %v", err)
	default:
	}
	close(goOn)
	if r := receive(t, first); r.status != http.StatusCreated {
		t.Errorf("the running one: %+v", r)
	}
	if err := receive(t, down); err != nil || ran.Load() != 1 {
		t.Errorf("shut down: %v; %d handlers ran", err, ran.Load())
	}
	s.line("order:42", 0, 0)
}

// slow is a driver whose answers to a Join come when the lease is over.
type slow struct{ driver.Driver }

func (d slow) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	s, err := d.Driver.Join(ctx, j)
	time.Sleep(j.Life.Hold)
	return s, err
}

func TestKT7_TheHandlerDoesNotRunWithoutTheLock(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		way  func(t *testing.T, store *memlease.Store, client *hasp.Client) // what is in the way
		want int
	}{
		"held": {func(t *testing.T, store *memlease.Store, _ *hasp.Client) {
			t.Helper()
			other, err := hasp.New(store.Driver(), nil)
			if err != nil {
				t.Fatal(err)
			}
			lease, err := other.Mutex("order:1").Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				ctx := context.WithoutCancel(t.Context())
				_, _ = lease.Release(ctx), other.Close(ctx)
			})
		}, http.StatusConflict},
		"the store is down": {func(_ *testing.T, store *memlease.Store, _ *hasp.Client) {
			store.Fail(errors.New("down"))
		}, http.StatusServiceUnavailable},
		"the client is closed": {func(t *testing.T, _ *memlease.Store, client *hasp.Client) {
			t.Helper()
			if err := client.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, http.StatusServiceUnavailable},
		"lost before it starts": {nil, http.StatusServiceUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memlease.NewStore()
				d := driver.Driver(store.Driver())
				if c.way == nil {
					d = slow{d}
				}
				client, err := hasp.New(d, nil)
				if err != nil {
					t.Fatal(err)
				}
				if c.way != nil {
					c.way(t, store, client)
				}
				for _, o := range []*hasphttp.Options{{TTL: time.Second}, {TTL: time.Second, Wait: 2 * time.Second}} {
					handler := hasphttp.Middleware(client, keyOf(t, "order:{query.id}"), o)(http.HandlerFunc(
						func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }))
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?id=1", http.NoBody))
					if w.Code != c.want {
						t.Errorf("%d %s, want %d", w.Code, w.Body, c.want)
					}
				}
				store.Fail(nil)
				_ = client.Close(context.WithoutCancel(t.Context()))
			})
		})
	}
}
