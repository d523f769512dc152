package drivertest

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Suite describes the store under test.
type Suite struct {
	// Open prepares the store for one case. It may answer the same store each time,
	// since cases work on random keys; in virtual time it must answer a new one, as it is
	// called inside the bubble.
	Open func() (*Store, error)

	// Virtual runs each case in a bubble of testing/synctest. It needs a store that
	// lives in this process and waits by nothing but channels, timers and locks.
	Virtual bool

	// Tick is the unit of lives: the shortest used is two ticks. Defaults to 150 ms, or
	// to what the Features ask for if that is more.
	Tick time.Duration

	// Width is how many cases run at once where time is real. Defaults to 16.
	Width int
}

// Store is the store of one case. Fields other than Client may be nil: the cases
// that need them are then reported as skipped.
type Store struct {
	// Client makes the driver of a further client. The case closes it.
	Client func() (driver.Driver, error)

	// Wipe makes the store forget everything, as a restart without its data does.
	// Cases that use it, or one of the following, run alone.
	Wipe func() error

	// Step moves the store's clock, forward or back.
	Step func(d time.Duration) error

	// Stall makes the store silent: it takes what is sent and answers nothing until
	// resume is called.
	Stall func() (resume func(), err error)

	// Cut breaks the push connections of all clients, once.
	Cut func() error

	// Close ends what Open began.
	Close func() error
}

// Run runs every case as a subtest "concept/sentence".
func Run(t *testing.T, s Suite) {
	t.Helper()
	s = s.withDefaults()
	slots := make(chan struct{}, s.Width)
	var together []Case
	for _, c := range Cases() {
		if s.Virtual || c.alone() {
			t.Run(c.title(), func(t *testing.T) { report(t, s.examine(t, c)) })
			continue
		}
		together = append(together, c)
	}
	for _, c := range together {
		t.Run(c.title(), func(t *testing.T) {
			done := make(chan finding, 1)
			// Started before Parallel waits, so that not GOMAXPROCS but Width bounds how many
			// cases sleep side by side; a case that -run leaves out never starts.
			go func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				done <- s.patient(c)
			}()
			t.Parallel()
			report(t, <-done)
		})
	}
}

// Check runs one case and answers what it found wrong. A case that does not apply,
// because the Store lacks a hook, finds nothing wrong.
func (s Suite) Check(t *testing.T, c Case) error {
	t.Helper()
	f := s.withDefaults().examine(t, c)
	if errors.As(f.err, new(*skipError)) {
		return nil
	}
	return f.err
}

func (s Suite) withDefaults() Suite {
	if s.Tick <= 0 {
		s.Tick = 150 * time.Millisecond
	}
	if s.Width <= 0 {
		s.Width = 16
	}
	return s
}

// finding is what came out of a case, and which tries did not count because the
// machine was too slow.
type finding struct {
	err   error
	slow  []error
	taken time.Duration
}

// examine runs a case, in a bubble where time is virtual.
func (s Suite) examine(t *testing.T, c Case) finding {
	if !s.Virtual {
		return s.patient(c)
	}
	var f finding
	synctest.Test(t, func(*testing.T) { f.err, _ = s.once(c) })
	return f
}

// patient runs a case and, if it failed while calls and sleeps took longer than its
// times allow, runs it again with ticks of twice the length. Cases whose verdict does
// not rest on time are not run again.
func (s Suite) patient(c Case) finding {
	const tries = 5
	var f finding
	begin := time.Now()
	for {
		err, lagged := s.once(c)
		f.err, f.taken = err, time.Since(begin)
		if err == nil || !lagged || c.strict || len(f.slow) == tries-1 {
			return f
		}
		f.slow = append(f.slow, err)
		s.Tick *= 2
	}
}

// once runs a case, or what stands for it where the store lacks what it needs.
func (s Suite) once(c Case) (err error, lagged bool) {
	b, err := newBench(s)
	if err != nil {
		return err, false
	}
	defer func() { err = errors.Join(err, b.close()) }()
	run, err := b.lacking(c.needs)
	if err != nil {
		return err, false
	}
	if run == nil {
		run = c.run
	}
	err = run(b)
	if err == nil {
		err = b.result()
	}
	return err, b.lagged()
}

func report(t *testing.T, f finding) {
	t.Helper()
	for _, err := range f.slow {
		t.Logf("tried again with longer ticks, calls took too long: %v", err)
	}
	var skip *skipError
	switch {
	case errors.As(f.err, &skip):
		t.Skip(skip.Error())
	case f.err != nil:
		t.Errorf("after %v: %v", f.taken.Round(time.Millisecond), f.err)
	}
}

// skipError says which hook of the Store a case waits for.
type skipError struct{ hook string }

func (e *skipError) Error() string { return "the Store has no " + e.hook }
