package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

// The exit codes that are hasp's own.
const (
	exitOK          = 0
	exitNotHeld     = 1
	exitUsage       = 64
	exitUnavailable = 69
	exitLost        = 70
	exitOutput      = 74
	exitConflict    = 75
	exitCannotRun   = 126
	exitNotFound    = 127
	exitSignal      = 128 // plus the signal's number
)

// exited is an exit code about which nothing is left to say.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// failure is an error with the exit code it leads to.
type failure struct {
	code int
	kind string // one word for programs
	err  error

	held  *conflict // details of kind "held"
	store string    // that is the matter
	note  bool      // it ends nothing
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// conflict says who is in the way.
type conflict struct {
	Key       string `json:"key"`
	Holder    string `json:"holder,omitempty"`
	InLine    int64  `json:"in_line_ms,omitempty"`
	ExpiresIn int64  `json:"expires_in_ms,omitempty"`
	Waited    int64  `json:"waited_ms"`
}

func usagef(format string, args ...any) error {
	return &failure{code: exitUsage, kind: "usage", err: fmt.Errorf(format, args...)}
}

// classify gives every error its exit code. What has no class comes from reading the
// arguments.
func classify(err error) *failure {
	var known *failure
	switch {
	case errors.As(err, &known):
		return known
	case errors.Is(err, hasp.ErrNotHeld):
		return &failure{code: exitNotHeld, kind: "not_held", err: err}
	case errors.Is(err, hasp.ErrLost):
		return &failure{code: exitLost, kind: "lost", err: err}
	case errors.Is(err, hasp.ErrHeld):
		return &failure{code: exitConflict, kind: "held", err: err}
	case errors.Is(err, hasp.ErrRefused), errors.Is(err, hasp.ErrUnsupported):
		return &failure{code: exitUnavailable, kind: "refused", err: err}
	case errors.Is(err, hasp.ErrUnavailable), errors.Is(err, hasp.ErrClosed):
		return &failure{code: exitUnavailable, kind: "unavailable", err: err}
	case errors.Is(err, guard.ErrUnsupported):
		return &failure{code: exitCannotRun, kind: "cannot_run", err: err}
	}
	return &failure{code: exitUsage, kind: "usage", err: err}
}

// fail tells an error and answers its exit code. Where the store is the matter it is
// named, since a time-out alone does not say of whom.
func (a *app) fail(err error) int {
	f := classify(err)
	if f.code == exitUnavailable && a.where != "" {
		f.store = a.where
	}
	a.tell(f)
	return f.code
}

// tell writes one line to stderr, as text or as JSON.
func (a *app) tell(f *failure) {
	a.telling.Lock()
	defer a.telling.Unlock()
	if !a.json {
		text := message(f.err)
		if f.store != "" {
			text += " (" + f.store + ")"
		}
		fmt.Fprintln(a.Err, "hasp:", text)
		return
	}
	line := struct {
		Error   string `json:"error,omitempty"`
		Code    int    `json:"code,omitempty"`
		Note    string `json:"note,omitempty"`
		Message string `json:"message"`
		Store   string `json:"store,omitempty"`
		*conflict
	}{Error: f.kind, Code: f.code, Message: message(f.err), Store: f.store, conflict: f.held}
	if f.note {
		line.Error, line.Note = "", f.kind
	}
	if text, err := json.Marshal(line); err == nil {
		fmt.Fprintf(a.Err, "%s\n", text)
	}
}

// warn tells something that does not end the command.
func (a *app) warn(kind string, err error) { a.tell(&failure{kind: kind, err: err, note: true}) }

// message is an error without the name that already begins the line.
func message(err error) string { return strings.TrimPrefix(err.Error(), "hasp: ") }

// output is stdout. What cannot be written there has an exit code of its own.
type output struct{ to io.Writer }

func (o output) Write(p []byte) (int, error) {
	n, err := o.to.Write(p)
	if err != nil {
		err = &failure{code: exitOutput, kind: "output", err: fmt.Errorf("the output cannot be written: %w", err)}
	}
	return n, err
}
