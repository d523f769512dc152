//go:build linux || darwin || dragonfly || freebsd

package guard

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"time"
)

// Serve is the life of a guard. It returns the process's exit status.
func Serve(args []string) int {
	// The command dies with the thread that started it; this one stays to the end.
	runtime.LockOSThread()
	s, err := newSentry(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hasp: the guard cannot work:", err)
		return 1
	}
	s.start()
	for !s.over {
		s.step()
	}
	s.report(Gone, 0)
	return 0
}

// sentry is the guard's state. Only the goroutine of Serve touches it.
type sentry struct {
	brief    brief
	plan     plan
	family   family
	alarm    *alarm
	orders   <-chan order
	children chan os.Signal
	reports  *os.File

	pid  int  // of the command, and of its group
	live bool // the command is not reaped yet, so its group's number is its own
	over bool // nothing is left

	sweeps   int // how often everything was killed
	killedAt Instant
	stuck    bool // some of it was reported as stuck
}

func newSentry(args []string) (*sentry, error) {
	b, err := parseBrief(args)
	if err != nil {
		return nil, err
	}
	for _, fd := range []int{b.orders, b.reports, b.hold} {
		if fd >= 0 {
			syscall.CloseOnExec(fd)
		}
	}
	outlive(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2)
	s := &sentry{
		brief:    b,
		plan:     plan{term: b.term, kill: b.kill},
		children: make(chan os.Signal, 1),
		reports:  os.NewFile(uintptr(b.reports), "reports"),
	}
	signal.Notify(s.children, syscall.SIGCHLD)
	s.orders = readOrders(os.NewFile(uintptr(b.orders), "orders"))
	if s.alarm, err = newAlarm(); err != nil {
		return nil, err
	}
	return s, adopt()
}

// outlive makes signals meant for hasp or the command, but sent to all processes
// alike, do nothing here. They are caught, not ignored, since the command would
// inherit that; what was ignored from the start it inherits.
func outlive(signals ...os.Signal) {
	for _, sig := range signals {
		if !signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// readOrders relays what hasp says. The channel is closed when hasp is gone, or says
// what nobody understands.
func readOrders(from *os.File) <-chan order {
	orders := make(chan order)
	go func() {
		defer close(orders)
		for lines := bufio.NewScanner(from); lines.Scan(); {
			o, err := parseOrder(lines.Text())
			if err != nil {
				return
			}
			orders <- o
		}
	}()
	return orders
}

// start starts the command. That it cannot be started is a report, not an error.
func (s *sentry) start() {
	pid, err := syscall.ForkExec(s.brief.path, s.brief.args, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2},
		Sys:   childAttributes(s.brief.foreground),
	})
	if err != nil {
		s.report(Failed, errorNumber(err))
		s.over = true
		return
	}
	s.pid, s.live = pid, true
	s.family.group = pid
	s.report(Started, pid)
}

func errorNumber(err error) int {
	if number, ok := err.(syscall.Errno); ok { //nolint:errorlint // ForkExec wraps nothing
		return int(number)
	}
	return int(syscall.EINVAL)
}

// step waits for something to happen and does what follows from it.
func (s *sentry) step() {
	if err := s.alarm.set(s.next()); err != nil {
		s.plan.hangup()
	}
	select {
	case o, ok := <-s.orders:
		if !ok {
			s.orders = nil
			s.plan.hangup()
			break
		}
		s.obey(o)
	case <-s.alarm.rang:
	case <-s.children:
	}
	s.reap()
	if !s.over {
		s.act()
	}
}

// next is when the guard has to look again if nothing happens.
func (s *sentry) next() Instant {
	if s.plan.phase != killing {
		return s.plan.next()
	}
	now, err := Now()
	if err != nil {
		return 0
	}
	return now.Add(min(time.Millisecond<<min(s.sweeps, 10), 50*time.Millisecond))
}

func (s *sentry) obey(o order) {
	switch o.kind {
	case orderTrust:
		s.plan.trust(Instant(o.numbers[0]), Instant(o.numbers[1]))
	case orderLost:
		if s.plan.lost(Instant(o.numbers[0])) {
			s.term()
		}
	case orderSignal:
		s.forward(syscall.Signal(o.numbers[0]))
	}
}

// forward passes a signal on, as a terminal would: to the whole group, unless it is
// one that means something to its receiver only.
func (s *sentry) forward(sig syscall.Signal) {
	if !s.live {
		return
	}
	to := -s.pid
	if sig == syscall.SIGUSR1 || sig == syscall.SIGUSR2 {
		to = s.pid
	}
	_ = syscall.Kill(to, sig)
}

// term asks everybody to end, the stopped as well.
func (s *sentry) term() {
	if s.live {
		s.forward(syscall.SIGTERM)
		s.forward(syscall.SIGCONT)
		return
	}
	s.family.signal(syscall.SIGTERM)
	s.family.signal(syscall.SIGCONT)
}

// act ends what is due to be ended.
func (s *sentry) act() {
	now, err := Now()
	if err != nil {
		s.plan.hangup()
	}
	phase, begun := s.plan.due(now)
	if begun && phase == ending {
		s.report(Warned, 0)
		s.term()
	}
	if begun && phase == killing {
		s.killedAt = now
		s.report(Killing, 0)
	}
	if phase == killing {
		s.sweep(now)
	}
}

// sweep kills everything there is, again at once while more comes to light: what
// forks while it is looked for is found the next time.
func (s *sentry) sweep(now Instant) {
	s.sweeps++
	left := s.family.killAll(s.live, s.reap)
	if !s.over && !s.stuck && len(left) > 0 && now >= s.killedAt.Add(patience) {
		s.stuck = true
		s.report(Stuck, left[0])
	}
}

// reap buries the dead and notices when nobody is left.
func (s *sentry) reap() {
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err != nil:
			s.over = s.family.dispersed()
			return
		case pid == 0:
			return
		case pid != s.pid:
			continue
		case status.Stopped():
			s.report(Stopped, int(status.StopSignal()))
		default:
			s.commandEnded(status)
		}
	}
}

func (s *sentry) commandEnded(status syscall.WaitStatus) {
	s.live = false
	s.report(Ended, int(status))
	now, err := Now()
	if err != nil {
		s.plan.hangup()
	}
	if s.plan.ended(now) {
		s.term()
	}
}

func (s *sentry) report(kind ReportKind, number int) {
	_, _ = s.reports.WriteString(Report{Kind: kind, Number: number}.String())
}
