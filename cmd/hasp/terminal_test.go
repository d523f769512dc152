//go:build linux

package main_test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// shell is an interactive shell on a terminal of its own.
type shell struct {
	*place
	keys *os.File
	seen *output
}

func newShell(t *testing.T) *shell {
	t.Helper()
	p := newPlace(t)
	keys, screen := openTerminal(t)
	cmd := exec.Command("sh", "-i")
	cmd.Dir, cmd.Env = p.dir, p.env("PS1=> ", "hasp="+binary)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = screen, screen, screen
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = screen.Close()
	s := &shell{place: p, keys: keys, seen: new(output)}
	go func() {
		buffer := make([]byte, 1024)
		for {
			n, err := keys.Read(buffer)
			_, _ = s.seen.Write(buffer[:n])
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the screen:\n%s", s.seen)
		}
		_ = cmd.Process.Kill()
		_ = keys.Close()
		_ = cmd.Wait()
	})
	return s
}

func openTerminal(t *testing.T) (keys, screen *os.File) {
	t.Helper()
	keys, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := keys.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	number := 0
	err = raw.Control(func(fd uintptr) {
		if err := unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			t.Error(err)
		}
		number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		if err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	screen, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return keys, screen
}

// press types keys.
func (s *shell) press(keys string) {
	s.t.Helper()
	if _, err := s.keys.WriteString(keys); err != nil {
		s.t.Fatal(err)
	}
}

// screen waits until something stands there.
func (s *shell) screen(text string) {
	s.t.Helper()
	s.eventually(fmt.Sprintf("%q on the screen", text), func() bool { return strings.Contains(s.seen.String(), text) })
}

const (
	ctrlC = "\x03"
	ctrlZ = "\x1a"
)

func TestOnATerminalTheCommandReadsAndTheShellHasItBack(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.press(`$hasp run k -- sh -c ': > ready; read x; echo "<$x>"'; echo code $?` + "\n")
	s.file("ready")
	s.press("hello\n")
	s.screen("<hello>")
	s.screen("code 0")
	s.press("read y; echo \"[$y]\"\nworld\n")
	s.screen("[world]")
}

func TestOnATerminalCtrlCReachesTheCommandOnce(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.press(`$hasp run k -- sh -c 'trap "echo x >> got; : > caught" INT; : > ready; while [ ! -e go ]; do sleep 0.05; done; exit 5'; echo code $?` + "\n")
	s.file("ready")
	s.press(ctrlC)
	s.file("caught")
	s.proceed()
	s.screen("code 5")
	if got := s.read("got"); got != "x\n" {
		t.Errorf("the command got the signal %d times", strings.Count(got, "x"))
	}
}

func TestOnATerminalCtrlZStopsAllAndFgGoesOn(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	// It starts nothing: a shell that does is in the middle of vfork now and then, where
	// nothing stops it.
	s.press(`$hasp run k --ttl 1m -- sh -c 'echo $$ > pid; read x; echo "<$x>"'` + "\n")
	pid := s.pid("pid")
	for range 2 {
		s.press(ctrlZ)
		s.eventually("the command is stopped", func() bool { return stateOf(pid) == "T" })
		s.press("echo back > back; echo $$ > shell\n") // the shell listens again
		s.pid("shell")
		if err := os.Remove(s.path("shell")); err != nil {
			t.Fatal(err)
		}
		s.press("fg\n")
		s.eventually("the command goes on", func() bool { return stateOf(pid) != "T" })
	}
	s.press("hello\n")
	s.screen("<hello>")
	s.press("echo code $?\n")
	s.screen("code 0")
}

func TestCLI7_CtrlZBeyondTheTTLEndsTheCommandAndTheCodeSaysLost(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.press(`$hasp run k --ttl 2s -- sh -c 'echo $$ > pid; exec sleep 60'` + "\n")
	pid := s.pid("pid")
	s.press(ctrlZ)
	s.eventually("the command is stopped", func() bool { return stateOf(pid) == "T" })
	s.dead(pid)
	s.press("fg\n")
	s.press("echo code $?\n")
	s.screen("code 70")
}

func TestInAPipelineTheCommandGetsTheTerminalWhenItReads(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.press(`$hasp run k -- sh -c ': > ready; read x; echo "<$x>"' | cat` + "\n")
	s.file("ready")
	s.press("hello\n")
	s.screen("<hello>")
	s.press("read y; echo \"[$y]\"\nworld\n")
	s.screen("[world]")
}

func TestFromTheBackgroundTheCommandGetsTheTerminalByFg(t *testing.T) {
	t.Parallel()
	s := newShell(t)
	s.press(`$hasp run k --ttl 1m -- sh -c 'echo $$ > pid; read x; echo "<$x>"' &` + "\n")
	pid := s.pid("pid")
	s.eventually("the command is stopped", func() bool { return stateOf(pid) == "T" })
	// the job is what the shell started: hasp, above the guard
	s.eventually("the job is stopped", func() bool { return stateOf(parentOf(parentOf(pid))) == "T" })
	s.press("fg\n")
	s.eventually("the command goes on", func() bool { return stateOf(pid) == "S" })
	s.press("hello\n")
	s.screen("<hello>")
}

func TestWithoutATerminalStoppingTheCommandStopsNothingElse(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("run", "k", "--ttl", "4s", "--", "sh", "-c", "echo $$ > pid; while [ ! -e go ]; do sleep 0.02; done; exit 3")
	pid := p.pid("pid")
	p.kill(pid, syscall.SIGSTOP)
	select {
	case <-h.ended:
		t.Error("ended while the command was stopped")
	case <-time.After(6 * time.Second):
	}
	p.proceed()
	p.kill(h.Process.Pid, syscall.SIGCONT)
	p.want(3, p.end(h))
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	var state string
	var parent int
	_, _ = fmt.Sscan(string(stat[strings.LastIndexByte(string(stat), ')')+2:]), &state, &parent)
	return parent
}

func stateOf(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return string(stat[strings.LastIndexByte(string(stat), ')')+2])
}
