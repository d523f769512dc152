package main

import (
	"context"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hasp-dev/hasp"
)

// electFlags are the flags of elect.
type electFlags struct {
	ttl     period
	grace   period
	once    bool
	passURL bool
}

// candidacy is what elect is asked to do.
type candidacy struct {
	job
	once bool
}

func newElect(a *app) *cobra.Command {
	f := &electFlags{ttl: period{d: 10 * time.Second}}
	cmd := &cobra.Command{
		Use:   "elect NAME [flags] -- CMD ARGS...",
		Short: "Run a command while leading an election",
		Long: `elect stands in the election NAME and runs CMD while it leads. If leadership is lost, CMD
and everything it has started are ended, and elect stands in line again: CMD is started
anew in the next term. When CMD ends by itself, elect gives leadership up and ends with
CMD's exit code.

INT, TERM, HUP and QUIT are passed on to CMD's group while it runs. Leadership is kept
until CMD and all it has started are gone, and then goes to the next in line.

CMD sees HASP_KEY (the name) and HASP_TOKEN, a number that is larger in each later term.
It is guarded as by hasp run: if the lease cannot be renewed, TERM and then KILL come
before anybody else can lead, also when hasp itself is stopped or killed.

With --grace a leader that could not renew its lease may begin a new term, from its own
place, as soon as it can again, and nobody else before TTL and grace have passed.

A store that is away at the start is 69. Later it is waited for.

The exit code is CMD's own, or 128 + n if it died of signal n; 126 if it cannot be run,
127 if it is not there; 70 if leadership was lost and --once was given; 69 if the store is
unreachable or refuses at the start, 64 if the arguments are wrong.`,
		Example: `  hasp elect billing -- ./billing-daemon
  hasp elect billing --ttl 15s --grace 10s -- ./billing-daemon
  hasp elect billing --once -- ./migrate-then-serve     # a lost term ends it: 70`,
		ValidArgsFunction: a.completeKeys,
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := f.candidacy(cmd, args)
			if err != nil {
				return err
			}
			return a.elect(cmd.Context(), c)
		},
	}
	flags := cmd.Flags()
	flags.Var(&f.ttl, "ttl", "how long leadership lives without a renewal, from 100ms to 720h; renewed every third of it")
	flags.Var(&f.grace, "grace", "what the store adds to the TTL before others may lead (default 0)")
	flags.BoolVar(&f.once, "once", false, "end after one term, however that ended")
	flags.BoolVar(&f.passURL, "pass-url", false, "let CMD see the URL of the store as "+envURL)
	return cmd
}

// candidacy checks the arguments.
func (f *electFlags) candidacy(cmd *cobra.Command, args []string) (candidacy, error) {
	dash := cmd.ArgsLenAtDash()
	switch {
	case dash < 0:
		return candidacy{}, usagef("put -- between the name and the command: %s", cmd.UseLine())
	case dash != 1:
		return candidacy{}, usagef("name one election before --, not %d: %s", dash, cmd.UseLine())
	case len(args) == dash:
		return candidacy{}, usagef("name a command after --: %s", cmd.UseLine())
	case f.ttl.set && f.ttl.d <= 0:
		return candidacy{}, usagef("--ttl is %s; it must be from 100ms to 720h", f.ttl.d)
	}
	if err := named(args[:dash]); err != nil {
		return candidacy{}, err
	}
	return candidacy{once: f.once, job: job{
		keys: args[:1], command: args[1:], conflict: exitConflict, passURL: f.passURL,
		lock: hasp.LockOptions{TTL: f.ttl.d, Grace: f.grace.d},
	}}, nil
}

// teller writes what a library logs as notes of one kind on stderr: from warnings on.
type teller struct {
	*app
	kind string
}

// Enabled implements slog.Handler.
func (teller) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (t teller) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	b.WriteString(r.Message)
	r.Attrs(func(at slog.Attr) bool {
		b.WriteString("; " + at.Key + ": " + at.Value.String())
		return true
	})
	t.warn(t.kind, textError(b.String()))
	return nil
}

// WithAttrs implements slog.Handler. Libraries add the name of what they run, which is
// one thing only.
func (t teller) WithAttrs([]slog.Attr) slog.Handler { return t }

// WithGroup implements slog.Handler.
func (t teller) WithGroup(string) slog.Handler { return t }

// textError is an error of fixed words.
type textError string

func (e textError) Error() string { return string(e) }
