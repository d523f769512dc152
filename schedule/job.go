package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/hasp-dev/hasp"
)

// Job is something to run, and when. Exactly one of Cron, Every and After says when.
type Job struct {
	// Name tells the job from others, in the whole fleet: not empty, at most 256 bytes.
	Name string
	// Run does the work. Its context ends when the lease is lost, with cause
	// [hasp.ErrLost], or when the scheduler ends. A panic is taken for an error. A run that
	// releases the tick's lease, the first of [Leases], leaves the tick to another process.
	Run func(ctx context.Context) error

	// Cron runs the job once per tick in the fleet: five fields (minute, hour, day of
	// month, month, day of week), six with seconds first, "@hourly", "@daily",
	// "@weekly", "@monthly", "@yearly", or "@every 90s", which counts from 1970.
	Cron string
	// Every runs the job by the leader, at a fixed rate; a run that takes longer delays
	// the next, and no rate is made up for. At least 10 ms.
	Every time.Duration
	// After runs the job by the leader, that long after the end of the run before. At least
	// 10 ms.
	After time.Duration
	// Initial is how long a new leader waits before its first run. Defaults to 0.
	Initial time.Duration

	// Zone is the time zone of Cron, by its IANA name. Defaults to UTC: processes would
	// not agree on "Local".
	Zone string
	// DST says what becomes of the hour that is skipped or repeated.
	DST DST
	// Jitter delays each run by a random time up to this. Defaults to 0.
	Jitter time.Duration
	// Overlap says what becomes of a tick of Cron while the job still runs somewhere.
	Overlap Overlap
	// CatchUp says which ticks of Cron are made up for that nobody ran in time.
	CatchUp CatchUp

	// AtMost is the longest run before others may take over: the lease is renewed for
	// that long and no longer. At least 100 ms. Defaults to no limit.
	AtMost time.Duration
	// AtLeast is the shortest time from the start of a run until the next may start,
	// however short it was. Only with Cron. Defaults to 0.
	AtLeast time.Duration
}

// DST says what becomes of times that a zone's clock skips or shows twice.
type DST uint8

const (
	// DSTAuto is DSTEach for a specification whose hour is "*" or "*/n", so that a
	// job "every ten minutes" goes on in the repeated hour, and else DSTOnce.
	DSTAuto DST = iota
	// DSTOnce runs each time of the specification once: a skipped one at the moment of
	// the change, a repeated one the first time.
	DSTOnce
	// DSTEach runs whenever the clock shows such a time: a skipped one not at all, a
	// repeated one twice.
	DSTEach
)

// Overlap says what becomes of a tick while the job still runs, here or elsewhere.
type Overlap uint8

const (
	// OverlapSkip drops the tick.
	OverlapSkip Overlap = iota
	// OverlapWait runs it when the other run is over.
	OverlapWait
	// OverlapAllow runs it beside the other.
	OverlapAllow
)

// CatchUp says which missed ticks are made up for: those that no process ran, since none
// was there, or the store was not. The newest Ticks of them within the last Within are
// run, oldest first. The zero value makes up for none.
type CatchUp struct {
	Ticks  int           // 1: the last one
	Within time.Duration // at most 30 days; the keys of all ticks are kept that long
}

// Bounds of what a job can ask for.
const (
	maxName    = 256
	maxCatchUp = 30 * 24 * time.Hour
	maxTicks   = 10_000
	minTime    = 100 * time.Millisecond
	minPause   = 10 * time.Millisecond // less is a number whose unit was forgotten
)

// Check says all that is wrong with a job, as [Scheduler.Add] does.
func (j Job) Check() error {
	_, err := j.check()
	return err
}

// check says all that is wrong with a job, and reads its specification.
func (j Job) check() (*spec, error) {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	switch {
	case strings.TrimSpace(j.Name) == "":
		bad("the name is empty")
	case !utf8.ValidString(j.Name):
		bad("the name is not valid UTF-8")
	case len(j.Name) > maxName:
		bad("the name has %d bytes, at most %d are allowed", len(j.Name), maxName)
	}
	if j.Run == nil {
		bad("Run is nil")
	}
	for name, d := range map[string]time.Duration{
		"Every": j.Every, "After": j.After, "Initial": j.Initial, "Jitter": j.Jitter,
		"AtMost": j.AtMost, "AtLeast": j.AtLeast, "CatchUp.Within": j.CatchUp.Within,
	} {
		if d < 0 {
			bad("%s is %s; it must not be negative", name, d)
		}
	}
	if j.DST > DSTEach || j.Overlap > OverlapAllow {
		bad("DST %d or Overlap %d is none of the constants", j.DST, j.Overlap)
	}
	errs = append(errs, j.checkTimes()...)
	s, err := j.checkWhen()
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return nil, fmt.Errorf("schedule: %w: job %q: %w", hasp.ErrInvalid, j.Name, errors.Join(errs...))
	}
	return s, nil
}

func (j Job) checkTimes() []error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	for _, each := range []struct {
		name string
		d    time.Duration
	}{{"Every", j.Every}, {"After", j.After}} {
		if each.d > 0 && each.d < minPause {
			bad("%s is %s, at least %s is needed; write it with its unit, such as 5*time.Second", each.name, each.d, minPause)
		}
	}
	if j.AtMost > 0 && j.AtMost < minTime {
		bad("AtMost is %s, at least %s is needed", j.AtMost, minTime)
	}
	if j.AtMost > 0 && j.AtLeast > j.AtMost {
		bad("AtLeast %s is more than AtMost %s", j.AtLeast, j.AtMost)
	}
	if j.AtLeast > maxCatchUp {
		bad("AtLeast is %s, at most %s is allowed", j.AtLeast, maxCatchUp)
	}
	switch c := j.CatchUp; {
	case c.Ticks < 0 || c.Ticks > maxTicks:
		bad("CatchUp.Ticks is %d; it must be from 0 to %d", c.Ticks, maxTicks)
	case (c.Ticks > 0) != (c.Within > 0):
		bad("CatchUp needs both, or neither, of Ticks and Within")
	case c.Within > maxCatchUp:
		bad("CatchUp.Within is %s, at most %s is allowed", c.Within, maxCatchUp)
	}
	return errs
}

// checkWhen says what is wrong with when the job runs.
func (j Job) checkWhen() (*spec, error) {
	said := 0
	for _, is := range []bool{j.Cron != "", j.Every != 0, j.After != 0} {
		if is {
			said++
		}
	}
	if said != 1 {
		return nil, fmt.Errorf("%d of Cron, Every and After say when it runs; give exactly one", said)
	}
	if j.Cron != "" {
		if j.Initial != 0 {
			return nil, errors.New("field Initial is for the leader's jobs, with Every or After")
		}
		return parseSpec(j.Cron, j.Zone, j.DST)
	}
	if j.Zone != "" || j.DST != 0 || j.Overlap != 0 || j.CatchUp != (CatchUp{}) || j.AtLeast != 0 {
		return nil, errors.New("fields Zone, DST, Overlap, CatchUp and AtLeast are for jobs with Cron")
	}
	return nil, nil //nolint:nilnil // a job of the leader has no specification
}
