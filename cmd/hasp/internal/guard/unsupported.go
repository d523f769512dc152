//go:build !(linux || darwin || dragonfly || freebsd)

package guard

import "syscall"

// Process is a guard as hasp sees it. There are none on this system.
type Process struct{}

// Start answers ErrUnsupported.
func Start(string, Command) (*Process, error) { return nil, ErrUnsupported }

// Serve is never called on this system.
func Serve([]string) int { return 1 }

// Now is never asked on this system.
func Now() (Instant, error) { return 0, ErrUnsupported }

// Reports is empty.
func (*Process) Reports() <-chan Report { return nil }

// Trust does nothing.
func (*Process) Trust(_, _ Instant) {}

// Lost does nothing.
func (*Process) Lost(Instant) {}

// Signal does nothing.
func (*Process) Signal(syscall.Signal) {}

// Kill does nothing.
func (*Process) Kill() {}
