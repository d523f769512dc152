package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/proxy"
	"github.com/hasp-dev/hasp/integration/servers"
)

// TestAM1_AJoinWhoseReplyIsLost is found again, or cleaned up; it is never taken for
// somebody else's.
func TestAM1_AJoinWhoseReplyIsLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		for _, retries := range []string{"retries=-1", "retries=3"} {
			for _, fault := range []proxy.Fault{proxy.DropReply, proxy.ResetRequest, proxy.SwallowReply} {
				for _, patience := range []time.Duration{hasp.NoWait, time.Minute} {
					far, way := s.with(retries + "&timeout=500ms").behind(t)
					c := far.client(t).With(hasp.LockOptions{Wait: patience})
					wantNil(t, c.Ping(t.Context()))
					happened := way.Spoil(proxy.Rule{Fault: fault, Match: s.step("ambiguous")})
					lease, err := c.Mutex("ambiguous").Lock(t.Context())
					<-happened
					if err != nil {
						wantClass(t, err, "unavailable")
						t.Logf("%s, fault %d: %v", retries, fault, err)
					} else {
						released(t, lease)
					}
					empty(t, s.client(t), brief)
				}
			}
		}
	})
}

// TestAM2_AReleaseWhoseReplyIsLost is definite in the end, and the key is free.
func TestAM2_AReleaseWhoseReplyIsLost(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		for _, retries := range []string{"retries=-1", "retries=3"} {
			for _, fault := range []proxy.Fault{proxy.DropReply, proxy.ResetRequest, proxy.SwallowReply} {
				far, way := s.with(retries + "&timeout=500ms").behind(t)
				c := far.client(t).With(hasp.LockOptions{TTL: 20 * time.Second})
				lease := must(c.Mutex("ambiguous").Lock(t.Context()))(t)
				happened := way.Spoil(proxy.Rule{Fault: fault, Match: s.step("ambiguous")})
				first := lease.Release(t.Context())
				<-happened
				if first != nil {
					wantClass(t, first, "unavailable")
				}
				wantNil(t, lease.Release(t.Context()))
				released(t, must(s.client(t).Mutex("ambiguous").TryLock(t.Context()))(t))
			}
		}
	})
}

// TestAM4_AServerThatPausesItsClients: the calls are repeated by the client library, and
// in the end there is one lease, which one Release frees.
func TestAM4_AServerThatPausesItsClients(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		c := s.with("timeout=1s&retries=3").client(t)
		wantNil(t, c.Ping(t.Context()))
		if s.redis != nil {
			_ = must(s.redis.Command(t.Context(), "CLIENT", "PAUSE", "3500", "ALL"))(t)
		} else {
			wantNil(t, s.server.Pause())
			resume := time.AfterFunc(3500*time.Millisecond, func() { _ = s.server.Resume() })
			defer resume.Stop()
		}
		var lease *hasp.Lease
		eventually(t, 2*soon, "the lock is acquired", func() bool {
			var err error
			lease, err = c.Mutex("k").Lock(t.Context())
			return err == nil
		})
		released(t, lease)
		released(t, must(s.client(t).Mutex("k").TryLock(t.Context()))(t))
		empty(t, s.client(t), brief)
	})
}

// TestBH1_ASilentServerKeepsNobodyLonger: it accepts and never answers. Calls end with
// their contexts, and what does no I/O does none.
func TestBH1_ASilentServerKeepsNobodyLonger(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		for _, params := range []string{"", "retries=3&timeout=30s"} {
			s := s.with("db=0&" + params)
			c := s.client(t).With(hasp.LockOptions{TTL: 5 * time.Minute})
			lease := must(c.Mutex("held").Lock(t.Context()))(t)
			wantNil(t, s.server.Pause())
			within := func(what string, limit time.Duration, call func(ctx context.Context) error) {
				t.Helper()
				promptly(t, limit+prompt, what, func() time.Duration {
					ctx, stop := context.WithTimeout(t.Context(), limit)
					defer stop()
					begin := time.Now()
					wantClass(t, call(ctx), "unavailable")
					return time.Since(begin)
				})
			}
			const d = 300 * time.Millisecond
			within("TryLock", d, func(ctx context.Context) error { _, err := c.Mutex("k").TryLock(ctx); return err })
			within("Lock", d, func(ctx context.Context) error { _, err := c.Mutex("k").Lock(ctx); return err })
			within("Extend", d, func(ctx context.Context) error { return lease.Extend(ctx, time.Minute) })
			within("Inspect", d, func(ctx context.Context) error { _, err := c.Inspect(ctx, "k"); return err })
			within("Ping", d, c.Ping)
			promptly(t, prompt/4, "looking at a lease", func() time.Duration {
				begin := time.Now()
				_, _, _ = lease.Err(), lease.TrustedUntil(), lease.Done()
				return time.Since(begin)
			})
			within("Release", 5*time.Second, func(ctx context.Context) error { return lease.Release(ctx) })
			wantNil(t, s.server.Resume())
			empty(t, s.client(t), soon)
		}
	})
}

