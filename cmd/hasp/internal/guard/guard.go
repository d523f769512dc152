// Package guard starts a command in such a way that the command and all its
// descendants are dead when the lease they run under has ended.
//
// Between hasp and the command stands a second process, the guard: hasp itself,
// started once more.
//
//	hasp ──orders──▶ guard ──▶ command ──▶ descendants
//	     ◀─reports──
//
// hasp tells the guard over a pipe until when the lease may be trusted. The guard
// ends the command when that instant has come and no later one was told, and when
// the pipe closes: so also when hasp is stopped, or killed by a signal that cannot
// be caught. The guard holds the lock file of the store's session, if there is one,
// so that nobody infers from hasp's death that the key is free while something
// still runs.
//
// # Linux
//
// The guard adopts orphans (PR_SET_CHILD_SUBREAPER), so a descendant that leaves the
// process group or the session, or whose parent has died, is found all the same. It
// is killed until the kernel says that there is no child left. If the guard dies the
// command dies with it (PR_SET_PDEATHSIG), and hasp, an adopter too, kills the rest.
// Instants are of CLOCK_BOOTTIME, which also counts while the machine is suspended.
// Out of reach are processes that others start on the command's behalf (a container
// engine, a service manager, another host), and those the guard has no right to
// signal, such as what sudo starts: of these it waits for the end.
//
// # Other systems
//
// On macOS, FreeBSD and DragonFly BSD only the command's process group is ended, by the clock
// CLOCK_MONOTONIC; what has left the group is not found. Elsewhere Start answers
// ErrUnsupported.
package guard

import (
	"errors"
	"os"
	"time"
)

// ErrUnsupported says that hasp can end no processes on this system.
var ErrUnsupported = errors.New("running a command under a lock is not supported on this system")

// leftover is how long what the command left behind has between TERM and KILL.
const leftover = time.Second

// patience is how long something may outlive KILL before it is reported.
const patience = 2 * time.Second

// Argument is the first argument of a process that is to be a guard; its other
// arguments go to Serve.
const Argument = "__guard"

// Command is what the guard starts and how long it may run at first.
type Command struct {
	Path string   // the file to execute
	Args []string // with the name the command sees of itself
	Env  []string
	Hold *os.File // kept open by the guard until nothing runs any more; nil: none
	In   *os.File // standard input; nil: that of hasp
	Term Instant  // TERM goes to the command's group then, unless Trust comes before
	Kill Instant  // everything is killed then, unless Trust comes before

	// Foreground makes the command's group the foreground group of the terminal that
	// is standard input.
	Foreground bool
}

// ReportKind says what a guard reports.
type ReportKind string

const (
	// Started: the command runs; Number is its process id and its group's.
	Started ReportKind = "started"
	// Failed: the command could not be started; Number is the error number.
	Failed ReportKind = "failed"
	// Stopped: the command was stopped; Number is the signal.
	Stopped ReportKind = "stopped"
	// Warned: nothing was heard in time, and the command's group was sent TERM.
	Warned ReportKind = "warned"
	// Ended: the command ended; Number is its wait status. What it left behind is being
	// ended.
	Ended ReportKind = "ended"
	// Killing: the time is over, and everything is being killed.
	Killing ReportKind = "killing"
	// Stuck: process Number is still there some seconds after it was killed.
	Stuck ReportKind = "stuck"
	// Gone: nothing is left. It is the last report.
	Gone ReportKind = "gone"
	// Died: the guard itself is dead and hasp has killed what was left. It takes the
	// place of Gone.
	Died ReportKind = "died"
)

// Report is one thing a guard reports.
type Report struct {
	Kind   ReportKind
	Number int
}
