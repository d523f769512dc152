package integration_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/proxy"
)

// TestLL1_ASilentPartitionIsToldBeforeTheNextGrant: a hundred holders fall silent, each
// at a moment of its own; each is told before the next one in its line is granted, with
// no error from any socket.
func TestLL1_ASilentPartitionIsToldBeforeTheNextGrant(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		clients, each := 10, 10
		if s.sql != nil { // each of these waits in a line of its own
			clients, each = 4, 5
		}
		ttl := s.unhurried(time.Second)
		next := s.client(t).With(hasp.LockOptions{TTL: ttl})
		var all sync.WaitGroup
		for c := range clients {
			far, way := s.behind(t)
			a := far.client(t).With(hasp.LockOptions{TTL: ttl})
			var holding sync.WaitGroup
			holding.Add(each)
			for i := range each {
				key := fmt.Sprintf("%d.%d", c, i)
				all.Go(func() {
					lease, err := locked(t, a.Mutex(key))
					holding.Done()
					if err != nil {
						t.Error(err)
						return
					}
					after, err := locked(t, next.Mutex(key))
					granted := time.Now()
					if err != nil {
						t.Error(err)
						return
					}
					if until := lease.TrustedUntil(); !until.Before(granted) {
						t.Errorf("%s: granted %s before the holder trusts its lease no more", key, until.Sub(granted))
					}
					<-lease.Done()
					if after.Token() <= lease.Token() {
						t.Errorf("%s: token %d after %d", key, after.Token(), lease.Token())
					}
					wantClass(t, lease.Err(), "lost")
					wantNil(t, after.Release(t.Context()))
				})
			}
			all.Go(func() {
				holding.Wait()
				time.Sleep(rand.N(ttl)) // at any point between two renewals
				way.Hold(proxy.Both)
			})
		}
		all.Wait()
	})
}

// TestLL2_ADeadServerIsALoss: the server dies and stays away; the holder is told within
// its TTL, and the server's return does not make it a holder again.
func TestLL2_ADeadServerIsALoss(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 3 * time.Second
		c := s.client(t).With(hasp.LockOptions{TTL: ttl})
		lease := must(c.Mutex("k").Lock(t.Context()))(t)
		s.server.Kill()
		dead := time.Now()
		if until := lease.TrustedUntil(); until.After(dead.Add(ttl)) {
			t.Errorf("trusted for %s after the server's death, TTL %s", until.Sub(dead), ttl)
		}
		if at := lost(t, lease, soon); at.After(dead.Add(2 * ttl)) {
			t.Errorf("told %s after the server's death, TTL %s", at.Sub(dead), ttl)
		}
		wantNil(t, s.server.Start())
		eventually(t, soon, "the client works again", func() bool {
			again, err := c.Mutex("other").TryLock(t.Context())
			return err == nil && again.Release(t.Context()) == nil
		})
		wantClass(t, lease.Err(), "lost")
		wantClass(t, lease.Release(t.Context()), "lost")
	})
}

// TestLL5_ALateReplyProlongsNothing: a renewal's reply says success, but comes when the
// lease could have expired: its trust counts from the sending.
func TestLL5_ALateReplyProlongsNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 3 * time.Second
		far, way := s.behind(t)
		c := far.client(t).With(hasp.LockOptions{TTL: ttl})
		lease := must(c.Mutex("late").Lock(t.Context()))(t)
		trusted := lease.TrustedUntil()
		renewed := way.Spoil(proxy.Rule{Fault: proxy.DelayReply, Match: s.renewal("late"), Delay: 3 * ttl})
		<-renewed
		way.Hold(proxy.ToServer) // and no other renewal gets through
		if at := lost(t, lease, soon); at.After(trusted.Add(ttl)) {
			t.Errorf("told %s after the trust of the last answered renewal", at.Sub(trusted))
		}
		time.Sleep(3 * ttl) // the late reply arrives
		wantClass(t, lease.Err(), "lost")
	})
}

// TestLL8_AnOldRecordIsNoLease: a client that was stopped beyond its expiry finds its
// own record where nobody has removed it, and does not take it for a lease.
func TestLL8_AnOldRecordIsNoLease(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 500 * time.Millisecond
		a := s.puppet(t, "a")
		first := a.holds(crew.Order{Lease: "x", Keys: []string{"k"}, TTL: ttl})
		a.pause()
		time.Sleep(2 * ttl)
		a.resume()
		if news := a.wait(a.Over("x"), soon); news.Class != "lost" {
			t.Errorf("told %q, want lost", news.Class)
		}
		if again := a.holds(crew.Order{Lease: "y", Keys: []string{"k"}, TTL: ttl}); again.Token <= first.Token {
			t.Errorf("token %d after %d", again.Token, first.Token)
		}
	})
}

// TestRS10_ALostLeaseIsReleasedAtOnce: also on a silent connection.
func TestRS10_ALostLeaseIsReleasedAtOnce(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 500 * time.Millisecond
		far, way := s.behind(t)
		var events events
		c := far.client(t, hasp.Options{Observe: events.add}).With(hasp.LockOptions{TTL: ttl})
		lease := must(c.Mutex("k").Lock(t.Context()))(t)
		way.Hold(proxy.Both)
		lost(t, lease, soon)
		promptly(t, prompt, "a release", func() time.Duration {
			begin := time.Now()
			wantClass(t, lease.Release(t.Context()), "lost")
			return time.Since(begin)
		})
		eventually(t, soon, "the observer is told", func() bool { return events.count(hasp.EventLost) > 0 })
		if n := events.count(hasp.EventLost); n != 1 {
			t.Errorf("%d events of one loss", n)
		}
	})
}

// TestFR1_AnOverdueReleaseFreesNobodyElse: A works for longer than its lease lives.
func TestFR1_AnOverdueReleaseFreesNobodyElse(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		a, b, viewer := s.client(t), s.client(t), s.client(t)
		lease := must(a.With(hasp.LockOptions{TTL: time.Second, NoRenew: true}).Mutex("k").Lock(t.Context()))(t)
		next := must(b.With(hasp.LockOptions{TTL: time.Minute, NoRenew: true}).Mutex("k").Lock(t.Context()))(t)
		before := rest(t, viewer, "k")
		wantClass(t, lease.Release(t.Context()), "lost")
		if after := rest(t, viewer, "k"); after == 0 || after > before {
			t.Errorf("B's rest was %s, and %s after A's release", before, after)
		}
		if _, err := viewer.Mutex("k").TryLock(t.Context()); err == nil {
			t.Error("C got the lock of B")
		}
		released(t, next)
	})
}

// TestFR2_ALateRenewalProlongsNobodyElse: A is stopped, B is granted, A goes on and its
// renewal fires.
func TestFR2_ALateRenewalProlongsNobodyElse(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 700 * time.Millisecond
		viewer := s.client(t)
		a := s.puppet(t, "a")
		a.holds(crew.Order{Lease: "x", Keys: []string{"k"}, TTL: ttl})
		a.pause()
		b := must(s.client(t).With(hasp.LockOptions{TTL: time.Minute, NoRenew: true}).Mutex("k").Lock(t.Context()))(t)
		before := rest(t, viewer, "k")
		a.resume()
		a.wait(a.Over("x"), soon)
		for end := time.Now().Add(ttl); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			now := rest(t, viewer, "k")
			if now > before || now == 0 {
				t.Fatalf("B's rest went from %s to %s", before, now)
			}
			before = now
		}
		released(t, b)
	})
}

// TestPZ1_AStoppedWriterIsFenced: A gets a token, is stopped, B writes with a later one;
// what A writes then hits no row.
func TestPZ1_AStoppedWriterIsFenced(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		ttl, n := 300*time.Millisecond, rounds(10, 200)
		if s.sql != nil {
			ttl, n = s.unhurried(ttl), rounds(3, 200)
		}
		file := guarded(t)
		a, b := s.puppet(t, "a"), s.puppet(t, "b")
		for round := range n {
			a.holds(crew.Order{Lease: "x", Keys: []string{"k"}, TTL: ttl})
			time.Sleep(rand.N(ttl / 3))
			a.pause()
			b.holds(crew.Order{Lease: "y", Keys: []string{"k"}, TTL: ttl})
			if w := b.do(crew.Order{Do: "write", Lease: "y", File: file, Text: "b"}); w.Rows != 1 {
				t.Fatalf("round %d: B's write: %+v", round, w)
			}
			a.resume()
			if w := a.do(crew.Order{Do: "write", Lease: "x", File: file, Text: "a"}); w.Rows != 0 || w.Class != "" {
				t.Fatalf("round %d: A's write: %+v", round, w)
			}
			a.do(crew.Order{Do: "release", Lease: "x"})
			b.do(crew.Order{Do: "release", Lease: "y"})
			a.wait(a.Over("x"), soon)
			b.wait(b.Over("y"), soon)
		}
	})
}

// TestPZ5_AStoppedServerGivesNoSecondHolder: the server stops for two TTLs while A holds
// and B waits.
func TestPZ5_AStoppedServerGivesNoSecondHolder(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = time.Second
		a, b := s.client(t).With(hasp.LockOptions{TTL: ttl}), s.client(t).With(hasp.LockOptions{TTL: ttl})
		lease := must(a.Mutex("k").Lock(t.Context()))(t)
		var granted time.Time
		var next sync.WaitGroup
		next.Go(func() {
			lease, err := b.Mutex("k").Lock(t.Context())
			granted = time.Now()
			if err != nil {
				t.Error(err)
				return
			}
			released(t, lease)
		})
		waiting(t, s.client(t), "k", 1)
		wantNil(t, s.server.Pause())
		told := lost(t, lease, soon)
		time.Sleep(ttl)
		wantNil(t, s.server.Resume())
		if next.Wait(); !told.Before(granted) {
			t.Error("B was granted before A was told")
		}
	})
}
