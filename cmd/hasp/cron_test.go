//go:build linux

package main_test

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// named starts hasp with a variable NAME that tells what it starts from what another does.
func (p *place) named(name string, args ...string) *process {
	p.t.Helper()
	cmd := p.command(args...)
	cmd.Env = append(cmd.Env, "NAME="+name)
	return p.begin(cmd)
}

// lines waits until a file has that many lines, and answers the fields of each.
func (p *place) lines(name string, n int) [][]string {
	p.t.Helper()
	var all [][]string
	p.eventually(name+" has its lines", func() bool {
		text, _ := os.ReadFile(p.path(name))
		all = nil
		for line := range strings.Lines(string(text)) {
			all = append(all, strings.Fields(line))
		}
		return len(all) >= n
	})
	return all
}

func (p *place) signal(h *process, sig syscall.Signal, code int) result {
	p.t.Helper()
	p.kill(h.Process.Pid, sig)
	got := p.end(h)
	p.want(code, got)
	return got
}

func TestCronRunsEachTickOnceInTwoProcesses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args := []string{"cron", "k", "@every 1s", "--overlap", "wait", "--", "sh", "-c", `trap '' TERM; echo "$HASP_TICK $HASP_TOKEN $HASP_KEY $NAME" >> ticks`}
	a, b := p.named("a", args...), p.named("b", args...)
	p.lines("ticks", 4)
	p.signal(a, syscall.SIGTERM, 143)
	n := len(p.lines("ticks", 4))
	p.lines("ticks", n+2)
	p.signal(b, syscall.SIGTERM, 143)
	var ticks []time.Time
	var tokens []string
	for _, line := range p.lines("ticks", n+2) {
		if len(line) != 4 || line[2] != "schedule:run:k" {
			t.Fatalf("the command sees %q", line)
		}
		at, err := time.Parse(time.RFC3339, line[0])
		if err != nil || at.Location() != time.UTC || at.Nanosecond() != 0 {
			t.Errorf("HASP_TICK is %q: %v", line[0], err)
		}
		ticks, tokens = append(ticks, at), append(tokens, line[1])
	}
	if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != len(tokens) {
		t.Errorf("the tokens do not rise: %v", tokens)
	}
	slices.SortFunc(ticks, time.Time.Compare)
	for i, at := range ticks[1:] {
		if at.Sub(ticks[i]) != time.Second {
			t.Errorf("after the tick of %s ran that of %s", ticks[i], at)
		}
	}
}

func TestATickOfAKilledCronRunsInAnother(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	work := `echo "$NAME $HASP_TICK" >> ticks; mkdir first 2>/dev/null && { echo $$ > pid; exec sleep 60; }; [ -e dead ] || exit 0; kill -0 $(cat pid) 2>/dev/null && echo both > both; :`
	args := []string{"cron", "k", "@every 1s", "--ttl", "2s", "--", "sh", "-c", work}
	all := map[string]*process{"a": p.named("a", args...), "b": p.named("b", args...)}
	first := p.lines("ticks", 1)[0]
	command := p.pid("pid")
	p.write("dead", "")
	p.kill(all[first[0]].Process.Pid, syscall.SIGKILL)
	p.eventually("the other process has run the tick", func() bool {
		for _, line := range p.lines("ticks", 1) {
			if line[0] != first[0] && line[1] == first[1] {
				return true
			}
		}
		return false
	})
	if p.exists("both") || alive(command) {
		t.Error("the command of the killed one still ran")
	}
	for name, h := range all {
		if name != first[0] {
			p.signal(h, syscall.SIGTERM, 143)
		}
	}
}

func TestSR1_CronDrainsBeforeItEnds(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	drain := `trap 'sleep 9; echo stop >> ticks; exit 0' TERM; echo "$NAME $HASP_TICK" >> ticks; while :; do sleep 0.02; done`
	a := p.named("a", "cron", "k", "@every 1s", "--ttl", "4s", "--", "sh", "-c", drain)
	p.lines("ticks", 1)
	b := p.named("b", "cron", "k", "@every 1s", "--ttl", "4s", "--", "sh", "-c", `echo "$NAME $HASP_TICK" >> ticks`)
	p.signal(a, syscall.SIGTERM, 143)
	lines := p.lines("ticks", 4)
	if lines[1][0] != "stop" || lines[2][0] != "b" {
		t.Errorf("the lines are %q; no run was to begin before the other had ended", lines)
	}
	for _, line := range lines[2:] {
		if line[1] <= lines[0][1] {
			t.Errorf("the tick of %s was done, and ran again", line[1])
		}
	}
	p.signal(b, syscall.SIGINT, 130)
}

func TestATickThatASignalCutsShortRunsInAnother(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	work := `echo "$NAME $HASP_TICK" >> ticks; mkdir first 2>/dev/null && exec sleep 60; :`
	args := []string{"cron", "k", "@every 1s", "--ttl", "2s", "--", "sh", "-c", work}
	all := map[string]*process{"a": p.named("a", args...), "b": p.named("b", args...)}
	first := p.lines("ticks", 1)[0]
	p.file("first")
	p.signal(all[first[0]], syscall.SIGTERM, 143)
	p.eventually("the other process has run the tick", func() bool {
		return slices.ContainsFunc(p.lines("ticks", 1), func(line []string) bool { return line[0] != first[0] && line[1] == first[1] })
	})
}

