package haspgrpc_test

import (
	"context"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/haspgrpc"
)

const (
	unary    = "/grpc.testing.TestService/UnaryCall"
	download = "/grpc.testing.TestService/StreamingOutputCall"
	upload   = "/grpc.testing.TestService/StreamingInputCall"
)

// service is what the tests' server does under its locks.
type service struct {
	pb.UnimplementedTestServiceServer
	unary    func(context.Context) error
	download func(pb.TestService_StreamingOutputCallServer) error
}

func (s *service) UnaryCall(ctx context.Context, r *pb.SimpleRequest) (*pb.SimpleResponse, error) {
	if s.unary != nil {
		if err := s.unary(ctx); err != nil {
			return nil, err
		}
	}
	return &pb.SimpleResponse{Username: r.GetResponseStatus().GetMessage()}, nil
}

func (s *service) StreamingOutputCall(r *pb.StreamingOutputCallRequest, ss pb.TestService_StreamingOutputCallServer) error {
	if s.download != nil {
		return s.download(ss)
	}
	return ss.Send(&pb.StreamingOutputCallResponse{Payload: r.GetPayload()})
}

func (s *service) StreamingInputCall(ss pb.TestService_StreamingInputCallServer) error {
	n := int32(0)
	for {
		m, err := ss.Recv()
		if err != nil {
			return ss.SendAndClose(&pb.StreamingInputCallResponse{AggregatedPayloadSize: n})
		}
		n += int32(len(m.GetPayload().GetBody()))
	}
}

func (s *service) EmptyCall(context.Context, *pb.Empty) (*pb.Empty, error) { return &pb.Empty{}, nil }

// stage is a server under locks, its store and a client of it.
type stage struct {
	*testing.T
	store  *memlease.Store
	client *hasp.Client
	locks  *haspgrpc.Locks
	rpc    pb.TestServiceClient

	refused atomic.Int64 // calls that the client told of as refused
}

func newStage(t *testing.T, o *haspgrpc.Options, handler *service) *stage {
	t.Helper()
	s := &stage{T: t, store: memlease.NewStore()}
	var err error
	each := hasp.LockOptions{LocalHandoffs: -1} // each call stands in the line that the tests look at
	if s.client, err = hasp.New(s.store.Driver(), &hasp.Options{Lock: each, Observe: func(_ context.Context, e hasp.Event) {
		if e.Kind == hasp.EventRefused {
			s.refused.Add(1)
		}
	}}); err != nil {
		t.Fatal(err)
	}
	s.locks, err = haspgrpc.New(s.client, map[string]haspgrpc.Key{
		unary:    fields[*pb.SimpleRequest](t, "order:{response_status.message}"),
		download: fields[*pb.StreamingOutputCallRequest](t, "order:{response_status.message}"),
		upload: haspgrpc.Func(func(_ context.Context, r *pb.StreamingInputCallRequest) ([]string, error) {
			return []string{"up:" + string(r.GetPayload().GetBody())}, nil
		}),
	}, o)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(s.locks.Unary), grpc.StreamInterceptor(s.locks.Stream))
	pb.RegisterTestServiceServer(server, handler)
	if err := s.locks.Check(server); err != nil {
		t.Fatal(err)
	}
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	s.rpc = pb.NewTestServiceClient(conn)
	t.Cleanup(func() {
		_ = conn.Close()
		server.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		if err := s.client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func fields[M proto.Message](t *testing.T, template string, more ...string) haspgrpc.Key {
	t.Helper()
	key, err := haspgrpc.Fields[M](template, more...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func order(id string) *pb.SimpleRequest {
	return &pb.SimpleRequest{ResponseStatus: &pb.EchoStatus{Message: id}}
}

func (s *stage) pay(ctx context.Context, id string) error {
	_, err := s.rpc.UnaryCall(ctx, order(id))
	return err
}

func (s *stage) lock(key string) *hasp.Lease {
	s.Helper()
	lease, err := s.client.Mutex(key).Lock(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

func (s *stage) release(l *hasp.Lease) {
	s.Helper()
	if err := l.Release(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// line waits until the line of a key is as wanted.
func (s *stage) line(key string, holders, waiting int) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l, err := s.client.Inspect(s.Context(), key)
		if err != nil {
			s.Fatal(err)
		}
		if len(l.Holders) == holders && l.Waiting == waiting {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%q has %d holders and %d waiting, want %d and %d", key, len(l.Holders), l.Waiting, holders, waiting)
		}
	}
}

func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%v, want %v", err, want)
	}
}
