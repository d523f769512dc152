package integration_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// TestKL1_LongKeysThatDifferLateAreDifferentLocks.
func TestKL1_LongKeysThatDifferLateAreDifferentLocks(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		c := s.client(t)
		for _, sign := range []string{"k", "é", "🔒"} {
			for _, n := range []int{1, 63, 64, 65, 191, 192, 193, 255, 500} {
				if n*len(sign) > 511 {
					continue
				}
				long := strings.Repeat(sign, n)
				a := must(c.Mutex(long + "a").TryLock(t.Context()))(t)
				b := must(c.Mutex(long + "b").TryLock(t.Context()))(t)
				if line := must(c.Inspect(t.Context(), long+"a"))(t); len(line.Holders) != 1 {
					t.Errorf("%d x %q: %d holders", n, sign, len(line.Holders))
				}
				released(t, a)
				released(t, b)
			}
		}
		_, err := c.Mutex(strings.Repeat("k", 513)).TryLock(t.Context())
		wantClass(t, err, "invalid")
	})
}

// TestKL2_KeysAreComparedByteForByte: case, spaces, accents and their two spellings.
func TestKL2_KeysAreComparedByteForByte(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		c := s.client(t)
		var leases []*hasp.Lease
		for _, key := range []string{"Job-A", "job-a", "Job-A ", " Job-A", "J\u00f6b-A", "Jo\u0308b-A", "Job-A\n", "Job-A\t"} {
			leases = append(leases, must(c.Mutex(key).TryLock(t.Context()))(t))
		}
		for _, lease := range leases {
			released(t, lease)
		}
	})
}

// TestKL5_WhatIsNoKeyIsRefused.
func TestKL5_WhatIsNoKeyIsRefused(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		c := s.client(t)
		for _, key := range []string{"", "a\x00b", "\xff"} {
			_, err := c.Mutex(key).TryLock(t.Context())
			wantClass(t, err, "invalid")
		}
	})
}

// TestKT2_StrangeKeysAreDifferentLocksAndListedAsTheyAre.
func TestKT2_StrangeKeysAreDifferentLocksAndListedAsTheyAre(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		c := s.client(t)
		want := make(map[string]*hasp.Lease)
		for _, prefix := range []string{"", "p{x}:", "{}", "}"} {
			sub := c.Sub(prefix)
			for _, key := range strangeKeys() {
				if len(prefix)+len(key) > 512 || want[prefix+key] != nil {
					continue
				}
				want[prefix+key] = must(sub.Mutex(key).TryLock(t.Context()))(t)
			}
		}
		seen := 0
		for line, err := range c.List(t.Context(), "") {
			if err != nil {
				t.Fatal(err)
			}
			if want[line.Key] == nil {
				t.Errorf("a key that nobody locked is listed: %q", line.Key)
			}
			seen++
		}
		if seen != len(want) {
			t.Errorf("%d keys are listed, want %d", seen, len(want))
		}
		for _, lease := range want {
			released(t, lease)
		}
	})
}

// TestKT4_TenThousandKeysAtOnce: all held, none taken for another, none left.
func TestKT4_TenThousandKeysAtOnce(t *testing.T) {
	alone(t, func(t *testing.T, s *store) {
		n := rounds(10000, 10000)
		if s.name != "redis" { // a step of a database is more work
			n /= 5
		}
		c := s.client(t).With(hasp.LockOptions{TTL: time.Minute})
		leases := make([]*hasp.Lease, n)
		var all sync.WaitGroup
		const hands = 32
		for h := range hands {
			all.Go(func() {
				for i := h; i < n; i += hands {
					lease, err := c.Mutex(strconv.Itoa(i)).TryLock(t.Context())
					if err != nil {
						t.Error(err)
						return
					}
					leases[i] = lease
				}
			})
		}
		if all.Wait(); t.Failed() {
			return
		}
		for h := range hands {
			all.Go(func() {
				for i := n - 1 - h; i >= 0; i -= hands {
					released(t, leases[i])
				}
			})
		}
		all.Wait()
		empty(t, s.client(t), soon)
	})
}

// TestKT5_AForeignValueUnderOurKeyIsRefusedAndLeftAlone.
func TestKT5_AForeignValueUnderOurKeyIsRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c := s.client(t)
	ctx := t.Context()
	released(t, must(c.Mutex("k").Lock(ctx))(t))
	name := "hasp:{k}" // as docs/stores.md says
	if n := must(s.redis.Admin().Exists(ctx, name).Result())(t); n != 1 {
		t.Fatalf("the lock is not under %q, but among %q", name, must(s.remain(ctx))(t))
	}
	for what, put := range map[string]func() error{
		"a hash":   func() error { return s.redis.Admin().HSet(ctx, name, "f", "v").Err() },
		"a list":   func() error { return s.redis.Admin().RPush(ctx, name, "v").Err() },
		"a string": func() error { return s.redis.Admin().Set(ctx, name, "somebody's", 0).Err() },
		"nothing":  func() error { return s.redis.Admin().Set(ctx, name, "", 0).Err() },
	} {
		wantNil(t, s.redis.Admin().Del(ctx, name).Err())
		wantNil(t, put())
		before := must(s.redis.Admin().Dump(ctx, name).Result())(t)
		_, err := c.Mutex("k").TryLock(ctx)
		if err == nil {
			t.Errorf("%s: a lock over it", what)
		} else {
			wantClass(t, err, "refused")
		}
		if after := must(s.redis.Admin().Dump(ctx, name).Result())(t); after != before {
			t.Errorf("%s: it was changed", what)
		}
	}
}

// TestXR2_EveryRecordExpires: whatever a client does last, nothing of it stays for ever.
func TestXR2_EveryRecordExpires(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	ctx := t.Context()
	look := func(when string) {
		t.Helper()
		for _, name := range must(s.remain(ctx))(t) {
			if ttl := must(s.redis.Admin().PTTL(ctx, name).Result())(t); ttl == -1 {
				t.Errorf("%s: %q never expires", when, name)
			}
		}
	}
	d := s.driver(t)
	var made byte
	claim := func(weight, capacity int64, keys ...string) driver.Claim {
		made++
		return driver.Claim{
			Ref: driver.Ref{ID: driver.ID{'i', 'n', 'b', 'o', 'x', '!', made}, Keys: keys}, Weight: weight, Capacity: capacity,
			Life: driver.Life{Hold: time.Second, Wait: time.Second}, Name: "client",
		}
	}
	var all []driver.Claim
	join := func(c driver.Claim) {
		t.Helper()
		_ = must(d.Join(ctx, driver.Join{Claim: c}))(t)
		all = append(all, c)
		look("after a join")
	}
	for range 3 {
		join(claim(1, 1, "mutex"))
		join(claim(1, 3, "permits"))
		join(claim(1, 1<<30, "rw"))
		join(claim(1, 1, "a", "mutex"))
	}
	join(claim(1<<30, 1<<30, "rw"))
	for _, mode := range []driver.Mode{driver.Extend, driver.Fix} {
		for _, c := range all {
			d.Renew(ctx, []driver.Renewal{{Ref: c.Ref, Mode: mode, Life: c.Life}}, func(_ int, _ driver.Standing, err error) { wantNil(t, err) })
			look("after " + mode.String())
		}
	}
	for i, c := range all {
		_ = must(d.Leave(ctx, driver.Leaving{Ref: c.Ref, Unanswered: i%2 == 0, Remember: time.Second}))(t)
		look("after a leave")
	}
	vanished(t, s)
}
