package guard

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// adopt makes orphaned descendants children of this process.
func adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("becoming the one who adopts orphans: %w", err)
	}
	return nil
}

// childAttributes put the command into a group of its own and tie its life to the
// calling thread's.
func childAttributes(foreground bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Foreground: foreground, Ctty: 0, Pdeathsig: syscall.SIGKILL}
}

// family is what descends from this process.
type family struct {
	// spared are children this process had from the start; they and what descends from
	// them do not count.
	spared map[int]bool
	group  int // the command's; 0: none
}

// killAll kills every descendant, and whoever comes to light meanwhile, and answers
// those it found last. The group is killed as a whole, which no fork escapes, as long
// as its number is known to be its own.
func (f family) killAll(groupIsOurs bool, reap func()) []int {
	if groupIsOurs {
		_ = syscall.Kill(-f.group, syscall.SIGKILL)
	}
	known := make(map[int]bool)
	for {
		found := f.everyone()
		fresh := false
		for i := len(found) - 1; i >= 0; i-- {
			// Children before their parents: nothing that a descendant guards outlives its guard.
			_ = syscall.Kill(found[i], syscall.SIGKILL)
			fresh = fresh || !known[found[i]]
			known[found[i]] = true
		}
		reap()
		if !fresh {
			return found
		}
	}
}

// dispersed says whether nobody can be left when this process has no children.
func (family) dispersed() bool { return true }

// everyone lists the living descendants, parents before their children. It may miss
// some that are forked or orphaned meanwhile: ask until nobody is left.
func (f family) everyone() []int {
	found := f.childrenOf(os.Getpid())
	for i := 0; i < len(found); i++ {
		found = append(found, f.childrenOf(found[i])...)
	}
	return found
}

// childrenOf lists the children of a process that are not zombies of others.
func (f family) childrenOf(pid int) []int {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil
	}
	var found []int
	for _, task := range tasks {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		if errors.Is(err, os.ErrNotExist) && pid == os.Getpid() {
			return f.byParent(pid)
		}
		for _, word := range strings.Fields(string(list)) {
			if child, err := strconv.Atoi(word); err == nil && !f.spared[child] {
				found = append(found, child)
			}
		}
	}
	return found
}

// byParent is for kernels that list no children: it lists all descendants at once.
func (f family) byParent(root int) []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	children := make(map[int][]int)
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil {
			parent := parentOf(pid)
			children[parent] = append(children[parent], pid)
		}
	}
	found := []int{root}
	for i := 0; i < len(found); i++ {
		for _, child := range children[found[i]] {
			if !f.spared[child] {
				found = append(found, child)
			}
		}
	}
	return found[1:]
}

// parentOf is 0 where the process is gone.
func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name before the state is in parentheses and may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(string(fields[1]))
	if err != nil {
		return 0
	}
	return parent
}

// signal sends a signal to every descendant.
func (f family) signal(sig syscall.Signal) {
	for _, pid := range f.everyone() {
		_ = syscall.Kill(pid, sig)
	}
}
