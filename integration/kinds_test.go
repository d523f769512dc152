package integration_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/crew"
)

// wants begins to wait for a lock, and answers where the lease will come.
func wants(t *testing.T, acquire func(context.Context) (*hasp.Lease, error)) <-chan *hasp.Lease {
	t.Helper()
	got := make(chan *hasp.Lease, 1)
	go func() {
		lease, err := acquire(t.Context())
		if err != nil {
			t.Error(err)
		}
		got <- lease
	}()
	return got
}

// gets insists on a lease within a time.
func gets(t *testing.T, lease <-chan *hasp.Lease, within time.Duration, who string) *hasp.Lease {
	t.Helper()
	l := comes(t, lease, within, who)
	if l == nil {
		t.FailNow()
	}
	return l
}

// comes is gets for a goroutine other than the test's.
func comes(t *testing.T, lease <-chan *hasp.Lease, within time.Duration, who string) *hasp.Lease {
	t.Helper()
	select {
	case l := <-lease:
		return l
	case <-time.After(within):
		t.Errorf("%s got no lease within %s", who, within)
		return nil
	}
}

// TestRW1_ADeadReaderIsNotKeptAliveByAnother: reader 1 is killed, reader 2 renews, and a
// writer waits.
func TestRW1_ADeadReaderIsNotKeptAliveByAnother(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 4 * time.Second
		first := s.puppet(t, "reader 1")
		first.holds(crew.Order{Lease: "x", Kind: "read", Keys: []string{"k"}, TTL: ttl})
		c, viewer := s.client(t).With(hasp.LockOptions{TTL: ttl}), s.client(t)
		second := must(c.RWMutex("k").RLock(t.Context()))(t)
		writer := wants(t, s.client(t).RWMutex("k").Lock)
		waiting(t, viewer, "k", 1)
		first.Kill()
		eventually(t, ttl+soon, "the dead reader is gone", func() bool {
			line, err := viewer.Inspect(t.Context(), "k")
			return err == nil && len(line.Holders) == 1
		})
		wantNil(t, second.Err())
		released(t, second)
		released(t, gets(t, writer, soon, "the writer"))
	})
}

// TestRW4_AWriterThatGivesUpLetsTheReadersBehindIn.
func TestRW4_AWriterThatGivesUpLetsTheReadersBehindIn(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		viewer := s.client(t)
		first := must(s.client(t).RWMutex("k").RLock(t.Context()))(t)
		gaveUp := make(chan error, 1)
		go func() {
			_, err := s.client(t).With(hasp.LockOptions{Wait: brief}).RWMutex("k").Lock(t.Context())
			gaveUp <- err
		}()
		waiting(t, viewer, "k", 1)
		second := wants(t, s.client(t).RWMutex("k").RLock)
		waiting(t, viewer, "k", 2)
		if err := <-gaveUp; crew.Class(err) != "held" {
			t.Errorf("the writer ended with %v", err)
		}
		released(t, gets(t, second, soon, "the second reader"))
		released(t, first)
	})
}

// TestSM4_ProcessesThatDisagreeKeepToTheSmaller.
func TestSM4_ProcessesThatDisagreeKeepToTheSmaller(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		three, five := s.client(t).Semaphore("k", 3), s.client(t).Semaphore("k", 5)
		var leases []*hasp.Lease
		for i := range 4 {
			lease, err := three.TryAcquire(t.Context(), 1)
			if i < 3 {
				leases = append(leases, lease)
				wantNil(t, err)
				continue
			}
			wantClass(t, err, "held")
		}
		_, err := five.TryAcquire(t.Context(), 1)
		wantClass(t, err, "held")
		for _, lease := range leases {
			released(t, lease)
		}
		released(t, must(five.TryAcquire(t.Context(), 5))(t))
	})
}

// TestSM6_NothingIsLeftOfManyNames.
func TestSM6_NothingIsLeftOfManyNames(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	c := s.client(t).With(hasp.LockOptions{TTL: time.Second})
	var all sync.WaitGroup
	for h := range 16 {
		all.Go(func() {
			for i := range rounds(4000, 10000) / 16 {
				lease, err := c.Semaphore(fmt.Sprintf("%d.%d", h, i), 3).Acquire(t.Context(), 1)
				if err != nil {
					t.Error(err)
					return
				}
				wantNil(t, lease.Release(t.Context()))
			}
		})
	}
	all.Wait()
	vanished(t, s)
}

// TestML1_AllOrNothing: B holds one of three keys; what A could have had of them is free
// when A gives up.
func TestML1_AllOrNothing(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		a, b, c := s.client(t), s.client(t), s.client(t)
		held := must(b.Mutex("k2").Lock(t.Context()))(t)
		_, err := a.With(hasp.LockOptions{Wait: brief}).Mutex("k1", "k2", "k3").Lock(t.Context())
		wantClass(t, err, "held")
		for _, key := range []string{"k1", "k3"} {
			released(t, must(c.With(hasp.LockOptions{Wait: brief}).Mutex(key).Lock(t.Context()))(t))
		}
		_, err = a.Mutex("k1", "k2", "k3").TryLock(t.Context())
		wantClass(t, err, "held")
		released(t, held)
		empty(t, c, brief)
	})
}

