package haspgrpc

import (
	"context"
	"errors"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/keytmpl"
)

// errSetUp says that the lock of a method was not set up as the method needs.
var errSetUp = errors.New("the lock does not fit the method")

// errNoMessage says that a stream ended before its first message.
var errNoMessage = errors.New("the stream has no message to take the key from")

// keyError says that a request gives no key that could be locked.
type keyError struct{ err error }

// Error says what is wrong with the key.
func (e *keyError) Error() string { return "no key to lock: " + e.err.Error() }

// Unwrap returns the reason.
func (e *keyError) Unwrap() error { return e.err }

// code is what a client is told. It tells what is wrong with the request, and nothing of
// the server's inside.
func code(ctx context.Context, err error) error {
	var badKey *keyError
	var held *hasp.HeldError
	switch {
	case errors.As(err, &badKey):
		return status.Error(codes.InvalidArgument, reason(err))
	case ctx.Err() != nil:
		return status.FromContextError(ctx.Err()).Err()
	case errors.As(err, &held):
		return aborted(held)
	case errors.Is(err, hasp.ErrLost):
		return status.Error(codes.Aborted, "lock lost")
	case errors.Is(err, hasp.ErrInvalid), errors.Is(err, hasp.ErrUnsupported), errors.Is(err, errSetUp):
		return status.Error(codes.Internal, "the lock is not set up correctly")
	}
	return status.Error(codes.Unavailable, "lock unavailable")
}

func reason(err error) string {
	if value := (*keytmpl.ValueError)(nil); errors.As(err, &value) {
		return "the value of " + value.Name + " " + value.Reason
	}
	return "the request gives no valid lock key"
}

// aborted says that the lock is held, and when it expires unless it is renewed.
func aborted(held *hasp.HeldError) error {
	s := status.New(codes.Aborted, "lock not acquired")
	if held.ExpiresIn > 0 {
		if with, err := s.WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(held.ExpiresIn)}); err == nil {
			s = with
		}
	}
	return s.Err()
}
