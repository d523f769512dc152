//go:build linux

package main_test

import (
	"syscall"
	"testing"
	"time"
)

// theCommands are those that hold something, by a name; each writes its child's process
// id into a file of that name.
func theCommands(ttl string) map[string][]string {
	const work = `echo $$ > pid.$NAME; exec sleep 60`
	return map[string][]string{
		"run":   {"run", "r", "--ttl", ttl, "--", "sh", "-c", work},
		"elect": {"elect", "e", "--ttl", ttl, "--", "sh", "-c", work},
		"once":  {"elect", "o", "--once", "--ttl", ttl, "--", "sh", "-c", work},
		"cron":  {"cron", "c", "@every 1s", "--ttl", ttl, "--", "sh", "-c", work},
	}
}

// slowest starts the commands that have an exit code, does something to the server, and
// answers how long the slowest took to end when nothing of its command was left.
func slowest(t *testing.T, ttl string, codes map[string]int, harm func(*redisPlace), sig syscall.Signal) time.Duration {
	t.Helper()
	p := newRedisPlace(t)
	type running struct {
		*process
		child int
	}
	all := make(map[string]running)
	for name := range codes {
		h := p.named(name, theCommands(ttl)[name]...)
		all[name] = running{h, p.pid("pid." + name)}
	}
	harm(p)
	if sig != 0 {
		for _, h := range all {
			p.kill(h.Process.Pid, sig)
		}
	}
	var most time.Duration
	for name, h := range all {
		p.dead(h.child)
		gone := time.Now()
		got := p.end(h.process)
		if most = max(most, time.Since(gone)); got.code != codes[name] {
			t.Errorf("%s ended with %d, want %d: %s", name, got.code, codes[name], got.err)
		}
	}
	return most
}

// atLeastOnce measures up to three times: a machine that does much else may be slow once.
func atLeastOnce(t *testing.T, limit time.Duration, measure func() time.Duration) {
	t.Helper()
	var took []time.Duration
	for range 3 {
		if took = append(took, measure()); took[len(took)-1] <= limit {
			return
		}
	}
	t.Errorf("it took %s, want at most %s", took, limit)
}

func silent(p *redisPlace) { p.kill(p.server.Process.Pid, syscall.SIGSTOP) }
func killed(p *redisPlace) { p.kill(p.server.Process.Pid, syscall.SIGKILL) }

// What is left to tell the store is told for 5 s, all in all.
func TestSR7_ASignalEndsEveryCommandInTimeAlthoughTheStoreIsAway(t *testing.T) {
	t.Parallel()
	codes := map[string]int{"run": 143, "elect": 143, "once": 143, "cron": 143}
	for name, harm := range map[string]func(*redisPlace){"silent": silent, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atLeastOnce(t, 7*time.Second, func() time.Duration {
				return slowest(t, "30s", codes, harm, syscall.SIGTERM)
			})
		})
	}
}

// Who has lost its lease to a store that is away does not try for long to give it back.
func TestALossEndsACommandSoonAlthoughTheStoreIsAway(t *testing.T) {
	t.Parallel()
	codes := map[string]int{"run": 70, "once": 70}
	for name, harm := range map[string]func(*redisPlace){"silent": silent, "killed": killed} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			atLeastOnce(t, 4*time.Second, func() time.Duration {
				return slowest(t, "2s", codes, harm, 0)
			})
		})
	}
}
