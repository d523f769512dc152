package elect

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hasp-dev/hasp"
)

// Options configure a candidate. Nil and the zero value mean the defaults.
type Options struct {
	// TTL is how long leadership outlives its last renewal, from 100 ms to 30 days: the time
	// after which a successor takes over from a process that died. Defaults to the client's,
	// which is 10 s unless it says otherwise.
	TTL time.Duration
	// Grace is added by the store before others may lead. A leader whose trust has run out
	// may begin a new term from its own place within it, once its work has returned: so a
	// hiccup of the store or the network does not move leadership. (Simba calls it transition
	// and has 6 s.) Defaults to the client's, which is 0 unless it says otherwise.
	Grace time.Duration
	// Once ends Run after one term, however that ended. Defaults to campaigning on.
	Once bool
	// Drain is how long Run waits for the work after Run's context has ended. When it is over
	// Run returns ErrOverrun; leadership is kept even then, until the work has returned or
	// the process ends. Defaults to as long as it takes.
	Drain time.Duration
	// Overrun is how long work may go on after its context has ended before that is
	// reported. Defaults to 5 s.
	Overrun time.Duration
	// Label is LockOptions.Label: a name for metrics, of which there should be few. Defaults
	// to the client's.
	Label string
	// Logger is told of terms, of campaigns that fail and of work that overruns. Defaults to
	// discarding.
	Logger *slog.Logger
}

// defaultOverrun is that of Options.Overrun.
const defaultOverrun = 5 * time.Second

// resolve checks o and fills in the defaults.
func (o *Options) resolve() (Options, error) {
	var r Options
	if o != nil {
		r = *o
	}
	var errs []error
	for _, d := range []struct {
		name string
		d    time.Duration
	}{{"TTL", r.TTL}, {"Grace", r.Grace}, {"Drain", r.Drain}, {"Overrun", r.Overrun}} {
		if d.d < 0 {
			errs = append(errs, fmt.Errorf("option %s is %s; it must not be negative", d.name, d.d))
		}
	}
	r.Overrun = cmp.Or(r.Overrun, defaultOverrun)
	if r.Logger == nil {
		r.Logger = slog.New(slog.DiscardHandler)
	}
	if err := errors.Join(errs...); err != nil {
		return r, fmt.Errorf("%w: %w", hasp.ErrInvalid, err)
	}
	return r, nil
}

// lock is what a candidate asks of its client. All else is as by default, whatever the
// client's locks have: a candidate waits as long as it must, no line is too long for it,
// its term is renewed, and it shares that with nobody. No
// term goes on to another candidate of the process without the store: terms are told
// apart by their numbers.
func (o *Options) lock() hasp.LockOptions {
	return hasp.LockOptions{TTL: o.TTL, Grace: o.Grace, LocalHandoffs: -1, Label: o.Label}
}
