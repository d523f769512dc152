//go:build linux

package main_test

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// trapping counts a signal, cleans up, and ends with a code of its own.
const trapping = `
trap 'echo got >> got; : > cleaning; while [ ! -e go ]; do sleep 0.02; done; : > cleaned; exit 7' NAME
echo $$ > ready
while :; do sleep 0.05; done`

func TestCLI1_EachSignalReachesTheCommandOnceAndTheKeyIsKeptUntilItEnds(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{
		"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP,
		"QUIT": syscall.SIGQUIT, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			h := p.start("run", "k", "--", "sh", "-c", strings.ReplaceAll(trapping, "NAME", name))
			p.pid("ready")
			p.kill(h.Process.Pid, sig)
			p.file("cleaning")
			p.want(75, p.do("run", "k", "-n", "--", "true"))
			p.proceed()
			p.want(7, p.end(h))
			if got := p.read("got"); got != "got\n" {
				t.Errorf("the command got the signal %d times", strings.Count(got, "got"))
			}
			p.want(0, p.do("run", "k", "-n", "--", "true"))
		})
	}
}

func TestCLI1_ACommandThatDiesOfTheSignalGives128AndItsNumber(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("run", "k", "--", "sh", "-c", "echo $$ > ready; exec sleep 60")
	p.pid("ready")
	p.kill(h.Process.Pid, syscall.SIGTERM)
	p.want(143, p.end(h))
}

func TestCLI2_NoDescendantIsLeftAfterTheSignal(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("run", "k", "--", "sh", "-c", "sleep 60 & echo $! > one; setsid sh -c 'echo $$ > two; exec sleep 60' & sleep 60")
	pids := []int{p.pid("one"), p.pid("two")}
	p.kill(h.Process.Pid, syscall.SIGTERM)
	p.want(143, p.end(h))
	for _, pid := range pids {
		if alive(pid) {
			t.Errorf("process %d is alive after hasp has ended", pid)
		}
	}
}

func TestWhatTheCommandLeavesBehindEndsBeforeTheKeyIsFree(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	got := p.do("run", "k", "--", "sh", "-c",
		// The daemon's shell says so where its sleep is killed before it is.
		"setsid sh -c 'trap \"\" TERM; echo $$ > daemon; while :; do sleep 1; done' 2>/dev/null & while [ ! -s daemon ]; do sleep 0.01; done; exit 4")
	p.want(4, got)
	if pid := p.pid("daemon"); alive(pid) {
		t.Errorf("process %d is alive after hasp has ended", pid)
	}
	if got.err != "" {
		t.Errorf("stderr: %s", got.err)
	}
}

func TestCLI4_ASignalWhileWaitingEndsItAtOnceAndLeavesNoEntry(t *testing.T) {
	t.Parallel()
	for name, sig := range map[string]syscall.Signal{"INT": syscall.SIGINT, "TERM": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.start("run", "k", "--", "sh", "-c", ": > held; sleep 60")
			p.file("held")
			waiter := p.start("run", "k", "--", "touch", "ran")
			p.waiting(1)
			began := time.Now()
			p.kill(waiter.Process.Pid, sig)
			p.want(128+int(sig), p.end(waiter))
			if took := time.Since(began); took > patience {
				t.Errorf("ended after %s", took)
			}
			if n := p.show("k").Waiting; n != 0 {
				t.Errorf("%d entries are left", n)
			}
			if p.exists("ran") {
				t.Error("the command ran")
			}
		})
	}
}

func TestAnIgnoredSignalStaysIgnoredAsUnderNohup(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	cmd := p.command()
	cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", `trap "" HUP; exec "$0" run k -- sh -c 'echo $$ > ready; while [ ! -e go ]; do sleep 0.02; done; exit 5'`, binary}
	h := p.begin(cmd)
	child := p.pid("ready")
	p.kill(h.Process.Pid, syscall.SIGHUP)
	p.kill(child, syscall.SIGHUP)
	p.proceed()
	p.want(5, p.end(h))
}
