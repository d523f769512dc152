//go:build unix

package main

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stdin is the descriptor of the terminal, if there is one.
const stdin = 0

// terminal is the terminal that is standard input and governs hasp's session. Nil:
// none, and then none of its methods does anything.
//
// A terminal belongs to one process group at a time, the foreground group: it may
// read, and Ctrl-C and Ctrl-Z go to it. The command's group becomes it, and when the
// command is stopped hasp stops its own group as well, so that the shell takes over.
type terminal struct {
	own   int  // hasp's group, which the shell knows
	given bool // the command's group has its place in the foreground
}

func newTerminal() *terminal {
	t := &terminal{own: unix.Getpgrp()}
	if t.foreground() <= 0 {
		return nil
	}
	return t
}

// eager says whether the command gets the terminal before it asks for it. Where the
// output goes into a pipe, the rest of the pipeline is in hasp's group and may want it.
func (t *terminal) eager() bool {
	if t == nil || t.foreground() != t.own {
		return false
	}
	info, err := os.Stdout.Stat()
	t.given = err == nil && info.Mode()&os.ModeNamedPipe == 0
	return t.given
}

// foreground is the foreground group, -1 if there is no terminal.
func (*terminal) foreground() int {
	group, err := unix.IoctlGetInt(stdin, unix.TIOCGPGRP)
	if err != nil {
		return -1
	}
	return group
}

// give makes the command's group the foreground group, if that is its place and hasp's
// own group is it now.
func (t *terminal) give(group int) {
	if t != nil && t.given && group > 0 && t.foreground() == t.own {
		setForeground(group)
	}
}

// take makes hasp's own group the foreground group again, if the command's is it or
// one that is gone.
func (t *terminal) take(group int) {
	if t == nil {
		return
	}
	now := t.foreground()
	if now == group || now > 0 && now != t.own && syscall.Kill(-now, 0) == syscall.ESRCH {
		setForeground(t.own)
	}
}

// stopped is told that the command was stopped by this signal.
func (s *supervision) stopped(sig syscall.Signal) {
	t := s.terminal
	if t == nil {
		return
	}
	asked := sig == syscall.SIGTTIN || sig == syscall.SIGTTOU
	now := t.foreground()
	switch {
	case asked && now == t.own:
		t.given = true
		s.proceed()
		return
	case now == s.group:
		t.take(s.group)
		sig = syscall.SIGTSTP
	case !asked: // in the background, and not because of the terminal
		return
	}
	// The whole group, as if the terminal had done it. A group that no shell cares for is
	// not stopped by this; then the command goes on.
	_ = syscall.Kill(0, sig)
	s.resume = time.After(100 * time.Millisecond)
}

// proceed lets the command go on, with the terminal if it had it.
func (s *supervision) proceed() {
	s.resume = nil
	s.terminal.give(s.group)
	s.guard.Signal(syscall.SIGCONT)
}
