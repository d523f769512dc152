package integration_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/integration/crew"
)

// TestSW1_AWaiterWhoseClaimEndsIsNotAHolder: an operator takes B's waiting claim away.
func TestSW1_AWaiterWhoseClaimEndsIsNotAHolder(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		a, b, viewer := s.client(t), s.client(t), s.client(t)
		lease := must(a.Mutex("k").Lock(t.Context()))(t)
		got := make(chan error, 1)
		go func() {
			next, err := b.Mutex("k").Lock(t.Context())
			if err == nil {
				err = next.Release(t.Context())
			}
			got <- err
		}()
		waiting(t, viewer, "k", 1)
		line := must(viewer.Inspect(t.Context(), "k"))(t)
		op := s.driver(t).(driver.Operator)
		if found, err := op.End(t.Context(), "k", []int64{line.Waiters[0].Token / 64}, true); len(found) != 1 || err != nil {
			t.Fatalf("ended %v, %v", found, err)
		}
		select {
		case err := <-got: // it ended with an error, or it stands in line again
			wantClass(t, err, "lost")
		case <-time.After(time.Second):
		}
		wantNil(t, lease.Err())
		released(t, lease)
		empty(t, viewer, soon)
	})
}

// TestSW2_AWaiterThatWasStoppedHasAWholeLeaseOrNone: B is stopped while it waits, and is
// granted meanwhile, or passed.
func TestSW2_AWaiterThatWasStoppedHasAWholeLeaseOrNone(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 2 * time.Second
		b := s.puppet(t, "b")
		for _, stopped := range []time.Duration{ttl / 3, 2 * ttl} {
			lease := must(s.client(t).Mutex("k").Lock(t.Context()))(t)
			name := fmt.Sprint("after ", stopped)
			answer := b.begin(crew.Order{Do: "lock", Lease: name, Keys: []string{"k"}, TTL: ttl})
			waiting(t, s.client(t), "k", 1)
			b.pause()
			released(t, lease)
			time.Sleep(stopped)
			b.resume()
			a := b.wait(answer, soon)
			if a.Class == "unavailable" && stopped > ttl { // none: no renewal of its place was answered
				empty(t, s.client(t), soon)
				continue
			}
			if a.Class != "" {
				t.Errorf("stopped for %s: %s", stopped, a.Text)
				continue
			}
			if left := time.Duration(a.Until - a.At); left < ttl/6 {
				t.Errorf("stopped for %s, and has a lease for %s", stopped, left)
			}
			b.do(crew.Order{Do: "release", Lease: name})
		}
	})
}

// TestSW4_AWaiterStaysInLineBeyondItsWaitingLife.
func TestSW4_AWaiterStaysInLineBeyondItsWaitingLife(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 3 * time.Second
		a, b, viewer := s.client(t), s.client(t), s.client(t)
		lease := must(a.Mutex("k").Lock(t.Context()))(t)
		got := make(chan *hasp.Lease, 1)
		go func() {
			next, err := b.With(hasp.LockOptions{TTL: ttl}).Mutex("k").Lock(t.Context())
			wantNil(t, err)
			got <- next
		}()
		waiting(t, viewer, "k", 1)
		first := must(viewer.Inspect(t.Context(), "k"))(t).Waiters[0].Token
		time.Sleep(3 * ttl)
		if line := must(viewer.Inspect(t.Context(), "k"))(t); line.Waiting != 1 || line.Waiters[0].Token != first {
			t.Errorf("B has lost its place, was %d: %+v", first, line.Waiters)
		}
		released(t, lease)
		released(t, <-got)
	})
}

