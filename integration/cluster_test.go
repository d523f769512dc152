package integration_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/servers"
)

func startCluster(t *testing.T) (*store, *servers.Cluster) {
	t.Helper()
	c := must(servers.StartCluster())(t)
	t.Cleanup(func() { wantNil(t, c.Close()) })
	return &store{name: "cluster", addr: c.URL()}, c
}

// TestCR1_EveryKeyWorksOnACluster: all kinds of locks on many keys, with braces in every
// position, none of which needs two slots; and waiters are woken.
func TestCR1_EveryKeyWorksOnACluster(t *testing.T) {
	t.Parallel()
	s, _ := startCluster(t)
	a, b, viewer := s.client(t), s.client(t), s.client(t)
	keys := strangeKeys()
	for i := range rounds(100, 200) {
		keys = append(keys, fmt.Sprint("key ", i))
	}
	for _, prefix := range []string{"", "p{x}:", "{}"} {
		for _, key := range keys {
			if len(prefix)+len(key) > 512 {
				continue
			}
			released(t, must(a.Sub(prefix).Mutex(key).TryLock(t.Context()))(t))
			released(t, must(a.Sub(prefix).RWMutex(key).RLock(t.Context()))(t))
			released(t, must(a.Sub(prefix).Semaphore(key, 3).Acquire(t.Context(), 2))(t))
		}
	}
	for _, key := range strangeKeys() {
		pairOf{a, b, viewer}.handsOver(t, prompt, key, nil)
	}
}

// TestCR2_KeysInDifferentSlotsAreRefusedTogether, or are in one slot by an option.
func TestCR2_KeysInDifferentSlotsAreRefusedTogether(t *testing.T) {
	t.Parallel()
	s, _ := startCluster(t)
	_, err := s.client(t).Mutex("a", "b", "c").Lock(t.Context())
	wantClass(t, err, "unsupported")
	c := s.with("slot=accounts").client(t)
	lease := must(c.Mutex("a", "b", "c").Lock(t.Context()))(t)
	_, err = c.Mutex("b").TryLock(t.Context())
	wantClass(t, err, "held")
	released(t, lease)
	empty(t, c, brief)
}

// TestCR4_FailoversStopNobody: two processes take turns while every replica takes over.
func TestCR4_FailoversStopNobody(t *testing.T) {
	t.Parallel()
	s, cluster := startCluster(t)
	stop := make(chan struct{})
	var turns [2]atomic.Int64
	var all sync.WaitGroup
	for i := range turns {
		p := s.puppet(t, fmt.Sprint("p", i))
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				a := p.do(crew.Order{Do: "lock", Lease: "x", Keys: []string{"k"}, For: 8 * time.Second})
				switch a.Class {
				case "":
					turns[i].Add(1)
					p.do(crew.Order{Do: "release", Lease: "x"})
				case "held", "unavailable", "refused":
				default:
					t.Errorf("a turn ended with %q: %s", a.Class, a.Text)
				}
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	for _, replica := range cluster.Nodes[3:] {
		wantNil(t, cluster.Failover(t.Context(), replica))
	}
	for i := range turns {
		before := turns[i].Load()
		eventually(t, soon, fmt.Sprintf("process %d gets a turn after the failovers", i), func() bool { return turns[i].Load() > before })
	}
	close(stop)
	all.Wait()
}

// TestCR4_ASentinelsFailoverIsSurvived: the primary is killed; the client that knows the
// sentinels works again by itself, and what it held is lost or goes on.
func TestCR4_ASentinelsFailoverIsSurvived(t *testing.T) {
	t.Parallel()
	sentinels := must(servers.StartSentinels())(t)
	t.Cleanup(func() { wantNil(t, sentinels.Close()) })
	s := &store{name: "sentinels", addr: sentinels.URL()}
	c := s.client(t).With(hasp.LockOptions{TTL: 2 * time.Second})
	lease := must(c.Mutex("k").Lock(t.Context()))(t)
	sentinels.Primary.Kill()
	wantNil(t, sentinels.AwaitPrimary(sentinels.Replica))
	var next *hasp.Lease
	eventually(t, 2*soon, "locks work again", func() bool {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		var err error
		next, err = c.Mutex("other").Lock(ctx)
		return err == nil
	})
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	released(t, next)
	if err := lease.Release(t.Context()); err != nil {
		wantClass(t, err, "lost")
	}
}
