//go:build linux

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// leads writes a line for each beginning of a term, and is there until it is ended.
const leads = `echo "start $HASP_KEY $HASP_TOKEN" >> terms; echo $$ > pid; exec sleep 60`

// terms waits for so many terms and answers their tokens.
func (p *place) terms(n int) []int64 {
	p.t.Helper()
	var tokens []int64
	p.eventually(fmt.Sprintf("%d terms have begun", n), func() bool {
		text, _ := os.ReadFile(p.path("terms"))
		tokens = nil
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if len(fields) != 3 || fields[0] != "start" {
				continue
			}
			if fields[1] != "k" {
				p.t.Fatalf("the command sees the name %q", fields[1])
			}
			token, err := strconv.ParseInt(fields[2], 10, 64)
			if err != nil {
				p.t.Fatal(err)
			}
			tokens = append(tokens, token)
		}
		return len(tokens) >= n
	})
	if !slices.IsSorted(tokens) || len(slices.Compact(slices.Clone(tokens))) != len(tokens) {
		p.t.Errorf("the tokens do not rise: %v", tokens)
	}
	return tokens
}

// leader is what leader --json prints.
type leader struct {
	Election   string
	Leader     *shownClaim
	Candidates int
}

func (p *place) leader() (leader, result) {
	p.t.Helper()
	got := p.do("leader", "k", "--json")
	var l leader
	if err := json.Unmarshal([]byte(got.out), &l); err != nil {
		p.t.Fatalf("%v in %s", err, got.out)
	}
	return l, got
}

func TestElectRunsTheCommandOfTheLeaderAlone(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.start("elect", "k", "--", "sh", "-c", leads)
	first := p.terms(1)
	b := p.start("elect", "k", "--", "sh", "-c", leads)
	p.waiting(1)
	l, got := p.leader()
	p.want(0, got)
	if l.Election != "k" || l.Candidates != 2 || l.Leader == nil || l.Leader.Token != strconv.FormatInt(first[0], 10) {
		t.Errorf("leader says %s, want the first of two with token %d", got.out, first[0])
	}
	p.kill(a.Process.Pid, syscall.SIGTERM)
	p.want(143, p.end(a))
	p.terms(2)
	p.kill(b.Process.Pid, syscall.SIGTERM)
	p.want(143, p.end(b))
	l, got = p.leader()
	p.want(1, got)
	if l.Leader != nil || l.Candidates != 0 {
		t.Errorf("leader says %s, want nobody", got.out)
	}
}

func TestElectEndsAsItsCommandDid(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.want(0, p.do("elect", "k", "--", "true"))
	p.want(3, p.do("elect", "k", "--", "sh", "-c", "exit 3"))
	p.want(139, p.do("elect", "k", "--", "sh", "-c", "kill -SEGV $$"))
	p.want(127, p.do("elect", "k", "--", "no-such-command"))
	p.want(126, p.do("elect", "k", "--", "/"))
	if s := p.show("k"); len(s.Holders)+s.Waiting != 0 {
		t.Errorf("somebody is left in line: %+v", s)
	}
}

func TestSR1_ElectKeepsLeadershipWhileTheCommandDrains(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	drain := `trap 'sleep 9; echo stop >> terms; exit 0' TERM; echo "start $HASP_KEY $HASP_TOKEN" >> terms; while :; do sleep 0.02; done`
	a := p.start("elect", "k", "--ttl", "4s", "--", "sh", "-c", drain)
	p.terms(1)
	b := p.start("elect", "k", "--ttl", "4s", "--", "sh", "-c", leads)
	p.waiting(1)
	p.kill(a.Process.Pid, syscall.SIGTERM)
	p.want(0, p.end(a))
	p.terms(2)
	if lines := strings.Split(p.read("terms"), "\n"); lines[1] != "stop" {
		t.Errorf("the terms are %q, want the first to stop before the second starts", lines)
	}
	p.kill(b.Process.Pid, syscall.SIGTERM)
	p.end(b)
}

func TestXR1_AKilledLeaderIsFollowed(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.start("elect", "k", "--ttl", "2s", "--", "sh", "-c", leads)
	p.terms(1)
	first := p.pid("pid")
	b := p.start("elect", "k", "--ttl", "2s", "--", "sh", "-c", `kill -0 `+pidOf(first)+` 2>/dev/null && echo both >> terms; `+leads)
	p.waiting(1)
	p.kill(a.Process.Pid, syscall.SIGKILL)
	p.terms(2)
	if strings.Contains(p.read("terms"), "both") || alive(first) {
		t.Error("the command of the killed leader ran when the next began")
	}
	p.kill(b.Process.Pid, syscall.SIGTERM)
	p.want(143, p.end(b))
}

func TestElectStartsTheCommandAnewAfterALoss(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("elect", "k", "--", "sh", "-c", leads)
	for n := range 3 {
		p.terms(n + 1)
		pid := p.pid("pid")
		how := []string{"release", "k"}
		if n == 1 {
			how = append(how, "--force")
		}
		p.want(0, p.do(how...))
		p.dead(pid)
	}
	p.terms(4)
	p.kill(h.Process.Pid, syscall.SIGTERM)
	got := p.end(h)
	p.want(143, got)
	if n := strings.Count(got.err, "stands in line again"); n != 3 {
		t.Errorf("stderr says %d times that leadership was lost, want 3:\n%s", n, got.err)
	}
}

