package keytmpl

import (
	"fmt"

	"github.com/hasp-dev/hasp"
)

// SyntaxError says what is wrong with a template, and where. It matches
// [hasp.ErrInvalid].
type SyntaxError struct {
	Template string
	Column   int // in characters, from 1
	Reason   string
}

// Error says template, place and reason.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("key template %q, column %d: %s", e.Template, e.Column, e.Reason)
}

// Is matches hasp.ErrInvalid.
func (e *SyntaxError) Is(target error) bool { return target == hasp.ErrInvalid }

// ValueError says that a value cannot stand in a key. It matches [hasp.ErrInvalid]. The
// value itself is not in it: it may be a secret.
type ValueError struct {
	Template string
	Name     string // of the placeholder
	Reason   string // such as "is missing"
}

// Error says which value, and what is wrong with it.
func (e *ValueError) Error() string {
	return fmt.Sprintf("key template %q: the value of {%s} %s", e.Template, e.Name, e.Reason)
}

// Is matches hasp.ErrInvalid.
func (e *ValueError) Is(target error) bool { return target == hasp.ErrInvalid }
