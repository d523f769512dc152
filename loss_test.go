package hasp_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// lost wants the lease to be lost, in every way a user can see, and for good.
func lost(t *testing.T, l *hasp.Lease) {
	t.Helper()
	wantError(t, l.Err(), hasp.ErrLost)
	select {
	case <-l.Done():
	default:
		t.Error("Done is open though the lease is lost")
	}
	wantError(t, context.Cause(l.Context(context.WithoutCancel(t.Context()))), hasp.ErrLost)
}

// lastSent answers when the last call of v was sent.
func (w *wire) lastSent(v verb) time.Time {
	var at time.Time
	for _, c := range w.log() {
		if c.verb == v {
			at = c.at
		}
	}
	return at
}

func TestLL1_ASilentConnectionIsALossWithinTheTTLAndBeforeTheNextGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		ac, line := w.wired("a")
		a := w.lock(ac, "k")
		ctx := a.Context(w.ctx)
		time.Sleep(5 * ttl)
		good := line.lastSent(renew)
		line.every(swallowed)
		b := w.waiting(w.client("b"), "k")
		<-ctx.Done()
		told := time.Now()
		if b.ended() {
			t.Error("the next was granted before the holder was told")
		}
		within(t, "the news", told.Sub(good), ttl-margin)
		lost(t, a)
		lb := w.held(b)
		within(t, "the next grant", time.Since(good), ttl)
		if lb.Token() <= a.Token() {
			t.Errorf("token %d after %d", lb.Token(), a.Token())
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestLL1_AServerThatStopsIsALossForTheHolderOnly(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		goOn := w.store.Stall()
		began := time.Now()
		<-a.Done()
		within(t, "the news", time.Since(began), ttl)
		lost(t, a)
		time.Sleep(3 * ttl)
		goOn()
		synctest.Wait()
		lost(t, a)
	})
}

func TestLL2_AServerThatIsDownAndComesBackEmptyDoesNotGiveTheLeaseBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		ac := w.client("a")
		a := w.lock(ac, "k")
		w.store.Fail(errors.New("connection refused"))
		began := time.Now()
		<-a.Done()
		within(t, "the news", time.Since(began), ttl)
		time.Sleep(3*ttl - time.Since(began))
		w.store.Wipe()
		w.store.Fail(nil)
		for range 20 {
			time.Sleep(ttl / 4)
			lost(t, a)
		}
		b := w.lock(ac, "k")
		if b.Token() <= a.Token() {
			t.Errorf("token %d after %d and a wipe", b.Token(), a.Token())
		}
		wantError(t, b.Release(w.ctx))
		wantError(t, a.Release(w.ctx), hasp.ErrLost)
	})
}

func TestLL2_AServerThatComesBackWithItsDataDoesNotGiveTheLeaseBack(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Grace: time.Hour})
		a := w.lock(c, "k")
		w.store.Fail(errors.New("connection refused"))
		<-a.Done()
		w.store.Fail(nil)
		if w.rest("k") < time.Minute {
			t.Fatal("the store should still have the claim, in its Grace")
		}
		time.Sleep(5 * ttl)
		lost(t, a)
		wantError(t, a.Release(w.ctx), hasp.ErrLost)
		synctest.Wait()
		w.empty()
	})
}

func TestLL5_ALateAnswerCountsFromItsSending(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		ac, line := w.wired("a")
		a := w.lock(ac, "k")
		until := a.TrustedUntil()
		line.every(fault{reply: 1900 * time.Millisecond}, renew)
		began := time.Now()
		<-a.Done()
		within(t, "the news", time.Since(began), ttl-margin)
		if !time.Now().Equal(until) {
			t.Errorf("the context ended at %s, the trust at %s", time.Now(), until)
		}
		time.Sleep(10 * ttl) // the answers say success
		lost(t, a)
	})
}

func TestLL5_ALateAnswerInTimeMovesTheTrustOnlyToItsSendingPlusTTL(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		ac, line := w.wired("a")
		a := w.lock(ac, "k")
		line.nth(renew, 1, fault{reply: 500 * time.Millisecond})
		time.Sleep(time.Second + 200*time.Millisecond)
		if line.made(renew) != 1 {
			t.Fatalf("%d renewals, want one", line.made(renew))
		}
		if got, want := a.TrustedUntil(), line.lastSent(renew).Add(ttl-margin); !got.Equal(want) {
			t.Errorf("trusted until %s, want %s", got, want)
		}
		wantError(t, a.Release(w.ctx))
	})
}

