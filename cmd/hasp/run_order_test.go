//go:build linux

package main_test

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestTwelveProcessesLoseNoUpdateAndTokensRise(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write("counter", "0\n")
	const processes, rounds = 12, 3
	done := make([]*process, 0, processes)
	for range processes {
		loop := fmt.Sprintf(`i=0; while [ $i -lt %d ]; do "$0" run ctr -- sh -c 'read n < counter; sleep 0.01; echo $((n+1)) > counter; echo $HASP_TOKEN >> tokens' || exit 1; i=$((i+1)); done`, rounds)
		cmd := p.command()
		cmd.Path, cmd.Args = "/bin/sh", []string{"sh", "-c", loop, binary}
		done = append(done, p.begin(cmd))
	}
	for _, h := range done {
		p.want(0, p.end(h))
	}
	if got, want := p.read("counter"), fmt.Sprintln(processes*rounds); got != want {
		t.Errorf("the counter is %q, want %q", got, want)
	}
	var tokens []int64
	for line := range strings.Lines(p.read("tokens")) {
		token, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
	}
	if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != processes*rounds {
		t.Errorf("the tokens do not rise: %v", tokens)
	}
}

func TestEightWaitersRunInTheOrderTheyCame(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	holder := p.start("run", "k", "--", "sh", "-c", ": > held; while [ ! -e go ]; do sleep 0.02; done")
	p.file("held")
	var all []*process
	var want strings.Builder
	for i := range 8 {
		all = append(all, p.start("run", "k", "--", "sh", "-c", fmt.Sprintf("echo %d >> order; sleep 0.02", i)))
		p.waiting(i + 1)
		fmt.Fprintln(&want, i)
	}
	p.proceed()
	p.want(0, p.end(holder))
	for _, h := range all {
		p.want(0, p.end(h))
	}
	if got := p.read("order"); got != want.String() {
		t.Errorf("order %q, want %q", got, want.String())
	}
}

// oddKeys are keys that a careless store would cut or confuse.
func oddKeys() []string {
	return []string{
		"Job-A", "job-a", "job-a ", "jób-a", "jo\u0301b-a", "a:b", "{x}", "}x{", "%", "?", "*", "'", `"`, `\`, "new\nline",
		strings.Repeat("k", 500), strings.Repeat("k", 499) + "l", strings.Repeat("ü", 256), "🔒", " k",
	}
}

func TestKL2_OddKeysAreDifferentKeysAndAllWork(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	var holders []*process
	for i, key := range oddKeys() {
		h := p.start("run", key, "-n", "--", "sh", "-c", fmt.Sprintf(`printf %%s "$HASP_KEY" > key%d.new; mv key%d.new key%d; while [ ! -e go ]; do sleep 0.05; done`, i, i, i))
		p.file("key" + strconv.Itoa(i))
		if got := p.read("key" + strconv.Itoa(i)); got != key {
			t.Errorf("the command of %q sees the key %q", key, got)
		}
		holders = append(holders, h)
	}
	for _, key := range oddKeys() {
		if s := p.show(key); s.Key != key || len(s.Holders) != 1 {
			t.Errorf("show %q: %+v", key, s)
		}
	}
	p.proceed()
	for _, h := range holders {
		p.want(0, p.end(h))
	}
}

func TestKL1_ImpossibleKeysAreRefusedBeforeAnything(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, key := range []string{"", strings.Repeat("k", 513), "\xff"} {
		for _, args := range [][]string{{"run", key, "--", "touch", "ran"}, {"show", key}, {"release", key}} {
			if got := p.do(args...); got.code != 64 || got.err == "" {
				t.Errorf("%s of %.10q: exit code %d, stderr: %s", args[0], key, got.code, got.err)
			}
		}
	}
	if p.exists("ran") {
		t.Error("a command ran")
	}
}

func TestKT1_KeysWithNothingInThemAreRefusedBeforeAnything(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, key := range []string{"", " ", "\t", "\n", "\u00a0"} {
		for _, args := range [][]string{
			{"run", key, "--", "touch", "ran"},
			{"run", "good", key, "--", "touch", "ran"},
			{"elect", key, "--", "touch", "ran"},
			{"cron", key, "@every 1s", "--", "touch", "ran"},
		} {
			if got := p.do(args...); got.code != 64 || got.err == "" {
				t.Errorf("%s %q: exit code %d, stderr: %s", args[0], args[1:], got.code, got.err)
			}
		}
	}
	if p.exists("ran") {
		t.Error("a command ran")
	}
}

func TestReadersSharePermitsShareAndWritersDoNot(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	hold := "while [ ! -e go ]; do sleep 0.02; done"
	all := []*process{
		p.start("run", "rw", "--shared", "-n", "--", "sh", "-c", ": > r1; "+hold),
		p.start("run", "rw", "--shared", "-n", "--", "sh", "-c", ": > r2; "+hold),
		p.start("run", "sem", "--permits", "2/3", "-n", "--", "sh", "-c", ": > s1; "+hold),
		p.start("run", "sem", "--permits", "1/3", "-n", "--", "sh", "-c", ": > s2; "+hold),
	}
	for _, name := range []string{"r1", "r2", "s1", "s2"} {
		p.file(name)
	}
	p.want(75, p.do("run", "rw", "-n", "--", "true"))
	p.want(75, p.do("run", "sem", "--permits", "1/3", "-n", "--", "true"))
	p.want(75, p.do("run", "free", "rw", "-n", "--", "true"))
	p.want(0, p.do("run", "free", "-n", "--", "true"))
	p.proceed()
	for _, h := range all {
		p.want(0, p.end(h))
	}
}

func TestTwelveFirstUsesAtOnceMakeTheLocalFile(t *testing.T) {
	t.Parallel()
	p := &place{t: t, dir: t.TempDir()}
	var all []*process
	for range 12 {
		cmd := p.command("run", "k", "--", "sh", "-c", "echo x >> ran")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + p.dir}
		all = append(all, p.begin(cmd))
	}
	for _, h := range all {
		got := p.end(h)
		p.want(0, got)
		if strings.Count(got.err, "\n") != 1 || !strings.Contains(got.err, "on this machine only") {
			t.Errorf("stderr: %s", got.err)
		}
	}
	if got := strings.Count(p.read("ran"), "x"); got != 12 {
		t.Errorf("%d of 12 ran", got)
	}
	info, err := os.Stat(p.path(".local/state/hasp"))
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info, err)
	}
}

func TestSR7_AStoreThatIsGoneAtTheEndKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("run", "k", "--", "sh", "-c", "echo $$ > ready; exec sleep 60")
	p.pid("ready")
	for _, name := range []string{"locks.db", "locks.db-wal", "locks.db-shm"} {
		_ = os.Remove(p.path(name))
	}
	began := time.Now()
	if err := h.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.end(h)
	if took := time.Since(began); took > 6*time.Second+patience {
		t.Errorf("ended after %s", took)
	}
}
