//go:build unix && !linux

package main

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// setForeground makes a group the terminal's foreground group. Who does that from the
// background is stopped by SIGTTOU, unless it ignores it.
func setForeground(group int) {
	signal.Ignore(syscall.SIGTTOU)
	defer signal.Reset(syscall.SIGTTOU)
	_ = unix.IoctlSetPointerInt(stdin, unix.TIOCSPGRP, group)
}
