package main

import (
	"runtime"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// setForeground makes a group the terminal's foreground group. Who does that from the
// background is stopped by SIGTTOU, unless its thread blocks it. To ignore the signal
// instead would be inherited by the command.
func setForeground(group int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var block, before unix.Sigset_t
	bit, width := uint(syscall.SIGTTOU)-1, uint(8*unsafe.Sizeof(block.Val[0]))
	block.Val[bit/width] |= 1 << (bit % width)
	if unix.PthreadSigmask(unix.SIG_BLOCK, &block, &before) != nil {
		return
	}
	_ = unix.IoctlSetPointerInt(stdin, unix.TIOCSPGRP, group)
	_ = unix.PthreadSigmask(unix.SIG_SETMASK, &before, nil)
}