// TestBH2_AServerThatComesUpLater: nothing is half done meanwhile.
func TestBH2_AServerThatComesUpLater(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		s.server.Kill()
		c := s.client(t)
		ctx, stop := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer stop()
		wantClass(t, c.Ping(ctx), "unavailable")
		_, err := c.Mutex("k").TryLock(t.Context())
		wantClass(t, err, "unavailable")
		wantNil(t, s.server.Start())
		released(t, must(c.Mutex("k").Lock(t.Context()))(t))
	})
}

// TestBH4_ShortPausesLoseNothing: the server stops for a third of a TTL, again and again.
func TestBH4_ShortPausesLoseNothing(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 6 * time.Second
		lease := must(s.client(t).With(hasp.LockOptions{TTL: ttl}).Mutex("k").Lock(t.Context()))(t)
		for range rounds(3, 20) {
			wantNil(t, s.server.Pause())
			time.Sleep(ttl / 3)
			wantNil(t, s.server.Resume())
			time.Sleep(ttl / 2)
			if lease.Err() != nil {
				t.Fatal(lease.Err())
			}
		}
		released(t, lease)
	})
}

// TestTM4_AServerThatWasAwayForTwoTTLs: the same client works again, without a restart.
func TestTM4_AServerThatWasAwayForTwoTTLs(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 500 * time.Millisecond
		c := s.client(t).With(hasp.LockOptions{TTL: ttl})
		lease := must(c.Mutex("k").Lock(t.Context()))(t)
		s.server.Kill()
		time.Sleep(2 * ttl)
		wantNil(t, s.server.Start())
		wantClass(t, lease.Release(t.Context()), "lost")
		next := must(c.Mutex("k").Lock(t.Context()))(t)
		if next.Token() <= lease.Token() {
			t.Errorf("token %d after %d", next.Token(), lease.Token())
		}
		released(t, next)
	})
}

// TestCP5_AllConnectionsAreKilledBetweenLockAndRelease.
func TestCP5_AllConnectionsAreKilledBetweenLockAndRelease(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const n = 200
		c := s.with("retries=-1").client(t)
		leases := make([]*hasp.Lease, n)
		for i := range n {
			leases[i] = must(c.Mutex(fmt.Sprint("k", i)).Lock(t.Context()))(t)
		}
		wantNil(t, s.disconnect(t.Context()))
		var all sync.WaitGroup
		for _, lease := range leases {
			all.Go(func() { released(t, lease) })
		}
		all.Wait()
		empty(t, s.client(t), brief)
	})
}

// TestSL2_AServerThatForgot: after a wipe, and after a restart without data, the holder
// is told within a renewal interval, and tokens go on rising, also after a burst.
func TestSL2_AServerThatForgot(t *testing.T) {
	eachServer(t, func(t *testing.T, s *store) {
		const ttl = 9 * time.Second
		forget := map[string]func(){"wipe": func() { wantNil(t, s.wipe(t.Context())) }}
		burst := rounds(1000, 1000) / 10
		if s.redis != nil {
			forget["restart"] = func() {
				s.redis.Kill()
				wantNil(t, s.redis.Start())
			}
		} else {
			burst = max(burst/20, 2) // a database does fewer a second
		}
		for name, wipe := range forget {
			a, b := s.client(t).With(hasp.LockOptions{TTL: ttl}), s.client(t)
			var most int64
			var mu sync.Mutex
			var all sync.WaitGroup
			for range 50 {
				all.Go(func() {
					for range burst {
						lease, err := a.Semaphore("burst", 100).Acquire(t.Context(), 1)
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						most = max(most, lease.Token())
						mu.Unlock()
						wantNil(t, lease.Release(t.Context()))
					}
				})
			}
			all.Wait()
			lease := must(a.Mutex("k").Lock(t.Context()))(t)
			trusted := lease.TrustedUntil()
			wipe()
			notices(t, lease, trusted)
			for key, before := range map[string]int64{"k": lease.Token(), "burst": most} {
				next := must(b.Mutex(key).Lock(t.Context()))(t)
				if next.Token() <= before {
					t.Errorf("%s: token %d of %q after %d", name, next.Token(), key, before)
				}
				released(t, next)
			}
		}
	})
}

// TestSL1_AFailoverForgets: the replica never got the lock and is promoted. The holder is
// told, and later tokens are larger.
func TestSL1_AFailoverForgets(t *testing.T) {
	t.Parallel()
	const ttl = 3 * time.Second
	pair := must(servers.StartPair(servers.RedisOptions{}))(t)
	t.Cleanup(func() { wantNil(t, pair.Close()) })
	way := must(proxy.New(pair.Primary.Addr))(t)
	t.Cleanup(func() { wantNil(t, way.Close()) })
	s := &store{name: "redis", addr: "redis://" + way.Addr(), redis: pair.Primary}
	c := s.client(t).With(hasp.LockOptions{TTL: ttl})
	careful := s.with("replicas=1").client(t).With(hasp.LockOptions{TTL: ttl})
	released(t, must(careful.Mutex("careful").Lock(t.Context()))(t))
	wantNil(t, pair.CutOff())
	_, err := careful.Mutex("careful").TryLock(t.Context())
	wantClass(t, err, "unavailable")
	empty(t, c, soon)
	lease := must(c.Mutex("k").Lock(t.Context()))(t)
	pair.Primary.Kill()
	wantNil(t, pair.Promote())
	wantNil(t, way.Redirect(pair.Replica.Addr))
	next := must(storeOf(pair.Replica).client(t).Mutex("k").Lock(t.Context()))(t)
	failedOver := time.Now()
	if at := lost(t, lease, soon); at.After(failedOver.Add(2 * ttl)) {
		t.Errorf("told %s after the failover", at.Sub(failedOver))
	}
	if next.Token() <= lease.Token() {
		t.Errorf("token %d after %d", next.Token(), lease.Token())
	}
	released(t, next)
}

