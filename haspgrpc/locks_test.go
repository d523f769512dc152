package haspgrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"
	"google.golang.org/grpc/status"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/haspgrpc"
)

func TestACallThatDoesNotGetItsLockIsAborted(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{unary: func(context.Context) error { t.Error("the method runs"); return nil }})
	lease := s.lock("order:a%3A1")
	err := s.pay(t.Context(), "a:1")
	wantCode(t, err, codes.Aborted)
	var retry *errdetails.RetryInfo
	for _, d := range status.Convert(err).Details() {
		retry, _ = d.(*errdetails.RetryInfo)
	}
	if rest := retry.GetRetryDelay().AsDuration(); rest <= 0 || rest > 10*time.Second {
		t.Errorf("retry after %s", rest)
	}
	s.release(lease)
}

func TestTheContextCarriesTheLeaseAndItIsReleased(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{unary: func(ctx context.Context) error {
		if lease, ok := hasp.FromContext(ctx, "order:1"); !ok || lease.Token() == 0 || lease.Err() != nil {
			t.Errorf("the lease is %v, %v", lease, ok)
		}
		return nil
	}})
	for range 2 {
		if err := s.pay(t.Context(), "1"); err != nil {
			t.Error(err)
		}
	}
	s.line("order:1", 0, 0)
}

func TestAMethodWithoutAKeyIsNotLocked(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{})
	s.store.Fail(hasp.ErrUnavailable)
	if _, err := s.rpc.EmptyCall(t.Context(), &pb.Empty{}); err != nil {
		t.Error(err)
	}
	s.store.Fail(nil)
}

func TestWithWaitCallsRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	const n = 20
	var inside atomic.Int32
	s := newStage(t, &haspgrpc.Options{Wait: time.Minute}, &service{unary: func(context.Context) error {
		if inside.Add(1) != 1 {
			t.Error("two calls run at once")
		}
		inside.Add(-1)
		return nil
	}})
	errs := make(chan error, n)
	for range n {
		go func() { errs <- s.pay(t.Context(), "1") }()
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestAClientThatGoesAwayLeavesTheLine(t *testing.T) {
	t.Parallel()
	s := newStage(t, &haspgrpc.Options{Wait: time.Hour}, &service{})
	lease := s.lock("order:1")
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error, 1)
	go func() { gone <- s.pay(ctx, "1") }()
	s.line("order:1", 1, 1)
	cancel()
	wantCode(t, <-gone, codes.Canceled)
	s.line("order:1", 1, 0)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	wantCode(t, s.pay(short, "1"), codes.DeadlineExceeded)
	s.line("order:1", 1, 0)
	s.release(lease)
}

func TestAStoreThatFailsIsUnavailableAndTheMethodDoesNotRun(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{unary: func(context.Context) error { t.Error("the method runs"); return nil }})
	for _, fault := range []error{hasp.ErrUnavailable, hasp.ErrRefused} {
		s.store.Fail(fmt.Errorf("%w: secret host", fault))
		err := s.pay(t.Context(), "1")
		wantCode(t, err, codes.Unavailable)
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("the client is told %v", err)
		}
	}
	s.store.Fail(nil)
}

func TestABadKeyIsAnInvalidArgument(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{unary: func(context.Context) error { t.Error("the method runs"); return nil }})
	for id, says := range map[string]string{"": "response_status.message is missing", " ": "is blank", "<nil>": "is missing", strings.Repeat("k", 600): "512 bytes"} {
		err := s.pay(t.Context(), id)
		wantCode(t, err, codes.InvalidArgument)
		if !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
	_, err := s.rpc.UnaryCall(t.Context(), &pb.SimpleRequest{})
	wantCode(t, err, codes.InvalidArgument)
	if n := s.refused.Load(); n != 5 {
		t.Errorf("the client told of %d refused calls, want 5", n)
	}
}

func lose(ctx context.Context, t *testing.T, s *stage) {
	t.Helper()
	s.store.Drop("order:1")
	select {
	case <-ctx.Done():
	case <-time.After(20 * time.Second):
	}
	if !errors.Is(context.Cause(ctx), hasp.ErrLost) {
		t.Errorf("the handler's context says %v", context.Cause(ctx))
	}
}

func TestALossIsAborted(t *testing.T) {
	t.Parallel()
	s := &stage{}
	work := &service{
		unary: func(ctx context.Context) error { lose(ctx, t, s); return nil },
		download: func(ss pb.TestService_StreamingOutputCallServer) error {
			if err := ss.Send(&pb.StreamingOutputCallResponse{}); err != nil {
				t.Error(err)
			}
			lose(ss.Context(), t, s)
			wantCode(t, ss.Send(&pb.StreamingOutputCallResponse{}), codes.Aborted)
			return nil
		},
	}
	*s = *newStage(t, &haspgrpc.Options{TTL: 300 * time.Millisecond}, work)
	wantCode(t, s.pay(t.Context(), "1"), codes.Aborted)
	stream, err := s.rpc.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{ResponseStatus: &pb.EchoStatus{Message: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Error(err)
	}
	_, err = stream.Recv()
	wantCode(t, err, codes.Aborted)
}

func TestStreamsTakeTheirKeyFromTheFirstMessageWhichTheHandlerStillGets(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{})
	down, err := s.rpc.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{
		ResponseStatus: &pb.EchoStatus{Message: "1"}, Payload: &pb.Payload{Body: []byte("hello")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if m, err := down.Recv(); err != nil || string(m.GetPayload().GetBody()) != "hello" {
		t.Errorf("%v, %v", m, err)
	}
	if _, err := down.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}

	up, err := s.rpc.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, body := range []string{"abc", "de"} {
		if err := up.Send(&pb.StreamingInputCallRequest{Payload: &pb.Payload{Body: []byte(body)}}); err != nil {
			t.Fatal(err)
		}
		s.line("up:abc", 1, 0)
	}
	if m, err := up.CloseAndRecv(); err != nil || m.GetAggregatedPayloadSize() != 5 {
		t.Errorf("%v, %v", m, err)
	}
	s.line("up:abc", 0, 0)

	lease := s.lock("order:1")
	held, err := s.rpc.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{ResponseStatus: &pb.EchoStatus{Message: "1"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = held.Recv()
	wantCode(t, err, codes.Aborted)
	s.release(lease)
}

func TestAPanicReleases(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{})
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v", v)
			}
		}()
		_, _ = s.locks.Unary(t.Context(), order("1"), &grpc.UnaryServerInfo{FullMethod: unary},
			func(context.Context, any) (any, error) { panic("boom") })
	}()
	s.release(s.lock("order:1"))
}