func TestLL7_EveryLossIsToldOnceAndBeforeTheNextGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		r := &recorder{}
		c := w.clientWith(w.store.Driver(), hasp.Options{Name: "a", Observe: r.observe})
		for range 3 {
			l := w.lock(c, "k")
			w.store.Drop("k")
			other := w.lock(w.client("b"), "k")
			<-l.Done()
			synctest.Wait()
			wantError(t, other.Release(w.ctx))
		}
		synctest.Wait()
		if got, want := r.kinds(), "acquired lost acquired lost acquired lost "; got != want {
			t.Errorf("events %q, want %q", got, want)
		}
	})
}

func TestLL8_AnOldRecordIsNotTakenForAGrant(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.locks("a", hasp.LockOptions{Grace: 10 * time.Second})
		a := w.lock(c, "k")
		goOn := w.store.Stall()
		<-a.Done()
		goOn()
		lost(t, a)
		again := w.waiting(c, "k")
		if again.ended() {
			t.Fatal("granted beside the old record")
		}
		l := w.held(again)
		if l.Token() <= a.Token() {
			t.Errorf("token %d after %d", l.Token(), a.Token())
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestALossNamesWhoHoldsNow(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		w.store.Drop("k")
		b := w.lock(w.client("b"), "k")
		<-a.Done()
		var e *hasp.LostError
		if !errors.As(a.Err(), &e) || e.Holder != "b" || e.Key != "k" || e.Token != a.Token() || e.Revoked {
			t.Errorf("loss %#v, want key, token and holder b", e)
		}
		wantError(t, b.Release(w.ctx))
	})
}

func TestASignalOfTheEndIsALossAtOnce(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		wantError(t, w.client("op").ForceRelease(w.ctx, "k", a.Token()))
		synctest.Wait()
		lost(t, a)
	})
}

func TestADropIsALossWithinOneInterval(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		w.store.Drop("k")
		began := time.Now()
		<-a.Done()
		within(t, "the news", time.Since(began), ttl/3)
	})
}

func TestG9_TheNextLockIsANewClaimWithItsOwnRenewal(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		ac, line := w.wired("a")
		a := w.lock(ac, "k")
		line.every(swallowed)
		<-a.Done()
		line.mend()
		wantError(t, a.Release(w.ctx), hasp.ErrLost)
		b := w.lock(ac, "k")
		for range 100 { // RS-2
			time.Sleep(ttl / 20)
			if rest := w.rest("k"); rest < ttl/3 {
				t.Fatalf("rest %s during the second hold", rest)
			}
		}
		lost(t, a)
		wantError(t, b.Err())
		wantError(t, b.Release(w.ctx))
	})
}

func TestRS10_EveryWayToLoseIsOneEventAndAReleaseThatReturnsAtOnce(t *testing.T) {
	t.Parallel()
	ways := map[string]func(w *world, l *hasp.Lease, line *wire){
		"drop":   func(w *world, _ *hasp.Lease, _ *wire) { w.store.Drop("k") },
		"wipe":   func(w *world, _ *hasp.Lease, _ *wire) { w.store.Wipe() },
		"silent": func(_ *world, _ *hasp.Lease, line *wire) { line.every(swallowed) },
		"down":   func(_ *world, _ *hasp.Lease, line *wire) { line.every(lostRequest) },
		"stall":  func(w *world, _ *hasp.Lease, _ *wire) { w.store.Stall() },
		"refused": func(w *world, _ *hasp.Lease, _ *wire) {
			w.store.Fail(fmt.Errorf("%w: read-only", driver.ErrRefused))
		},
		"revoke": func(w *world, l *hasp.Lease, _ *wire) { wantError(w.t, w.client("op").Revoke(w.ctx, "k", l.Token())) },
		"force":  func(w *world, l *hasp.Lease, _ *wire) { wantError(w.t, w.client("op").ForceRelease(w.ctx, "k", 0)) },
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				r := &recorder{}
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{Observe: r.observe})
				l := w.lock(c, "k")
				way(w, l, line)
				began := time.Now()
				<-l.Done()
				within(t, "the news", time.Since(began), ttl)
				synctest.Wait()
				lost(t, l)
				began = time.Now()
				wantError(t, l.Release(w.ctx), hasp.ErrLost)
				within(t, "Release", time.Since(began), 0)
				time.Sleep(5 * ttl)
				if n := r.count(hasp.EventLost); n != 1 {
					t.Errorf("%d lost events, want 1", n)
				}
			})
		})
	}
}