// TestSW5_NothingIsLeftOfTheDead: holder and waiters are killed; the next one acquires
// when they have expired, and what they left is gone.
func TestSW5_NothingIsLeftOfTheDead(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 4 * time.Second
		viewer := s.client(t)
		var crowd []*puppet
		for i := range 4 {
			p := s.puppet(t, fmt.Sprint("p", i))
			o := crew.Order{Do: "lock", Lease: "x", Keys: []string{"k"}, TTL: ttl}
			if i == 0 {
				p.holds(o)
			} else {
				p.begin(o)
				waiting(t, viewer, "k", i)
			}
			crowd = append(crowd, p)
		}
		for _, p := range crowd {
			p.Kill()
		}
		began := time.Now()
		next := must(s.client(t).With(hasp.LockOptions{TTL: ttl}).Mutex("k").Lock(t.Context()))(t)
		if took := time.Since(began); took > 2*ttl { // one after the other they would live four
			t.Errorf("the next one waited %s", took)
		}
		released(t, next)
		empty(t, viewer, soon)
		if s.redis == nil {
			return // rows of the dead are swept by whoever comes by
		}
		// `last` stays for max(2 x TTL, 10 s), then nothing is left
		vanished(t, s)
	})
}

// lateness are the times from a release to the next one's having the lock.
type lateness []time.Duration

func (l lateness) quantile(q float64) time.Duration {
	slices.Sort(l)
	return l[min(int(q*float64(len(l))), len(l)-1)]
}

// TestLW1_NoReleaseIsMissed: B begins to wait around the time of A's release.
func TestLW1_NoReleaseIsMissed(t *testing.T) {
	apart(t, func(t *testing.T, s *store) {
		ctx := t.Context()
		a, b := s.client(t), s.client(t)
		n := rounds(2000, 20000)
		if s.name != "redis" {
			n /= 4
		}
		var late lateness
		for range n {
			lease := must(a.Mutex("k").Lock(ctx))(t)
			got := make(chan time.Time, 1)
			go func() {
				next, err := b.Mutex("k").Lock(ctx)
				got <- time.Now()
				if err != nil {
					t.Error(err)
					return
				}
				released(t, next)
			}()
			time.Sleep(rand.N(3 * time.Millisecond))
			begin := time.Now()
			released(t, lease)
			at := <-got
			late = append(late, at.Sub(begin))
		}
		t.Logf("p50 %s, p99 %s, most %s", late.quantile(0.5), late.quantile(0.99), late.quantile(1))
		if p90 := late.quantile(0.9); p90 > s.polled(prompt/2) {
			t.Errorf("p90 is %s", p90)
		}
		if most := late.quantile(1); most > soon {
			t.Errorf("a round took %s", most)
		}
	})
}

// pairOf are two clients that want the same, and one that looks on.
type pairOf struct{ a, b, viewer *hasp.Client }

// handOver measures one hand-over of a key from a to b, between whose beginning to wait
// and the release something may happen.
func (h pairOf) handOver(t *testing.T, key string, between func()) time.Duration {
	t.Helper()
	a, b, viewer := h.a, h.b, h.viewer
	lease := must(a.Mutex(key).Lock(t.Context()))(t)
	var got time.Time
	var next sync.WaitGroup
	next.Go(func() {
		lease, err := b.Mutex(key).Lock(t.Context())
		got = time.Now()
		if err != nil {
			t.Error(err)
			return
		}
		released(t, lease)
	})
	waiting(t, viewer, key, 1)
	if between != nil {
		between()
	}
	begin := time.Now()
	released(t, lease)
	next.Wait()
	return got.Sub(begin)
}

// handsOver wants a hand-over to take no longer than a time, in one of some tries.
func (h pairOf) handsOver(t *testing.T, within time.Duration, key string, between func()) {
	t.Helper()
	promptly(t, within, fmt.Sprintf("%.20q: a hand-over", key), func() time.Duration { return h.handOver(t, key, between) })
}

// TestLW2_ALostPushConnectionCostsLittle: B's push connection is cut while it waits.
func TestLW2_ALostPushConnectionCostsLittle(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		pairOf{s.client(t), s.client(t), s.client(t)}.handsOver(t, 2*time.Second, "k", func() {
			if s.redis != nil {
				_ = must(s.redis.Command(t.Context(), "CLIENT", "KILL", "TYPE", "pubsub"))(t)
			} else {
				wantNil(t, s.disconnect(t.Context()))
			}
			time.Sleep(50 * time.Millisecond)
		})
	})
}

