//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// listen begins to catch the signals that hasp passes on to the command. One that is
// ignored, as nohup and a shell's background jobs have it, stays ignored, here and in
// the command.
func listen() chan os.Signal {
	c := make(chan os.Signal, 32)
	for _, sig := range passed() {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	if !signal.Ignored(syscall.SIGPIPE) {
		// That nobody reads what hasp says is no reason to end before the command.
		signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	}
	return c
}

// passed are the signals that reach the command through hasp.
func passed() []syscall.Signal {
	return []syscall.Signal{
		syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGWINCH, syscall.SIGCONT,
	}
}

// ends says whether a signal ends the waiting in line.
func ends(sig os.Signal) bool {
	switch sig {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT:
		return true
	}
	return false
}

// number is the signal's number; all that this program catches have one.
func number(sig os.Signal) syscall.Signal {
	n, _ := sig.(syscall.Signal)
	return n
}
