package hasp_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/internal/simulation"
)

var (
	schedules = flag.Int("schedules", 0, "simulation: how many schedules; 0: 10,000, or as many as -short and HASP_SOAK say")
	firstSeed = flag.Int("from", 1, "simulation: the first of the schedules' seeds")
	oneSeed   = flag.Int64("seed", -1, "simulation: run this seed only")
	times     = flag.Int("times", 1, "simulation: with -seed, up to how often, until it fails")
	always    = flag.String("weather", "", "simulation: the weather of every schedule; empty: by the seed")
	patience  = flag.Duration("patience", time.Minute, "simulation: how long one run may take")
	survey    = flag.Bool("survey", false, "simulation: one line for each fault, and go on")
	recorded  = flag.String("history", "", "simulation: judge the history in this file first")
)

// shards run side by side.
const shards = 8

// TestSimulation runs the façade on the store in memory under a failing network, from
// many seeds, and judges each history. A failure prints its history and the command
// that runs its seed again.
func TestSimulation(t *testing.T) {
	t.Parallel()
	if *recorded != "" {
		judgeAgain(t, *recorded)
	}
	if *oneSeed >= 0 {
		for range *times {
			if !judged(t, simulate(t, uint64(*oneSeed))) {
				return
			}
		}
		return
	}
	total := count()
	var failed atomic.Bool
	for shard := range shards {
		t.Run(fmt.Sprint("shard", shard), func(t *testing.T) {
			t.Parallel()
			for seed := *firstSeed + shard; seed < *firstSeed+total && !failed.Load(); seed += shards {
				if !judged(t, simulate(t, uint64(seed))) && !*survey {
					failed.Store(true)
				}
			}
		})
	}
}

// count is how many schedules to run.
func count() int {
	switch {
	case *schedules > 0:
		return *schedules
	case os.Getenv("HASP_SOAK") != "":
		return 1_000_000
	case testing.Short():
		return 500
	}
	return 10_000
}

// judged reports what is wrong with a history.
func judged(t *testing.T, h *simulation.History) bool {
	t.Helper()
	faults := simulation.Judge(h)
	if len(faults) == 0 {
		return true
	}
	if *survey {
		for _, f := range faults {
			t.Errorf("seed %d, %s: %s", h.Seed, h.Weather, f)
		}
		return false
	}
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks a promise:\n", h.Seed)
	for _, f := range faults {
		fmt.Fprintf(&b, "  %s\n", f)
	}
	fmt.Fprintf(&b, "history:\n%s\nrun it again:\n  go test -run '^TestSimulation$' . -seed %d -times 100", h, h.Seed)
	if *always != "" {
		fmt.Fprintf(&b, " -weather %s", *always)
	}
	if file, err := save(h); err == nil {
		fmt.Fprintf(&b, " -history %s", file)
	}
	t.Error(b.String())
	return false
}

// save keeps a history that was judged wrong.
func save(h *simulation.History) (string, error) {
	name := filepath.Join(os.TempDir(), fmt.Sprintf("hasp-seed-%d.json", h.Seed))
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return name, h.Save(f)
}

// judgeAgain judges a history that was saved.
func judgeAgain(t *testing.T, name string) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h, err := simulation.Load(f)
	if err != nil {
		t.Fatal(err)
	}
	judged(t, h)
}