func TestG2_TheContextEndsAtTheEndOfTheTrustWindowAndNotBefore(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{100 * time.Millisecond, 2 * time.Second, time.Minute, time.Hour} {
		t.Run(life.String(), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(w *world) {
				line := newWire(w.store.Driver())
				c := w.clientWith(line, hasp.Options{Lock: hasp.LockOptions{TTL: life}})
				l := w.lock(c, "k")
				sent := line.lastSent(join)
				line.every(lostRequest, renew)
				want := sent.Add(life - max(life/100, 5*time.Millisecond))
				if got := l.TrustedUntil(); !got.Equal(want) {
					t.Errorf("trusted until %s, want %s", got, want)
				}
				<-l.Done()
				if !time.Now().Equal(want) {
					t.Errorf("ended at %s, want %s", time.Now(), want)
				}
				if got := l.TrustedUntil(); !got.Equal(want) {
					t.Errorf("after the end trusted until %s, want %s", got, want)
				}
			})
		})
	}
}

func TestG2_ARepeatedJoinIsTrustedFromTheCallThatWasAnswered(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		line.nth(join, 1, lostReply) // executed at 0, expires at T
		a := w.lock(c, "k")
		if got, want := a.TrustedUntil(), line.lastSent(join).Add(ttl-margin); !got.Equal(want) {
			t.Errorf("trusted until %s, want %s", got, want)
		}
		if time.Until(a.TrustedUntil()) > w.rest("k") {
			t.Errorf("trusted for %s, kept for %s", time.Until(a.TrustedUntil()), w.rest("k"))
		}
		wantError(t, a.Release(w.ctx))
	})
}

func TestG2_NobodyTrustsLongerThanTheStoreKeeps(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		a := w.lock(c, "k")
		line.faults(func(c call) fault {
			switch c.nth % 4 {
			case 0:
				return fault{request: 100 * time.Millisecond, reply: 300 * time.Millisecond}
			case 1:
				return lostRequest
			case 2:
				return lostReply
			}
			return fault{}
		})
		for range 500 {
			time.Sleep(17 * time.Millisecond)
			if trust, rest := time.Until(a.TrustedUntil()), w.rest("k"); trust > rest-5*time.Millisecond {
				t.Fatalf("trusted for %s, kept for %s", trust, rest)
			}
		}
		wantError(t, a.Err())
		line.mend()
		wantError(t, a.Release(w.ctx))
	})
}

func TestGraceIsTheStoresAndNotTheHolders(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		a := w.lock(c.With(hasp.LockOptions{Grace: 3 * time.Second}), "k")
		line.every(swallowed)
		b := w.waiting(w.client("b"), "k")
		began := time.Now()
		<-a.Done()
		within(t, "the news", time.Since(began), ttl-margin)
		lb := w.held(b)
		if d := time.Since(began); d < ttl+3*time.Second || d > ttl+3*time.Second+10*time.Millisecond {
			t.Errorf("the next held after %s, want TTL and Grace", d)
		}
		wantError(t, lb.Release(w.ctx))
	})
}

func TestP13_GraceOutlastsTheNewsUntilTheOwnerReleases(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		a := w.lock(c.With(hasp.LockOptions{Grace: time.Minute}), "k")
		line.every(swallowed)
		b := w.waiting(w.client("b"), "k")
		<-a.Done()
		line.mend()
		time.Sleep(5 * time.Second)
		if b.ended() {
			t.Fatal("the Grace was void")
		}
		wantError(t, a.Release(w.ctx), hasp.ErrLost)
		synctest.Wait()
		if !b.ended() {
			t.Error("not free though the owner has released")
		}
		wantError(t, w.held(b).Release(w.ctx))
	})
}

func TestALeaseNeverReleasedAfterItsLossIsNotKept(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		for i := range 100 {
			w.lock(c, key(i))
			w.waiting(c.With(hasp.LockOptions{NoRenew: true}), key(i))
		}
		w.store.Wipe()
		time.Sleep(time.Hour)
		if n := hasp.CountClaims(c); n != 0 {
			t.Errorf("%d claims are kept", n)
		}
		w.empty()
	})
}
