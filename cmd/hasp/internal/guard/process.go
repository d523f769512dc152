//go:build linux || darwin || dragonfly || freebsd

package guard

import (
	"bufio"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Process is a guard as hasp sees it.
type Process struct {
	pid     int
	family  family // of relay's goroutine
	orders  *os.File
	reports chan Report
}

// Start starts a guard, and the guard starts c. self is the file to execute for it,
// which must give its arguments after Argument to Serve.
func Start(self string, c Command) (*Process, error) {
	p := &Process{reports: make(chan Report, 16)}
	if err := adopt(); err != nil {
		return nil, err
	}
	p.family.spared = make(map[int]bool)
	for _, child := range p.family.childrenOf(os.Getpid()) {
		p.family.spared[child] = true
	}
	from, err := p.launch(self, c)
	if err != nil {
		return nil, fmt.Errorf("starting the guard: %w", err)
	}
	go p.relay(from)
	return p, nil
}

// launch makes the two pipes and the process between them. It answers the end where
// the reports come out.
func (p *Process) launch(self string, c Command) (*os.File, error) {
	ordersOut, orders, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer ordersOut.Close()
	reports, reportsIn, err := os.Pipe()
	if err != nil {
		orders.Close()
		return nil, err
	}
	defer reportsIn.Close()
	if err := p.fork(self, c, ordersOut, reportsIn); err != nil {
		orders.Close()
		reports.Close()
		return nil, err
	}
	p.orders = orders
	return reports, nil
}

func (p *Process) fork(self string, c Command, orders, reports *os.File) error {
	b := brief{hold: -1, term: c.Term, kill: c.Kill, foreground: c.Foreground, path: c.Path, args: c.Args}
	passed := []struct {
		to   *int
		from *os.File
	}{{&b.orders, orders}, {&b.reports, reports}, {&b.hold, c.Hold}}
	for _, each := range passed {
		if each.from == nil {
			continue
		}
		// A duplicate is inherited, under a number that no inherited descriptor has.
		fd, err := syscall.Dup(int(each.from.Fd()))
		if err != nil {
			return err
		}
		defer syscall.Close(fd)
		*each.to = fd
	}
	in := uintptr(0)
	if c.In != nil {
		in = c.In.Fd()
	}
	pid, err := syscall.ForkExec(self, append([]string{"hasp", Argument}, b.arguments()...), &syscall.ProcAttr{
		Env:   c.Env,
		Files: []uintptr{in, 1, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	p.pid = pid
	return err
}

// Reports has what the guard reports, in order. It is closed after Gone or Died.
func (p *Process) Reports() <-chan Report { return p.reports }

// Trust tells the guard of a renewal: TERM and KILL come at these instants now.
func (p *Process) Trust(term, kill Instant) {
	p.tell(order{orderTrust, [2]int64{int64(term), int64(kill)}})
}

// Lost tells the guard that the lease is gone: TERM now, KILL at that instant, or
// when it was due if that is earlier.
func (p *Process) Lost(kill Instant) { p.tell(order{orderLost, [2]int64{int64(kill)}}) }

// Signal passes a signal on to the command.
func (p *Process) Signal(sig syscall.Signal) { p.tell(order{orderSignal, [2]int64{int64(sig)}}) }

// tell never waits: a guard that does not listen is found out by what it does not
// report.
func (p *Process) tell(o order) {
	_ = p.orders.SetWriteDeadline(time.Now().Add(10 * time.Millisecond))
	_, _ = p.orders.WriteString(o.String())
}

// Kill kills the guard, and so all that it guards.
func (p *Process) Kill() { _ = syscall.Kill(p.pid, syscall.SIGKILL) }

// relay passes the reports on. Where they end without Gone the guard is dead, and
// the rest of its work is done here.
func (p *Process) relay(from *os.File) {
	defer close(p.reports)
	defer p.orders.Close()
	defer from.Close()
	for lines := bufio.NewScanner(from); lines.Scan(); {
		r, err := parseReport(lines.Text())
		if err != nil {
			break
		}
		switch r.Kind { //nolint:exhaustive // the others change nothing here
		case Started:
			p.family.group = r.Number
		case Ended:
			p.family.group = 0
		case Gone:
			p.bury()
			p.reports <- r
			return
		}
		p.reports <- r
	}
	p.Kill()
	p.finish()
	p.reports <- Report{Kind: Died}
}

// bury waits for the guard's own end, at which the lock file is closed.
func (p *Process) bury() {
	for {
		if _, err := syscall.Wait4(p.pid, nil, 0, nil); err != syscall.EINTR {
			return
		}
	}
}

// finish kills what a dead guard has left. The command is not reaped before the
// group is killed, so the group's number is its own, unless the guard had reaped it.
func (p *Process) finish() {
	p.bury()
	if p.family.group != 0 {
		_ = syscall.Kill(-p.family.group, syscall.SIGKILL)
	}
	for pause := time.Millisecond; ; pause = min(2*pause, 50*time.Millisecond) {
		left := p.family.killAll(false, reapAll)
		if len(left) == 0 && len(p.family.killAll(false, reapAll)) == 0 {
			return
		}
		time.Sleep(pause)
	}
}

func reapAll() {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		if err != syscall.EINTR && pid <= 0 {
			return
		}
	}
}
