package elect

import (
	"errors"
	"fmt"

	"github.com/hasp-dev/hasp"
)

// ErrResigned is the cause with which the context of the work ends after Resign. It
// matches hasp.ErrLost, so that work need not tell the two apart.
var ErrResigned error = resignedError{}

// ErrOverrun says that the work has not returned although its context has ended.
// Leadership is kept as long as it goes on, or is lost, but not handed over.
var ErrOverrun = errors.New("the work has not returned")

// errGoexit is of work that ended its goroutine.
var errGoexit = errors.New("the work called runtime.Goexit instead of returning")

type resignedError struct{}

func (resignedError) Error() string { return "the leader resigned" }

// Is matches hasp.ErrLost.
func (resignedError) Is(target error) bool { return target == hasp.ErrLost }

// PanicError is what Run returns when the work panicked; leadership was resigned.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine that panicked, as debug.Stack prints it
}

// Error says what the work panicked with.
func (e *PanicError) Error() string { return fmt.Sprintf("the work panicked: %v", e.Value) }

// Unwrap returns the value where it is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// failed names the operation and the election that failed.
func failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &hasp.Error{Op: op, Key: name, Err: err}
}

func invalidf(format string, args ...any) error {
	return fmt.Errorf("%w: %s", hasp.ErrInvalid, fmt.Sprintf(format, args...))
}
