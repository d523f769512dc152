package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// cores are where the programs run.
type cores struct {
	unbound        bool // anywhere
	server, client int
}

// boundVariable says to a process which core of the client it was started on.
const boundVariable = "HASP_BENCH_SERVER_CORE"

// takeCores puts this process, and so the contenders that it starts, on the second of
// its cores, and keeps the first for servers. A Go program counts its cores once, when it
// starts, so it starts itself again.
func (p *plan) takeCores() error {
	if p.cores.unbound {
		return nil
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	mine := listed(&set)
	if core, ok := os.LookupEnv(boundVariable); ok && len(mine) == 1 {
		var err error
		p.cores.client = mine[0]
		p.cores.server, err = strconv.Atoi(core)
		return err
	}
	if len(mine) < 2 {
		return errors.New("this needs two cores, one for servers and one for clients; -smoke runs on one")
	}
	runtime.LockOSThread() // the program that is started has this thread's cores
	if err := bind(0, mine[1]); err != nil {
		return err
	}
	env := append(os.Environ(), boundVariable+"="+strconv.Itoa(mine[0]))
	return syscall.Exec("/proc/self/exe", os.Args, env)
}

func listed(set *unix.CPUSet) []int {
	var all []int
	for core := 0; len(all) < set.Count(); core++ {
		if set.IsSet(core) {
			all = append(all, core)
		}
	}
	return all
}

// bind puts a thread on a core; 0 is this thread.
func bind(thread, core int) error {
	var set unix.CPUSet
	set.Set(core)
	return unix.SchedSetaffinity(thread, &set)
}

// bindServer puts a server on the core for servers: all threads of the process and of
// those it has started.
func (c cores) bindServer(pid int) error {
	if c.unbound {
		return nil
	}
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil {
		return err
	}
	for _, thread := range threads {
		id, err := strconv.Atoi(filepath.Base(thread))
		if err != nil {
			return err
		}
		if err := bind(id, c.server); err != nil && !errors.Is(err, unix.ESRCH) {
			return err
		}
		children, _ := os.ReadFile(filepath.Join(thread, "children")) // none if the thread has ended
		for child := range strings.FieldsSeq(string(children)) {
			id, err := strconv.Atoi(child)
			if err != nil {
				return err
			}
			if err := c.bindServer(id); err != nil {
				return err
			}
		}
	}
	return nil
}
