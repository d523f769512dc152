package integration_test

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/crew"
)

// topLevel counts what clients have sent, by command: calls within scripts are counted
// by Redis, too, so those are left out that hasp sends only there.
func topLevel(t *testing.T, s *store) map[string]int {
	t.Helper()
	counts := make(map[string]int)
	info := must(s.redis.Admin().Info(t.Context(), "commandstats").Result())(t)
	for line := range strings.Lines(info) {
		name, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "cmdstat_"), ":calls=")
		if !ok {
			continue
		}
		switch name {
		case "evalsha", "eval", "evalsha_ro", "eval_ro", "script|load", "subscribe", "ping":
			calls, _, _ := strings.Cut(rest, ",")
			counts[name] = must(strconv.Atoi(calls))(t)
		}
	}
	return counts
}

func total(counts map[string]int) (n int) {
	for _, c := range counts {
		n += c
	}
	return n
}

// TestTH1_HandOversCostTheSameWithManyWaiters: hand-overs with 1,000 waiters on one key
// in 8 clients; the first holder is killed. One next holder, few commands to a hand-over,
// and waiters that do not poll.
func TestTH1_HandOversCostTheSameWithManyWaiters(t *testing.T) {
	if testing.Short() && underRace {
		t.Skip("a thousand goroutines say nothing about commands under the race detector")
	}
	s := startRedis(t)
	const clients, handOvers = 8, 50
	waiters := rounds(1000, 1000)
	const ttl = 2 * time.Second
	viewer := s.client(t)
	p := s.puppet(t, "dead")
	p.holds(crew.Order{Lease: "x", Keys: []string{"k"}, TTL: ttl})
	var holders, most, served atomic.Int64
	var all sync.WaitGroup
	turn := make(chan struct{})
	for range clients {
		c := s.client(t).With(hasp.LockOptions{TTL: 20 * time.Second})
		for range waiters / clients {
			all.Go(func() {
				lease, err := c.Mutex("k").Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				most.Store(max(most.Load(), holders.Add(1)))
				<-turn
				holders.Add(-1)
				served.Add(1)
				wantNil(t, lease.Release(t.Context()))
			})
		}
	}
	eventually(t, 2*soon, "all wait", func() bool {
		return must(viewer.Inspect(t.Context(), "k"))(t).Waiting == waiters/clients*clients
	})
	idle := total(topLevel(t, s))
	const watched = 2 * time.Second
	time.Sleep(watched)
	perSecond := float64(total(topLevel(t, s))-idle) / watched.Seconds()
	p.Kill()
	eventually(t, soon, "the next one holds", func() bool { return holders.Load() == 1 })
	time.Sleep(100 * time.Millisecond) // for a second one to show
	if n := holders.Load(); n != 1 {
		t.Errorf("%d next holders", n)
	}
	before, begin := total(topLevel(t, s)), time.Now()
	for range handOvers {
		now := served.Load()
		turn <- struct{}{}
		eventually(t, soon, "a hand-over", func() bool { return served.Load() > now && holders.Load() == 1 })
	}
	waitingCost := perSecond * time.Since(begin).Seconds()
	each := (float64(total(topLevel(t, s))-before) - waitingCost) / handOvers
	t.Logf("%d waiters: %.0f commands/s while they wait, %.1f commands to a hand-over besides", waiters, perSecond, each)
	if each > 4 {
		t.Errorf("%.1f commands to a hand-over, want at most 3", each)
	}
	if perSecond > 200 {
		t.Errorf("%.0f commands/s of waiters that have nothing to do", perSecond)
	}
	close(turn)
	all.Wait()
	if most.Load() > 1 {
		t.Errorf("%d held at once", most.Load())
	}
	empty(t, viewer, soon)
}

// TestCP2_AThousandWaitersNeedFewConnections, and when they are gone their keys are
// forgotten (CP-4: other keys are waited for as well as the first).
func TestCP2_CP4_AThousandWaitersNeedFewConnections(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		far, way := s.behind(t)
		holder, c := s.client(t), far.client(t)
		viewer := s.client(t)
		n := slower(500, 50)
		switch s.name { // whose hand-overs are more work
		case "postgres":
			n /= 4
		case "mysql":
			n /= 10
		}
		for round := range 2 {
			leases := make([]*hasp.Lease, n)
			var all sync.WaitGroup
			for i := range n {
				key := fmt.Sprintf("%d.%d", round, i)
				leases[i] = must(holder.Mutex(key).Lock(t.Context()))(t)
				all.Go(func() {
					lease, err := c.Mutex(key).Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					wantNil(t, lease.Release(t.Context()))
				})
			}
			for i := range n {
				waiting(t, viewer, fmt.Sprintf("%d.%d", round, i), 1)
			}
			if open := len(way.Conns()); open > 12 {
				t.Errorf("%d waiters have %d connections", n, open)
			}
			for _, lease := range leases {
				released(t, lease)
			}
			all.Wait()
		}
	})
}

// TestG5_AServerThatTellsNobody: a user without the right to a channel. Locks work, every
// grant is found within two seconds, and Ping says what is missing.
func TestG5_AServerThatTellsNobody(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	_ = must(s.redis.Command(t.Context(), "ACL", "SETUSER", "deaf", "on", ">secret", "~*", "+@all", "resetchannels"))(t)
	deaf := s.with("user=deaf&password=secret")
	a, b := deaf.client(t), deaf.client(t)
	wantNil(t, a.Ping(t.Context()))
	for range 5 {
		pairOf{a, b, s.client(t)}.handsOver(t, 2*time.Second+prompt, "k", nil)
	}
}

// TestG10_AUserWithoutARightIsToldWhich.
func TestG10_AUserWithoutARightIsToldWhich(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	_ = must(s.redis.Command(t.Context(), "ACL", "SETUSER", "weak", "on", ">secret", "~*", "&*", "+@all", "-set"))(t)
	c := s.with("user=weak&password=secret").client(t)
	for _, err := range []error{c.Ping(t.Context()), second(c.Mutex("k").TryLock(t.Context()))} {
		wantClass(t, err, "refused")
		if err != nil && !strings.Contains(strings.ToLower(err.Error()), "set") {
			t.Errorf("%v does not name the command", err)
		}
	}
	wrong := s.with("user=weak&password=wrong").client(t)
	_, err := wrong.Mutex("k").TryLock(t.Context())
	wantClass(t, err, "refused")
}

func second[T any](_ T, err error) error { return err }
