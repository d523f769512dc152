package haspgrpc_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/haspgrpc"
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

func TestWithoutALineACallThatWaitsAsksAgainAfterRetry(t *testing.T) {
	t.Parallel()
	for retry, bounds := range map[time.Duration][2]int64{0: {20, 27}, 200 * time.Millisecond: {5, 8}} {
		synctest.Test(t, func(t *testing.T) {
			ctx := context.WithoutCancel(t.Context())
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
			lease, err := other.Mutex("order:1").Lock(ctx)
			if err != nil {
				t.Fatal(err)
			}
			key := fields[*pb.SimpleRequest](t, "order:{response_status.message}")
			locks, err := haspgrpc.New(client, map[string]haspgrpc.Key{unary: key}, &haspgrpc.Options{Wait: time.Second, Retry: retry})
			if err != nil {
				t.Fatal(err)
			}
			_, err = locks.Unary(ctx, order("1"), &grpc.UnaryServerInfo{FullMethod: unary}, func(context.Context, any) (any, error) {
				t.Error("the method runs")
				return nil, nil
			})
			wantCode(t, err, codes.Aborted)
			if n := d.asked.Load(); n < bounds[0] || n > bounds[1] {
				t.Errorf("Retry %s: asked %d times in a second, want %v", retry, n, bounds)
			}
			if err := lease.Release(ctx); err != nil {
				t.Error(err)
			}
			_, _ = client.Close(ctx), other.Close(ctx)
		})
	}
}
