//go:build darwin || dragonfly || freebsd

package guard

import "syscall"

// adopt does nothing: these systems have no such thing, or not for all processes.
func adopt() error { return nil }

func childAttributes(foreground bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Foreground: foreground, Ctty: 0}
}

// family is the command's group, which is all that is known here.
type family struct {
	spared map[int]bool
	group  int
}

// killAll kills the group. Its number is not given to another while it has members.
func (f family) killAll(_ bool, reap func()) []int {
	f.signal(syscall.SIGKILL)
	reap()
	return f.everyone()
}

// everyone answers the group's leader in place of all.
func (f family) everyone() []int {
	if f.dispersed() {
		return nil
	}
	return []int{f.group}
}

func (f family) signal(sig syscall.Signal) {
	if f.group > 0 {
		_ = syscall.Kill(-f.group, sig)
	}
}

// dispersed says whether the group has no members any more.
func (f family) dispersed() bool { return f.group == 0 || syscall.Kill(-f.group, 0) == syscall.ESRCH }

func (f family) childrenOf(int) []int { return nil }
