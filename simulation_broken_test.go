package hasp_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// broken is a façade with one thing wrong.
type broken struct {
	name    string
	weather string // that shows it; empty: any
	edits   []edit
}

// edit replaces a snippet, which must be in the file exactly once.
type edit struct{ file, snippet, by string }

// TestTheSimulationCatchesBrokenFacades checks the checker: it builds the façade with
// one thing wrong at a time and wants the simulation to notice.
func TestTheSimulationCatchesBrokenFacades(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("builds the package many times")
	}
	if _, err := exec.LookPath("go"); err != nil {
		t.Fatal(err)
	}
	builds := make(chan struct{}, 2) // at a time
	for _, b := range brokenFacades {
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			builds <- struct{}{}
			defer func() { <-builds }()
			b.mustBeCaught(t)
		})
	}
}

// enoughSeeds must show what is wrong with a broken façade.
const enoughSeeds = "20000"

var faultLine = regexp.MustCompile(`seed \d+( breaks a promise:\n.*|: the run does not get on)`)

func (b broken) mustBeCaught(t *testing.T) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "simulation.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-overlay", b.overlay(t), "-o", program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("it does not compile: %v\n%s", err, out)
	}
	run := exec.CommandContext(t.Context(), program, "-test.run=^TestSimulation$", "-schedules="+enoughSeeds, "-weather="+b.weather, "-patience=5s")
	out, err := run.CombinedOutput()
	caught := faultLine.Find(out)
	switch {
	case err == nil:
		t.Errorf("%s schedules did not show it", enoughSeeds)
	case caught == nil:
		t.Errorf("it failed otherwise: %v\n%.3000s", err, out)
	default:
		t.Logf("%s", caught)
	}
}

// overlay writes the broken files and answers the file that has go read them in place of
// the right ones, and no other tests than the simulation.
func (b broken) overlay(t *testing.T) string {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	replace := make(map[string]string)
	for _, e := range b.edits {
		file := filepath.Join(here, e.file)
		now := file
		if r, ok := replace[file]; ok {
			now = r
		}
		source, err := os.ReadFile(now)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(source), e.snippet); n != 1 {
			t.Fatalf("%s has this %d times, not once; mend the table of broken façades:\n%s", e.file, n, e.snippet)
		}
		replace[file] = filepath.Join(dir, e.file)
		if err := os.WriteFile(replace[file], []byte(strings.Replace(string(source), e.snippet, e.by, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests, err := filepath.Glob(filepath.Join(here, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range tests {
		name := filepath.Base(file)
		if !strings.HasPrefix(name, "simulation_") && name != "export_test.go" {
			replace[file] = ""
		}
	}
	replace[filepath.Join(here, "simulation_broken_test.go")] = ""
	replace[filepath.Join(here, "simulation_table_test.go")] = ""
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}
