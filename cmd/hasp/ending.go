//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

// ending is how a command came to its end. It is pure: reports go in, an exit code
// comes out.
type ending struct {
	failed    syscall.Errno      // the command could not be started
	ended     bool               // the command has ended, with this status
	status    syscall.WaitStatus //
	cutShort  bool               // the guard ended it, since nothing was heard in time
	loss      error              // what the lease was lost by
	guardDied bool               // the guard was killed
	asked     bool               // hasp was told to end, and passed it on
}

// hear takes a report of the guard's.
func (e *ending) hear(r guard.Report) {
	switch r.Kind {
	case guard.Failed:
		e.failed = syscall.Errno(r.Number)
	case guard.Ended:
		e.ended, e.status = true, syscall.WaitStatus(r.Number)
	case guard.Warned, guard.Killing:
		e.cutShort = e.cutShort || !e.ended // what it leaves behind is killed as well
	case guard.Died:
		e.guardDied = true
	case guard.Started, guard.Stopped, guard.Stuck, guard.Gone:
	}
}

// lost says whether the command was ended because of the lease.
func (e *ending) lost() bool { return e.loss != nil || e.cutShort }

// lossError says what happened to the lease, by what is known best.
func (e *ending) lossError(j job, release error) error {
	why := errors.New("no renewal was answered in time")
	if j.longest != "" {
		why = fmt.Errorf("no renewal was answered in time, or the time of %s is over", j.longest)
	}
	for _, err := range []error{e.loss, release} {
		if lost := (*hasp.LostError)(nil); errors.As(err, &lost) {
			why = lost
			break
		}
	}
	if e.failed != 0 {
		return fmt.Errorf("%s: %w", printable(j.keys[0]), why)
	}
	return fmt.Errorf("%s: %w; the command was ended", printable(j.keys[0]), why)
}

// startError says why the command could not be started, nil if it was.
func (e *ending) startError(j job) error {
	if e.failed == 0 {
		return nil
	}
	return startError(j.command[0], e.failed)
}

// code is the exit code of a command that ran under its lease to the end.
func (e *ending) code() int {
	switch {
	case e.ended && e.status.Exited():
		return e.status.ExitStatus()
	case e.ended && e.status.Signaled():
		return exitSignal + int(e.status.Signal())
	}
	return exitSignal + int(syscall.SIGKILL) // killed together with the guard
}

func revoked(err error) bool {
	var lost *hasp.LostError
	return errors.As(err, &lost) && lost.Revoked
}

// startError gives a command that cannot be started its exit code.
func startError(name string, err error) error {
	switch {
	case errors.Is(err, syscall.ENOENT) && isPath(name):
		return &failure{code: exitNotFound, kind: "not_found", err: fmt.Errorf("%s: it is there, but not the interpreter that it names", printable(name))}
	case errors.Is(err, syscall.ENOENT):
		return &failure{code: exitNotFound, kind: "not_found", err: fmt.Errorf("%s: command not found", printable(name))}
	case errors.Is(err, syscall.ENOEXEC):
		err = fmt.Errorf("%w; a script begins with a line such as #!/bin/sh", err)
	}
	return &failure{code: exitCannotRun, kind: "cannot_run", err: fmt.Errorf("%s: %w", printable(name), err)}
}

// isPath says whether a name is that of a file that is there, which is not looked for in
// PATH.
func isPath(name string) bool {
	_, err := os.Stat(name)
	return err == nil && strings.Contains(name, "/")
}

// cannotRun is for failures of hasp itself at starting anything.
func cannotRun(err error) error { return &failure{code: exitCannotRun, kind: "cannot_run", err: err} }
