package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
)

// runFlags are the flags of run.
type runFlags struct {
	wait     period
	noWait   bool
	ttl      period
	grace    period
	maxHold  period
	shared   bool
	permits  permits
	conflict int
	passURL  bool
}

// job is what run is asked to do.
type job struct {
	keys    []string
	command []string
	lock    hasp.LockOptions
	shared  bool
	permits permits

	conflict int
	passURL  bool

	environment []string // more that the command sees
	longest     string   // the flag that bounds the holding; empty: it was not given
	apart       bool     // from standard input and its terminal
}

func newRun(a *app) *cobra.Command {
	f := &runFlags{ttl: period{d: 10 * time.Second}}
	cmd := &cobra.Command{
		Use:   "run KEY... [flags] -- CMD ARGS...",
		Short: "Run a command while holding keys",
		Long: `run stands in line for all the keys at once, runs CMD while it holds them, and gives
them back when CMD and everything that CMD has started are gone.

CMD sees HASP_KEY (of several keys the first, and all of them as a JSON array in
HASP_KEYS) and HASP_TOKEN, a number that is larger for each later holder. It does not
see HASP_URL. It runs in a process group of its own; INT, TERM, HUP, QUIT and CONT are
passed on to the group, USR1 and USR2 to CMD.

If the lease cannot be renewed, the group is sent TERM a fifth of the TTL (at most two
seconds) before its end, and everything is killed just before it; also when hasp itself
is stopped or killed. What CMD leaves in the background is sent TERM when CMD has ended,
and killed a second later.

The exit code is CMD's own, or 128 + n if it died of signal n; 126 if it cannot be run,
127 if it is not there; 70 if the lease was lost, 75 if the keys were not acquired, 69
if the store is unreachable or refuses, 64 if the arguments are wrong. It is 137, too, if
the guard, a process between hasp and CMD, was killed, and CMD with it.`,
		Example: `  hasp run nightly -- ./backup.sh
  hasp run nightly -n -- ./backup.sh               # held already: exit 75 at once
  hasp run nightly --wait 30s --ttl 1m -- ./backup.sh
  hasp run catalog --shared -- ./read-it           # together with other readers
  hasp run gpu --permits 2/4 -- ./train            # two of four permits
  hasp run account:a account:b -- ./move-money     # both keys or none`,
		ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			j, err := f.job(cmd, args)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), j)
		},
	}
	flags := cmd.Flags()
	flags.Var(&f.wait, "wait", "how long to stand in line; 0: not at all (default for ever)")
	flags.BoolVarP(&f.noWait, "no-wait", "n", false, "do not stand in line, as with --wait 0")
	flags.Var(&f.ttl, "ttl", "how long the lease lives without a renewal, from 100ms to 720h; renewed every third of it")
	flags.Var(&f.grace, "grace", "what the store adds to the TTL before others may hold (default 0)")
	flags.Var(&f.maxHold, "max-hold", "stop renewing after that long; 0: never (default 0)")
	flags.BoolVar(&f.shared, "shared", false, "hold together with others that say --shared")
	flags.Var(&f.permits, "permits", "take k of the n permits of a semaphore")
	flags.IntVar(&f.conflict, "conflict-code", exitConflict, "the exit code when the keys were not acquired")
	flags.BoolVar(&f.passURL, "pass-url", false, "let CMD see the URL of the store as "+envURL)
	return cmd
}

// job checks the arguments.
func (f *runFlags) job(cmd *cobra.Command, args []string) (job, error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0:
		return job{}, usagef("put -- between the keys and the command: %s", cmd.UseLine())
	case dash == 0:
		return job{}, usagef("name at least one key before --: %s", cmd.UseLine())
	case len(args) == dash:
		return job{}, usagef("name a command after --: %s", cmd.UseLine())
	case f.noWait && f.wait.set && f.wait.d != 0:
		return job{}, usagef("-n means --wait 0; give one of the two")
	case f.ttl.set && f.ttl.d <= 0:
		return job{}, usagef("--ttl is %s; it must be from 100ms to 720h", f.ttl.d)
	case f.shared && f.permits.of > 0:
		return job{}, usagef("--shared is for a read/write lock and --permits for a semaphore; give one of the two")
	case dash > 1 && (f.shared || f.permits.of > 0):
		return job{}, usagef("--shared and --permits take one key, not %d", dash)
	case f.conflict < 0 || f.conflict > 255:
		return job{}, usagef("--conflict-code is %d; an exit code is from 0 to 255", f.conflict)
	}
	if err := named(args[:dash]); err != nil {
		return job{}, err
	}
	j := job{
		keys: args[:dash], command: args[dash:], shared: f.shared, permits: f.permits,
		conflict: f.conflict, passURL: f.passURL,
		lock: hasp.LockOptions{TTL: f.ttl.d, Wait: f.wait.d, Grace: f.grace.d, MaxHold: f.maxHold.d},
	}
	if f.maxHold.d > 0 {
		j.longest = "--max-hold"
	}
	if f.noWait || f.wait.set && f.wait.d == 0 {
		j.lock.Wait = hasp.NoWait
	}
	return j, nil
}

// named refuses keys without anything to see in them, before a store is opened: such a key
// comes from a variable that is not set, and would be shared with all that made the same
// mistake.
func named(keys []string) error {
	for i, key := range keys {
		if strings.TrimSpace(key) == "" {
			return usagef("key %d is %q; give it a name. Is a variable in it not set?", i+1, key)
		}
	}
	return nil
}

// period is a flag's duration, never negative.
type period struct {
	d   time.Duration
	set bool
}

// Set reads it.
func (p *period) Set(text string) error {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return usagef("want a time with its unit, such as 500ms, 30s or 2h")
	case d < 0:
		return usagef("want a time that is not negative")
	}
	p.d, p.set = d, true
	return nil
}

// String is the default in the help.
func (p *period) String() string {
	if p.d == 0 {
		return ""
	}
	return p.d.String()
}

// Type is for the help.
func (p *period) Type() string { return "duration" }

// permits is k of n.
type permits struct{ take, of int }

// Set reads k/n.
func (p *permits) Set(text string) error {
	k, n, found := strings.Cut(text, "/")
	take, errK := strconv.Atoi(k)
	of, errN := strconv.Atoi(n)
	if !found || errK != nil || errN != nil || take < 1 || take > of {
		return usagef("want k/n, such as 1/4: k of n permits, k at least 1 and at most n")
	}
	p.take, p.of = take, of
	return nil
}

// String is for the help.
func (p *permits) String() string { return "" }

// Type is for the help.
func (p *permits) Type() string { return "k/n" }
