package hasp_test

import (
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
)

func TestPlainForgetsWhatWithCannotSwitchOff(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		odd := w.locks("odd", hasp.LockOptions{
			TTL: ttl, Wait: hasp.NoWait, MaxHold: ttl, NoRenew: true, MaxLine: 1, Reentrant: true, Label: "l",
		})
		plain := odd.Sub("p:").Plain()
		lease := w.lock(plain, "k")
		time.Sleep(4 * ttl)
		if err := lease.Err(); err != nil || w.rest("p:k") == 0 {
			t.Errorf("%v; the lease is not renewed, or not under its prefix", err)
		}
		if got := w.rest("p:k"); got > ttl {
			t.Errorf("the lease lives %s, want the client's TTL", got)
		}
		_, err := plain.Mutex("k").Lock(lease.Context(w.ctx))
		wantError(t, err, hasp.ErrInvalid)
		wantError(t, plain.Close(w.ctx), hasp.ErrInvalid)
		if err := lease.Release(w.ctx); err != nil {
			t.Error(err)
		}
	})
}

func TestPlainKeepsWhatIsInvalid(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		_, err := w.client("a").With(hasp.LockOptions{TTL: 1}).Plain().Mutex("k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrInvalid)
	})
}
