package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	bench "github.com/hasp-dev/hasp/integration/bench"
)

func TestMain(m *testing.M) {
	bench.Contend()
	os.Exit(m.Run())
}

// TestEveryGroupMeasures runs everything for a moment. What is measured then says nothing
// about speed, so only what does not depend on it is judged.
func TestEveryGroupMeasures(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "benchmarks.md")
	var out, progress strings.Builder
	if code := bench.Command([]string{"-smoke", "-out", file}, &out, &progress); code != 0 {
		t.Fatalf("exit code %d: %s", code, progress.String())
	}
	written, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(written) != out.String() {
		t.Error("the file is not what was printed")
	}
	for _, sign := range []string{"NaN", "Inf"} {
		if strings.Contains(out.String(), sign) {
			t.Errorf("%s in\n%s", sign, out.String())
		}
	}
	for _, pattern := range []string{ // one for each group
		`\| lock \+ release, 1 goroutine, p50: hasp, background context \| [\d.]+ [µm]s \| [\d.]+ x raw \|`,
		`\| client commands to a hand-over, 4 waiting: hasp \| \d\.\d\d \|`,
		`\| hand-overs/s, 4 contenders, no hold: hasp \| \d+ `,
		`\| renewal of 100 held locks: wall \| [\d.]+ [µm]s \|`,
		`\| join of a mutex on the server, each: hasp, free, unused lately \| [\d.]+ µs \| [\d.]+ x`,
		`\| memory of each further waiter: hasp \| \d+ B \|`,
		`\| holders on a silent network .*, of 3 \| 3 \|.*\| met \|`,
		`\| lock \+ release, 1 goroutine, p50: hasp on PostgreSQL \| [\d.]+ [µm]s \| [\d.]+ x by hand`,
		`\| notifications of free locks, .* \| 0 \|.*\| met \|`,
		`\| rows updated in each interval by the renewal of 100 held locks \| [\d.]+ \|`,
		`\| tables and indexes: .* \| [\d.]+ MB -> [\d.]+ MB `,
		`\| release returned -> next acquired in another process, 2 waiting, p50; p99: hasp on MariaDB \| [\d.]+ [µm]s;`,
		`\| lock \+ release, SQLite \| [\d.]+ [µm]s \|`,
		`\| hand-over between goroutines of one process, p50, Redis \| [\d.]+ [µm]s \|`,
		`\| hand-overs/s between two goroutines of one process, no hold, Redis \| \d+ \| [\d.]+ x between processes \|`,
		`\| pairs/s, 1 goroutine, one key, Redis, Sticky \| \d+ \| [\d.]+ x without \|`,
		`\| hand-overs/s, 4 goroutines of one process, no hold, Redis: hasp beside rueidislock \| \d+ \(\d+ locks/s\) \|`,
		`\| grants within a second, 2 processes of 3 goroutines each, no hold, Redis: the two processes \| \d+ and \d+ \|`,
	} {
		if !regexp.MustCompile(pattern).MatchString(out.String()) {
			t.Errorf("no row like %s in\n%s", pattern, out.String())
		}
	}
}

func TestAGroupThatIsNotThereIsRefused(t *testing.T) {
	t.Parallel()
	var out, progress strings.Builder
	if code := bench.Command([]string{"-smoke", "-only", "fre"}, &out, &progress); code == 0 {
		t.Error("exit code 0")
	}
	if !strings.Contains(progress.String(), `no group "fre"`) {
		t.Errorf("it says %q", progress.String())
	}
}