// TestSL4_AServerWithoutMemory refuses new locks and lets go of old ones.
func TestSL4_AServerWithoutMemory(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	const ttl = 3 * time.Second
	c := s.client(t).With(hasp.LockOptions{TTL: ttl})
	lease := must(c.Mutex("k").Lock(t.Context()))(t)
	wantNil(t, s.redis.Admin().ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, err := c.Mutex("other").Lock(t.Context())
	wantClass(t, err, "refused")
	time.Sleep(2 * ttl)
	wantNil(t, lease.Err())
	released(t, lease)
	wantNil(t, s.redis.Admin().ConfigSet(t.Context(), "maxmemory", "0").Err())
	released(t, must(c.Mutex("k").Lock(t.Context()))(t))
}

// TestSL5_AServerThatWantsReplicas refuses; a release is repeated when it wants none.
func TestSL5_AServerThatWantsReplicas(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c := s.client(t)
	lease := must(c.Mutex("k").Lock(t.Context()))(t)
	wantNil(t, s.redis.Admin().ConfigSet(t.Context(), "min-replicas-to-write", "1").Err())
	wantClass(t, lease.Release(t.Context()), "refused")
	wantNil(t, s.redis.Admin().ConfigSet(t.Context(), "min-replicas-to-write", "0").Err())
	wantNil(t, lease.Release(t.Context()))
	released(t, must(s.client(t).Mutex("k").TryLock(t.Context()))(t))
}

// TestSC1_ScriptsThatAreForgotten are loaded again, unseen.
func TestSC1_ScriptsThatAreForgotten(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	const ttl = 4 * time.Second
	c := s.client(t).With(hasp.LockOptions{TTL: ttl})
	flush := func() { wantNil(t, s.redis.Admin().ScriptFlush(t.Context()).Err()) }
	flush()
	lease := must(c.Mutex("k").Lock(t.Context()))(t)
	flush()
	time.Sleep(ttl / 2) // a renewal
	flush()
	released(t, lease)
	ctx, stop := context.WithTimeout(t.Context(), time.Duration(rounds(3, 10))*time.Second)
	defer stop()
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for ctx.Err() == nil {
				key := fmt.Sprint("k", i%3)
				lease, err := c.Mutex(key).Lock(ctx)
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				wantNil(t, lease.Release(ctx))
			}
		})
	}
	held := must(c.Mutex("held").Lock(t.Context()))(t)
	for ctx.Err() == nil {
		flush()
		time.Sleep(50 * time.Millisecond)
	}
	all.Wait()
	wantNil(t, held.Err())
	released(t, held)
}

// TestSC2_ARestartedServer does each kind of call on the first try.
func TestSC2_ARestartedServer(t *testing.T) {
	t.Parallel()
	s := onRedis(t, persistent)
	c := s.client(t)
	restart := func() {
		s.redis.Kill()
		wantNil(t, s.redis.Start())
	}
	lease := must(c.Mutex("k").Lock(t.Context()))(t)
	restart()
	wantNil(t, lease.Extend(t.Context(), time.Minute))
	restart()
	_, err := c.Mutex("k").TryLock(t.Context())
	wantClass(t, err, "held")
	restart()
	_ = must(c.Inspect(t.Context(), "k"))(t)
	restart()
	released(t, lease)
	restart()
	released(t, must(c.Mutex("k").Lock(t.Context()))(t))
}

// TestCR5_APrimaryThatBecomesAReplica refuses, and works again when it is a primary.
func TestCR5_APrimaryThatBecomesAReplica(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c := s.client(t)
	released(t, must(c.Mutex("k").Lock(t.Context()))(t))
	_ = must(s.redis.Command(t.Context(), "REPLICAOF", "127.0.0.1", "1"))(t)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	_, err := c.Mutex("k").Lock(ctx)
	if class := crew.Class(err); class != "refused" && class != "unavailable" {
		t.Errorf("error %v is of class %q", err, class)
	}
	time.Sleep(500 * time.Millisecond)
	_ = must(s.redis.Command(t.Context(), "REPLICAOF", "NO", "ONE"))(t)
	begin := time.Now()
	eventually(t, soon, "locks work again", func() bool {
		lease, err := c.Mutex("k").TryLock(t.Context())
		return err == nil && lease.Release(t.Context()) == nil
	})
	t.Logf("works again after %s", time.Since(begin))
}