// TestML3_OneLostKeyIsALostLease: an operator takes one key of three.
func TestML3_OneLostKeyIsALostLease(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 9 * time.Second
		lease := must(s.client(t).With(hasp.LockOptions{TTL: ttl}).Mutex("a", "b", "c").Lock(t.Context()))(t)
		viewer := s.client(t)
		trusted := lease.TrustedUntil()
		wantNil(t, viewer.ForceRelease(t.Context(), "b", 0))
		notices(t, lease, trusted)
		empty(t, viewer, brief)
	})
}

// TestXR1_TheNextOneEntersWhenTheDeadHasExpired: for each kind of lock the holder is
// killed; all keys of one lease are free together.
func TestXR1_TheNextOneEntersWhenTheDeadHasExpired(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 4 * time.Second
		c := s.client(t).With(hasp.LockOptions{TTL: ttl})
		var all sync.WaitGroup
		defer all.Wait()
		for name, of := range map[string]struct {
			order crew.Order
			next  []func(context.Context) (*hasp.Lease, error)
		}{
			"mutex":   {crew.Order{Keys: []string{"m"}}, []func(context.Context) (*hasp.Lease, error){c.Mutex("m").Lock}},
			"reader":  {crew.Order{Keys: []string{"r"}, Kind: "read"}, []func(context.Context) (*hasp.Lease, error){c.RWMutex("r").Lock}},
			"writer":  {crew.Order{Keys: []string{"w"}, Kind: "write"}, []func(context.Context) (*hasp.Lease, error){c.RWMutex("w").RLock}},
			"permits": {crew.Order{Keys: []string{"p"}, Kind: "permits", Permits: 2, Of: 2}, []func(context.Context) (*hasp.Lease, error){func(ctx context.Context) (*hasp.Lease, error) { return c.Semaphore("p", 2).Acquire(ctx, 1) }}},
			"keys":    {crew.Order{Keys: []string{"x", "y"}}, []func(context.Context) (*hasp.Lease, error){c.Mutex("x").Lock, c.Mutex("y").Lock}},
		} {
			p := s.puppet(t, name)
			of.order.Lease, of.order.TTL = "l", ttl
			p.holds(of.order)
			var next []<-chan *hasp.Lease
			for _, acquire := range of.next {
				next = append(next, wants(t, acquire))
			}
			for _, key := range of.order.Keys {
				waiting(t, s.client(t), key, 1)
			}
			begin, left := time.Now(), rest(t, s.client(t), of.order.Keys[0])
			p.Kill()
			all.Go(func() {
				for _, n := range next {
					if lease := comes(t, n, 2*ttl, name); lease != nil {
						wantNil(t, lease.Release(t.Context()))
					}
				}
				if took := time.Since(begin); took < left-10*time.Millisecond && s.name != "sqlite" { // there a dead holder is known
					t.Errorf("%s: granted %s after the kill of one that had %s left", name, took, left)
				}
			})
		}
	})
}

// TestOP1_OP2_AnOperatorSeesAndEndsExactlyOne.
func TestOP1_OP2_AnOperatorSeesAndEndsExactlyOne(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 9 * time.Second
		a := s.client(t, hasp.Options{Name: "host:42"}).With(hasp.LockOptions{TTL: ttl})
		op := s.client(t)
		lease := must(a.Mutex("k").Lock(t.Context()))(t)
		line := must(op.Inspect(t.Context(), "k"))(t)
		if len(line.Holders) != 1 || line.Holders[0].Name != "host:42" || line.Holders[0].Token != lease.Token() ||
			line.Holders[0].ExpiresIn <= 0 || line.Holders[0].ExpiresIn > ttl+time.Millisecond {
			t.Errorf("the line shows %+v", line.Holders)
		}
		wantClass(t, op.ForceRelease(t.Context(), "k", lease.Token()-64), "not held")
		wantNil(t, lease.Err())
		trusted := lease.TrustedUntil()
		wantNil(t, op.ForceRelease(t.Context(), "k", lease.Token()))
		notices(t, lease, trusted)
		next := must(op.Mutex("k").Lock(t.Context()))(t)
		if next.Token() <= lease.Token() {
			t.Errorf("token %d after %d", next.Token(), lease.Token())
		}
		released(t, next)
	})
}

// TestRI4_EqualNamesAreNotOneOwner: two processes with the same name, host and id.
func TestRI4_EqualNamesAreNotOneOwner(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		same := hasp.Options{Name: "host:1"}
		a, b := s.client(t, same), s.client(t, same)
		lease := must(a.Mutex("k").Lock(t.Context()))(t)
		_, err := b.Mutex("k").TryLock(t.Context())
		wantClass(t, err, "held")
		released(t, lease)
	})
}