func TestWhatDoesNotFitTheMethodIsInternal(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{})
	run := func(context.Context, any) (any, error) { t.Error("the method runs"); return nil, nil }
	for name, request := range map[string]any{"another message": &pb.Empty{}, "no message": 7} {
		_, err := s.locks.Unary(t.Context(), request, &grpc.UnaryServerInfo{FullMethod: unary}, run)
		if status.Code(err) != codes.Internal {
			t.Errorf("%s: %v", name, err)
		}
	}
	lease := s.lock("order:1")
	_, err := s.locks.Unary(lease.Context(t.Context()), order("1"), &grpc.UnaryServerInfo{FullMethod: unary}, run)
	wantCode(t, err, codes.Internal)
	s.release(lease)
}

func TestSharedCallsRunBesideEachOther(t *testing.T) {
	t.Parallel()
	inside, goOn := make(chan struct{}, 2), make(chan struct{})
	s := newStage(t, &haspgrpc.Options{Shared: true}, &service{unary: func(context.Context) error {
		inside <- struct{}{}
		<-goOn
		return nil
	}})
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- s.pay(t.Context(), "1") }()
	}
	<-inside
	<-inside
	close(goOn)
	for range 2 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

func TestBadSettingsAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{})
	good := fields[*pb.SimpleRequest](t, "a:{response_size}:{fill_username}:{response_type}")
	for says, err := range map[string]error{
		"client is nil":      second(haspgrpc.New(nil, map[string]haspgrpc.Key{unary: good}, nil)),
		"no keys":            second(haspgrpc.New(s.client, nil, nil)),
		"no full method":     second(haspgrpc.New(s.client, map[string]haspgrpc.Key{"Pay": good}, nil)),
		"Key of":             second(haspgrpc.New(s.client, map[string]haspgrpc.Key{unary: {}}, nil)),
		"option TTL":         second(haspgrpc.New(s.client, map[string]haspgrpc.Key{unary: good}, &haspgrpc.Options{TTL: 1})),
		"option Wait":        second(haspgrpc.New(s.client, map[string]haspgrpc.Key{unary: good}, &haspgrpc.Options{Wait: -2})),
		"option Retry":       second(haspgrpc.New(s.client, map[string]haspgrpc.Key{unary: good}, &haspgrpc.Options{Retry: -2})),
		"option MaxLine":     second(haspgrpc.New(s.client, map[string]haspgrpc.Key{unary: good}, &haspgrpc.Options{MaxLine: -2})),
		"no field orderId":   second(haspgrpc.Fields[*pb.SimpleRequest]("order:{orderId}")),
		"is no message":      second(haspgrpc.Fields[*pb.SimpleRequest]("order:{response_size.x}")),
		"cannot stand":       second(haspgrpc.Fields[*pb.SimpleRequest]("order:{payload.body}")),
		"is a message":       second(haspgrpc.Fields[*pb.SimpleRequest]("order:{payload}")),
		"several values":     second(haspgrpc.Fields[*pb.StreamingOutputCallRequest]("order:{response_parameters}")),
		"column 7":           second(haspgrpc.Fields[*pb.SimpleRequest]("order:{")),
		"has no method \"/x": second(nil, misspelt(t, s, good)),
	} {
		if !errors.Is(err, hasp.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %q", err, says)
		}
	}
}

func misspelt(t *testing.T, s *stage, key haspgrpc.Key) error {
	t.Helper()
	locks, err := haspgrpc.New(s.client, map[string]haspgrpc.Key{"/x.Y/Pay": key}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return locks.Check(grpc.NewServer())
}

func second(_ any, err error) error { return err }

func TestNumbersAndBooleansStandInKeys(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{})
	locks, err := haspgrpc.New(s.client, map[string]haspgrpc.Key{
		unary: fields[*pb.SimpleRequest](t, "a:{response_size}:{fill_username}:{response_type}"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	call := func(r *pb.SimpleRequest, key string) error {
		_, err := locks.Unary(t.Context(), r, &grpc.UnaryServerInfo{FullMethod: unary}, func(ctx context.Context, _ any) (any, error) {
			if _, ok := hasp.FromContext(ctx, key); !ok {
				t.Errorf("%v does not lock %q", r, key)
			}
			return nil, nil
		})
		return err
	}
	if err := call(&pb.SimpleRequest{ResponseSize: -7, ResponseType: pb.PayloadType(2)}, "a:-7:false:2"); err != nil {
		t.Error(err)
	}
	wantCode(t, call(&pb.SimpleRequest{ResponseSize: 0, ResponseType: pb.PayloadType(2)}, ""), codes.InvalidArgument)
}