func TestElectOnceEndsWithItsTerm(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	h := p.start("elect", "k", "--once", "--json", "--", "sh", "-c", leads)
	p.terms(1)
	p.want(0, p.do("release", "k"))
	got := p.end(h)
	p.want(70, got)
	if !strings.Contains(got.err, `"error":"lost"`) || strings.Count(got.err, "\n") != 1 {
		t.Errorf("stderr: %s", got.err)
	}
}

func TestElectThatWasToldToEndStandsInLineNoMore(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	stubborn := `trap 'echo told > told' TERM; echo "start $HASP_KEY $HASP_TOKEN" >> terms; while :; do sleep 0.02; done`
	h := p.start("elect", "k", "--", "sh", "-c", stubborn)
	p.terms(1)
	p.kill(h.Process.Pid, syscall.SIGTERM)
	p.file("told")
	p.want(0, p.do("release", "k", "--force"))
	p.want(70, p.end(h))
	if n := len(p.terms(1)); n != 1 {
		t.Errorf("the command was started %d times, want once", n)
	}
}

func TestCLI4_ASignalEndsACandidate(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := p.start("elect", "k", "--", "sh", "-c", leads)
	p.terms(1)
	b := p.start("elect", "k", "--", "true")
	p.waiting(1)
	told := time.Now()
	p.kill(b.Process.Pid, syscall.SIGINT)
	p.want(130, p.end(b))
	if took := time.Since(told); took > 200*time.Millisecond+patience {
		t.Errorf("it took %s", took)
	}
	p.waiting(0)
	p.kill(a.Process.Pid, syscall.SIGTERM)
	p.end(a)
}

func TestElectRefusesWhatCannotBeRight(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, args := range [][]string{
		{"elect", "k", "true"},
		{"elect", "--", "true"},
		{"elect", "k", "l", "--", "true"},
		{"elect", "k", "--"},
		{"elect", "", "--", "touch", "ran"},
		{"elect", "k", "--ttl", "0s", "--", "touch", "ran"},
		{"elect", "k", "--ttl", "1ms", "--", "touch", "ran"},
		{"elect", "k", "--grace", "-1s", "--", "touch", "ran"},
		{"leader"},
		{"leader", "k", "l"},
		{"leader", ""},
		{"watch"},
		{"watch", ""},
	} {
		if got := p.do(args...); got.code != 64 || got.err == "" || got.out != "" {
			t.Errorf("%q: exit code %d, stdout: %s, stderr: %s", args, got.code, got.out, got.err)
		}
	}
	p.url = "sqlite:" + p.path("missing.db")
	for _, args := range [][]string{{"elect", "k", "--", "touch", "ran"}, {"leader", "k"}, {"watch", "k"}} {
		p.want(69, p.do(args...))
	}
	if p.exists("ran") {
		t.Error("a command ran")
	}
}

func TestLeaderInWords(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if got := p.do("leader", "k"); got.code != 1 || got.out != "nobody leads k\n" || got.err != "" {
		t.Errorf("exit code %d, stdout %q, stderr %q", got.code, got.out, got.err)
	}
	h := p.start("elect", "k", "--", "sh", "-c", leads)
	token := p.terms(1)[0]
	got := p.do("leader", "k")
	p.want(0, got)
	if !strings.HasPrefix(got.out, "LEADER") || !strings.Contains(got.out, strconv.FormatInt(token, 10)) {
		t.Errorf("stdout %q, want a table with token %d", got.out, token)
	}
	p.kill(h.Process.Pid, syscall.SIGTERM)
	p.end(h)
}

func TestWatchPrintsEachChange(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	words, objects := p.start("watch", "k"), p.start("watch", "k", "--json")
	lines := func(n int) {
		t.Helper()
		p.eventually(fmt.Sprintf("%d lines are printed", n), func() bool {
			return strings.Count(words.out.String(), "\n") >= n && strings.Count(objects.out.String(), "\n") >= n
		})
	}
	lines(1)
	h := p.start("elect", "k", "--", "sh", "-c", leads)
	token := p.terms(1)[0]
	lines(2)
	p.kill(h.Process.Pid, syscall.SIGTERM)
	p.end(h)
	lines(3)
	var seen []string
	for text := range strings.Lines(objects.out.String()) {
		var c struct {
			At      time.Time
			Key     string
			Holders []shownClaim
		}
		if err := json.Unmarshal([]byte(text), &c); err != nil || c.Key != "k" || c.At.IsZero() {
			t.Fatalf("%v in %s", err, text)
		}
		who := "nobody"
		if len(c.Holders) > 0 {
			who = c.Holders[0].Token
		}
		seen = append(seen, who)
	}
	want := []string{"nobody", strconv.FormatInt(token, 10), "nobody"}
	if !slices.Equal(seen, want) {
		t.Errorf("watch --json told of %q, want %q", seen, want)
	}
	for i, text := range strings.Split(strings.TrimSpace(words.out.String()), "\n") {
		if i < len(want) && !strings.Contains(text, want[i]) {
			t.Errorf("line %d is %q, want %q in it", i, text, want[i])
		}
	}
}
