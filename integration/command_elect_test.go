package integration_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/hasp-dev/hasp/integration/process"
)

// onEveryStore is what hasp elect, leader, watch and cron do, wherever their store is.
func onEveryStore() map[string]func(*testing.T, string) {
	all := make(map[string]func(*testing.T, string))
	for _, k := range kinds() {
		all["elects on "+k.name] = func(t *testing.T, binary string) {
			newStage(t, binary, k.start(t)).elects()
		}
		all["schedules on "+k.name] = func(t *testing.T, binary string) {
			newStage(t, binary, k.start(t)).schedules()
		}
	}
	for _, k := range kinds() {
		if k.name == "sqlite" {
			continue
		}
		all["outlives its store on "+k.name] = func(t *testing.T, binary string) {
			s := k.start(t)
			if k.name == "redis" {
				s = onRedis(t, persistent)
			}
			newStage(t, binary, s).outlives(s.server)
		}
	}
	return all
}

// stage is a store with commands on it, and files that these write into.
type stage struct {
	command
	dir string
}

func newStage(t *testing.T, binary string, s *store) *stage {
	t.Helper()
	url := strings.Replace(s.addr, "mysql://", "mysql://root@", 1)
	if s.name == "postgres" {
		url += "?sslmode=disable"
	}
	return &stage{command{t, binary, url}, t.TempDir()}
}

// lines are those of a file, in fields, once there are so many.
func (s *stage) lines(name string, n int) (all [][]string) {
	s.t.Helper()
	eventually(s.t, 3*soon, fmt.Sprintf("%s has %d lines", name, n), func() bool {
		text, _ := os.ReadFile(filepath.Join(s.dir, name))
		all = nil
		for line := range strings.Lines(string(text)) {
			if strings.HasSuffix(line, "\n") {
				all = append(all, strings.Fields(line))
			}
		}
		return len(all) >= n
	})
	return all
}

// sh starts hasp with a script that finds itself in the folder.
func (s *stage) sh(script string, args ...string) *process.Process {
	s.t.Helper()
	return s.start(append(args, "--", "sh", "-c", "cd "+s.dir+"; "+script)...)
}

// candidates waits until so many stand in the election e.
func (s *stage) candidates(n int) {
	s.t.Helper()
	eventually(s.t, 3*soon, fmt.Sprintf("%d stand in line", n), func() bool {
		p := s.start("leader", "e", "--json")
		<-p.Exited()
		return strings.Contains(p.Output(), fmt.Sprintf(`"candidates": %d`, n))
	})
}

// elects: the first leader drains for three TTLs, the second is killed.
func (s *stage) elects() {
	s.t.Helper()
	elect := []string{"elect", "e", "--ttl", "2s", "--grace", "1s"}
	words, objects := s.start("watch", "e"), s.start("watch", "e", "--json")
	wantNil(s.t, words.Await("nobody"))
	wantNil(s.t, objects.Await(`"holders":[]`))
	a := s.sh(`trap 'sleep 6; echo stop a >> terms; exit 0' TERM; echo start a $HASP_TOKEN >> terms; while :; do sleep 0.05; done`, elect...)
	seen := func(n int) { // a watch may miss what is over before its next look
		s.t.Helper()
		line := s.lines("terms", n)[n-1]
		if len(line) != 3 {
			s.t.Fatalf("line %d of the terms is %q", n, line)
		}
		wantNil(s.t, words.Await("(token "+line[2]+")"))
		eventually(s.t, soon, "it is told as JSON", func() bool {
			return slices.Contains(s.holders(objects), must(strconv.ParseInt(line[2], 10, 64))(s.t))
		})
	}
	seen(1)
	b := s.sh(`echo $$ > pid; echo start b $HASP_TOKEN >> terms; exec sleep 600`, elect...)
	s.candidates(2)
	c := s.sh(`kill -0 $(cat pid) 2>/dev/null && echo both >> terms; echo start c $HASP_TOKEN >> terms; exec sleep 600`, elect...)
	s.candidates(3)
	wantNil(s.t, a.Signal(syscall.SIGTERM))
	s.ends(a, 0, "")
	seen(3)
	b.Kill()
	seen(4)
	terms := s.lines("terms", 4)
	var said []string
	var tokens []int64
	for _, line := range terms {
		said = append(said, strings.Join(line[:min(2, len(line))], " "))
		if len(line) == 3 {
			tokens = append(tokens, must(strconv.ParseInt(line[2], 10, 64))(s.t))
		}
	}
	if !slices.Equal(said, []string{"start a", "stop a", "start b", "start c"}) || !slices.IsSorted(tokens) {
		s.t.Errorf("the terms are %q", terms)
	}
	s.ends(s.start("leader", "e"), 0, "LEADER")
	wantNil(s.t, c.Signal(syscall.SIGTERM))
	s.ends(c, 143, "")
	s.ends(s.start("leader", "e"), 1, "nobody leads e")
	s.watched(words, objects, tokens)
}

