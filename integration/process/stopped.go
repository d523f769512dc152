package process

import (
	"bytes"
	"fmt"
	"os"
	"time"
)

// awaitStopped waits until the kernel says that the process is stopped: the signal is
// sent at once but acted on a little later.
func (p *Process) awaitStopped() error {
	look := time.NewTicker(200 * time.Microsecond)
	defer look.Stop()
	limit := time.NewTimer(Limit)
	defer limit.Stop()
	for {
		stopped, err := stopped(p.PID())
		if stopped || err != nil {
			return err
		}
		select {
		case <-look.C:
		case <-p.exited:
			return fmt.Errorf("process %d has ended", p.PID())
		case <-limit.C:
			return fmt.Errorf("process %d did not stop within %s", p.PID(), Limit)
		}
	}
}

// stopped says whether every thread of a process is stopped.
func stopped(pid int) (bool, error) {
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return false, err
	}
	for _, thread := range threads {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/stat", pid, thread.Name()))
		if err != nil {
			continue // the thread has ended meanwhile
		}
		_, after, _ := bytes.Cut(stat, []byte(") "))
		if len(after) == 0 || after[0] != 'T' && after[0] != 'Z' {
			return false, nil
		}
	}
	return true, nil
}
