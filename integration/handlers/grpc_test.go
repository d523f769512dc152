package handlers_test

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/haspgrpc"
)

// orders is a service whose one method does what a test says.
type orders struct {
	pb.UnimplementedTestServiceServer
	pay func(ctx context.Context)
}

func (o *orders) UnaryCall(ctx context.Context, _ *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	o.pay(ctx)
	return &pb.SimpleResponse{}, nil
}

// serveGRPC starts a server whose method runs under the lock, and answers how to call it.
func serveGRPC(t *testing.T, client *hasp.Client, o *haspgrpc.Options, pay func(context.Context)) func(ctx context.Context, id string) codes.Code {
	t.Helper()
	key, err := haspgrpc.Fields[*pb.SimpleRequest]("order:{response_status.message}")
	if err != nil {
		t.Fatal(err)
	}
	locks, err := haspgrpc.New(client, map[string]haspgrpc.Key{"/grpc.testing.TestService/UnaryCall": key}, o)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(locks.Unary), grpc.StreamInterceptor(locks.Stream))
	pb.RegisterTestServiceServer(server, &orders{pay: pay})
	if err := locks.Check(server); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	service := pb.NewTestServiceClient(conn)
	return func(ctx context.Context, id string) codes.Code {
		_, err := service.UnaryCall(ctx, &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: id}})
		return status.Code(err)
	}
}

func TestOfFiftyCallsOneIsAnsweredAndTheOthersAreAborted(t *testing.T) {
	t.Parallel()
	_, client := startRedis(t)
	var done, held atomic.Int64
	last := make(chan struct{})
	call := serveGRPC(t, client, nil, func(ctx context.Context) {
		select {
		case <-last:
		case <-ctx.Done():
		}
	})
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			switch code := call(t.Context(), "42"); {
			case code == codes.OK:
				done.Add(1)
			case code != codes.Aborted:
				t.Errorf("answered %s", code)
			case held.Add(1) == crowd-1:
				close(last)
			}
		})
	}
	all.Wait()
	if done.Load() != 1 || held.Load() != crowd-1 {
		t.Errorf("%d succeeded and %d were aborted", done.Load(), held.Load())
	}
}

func TestFiftyCallsThatWaitAreAnsweredOneAfterTheOther(t *testing.T) {
	t.Parallel()
	_, client := startRedis(t)
	var inside, done atomic.Int64
	call := serveGRPC(t, client, &haspgrpc.Options{Wait: time.Minute}, func(context.Context) {
		if inside.Add(1) != 1 {
			t.Error("two at once")
		}
		inside.Add(-1)
	})
	var all sync.WaitGroup
	for range crowd {
		all.Go(func() {
			if code := call(t.Context(), "42"); code != codes.OK {
				t.Errorf("answered %s", code)
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

func TestAStoreThatIsKilledIsUnavailableToCallsWithinTheirBudget(t *testing.T) {
	t.Parallel()
	server, client := startRedis(t)
	var ran atomic.Int64
	call := serveGRPC(t, client, nil, func(context.Context) { ran.Add(1) })
	if code := call(t.Context(), "1"); code != codes.OK {
		t.Fatalf("answered %s", code)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), soon)
	defer cancel()
	if code := call(ctx, "2"); code != codes.Unavailable {
		t.Errorf("answered %s", code)
	}
	if ran.Load() != 1 {
		t.Errorf("the method ran %d times, want once, before", ran.Load())
	}
}
