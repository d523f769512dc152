//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

// Times of the supervision.
const (
	termShare  = 5                      // TERM comes this part of the TTL before the end,
	termMost   = 2 * time.Second        // but at most so long before it
	killShare  = 50                     // KILL comes this part of the TTL before the end,
	killMost   = 200 * time.Millisecond // but at most so long: it must have worked by then
	forcedTime = 2 * time.Second        // from the loss of a removed lease to KILL
	overdue    = time.Second            // how late a guard may be before it is taken for dead
)

// supervision is a running command. Only the goroutine of watch touches it.
type supervision struct {
	*runner
	leases   []*hasp.Lease // the token is that of the last
	guard    *guard.Process
	terminal *terminal
	group    int // the command's; 0 until it is reported
	end      ending

	resume <-chan time.Time // when to go on if the stop of this process had no effect
	late   <-chan time.Time // when the guard is overdue
}

// start starts the guard and, by it, the command, which is ended when the first of the
// leases is.
func (r *runner) start(url string, leases ...*hasp.Lease) (*supervision, error) {
	s := &supervision{runner: r, leases: leases}
	in, err := s.input()
	if err != nil {
		return nil, cannotRun(err)
	}
	defer in.Close()
	path, err := findFile(r.job.command[0], r.env.get("PATH"))
	if err != nil {
		return nil, startError(r.job.command[0], err)
	}
	self, err := guard.Self()
	if err != nil {
		return nil, cannotRun(err)
	}
	term, kill, err := s.deadlines()
	if err != nil {
		return nil, cannotRun(err)
	}
	r.starting.Lock() // what one guard inherits, another must not
	s.guard, err = guard.Start(self, guard.Command{
		Path: path, Args: r.job.command, Env: r.childEnvironment(leases[len(leases)-1], url), Hold: r.lockFile(),
		In: in, Term: term, Kill: kill, Foreground: s.terminal.eager(),
	})
	r.starting.Unlock()
	if err != nil {
		return nil, cannotRun(err)
	}
	return s, nil
}

// input is the standard input of a command that does not have that of hasp. Others may
// have a terminal there.
func (s *supervision) input() (*os.File, error) {
	if s.job.apart {
		return os.Open(os.DevNull)
	}
	s.terminal = newTerminal()
	return nil, nil //nolint:nilnil // hasp's own
}

// trustedUntil is when the first of the leases ends, as far as is known.
func (s *supervision) trustedUntil() time.Time {
	end := s.leases[0].TrustedUntil()
	for _, l := range s.leases[1:] {
		if until := l.TrustedUntil(); until.Before(end) {
			end = until
		}
	}
	return end
}

// ended says why one of the leases is held no more, nil if all are.
func (s *supervision) ended() error {
	for _, l := range s.leases {
		if err := l.Err(); err != nil {
			return err
		}
	}
	return nil
}

// lockFile is what the guard holds as long as anything runs.
func (r *runner) lockFile() *os.File {
	if r.proof == nil {
		return nil
	}
	return r.proof()
}

// childEnvironment is what the command sees.
func (r *runner) childEnvironment(lease *hasp.Lease, url string) []string {
	env := r.env.without("HASP_KEY", "HASP_KEYS", "HASP_TOKEN", envURL)
	env = append(env, "HASP_KEY="+r.job.keys[0], "HASP_TOKEN="+strconv.FormatInt(lease.Token(), 10))
	if len(r.job.keys) > 1 {
		if all, err := json.Marshal(r.job.keys); err == nil {
			env = append(env, "HASP_KEYS="+string(all))
		}
	}
	for _, entry := range r.job.environment {
		name, _, _ := strings.Cut(entry, "=")
		env = append(env.without(name), entry)
	}
	if r.job.passURL {
		env = append(env, envURL+"="+url)
	}
	return env
}

// deadlines are when the guard has to send TERM and KILL if it hears nothing more. The
// guard's clock is read first, so a pause in between makes them earlier, never later.
func (s *supervision) deadlines() (term, kill guard.Instant, err error) {
	now, err := guard.Now()
	if err != nil {
		return 0, 0, err
	}
	end := now.Add(time.Until(s.trustedUntil()))
	term = end.Add(-min(s.job.lock.TTL/termShare, termMost))
	return term, end.Add(-min(s.job.lock.TTL/killShare, killMost)), nil
}

// watch goes on until nothing of the command is left.
func (s *supervision) watch() ending {
	tick := time.NewTicker(s.job.lock.TTL / 10)
	defer tick.Stop()
	held := context.Background()
	for _, l := range s.leases {
		held = l.Context(held) //nolint:fatcontext // two at most: it ends with the first of them
	}
	lost := held.Done()
	for {
		select {
		case sig := <-s.signals:
			s.pass(number(sig))
		case <-s.renewed:
			s.trust()
		case <-tick.C: // a renewal may have been told before this loop began
			s.trust()
		case <-lost:
			lost = nil
			s.loss()
		case r, open := <-s.guard.Reports():
			if !open {
				s.terminal.take(s.group)
				return s.end
			}
			s.hear(r)
		case <-s.resume:
			s.proceed()
		case <-s.late:
			s.late = nil
			s.guard.Kill()
		}
	}
}

// pass passes a signal on.
func (s *supervision) pass(sig syscall.Signal) {
	if sig == syscall.SIGCONT {
		s.proceed()
		return
	}
	s.end.asked = s.end.asked || ends(sig)
	s.guard.Signal(sig)
}

// trust tells the guard how long the lease may be trusted now.
func (s *supervision) trust() {
	if s.ended() != nil {
		return
	}
	if term, kill, err := s.deadlines(); err == nil {
		s.guard.Trust(term, kill)
	}
}

// loss ends the command: at once by TERM, at the end of the trust window by KILL. A
// lease that was removed frees the key although the window is open, so there is less
// time.
func (s *supervision) loss() {
	s.end.loss = s.ended()
	_, kill, err := s.deadlines()
	now, clockErr := guard.Now()
	if err != nil || clockErr != nil {
		s.guard.Kill()
		return
	}
	if !revoked(s.end.loss) {
		kill = min(kill, now.Add(forcedTime))
	}
	s.guard.Lost(kill)
	s.late = time.After(max(0, time.Duration(kill-now)) + overdue)
}

// hear takes a report of the guard's.
func (s *supervision) hear(r guard.Report) {
	switch r.Kind {
	case guard.Started:
		s.group = r.Number
	case guard.Stopped:
		s.stopped(syscall.Signal(r.Number))
	case guard.Stuck:
		s.warn("stuck", fmt.Errorf("process %d does not end, although it was killed; waiting for it", r.Number))
	case guard.Killing:
		s.late = nil
		s.end.hear(r)
	case guard.Failed, guard.Warned, guard.Ended, guard.Died, guard.Gone:
		s.end.hear(r)
	}
}