// watched compares what two watches were told, which ends with nobody.
func (s *stage) watched(words, objects *process.Process, tokens []int64) {
	s.t.Helper()
	last := fmt.Sprintf("(token %d)", tokens[len(tokens)-1])
	eventually(s.t, soon, "the watches tell that nobody leads", func() bool {
		_, after, told := strings.Cut(words.Output(), last)
		all := strings.Split(strings.TrimSpace(objects.Output()), "\n")
		return told && strings.Contains(after, "nobody") && len(all) > 1 && strings.Contains(all[len(all)-1], `"holders":[]`)
	})
	if seen := s.holders(objects); !slices.Equal(seen, tokens) {
		s.t.Errorf("watched %v, want the terms %v", seen, tokens)
	}
	for _, p := range []*process.Process{words, objects} {
		wantNil(s.t, p.Signal(syscall.SIGINT))
		<-p.Exited()
	}
}

// holders are the tokens of those whom a watch has told, each once.
func (s *stage) holders(watch *process.Process) (tokens []int64) {
	s.t.Helper()
	for line := range strings.Lines(watch.Output()) {
		var change struct{ Holders []struct{ Token string } }
		wantNil(s.t, json.Unmarshal([]byte(line), &change))
		for _, h := range change.Holders {
			tokens = append(tokens, must(strconv.ParseInt(h.Token, 10, 64))(s.t))
		}
	}
	return slices.Compact(tokens)
}

// schedules: of two processes each tick is run by one.
func (s *stage) schedules() {
	s.t.Helper()
	var all []*process.Process
	for range 2 {
		all = append(all, s.sh(`echo $HASP_TICK $HASP_TOKEN >> ticks`, "cron", "j", "@every 1s"))
	}
	s.lines("ticks", 5)
	for _, p := range all {
		wantNil(s.t, p.Signal(syscall.SIGTERM))
		s.ends(p, 143, "")
	}
	var ticks []string
	for _, line := range s.lines("ticks", 5) {
		ticks = append(ticks, line[0])
	}
	slices.Sort(ticks)
	if n := len(slices.Compact(slices.Clone(ticks))); n != len(ticks) {
		s.t.Errorf("of %d runs only %d are of different ticks: %q", len(ticks), n, ticks)
	}
}

// outlives: the server dies and comes back. Whoever leads ends, and whoever watches or
// stands in line goes on.
func (s *stage) outlives(server server) {
	s.t.Helper()
	once := s.sh(`echo start >> once; exec sleep 600`, "elect", "o", "--ttl", "2s", "--once")
	s.lines("once", 1)
	again := s.sh(`echo start $HASP_TOKEN >> again; exec sleep 600`, "elect", "e", "--ttl", "2s")
	first := s.lines("again", 1)[0][1]
	ticks := s.sh(`echo $HASP_TICK >> ticks`, "cron", "j", "@every 1s", "--ttl", "2s")
	s.lines("ticks", 1)
	watch := s.start("watch", "e")
	wantNil(s.t, watch.Await("token "+first))
	server.Kill()
	s.ends(once, 70, "")
	s.ends(s.start("leader", "e"), 69, "")
	wantNil(s.t, watch.Await("hasp:"))
	n := len(s.lines("ticks", 1))
	wantNil(s.t, server.Start())
	second := s.lines("again", 2)[1][1]
	wantNil(s.t, watch.Await("token "+second))
	s.lines("ticks", n+2)
	wantNil(s.t, again.Signal(syscall.SIGTERM))
	s.ends(again, 143, "")
	wantNil(s.t, ticks.Signal(syscall.SIGTERM))
	s.ends(ticks, 143, "")
}
