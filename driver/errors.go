package driver

import "errors"

// The classes of failure a store can tell apart. A driver wraps one of them with
// what it found; package hasp exports the same values.
var (
	// ErrUnavailable: no answer; the store is away, silent, starting or overloaded, or the
	// connection broke. The outcome is unknown and the call may be repeated.
	ErrUnavailable = errors.New("store unavailable")
	// ErrRefused: the store answers and says no: read-only, out of memory or space, no
	// right, a missing or newer schema, a foreign value under the key. Nothing was done.
	ErrRefused = errors.New("refused by the store")
	// ErrInvalid: the call or an option cannot be right. Nothing was done.
	ErrInvalid = errors.New("invalid")
	// ErrLost: the claim is gone or was revoked. A step answers Gone; only a store's guard
	// has an error for it.
	ErrLost = errors.New("lease lost")
	// ErrClosed: the client is closed or closing. A store's guard takes a lease that is over
	// for that reason, since it is kept until its owner has finished.
	ErrClosed = errors.New("client closed")
	// ErrUnsupported: this store cannot do that. It matches errors.ErrUnsupported.
	ErrUnsupported error = unsupportedError{}
)

type unsupportedError struct{}

func (unsupportedError) Error() string { return "not supported by this store" }

// Is makes errors.Is(err, errors.ErrUnsupported) true.
func (unsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }
