package integration_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/proxy"
)

// TestRS1_OneLostRenewalIsTriedAgainInTime: the lease goes on, and nobody is told of
// anything.
func TestRS1_OneLostRenewalIsTriedAgainInTime(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 6 * time.Second
		for _, fault := range []proxy.Fault{proxy.ResetRequest, proxy.DropReply} {
			for _, retries := range []string{"retries=-1", "retries=3"} {
				far, way := s.with(retries).behind(t)
				c := far.client(t).With(hasp.LockOptions{TTL: ttl})
				lease := must(c.Mutex("renewed").Lock(t.Context()))(t)
				before := lease.TrustedUntil()
				happened := way.Spoil(proxy.Rule{Fault: fault, Match: s.renewal("renewed")})
				select {
				case <-happened:
				case <-lease.Done():
					t.Fatal("no renewal within the TTL")
				}
				eventually(t, soon, "the renewal is tried again", func() bool { return lease.TrustedUntil().After(before) || lease.Err() != nil })
				released(t, lease)
			}
		}
	})
}

// TestRS2_ASecondHoldIsRenewedAsTheFirst: the renewal of a lost lease ended with it; the
// next lease on the same key has its own.
func TestRS2_ASecondHoldIsRenewedAsTheFirst(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 6 * time.Second
		far, way := s.behind(t)
		c := far.client(t).With(hasp.LockOptions{TTL: ttl})
		lease := must(c.With(hasp.LockOptions{TTL: time.Second}).Mutex("k").Lock(t.Context()))(t)
		again := way.Refuse()
		lost(t, lease, soon)
		wantClass(t, lease.Release(t.Context()), "lost")
		again()
		var second *hasp.Lease
		eventually(t, soon, "the client works again", func() (ok bool) {
			var err error
			second, err = c.Mutex("k").Lock(t.Context())
			return err == nil
		})
		staysRenewed(t, s.client(t), "k", ttl, 2*ttl)
		wantNil(t, second.Err())
		released(t, second)
	})
}

// staysRenewed samples what the store says of a holder's rest: never less than a sixth of
// the TTL, where two thirds are the rule and the rest is what the machine may be late, and
// never more than the TTL.
func staysRenewed(t *testing.T, viewer *hasp.Client, key string, ttl, long time.Duration) {
	t.Helper()
	for end := time.Now().Add(long); time.Now().Before(end); time.Sleep(ttl / 30) {
		if now := rest(t, viewer, key); now < ttl/6 || now > ttl+time.Millisecond {
			t.Errorf("the rest of %q is %s at a TTL of %s", key, now, ttl)
		}
	}
}

// TestRS8_ARenewalSetsAndDoesNotAdd.
func TestRS8_ARenewalSetsAndDoesNotAdd(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 6 * time.Second
		lease := must(s.client(t).With(hasp.LockOptions{TTL: ttl}).Mutex("k").Lock(t.Context()))(t)
		staysRenewed(t, s.client(t), "k", ttl, 2*ttl)
		released(t, lease)
	})
}

// TestRS4_ABusyProcessorDoesNotSilenceTheRenewal: the work keeps the only processor for
// three TTLs; either the lease goes on, or it says that it is lost.
func TestRS4_ABusyProcessorDoesNotSilenceTheRenewal(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = time.Second
		p := s.puppet(t, "busy", "GOMAXPROCS=1")
		p.holds(crew.Order{Lease: "x", Keys: []string{"k"}, TTL: ttl})
		p.do(crew.Order{Do: "spin", For: 3 * ttl})
		look := p.do(crew.Order{Do: "look", Lease: "x"})
		held := rest(t, s.client(t), "k") > 0
		if (look.Class == "") != held {
			t.Errorf("the lease says %q, and the store that it is held: %t", look.Class, held)
		}
		p.do(crew.Order{Do: "release", Lease: "x"})
	})
}

// TestRS5_AThousandLeasesOnASlowNetwork: none is lost, on few connections.
func TestRS5_AThousandLeasesOnASlowNetwork(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		ttl, n := 6*time.Second, 1000
		if s.sql != nil {
			ttl *= 2
			n = rounds(100, 1000) // a database takes the first step of each for itself
		}
		far, way := s.behind(t)
		c := far.client(t).With(hasp.LockOptions{TTL: ttl})
		var all sync.WaitGroup
		leases := make([]*hasp.Lease, n)
		for i := range n {
			all.Go(func() {
				lease, err := c.Mutex(fmt.Sprint("k", i)).Lock(t.Context())
				if err != nil {
					t.Error(err)
				}
				leases[i] = lease
			})
		}
		if all.Wait(); t.Failed() {
			return
		}
		way.Slow(100 * time.Millisecond) // each way
		before := way.Made()
		time.Sleep(max(time.Duration(rounds(8, 60))*time.Second, 3*ttl/2))
		for _, lease := range leases {
			if lease.Err() != nil {
				t.Fatalf("%s: %v", lease, lease.Err())
			}
		}
		if made, open := way.Made()-before, len(way.Conns()); made > 4 || open > 12 {
			t.Errorf("%d connections were made for renewals, %d are open", made, open)
		}
		way.Slow(0)
		for _, lease := range leases {
			all.Go(func() { releasedAtLast(t, lease) })
		}
		all.Wait()
	})
}

// releasedAtLast is released for many at once, of which a busy machine may not answer each
// in time.
func releasedAtLast(t *testing.T, l *hasp.Lease) {
	t.Helper()
	var err error
	for range 10 {
		if err = l.Release(t.Context()); !errors.Is(err, hasp.ErrUnavailable) {
			break
		}
	}
	wantNil(t, err)
}

// TestRR1_NothingIsRenewedAfterItsRelease.
func TestRR1_NothingIsRenewedAfterItsRelease(t *testing.T) {
	alone(t, func(t *testing.T, s *store) {
		const hands, ttl = 16, time.Second
		c := s.client(t).With(hasp.LockOptions{TTL: ttl})
		wantNil(t, c.Ping(t.Context()))
		released(t, must(c.Mutex("warm").Lock(t.Context()))(t))
		before := runtime.NumGoroutine()
		each := rounds(20000, 20000) / hands
		if s.name != "redis" {
			each /= 8
		}
		var all sync.WaitGroup
		for h := range hands {
			all.Go(func() {
				for i := range each {
					lease, err := c.Mutex(fmt.Sprintf("%d.%d", h, i)).Lock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					wantNil(t, lease.Release(t.Context()))
				}
			})
		}
		all.Wait()
		empty(t, s.client(t), brief)
		commands := commandsOf(t, s)
		time.Sleep(2 * ttl)
		if s.redis != nil {
			if more := commandsOf(t, s) - commands; more > 8 { // of the viewer, and pings
				t.Errorf("%d commands in two TTLs without a lease", more)
			}
		}
		eventually(t, soon, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before+8 })
	})
}

// commandsOf is how many commands a Redis server has done for clients.
func commandsOf(t *testing.T, s *store) int {
	t.Helper()
	if s.redis == nil {
		return 0
	}
	var n int
	_ = must(fmt.Sscan(must(s.redis.Info(t.Context(), "stats", "total_commands_processed"))(t), &n))(t)
	return n
}

// TestRR2_CL1_ACancelledCallLeavesNothing: calls on free and on busy keys end at a random
// moment, and the next client is not kept out by what they leave.
func TestRR2_CL1_ACancelledCallLeavesNothing(t *testing.T) {
	apart(t, func(t *testing.T, s *store) {
		a, b, viewer := s.client(t), s.client(t), s.client(t)
		busy := must(b.Mutex("busy").Lock(t.Context()))(t)
		var late lateness
		n := rounds(2000, 5000)
		if s.name != "redis" {
			n /= 4
		}
		for range n {
			for _, key := range []string{"free", "busy"} {
				ctx, stop := context.WithTimeout(t.Context(), rand.N(3*time.Millisecond))
				lease, err := a.Mutex(key).Lock(ctx)
				stop()
				if (lease == nil) == (err == nil) {
					t.Fatalf("lease %v, error %v", lease, err)
				}
				if err == nil {
					released(t, lease)
				}
			}
			begin := time.Now()
			next := must(b.Mutex("free").Lock(t.Context()))(t)
			late = append(late, time.Since(begin))
			released(t, next)
		}
		t.Logf("p50 %s, p99 %s, most %s", late.quantile(0.5), late.quantile(0.99), late.quantile(1))
		if p90 := late.quantile(0.9); p90 > s.polled(prompt/2) {
			t.Errorf("the next client waited %s", p90)
		}
		eventually(t, soon, "nobody waits any more", func() bool {
			line, err := viewer.Inspect(t.Context(), "busy")
			return err == nil && line.Waiting == 0
		})
		wantNil(t, busy.Err())
		released(t, busy)
		empty(t, viewer, brief)
	})
}

// TestCL4_ARaceOfCancelAndGrant: never a lease and an error, never neither.
func TestCL4_ARaceOfCancelAndGrant(t *testing.T) {
	apart(t, func(t *testing.T, s *store) {
		a, b := s.client(t), s.client(t)
		n := rounds(2000, 20000)
		if s.name != "redis" {
			n /= 4
		}
		won := 0
		for range n {
			holder := must(b.Mutex("k").Lock(t.Context()))(t)
			ctx, cancel := context.WithCancel(t.Context())
			released1 := make(chan struct{})
			go func() {
				defer close(released1)
				time.Sleep(rand.N(time.Millisecond))
				wantNil(t, holder.Release(t.Context()))
			}()
			go func() {
				time.Sleep(rand.N(slower(3*time.Millisecond, 10*time.Millisecond)))
				cancel()
			}()
			lease, err := a.Mutex("k").Lock(ctx)
			if (lease == nil) == (err == nil) {
				t.Fatalf("lease %v, error %v", lease, err)
			}
			if err == nil {
				won++
				wantNil(t, lease.Err())
				released(t, lease)
			} else if !errors.Is(err, context.Canceled) {
				t.Fatalf("error %v, want one that says it was cancelled", err)
			}
			<-released1
			cancel()
		}
		t.Logf("%d of %d were granted first", won, n)
	})
}

// TestCL2_ReleaseUsesNoDeadContext.
func TestCL2_ReleaseUsesNoDeadContext(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		ctx, cancel := context.WithCancel(t.Context())
		lease := must(s.client(t).Mutex("k").Lock(ctx))(t)
		cancel()
		wantNil(t, lease.Release(ctx))
		released(t, must(s.client(t).Mutex("k").TryLock(t.Context()))(t))
	})
}

// TestCL5_ADeadlineOnABusyKeyIsNotADeadStore.
func TestCL5_ADeadlineOnABusyKeyIsNotADeadStore(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		holder := must(s.client(t).Mutex("k").Lock(t.Context()))(t)
		c := s.client(t)
		ctx, stop := context.WithTimeout(t.Context(), brief)
		defer stop()
		_, err := c.Mutex("k").Lock(ctx)
		wantClass(t, err, "held")
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v does not say that the deadline passed", err)
		}
		released(t, holder)
		if s.server == nil {
			return
		}
		wantNil(t, s.server.Pause())
		ctx, stop = context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		_, err = c.Mutex("k").Lock(ctx)
		wantClass(t, err, "unavailable")
		wantNil(t, s.server.Resume())
	})
}

// TestRR5_ACloseIsTheEnd: after Close has returned nothing more is sent.
func TestRR5_ACloseIsTheEnd(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = time.Second
		far, way := s.behind(t)
		c, handle := far.open(t)
		for i := range 10 {
			_ = must(c.With(hasp.LockOptions{TTL: ttl}).Mutex(fmt.Sprint("k", i)).Lock(t.Context()))(t)
		}
		ctx, stop := context.WithTimeout(t.Context(), ttl/2)
		defer stop()
		if err := c.Close(ctx); err == nil {
			t.Error("Close says nothing of ten leases that are held")
		}
		happened := way.Spoil(proxy.Rule{Fault: proxy.DropReply, Match: s.renewal("k")})
		select {
		case <-happened:
			t.Error("a command was sent after Close")
		case <-time.After(ttl):
		}
		wantNil(t, handle.Close())
		empty(t, s.client(t), soon)
	})
}

// TestTR4_ANetworkSlowerThanTheTTLGivesNoDeadLease.
func TestTR4_ANetworkSlowerThanTheTTLGivesNoDeadLease(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 400 * time.Millisecond
		far, way := s.with("timeout=10s").behind(t)
		c := far.client(t).With(hasp.LockOptions{TTL: ttl})
		wantNil(t, c.Ping(t.Context()))
		way.Slow(3 * ttl / 4)
		ctx, stop := context.WithTimeout(t.Context(), 3*time.Second)
		defer stop()
		lease, err := c.Mutex("k").Lock(ctx)
		if err == nil {
			if !time.Now().Before(lease.TrustedUntil()) {
				t.Errorf("a lease that is dead already: %s", lease)
			}
			t.Errorf("a lease over a network slower than its TTL: %s", lease)
		}
		way.Slow(0)
		empty(t, s.client(t), soon)
	})
}

// TestTR5_AWaiterIsGrantedAtTheRelease, and not waiting is one real attempt.
func TestTR5_AWaiterIsGrantedAtTheRelease(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 3 * time.Second
		a, b := s.client(t).With(hasp.LockOptions{TTL: ttl}), s.client(t).With(hasp.LockOptions{TTL: ttl, Wait: time.Minute})
		pairOf{a, b, s.client(t)}.handsOver(t, prompt, "k", func() { time.Sleep(3 * ttl) })
		for _, keys := range [][]string{{"free"}, {"x", "y", "z"}} {
			lease, err := a.With(hasp.LockOptions{Wait: hasp.NoWait}).Mutex(keys[0], keys[1:]...).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			released(t, lease)
		}
	})
}

// TestTR7_ExtendSetsAndDoesNotAdd.
func TestTR7_ExtendSetsAndDoesNotAdd(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = time.Minute
		viewer := s.client(t)
		lease := must(s.client(t).With(hasp.LockOptions{TTL: ttl, NoRenew: true}).Mutex("k").Lock(t.Context()))(t)
		for _, d := range []time.Duration{ttl, ttl, time.Second} {
			wantNil(t, lease.Extend(t.Context(), d))
			if now := rest(t, viewer, "k"); now > ttl+2*time.Millisecond || now < ttl/2 {
				t.Errorf("after Extend(%s) the rest is %s", d, now)
			}
		}
		released(t, lease)
	})
}