func TestCronGoesOnAfterFailuresAndLosses(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	work := `cat > in; echo "$HASP_KEY" >> ticks
mkdir one 2>/dev/null && exit 3
mkdir two 2>/dev/null && { echo $$ > pid; exec sleep 60; }
mkdir three 2>/dev/null && exec sleep 60; :`
	h := p.start("cron", "k", "@every 1s", "--at-most", "2s", "--", "sh", "-c", work)
	key := p.lines("ticks", 2)[1][0]
	pid := p.pid("pid")
	p.want(0, p.do("release", key))
	p.dead(pid)
	p.lines("ticks", 4) // the third is ended by --at-most
	got := p.signal(h, syscall.SIGTERM, 143)
	for _, want := range []string{"the job failed; tick: ", "exit code 3", key + ": ", "the command was ended", "the time of --at-most is over"} {
		if !strings.Contains(got.err, want) {
			t.Errorf("stderr lacks %q:\n%s", want, got.err)
		}
	}
	if p.read("in") != "" {
		t.Error("the command had something to read")
	}
}

func TestCronThatMayOverlapPassesSignalsToAll(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	work := `trap 'echo "$1" >> told; exit 0' TERM; echo $$ >> ticks; while :; do sleep 0.05; done`
	h := p.start("cron", "k", "@every 1s", "--overlap", "allow", "--", "sh", "-c", strings.ReplaceAll(work, "$1", "$$"))
	running := p.lines("ticks", 3)
	p.signal(h, syscall.SIGTERM, 143)
	if told := p.lines("told", 3); len(told) < len(running) {
		t.Errorf("%q were told, of %q", told, running)
	}
}

func TestCronMakesUpForATickThatNobodyRan(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("cron", "k", "0 * * * *", "--zone", "Europe/Berlin", "--catch-up", "3h30m", "--catch-up-ticks", "2", "--", "sh", "-c", `trap '' TERM; echo $HASP_TICK >> ticks`)
	lines := p.lines("ticks", 2)
	first, err := time.Parse(time.RFC3339, lines[0][0])
	second, errSecond := time.Parse(time.RFC3339, lines[1][0])
	if err != nil || errSecond != nil || second.Sub(first) != time.Hour || time.Since(second) > 2*time.Hour {
		t.Errorf("made up for %q", lines)
	}
	p.signal(h, syscall.SIGTERM, 143)
}

func TestCronRefusesWhatCannotBeRight(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.url = "sqlite:" + p.path("missing.db") // which is 69 where anything is opened
	for says, args := range map[string][]string{
		"put -- between":             {"k", "@hourly", "touch", "ran"},
		"in quotes, not 1":           {"k", "--", "touch", "ran"},
		"in quotes, not 6":           {"k", "*", "*", "*", "*", "*", "--", "touch", "ran"},
		"name a command":             {"k", "@hourly", "--"},
		"the name is empty":          {"", "@hourly", "--", "touch", "ran"},
		"specification is empty":     {"k", " ", "--", "touch", "ran"},
		"column 4, hour":             {"k", "30 25 * * *", "--", "touch", "ran"},
		"has 4 fields":               {"k", "* * * *", "--", "touch", "ran"},
		"no duration":                {"k", "@every fortnight", "--", "touch", "ran"},
		`unknown time zone "Berlin"`: {"k", "@hourly", "--zone", "Berlin", "--", "touch", "ran"},
		"not negative":               {"k", "@hourly", "--jitter", "-1s", "--", "touch", "ran"},
		"with its unit":              {"k", "@hourly", "--at-least", "5", "--", "touch", "ran"},
		"must be at least 100ms":     {"k", "@hourly", "--at-most", "1ms", "--", "touch", "ran"},
		"--at-least 2s is more than": {"k", "@hourly", "--at-least", "2s", "--at-most", "1s", "--", "touch", "ran"},
		"want skip, wait or allow":   {"k", "@hourly", "--overlap", "maybe", "--", "touch", "ran"},
		"from 100ms to 1h":           {"k", "@hourly", "--ttl", "2h", "--", "touch", "ran"},
		"CatchUp.Within is 1000h":    {"k", "@hourly", "--catch-up", "1000h", "--", "touch", "ran"},
		"needs --catch-up":           {"k", "@hourly", "--catch-up-ticks", "2", "--", "touch", "ran"},
	} {
		got := p.do(append([]string{"cron"}, args...)...)
		if got.code != 64 || !strings.Contains(got.err, says) || got.out != "" {
			t.Errorf("%q: exit code %d, want 64 and %q in stderr: %s", args, got.code, says, got.err)
		}
	}
	p.want(127, p.do("cron", "k", "@every 1s", "--", "no-such-command"))
	p.want(69, p.do("cron", "k", "@every 1s", "--", "touch", "ran"))
	if p.exists("ran") {
		t.Error("a command ran")
	}
}

func TestCronEndsWhereItsCommandCannotBeRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.want(126, p.do("cron", "k", "@every 1s", "--", "/"))
	p.write("script", "not a script")
	if err := os.Chmod(p.path("script"), 0o755); err != nil {
		t.Fatal(err)
	}
	p.want(126, p.do("cron", "k", "@every 1s", "--", "./script"))
}
