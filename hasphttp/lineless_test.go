package hasphttp_test

import (
	"context"
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

// lineless is the driver of a store without a line and without signals.
type lineless struct {
	driver.Driver

	asked atomic.Int64
}

func (d *lineless) Features() driver.Features {
	f := d.Driver.Features()
	f.Line = false
	return f
}

func (d *lineless) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	d.asked.Add(1)
	return d.Driver.Join(ctx, j)
}

func TestWithoutALineARequestThatWaitsAsksAgainAfterRetry(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		retry       time.Duration
		least, most int64
	}{
		"by default":     {0, 20, 28},
		"as it was told": {200 * time.Millisecond, 5, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memlease.NewStore()
				d := &lineless{Driver: store.Driver()}
				client, err := hasp.New(d, nil)
				if err != nil {
					t.Fatal(err)
				}
				other, err := hasp.New(store.Driver(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					_, _ = client.Close(context.WithoutCancel(t.Context())), other.Close(context.WithoutCancel(t.Context()))
				}()
				lease, err := other.Mutex("order:1").Lock(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				handler := hasphttp.Middleware(client, keyOf(t, "order:{query.id}"), &hasphttp.Options{Wait: time.Second, Retry: c.retry})(
					http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				answer := func() int {
					w := httptest.NewRecorder()
					handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?id=1", http.NoBody))
					return w.Code
				}
				began := time.Now()
				if code, took := answer(), time.Since(began); code != http.StatusConflict || took != time.Second {
					t.Errorf("%d after %s", code, took)
				}
				if n := d.asked.Load(); n < c.least || n > c.most {
					t.Errorf("asked %d times in a second, want %d to %d", n, c.least, c.most)
				}
				time.AfterFunc(300*time.Millisecond, func() {
					if err := lease.Release(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				})
				if code := answer(); code != http.StatusOK {
					t.Errorf("%d though it was released", code)
				}
			})
		})
	}
}
