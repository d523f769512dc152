package haspgrpc_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"
	pb "google.golang.org/grpc/interop/grpc_testing"

	"github.com/hasp-dev/hasp"
)

func TestALeaseThatTheHandlerReleasedIsNotLost(t *testing.T) {
	t.Parallel()
	end := func(ctx context.Context) error {
		lease, _ := hasp.FromContext(ctx, "order:42")
		return lease.Release(ctx)
	}
	s := newStage(t, nil, &service{unary: end, download: func(ss pb.TestService_StreamingOutputCallServer) error {
		if err := end(ss.Context()); err != nil {
			return err
		}
		return ss.Send(&pb.StreamingOutputCallResponse{})
	}})
	if err := s.pay(t.Context(), "42"); err != nil {
		t.Errorf("unary: %v", err)
	}
	stream, err := s.rpc.StreamingOutputCall(t.Context(), &pb.StreamingOutputCallRequest{ResponseStatus: &pb.EchoStatus{Message: "42"}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Errorf("stream: %v", err)
	}
}

func TestAStreamWithoutAMessageHasNoKey(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, &service{})
	stream, err := s.rpc.StreamingInputCall(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.CloseAndRecv()
	wantCode(t, err, codes.InvalidArgument)
}
