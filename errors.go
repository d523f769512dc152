package hasp

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// The classes of failure. They are told apart by errors.Is; an error is never
// permission (G10).
var (
	// ErrHeld: somebody else has it. It comes as a *HeldError.
	ErrHeld = errors.New("held")
	// ErrLost: I had it and no longer do. It comes as a *LostError.
	ErrLost = driver.ErrLost
	// ErrNotHeld: it was never mine, or was given back: a used ticket, a token that is not there.
	ErrNotHeld = errors.New("not held")
	// ErrReleased: the lease was released, kept or detached by its owner.
	ErrReleased = errors.New("lease released")
	// ErrClosed: the client is closed or closing.
	ErrClosed = driver.ErrClosed

	// ErrUnavailable: the store did not answer; what was asked for may have been done.
	ErrUnavailable = driver.ErrUnavailable
	// ErrRefused: the store answered and said no: read-only, out of memory or space, no right,
	// a missing or newer schema.
	ErrRefused = driver.ErrRefused
	// ErrInvalid: the call or an option cannot be right; nothing was sent.
	ErrInvalid = driver.ErrInvalid
	// ErrUnsupported: this store cannot do that. It matches errors.ErrUnsupported.
	ErrUnsupported = driver.ErrUnsupported
)

// Error is what every failing call on a client, a lock or a lease returns: which
// operation failed, on which key, and why. Err carries the class, except where Close
// found leases that were not released: that has none.
type Error struct {
	Op  string // "acquire", "hold", "release", "extend", ...
	Key string // the first key, as the caller gave it; empty where there is none
	Err error
}

// Error says operation, key and reason.
func (e *Error) Error() string {
	if e.Key == "" {
		return "hasp: " + e.Op + ": " + e.Err.Error()
	}
	return fmt.Sprintf("hasp: %s %q: %s", e.Op, e.Key, e.Err)
}

// Unwrap returns the reason.
func (e *Error) Unwrap() error { return e.Err }

// HeldError says that somebody else has the key. It matches ErrHeld, and also the
// context's error where the context ended the waiting.
type HeldError struct {
	Key       string
	Holder    string        // name of the first holder in the way; empty if unknown
	ExpiresIn time.Duration // that holder's rest if it does not renew; 0 if unknown
	Waited    time.Duration // how long this call waited
	Attempts  int           // how often this call was refused while it waited at a store without a line

	cause error
}

// Error says who holds the key and for how long, and what the call did about it.
func (e *HeldError) Error() string {
	var b strings.Builder
	b.WriteString("held")
	if e.Holder != "" {
		b.WriteString(" by " + e.Holder)
	}
	if e.ExpiresIn > 0 {
		fmt.Fprintf(&b, ", expires in %s unless renewed", e.ExpiresIn.Round(time.Millisecond))
	}
	if e.Waited > 0 {
		fmt.Fprintf(&b, ", waited %s", e.Waited.Round(time.Millisecond))
	}
	switch {
	case e.Attempts == 1:
		b.WriteString(", asked once")
	case e.Attempts > 1:
		fmt.Fprintf(&b, ", asked %d times", e.Attempts)
	}
	if e.cause != nil {
		b.WriteString(": " + e.cause.Error())
	}
	return b.String()
}

// Is matches ErrHeld.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// Unwrap returns the context's error where the context ended the waiting.
func (e *HeldError) Unwrap() error { return e.cause }

// LostError says that a lease is no longer held. It matches ErrLost.
type LostError struct {
	Key     string
	Token   int64  // of the lost lease
	Holder  string // who holds the key now; empty if unknown
	Revoked bool   // revoked by an operator: nobody else holds until this lease has left or expired

	why string // what is known beyond that
}

// Error says what was lost and, where it is known, to whom.
func (e *LostError) Error() string {
	switch {
	case e.Revoked:
		return "lease lost: revoked by an operator"
	case e.Holder != "":
		return "lease lost: held by " + e.Holder + " now"
	case e.why != "":
		return "lease lost: " + e.why
	}
	return "lease lost: no answered renewal in time, or the claim is gone from the store"
}

// Is matches ErrLost.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// definite says whether the store did nothing, so that repeating is of no use.
func definite(err error) bool {
	return errors.Is(err, ErrRefused) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrUnsupported)
}

// unavailable gives an error without a class the one that promises nothing.
func unavailable(err error) error {
	if definite(err) || errors.Is(err, ErrClosed) {
		return err
	}
	if !errors.Is(err, ErrUnavailable) {
		err = fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return unanswered{err}
	}
	return err
}

// unanswered is an ErrUnavailable caused by the end of a context of hasp's own, which
// must not be taken for the end of the caller's.
type unanswered struct{ cause error }

// Error says what was not answered.
func (e unanswered) Error() string { return e.cause.Error() }

// Is matches ErrUnavailable and nothing else.
func (e unanswered) Is(target error) bool { return target == ErrUnavailable }

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))
}
