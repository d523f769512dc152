package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/schedule"
)

// Bounds of cron's TTL.
const (
	cronTTLLeast = 100 * time.Millisecond
	cronTTLMost  = time.Hour
)

// cronFlags are the flags of cron.
type cronFlags struct {
	zone         string
	jitter       period
	overlap      overlap
	catchUp      period
	catchUpTicks int
	atMost       period
	atLeast      period
	ttl          period
	passURL      bool
}

// timetable is what cron is asked to do.
type timetable struct {
	job
	when schedule.Job // without what it runs
	ttl  time.Duration
}

func newCron(a *app) *cobra.Command {
	f := &cronFlags{ttl: period{d: 10 * time.Second}}
	cmd := &cobra.Command{
		Use:   "cron NAME 'SPEC' [flags] -- CMD ARGS...",
		Short: "Run a command once per tick in the whole fleet",
		Long: `cron runs CMD at the times that SPEC names. Start it with the same arguments on every
machine: each tick runs on one of them. If that one dies in the middle of a run, another
runs the tick when the lease has expired.

SPEC has five fields (minute, hour, day of month, month, day of week), six with seconds
first, or is @hourly, @daily, @weekly, @monthly, @yearly or "@every 90s", which counts
from 1970. The clocks of the machines may differ by 5 s. A tick may begin a minute late,
after that it is missed, unless --catch-up is given.

CMD sees HASP_TICK, the scheduled time in UTC (2026-03-29T01:00:00Z), HASP_KEY, and
HASP_TOKEN, which is larger in each later run; with --overlap allow only in each later
run of the same tick. Its standard input is empty. It is guarded as by hasp run: if the
lease cannot be renewed, TERM and then KILL come before anybody else can run the tick,
also when hasp itself is stopped or killed.

cron goes on when CMD fails, and tells the exit code. INT, TERM, HUP and QUIT begin no
more ticks and are passed on; hasp ends when CMD and all it has started are gone. A tick
whose CMD then exits 0 is done; any other is left to the other machines.

A store that is away at the start is 69. Later it is waited for.

The exit code is 128 + n after signal n; 126 if CMD cannot be run, 127 if it is not
there; 69 if the store is unreachable or refuses at the start, 64 if the arguments are
wrong.`,
		Example: `  hasp cron report '0 3 * * *' --zone Europe/Berlin -- ./report
  hasp cron sync '@every 30s' --overlap skip --at-most 10m -- ./sync
  hasp cron invoices '0 6 1 * *' --catch-up 48h -- ./invoices    # also if nobody was up at six`,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := f.timetable(cmd, args)
			if err != nil {
				return err
			}
			return a.cron(cmd.Context(), t)
		},
	}
	f.register(cmd)
	return cmd
}

func (f *cronFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(filled{&f.zone}, "zone", "the time zone of SPEC, such as Europe/Berlin (default UTC)")
	flags.Var(&f.jitter, "jitter", "delay each run by a random time up to this (default 0)")
	flags.Var(&f.overlap, "overlap", "what becomes of a tick while CMD still runs somewhere: skip, wait or allow (default skip)")
	flags.Var(&f.catchUp, "catch-up", "make up for ticks that nobody ran in the last so long (default none)")
	flags.IntVar(&f.catchUpTicks, "catch-up-ticks", 1, "for how many of these, the newest")
	flags.Var(&f.atMost, "at-most", "end a run that takes longer (default never)")
	flags.Var(&f.atLeast, "at-least", "let no run begin sooner than that after the one before has (default 0)")
	flags.Var(&f.ttl, "ttl", "how long a lease lives without a renewal, from 100ms to 1h; renewed every third of it")
	flags.BoolVar(&f.passURL, "pass-url", false, "let CMD see the URL of the store as "+envURL)
}

// timetable checks the arguments, all of them before anything is opened.
func (f *cronFlags) timetable(cmd *cobra.Command, args []string) (timetable, error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0:
		return timetable{}, usagef("put -- between the specification and the command: %s", cmd.UseLine())
	case dash != 2:
		return timetable{}, usagef("name the job and when it runs before --, in quotes, not %d arguments: %s", dash, cmd.UseLine())
	case len(args) == dash:
		return timetable{}, usagef("name a command after --: %s", cmd.UseLine())
	case strings.TrimSpace(args[1]) == "":
		return timetable{}, usagef("the specification is empty; write when the job runs, such as '0 3 * * *': %s", cmd.UseLine())
	case f.ttl.d < cronTTLLeast || f.ttl.d > cronTTLMost:
		return timetable{}, usagef("--ttl is %s; it must be from 100ms to 1h", f.ttl.d)
	case f.atMost.set && f.atMost.d < cronTTLLeast:
		return timetable{}, usagef("--at-most is %s; it must be at least 100ms", f.atMost.d)
	case f.atMost.set && f.atLeast.d > f.atMost.d:
		return timetable{}, usagef("--at-least %s is more than --at-most %s", f.atLeast.d, f.atMost.d)
	case cmd.Flags().Changed("catch-up-ticks") && (f.catchUp.d == 0 || f.catchUpTicks < 1):
		return timetable{}, usagef("--catch-up-ticks is %d; it must be at least 1, and needs --catch-up", f.catchUpTicks)
	}
	when := schedule.Job{
		Name: args[0], Cron: args[1], Zone: f.zone, Jitter: f.jitter.d, Overlap: f.overlap.kind,
		AtMost: f.atMost.d, AtLeast: f.atLeast.d,
	}
	if f.catchUp.d > 0 {
		when.CatchUp = schedule.CatchUp{Ticks: f.catchUpTicks, Within: f.catchUp.d}
	}
	t := timetable{when: when, ttl: f.ttl.d, job: job{
		command: args[2:], passURL: f.passURL, apart: true, lock: hasp.LockOptions{TTL: f.ttl.d},
	}}
	if f.atMost.d > 0 {
		t.longest, t.lock.TTL = "--at-most", min(f.ttl.d, f.atMost.d)
	}
	return t, nil
}

// overlap is what becomes of a tick while the command still runs.
type overlap struct{ kind schedule.Overlap }

// Set reads it.
func (o *overlap) Set(text string) error {
	switch text {
	case "skip":
		o.kind = schedule.OverlapSkip
	case "wait":
		o.kind = schedule.OverlapWait
	case "allow":
		o.kind = schedule.OverlapAllow
	default:
		return usagef("want skip, wait or allow")
	}
	return nil
}

// String is the default in the help.
func (*overlap) String() string { return "" }

// Type is for the help.
func (*overlap) Type() string { return "skip|wait|allow" }