// strangeKeys are keys that have made trouble somewhere.
func strangeKeys() []string {
	return []string{
		"a", "{a}:b", "a:{}", "{}a", "}a{", "{{a}}", "a}", "{", "}", "{}", "%s", "%", "*", "a?b[c]^\\", "ключ", "🔒", " a ", "a\nb", "0", "641",
		strings.Repeat("x", 300), strings.Repeat("k", 512),
	}
}

// TestLW4_StrangeKeysAreWokenByMessages.
func TestLW4_StrangeKeysAreWokenByMessages(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		pair := pairOf{s.client(t), s.client(t), s.client(t)}
		for _, key := range strangeKeys() {
			pair.handsOver(t, prompt, key, nil) // a poll would come within the second or two
		}
	})
}

// TestLW5_TwoHundredWaitersOfOneClient: each is woken by its own key's release, and they
// need no more connections than one would.
func TestLW5_TwoHundredWaitersOfOneClient(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		n := 200
		if s.name == "sqlite" || s.name == "mysql" { // the renewal of each is statements of its own
			n = slower(50, 10)
		}
		a, b, viewer := s.client(t), s.client(t), s.client(t)
		leases := make([]*hasp.Lease, n)
		got := make([]chan *hasp.Lease, n)
		for i := range n {
			key := fmt.Sprint("k", i)
			leases[i] = must(a.Mutex(key).Lock(t.Context()))(t)
			got[i] = make(chan *hasp.Lease, 1)
			go func() {
				next, err := b.Mutex(key).Lock(t.Context())
				wantNil(t, err)
				got[i] <- next
			}()
		}
		waiting(t, viewer, "k0", 1)
		for i := range n {
			waiting(t, viewer, fmt.Sprint("k", i), 1)
		}
		if s.redis != nil {
			n := must(s.redis.Info(t.Context(), "clients", "connected_clients"))(t)
			t.Log("connections:", n)
			if len(n) > 2 {
				t.Errorf("%s connections for three clients", n)
			}
		}
		var late lateness
		for _, i := range rand.Perm(n) {
			begin := time.Now()
			released(t, leases[i])
			select {
			case next := <-got[i]:
				late = append(late, time.Since(begin))
				released(t, next)
			case <-time.After(soon):
				t.Fatalf("key %d: not woken", i)
			}
		}
		if p50 := late.quantile(0.5); p50 > prompt {
			t.Errorf("half of them were woken after more than %s", p50)
		}
		for _, c := range got {
			if len(c) > 0 {
				t.Error("a waiter was woken twice")
			}
		}
	})
}

// TestTH2_EightProcessesOnce: each enters an empty critical section once.
func TestTH2_EightProcessesOnce(t *testing.T) {
	apart(t, func(t *testing.T, s *store) {
		var crowd []*puppet
		for i := range 8 {
			crowd = append(crowd, s.puppet(t, fmt.Sprint("p", i)))
		}
		promptly(t, 2*time.Second, "eight empty sections", func() time.Duration {
			begin := time.Now()
			var all sync.WaitGroup
			for _, p := range crowd {
				all.Go(func() {
					p.holds(crew.Order{Lease: "x", Keys: []string{"k"}})
					p.do(crew.Order{Do: "release", Lease: "x"})
				})
			}
			all.Wait()
			return time.Since(begin)
		})
	})
}

// TestTH4_AGreedyLoopDoesNotKeepAWaiterOut.
func TestTH4_AGreedyLoopDoesNotKeepAWaiterOut(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		greedy, other := s.client(t), s.client(t)
		stop := make(chan struct{})
		var looping sync.WaitGroup
		looping.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				lease, err := greedy.Mutex("k").Lock(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				wantNil(t, lease.Release(t.Context()))
			}
		})
		var late lateness
		for range rounds(30, 300) {
			begin := time.Now()
			released(t, must(other.Mutex("k").Lock(t.Context()))(t))
			late = append(late, time.Since(begin))
		}
		if p50 := late.quantile(0.5); p50 > 2*time.Second {
			t.Errorf("half of the times the waiter came in after more than %s", p50)
		}
		close(stop)
		looping.Wait()
	})
}
