package hasp_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

func TestErrorsSayWhatIsKnown(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		`hasp: acquire "k": held`: &hasp.Error{Op: "acquire", Key: "k", Err: &hasp.HeldError{}},
		`hasp: new: invalid`:      &hasp.Error{Op: "new", Err: hasp.ErrInvalid},
		`held by b`:               &hasp.HeldError{Holder: "b"},
		`held by b, expires in 1.235s unless renewed, waited 2s`: &hasp.HeldError{
			Holder: "b", ExpiresIn: 1234567 * time.Microsecond, Waited: 2 * time.Second,
		},
		`lease lost: held by b now`:          &hasp.LostError{Holder: "b"},
		`lease lost: revoked by an operator`: &hasp.LostError{Revoked: true},
		`lease lost: no answered renewal in time, or the claim is gone from the store`: &hasp.LostError{},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
}

func TestTheClassesAreThoseOfTheDriversAndDifferent(t *testing.T) {
	t.Parallel()
	same := map[error]error{
		hasp.ErrUnavailable: driver.ErrUnavailable, hasp.ErrRefused: driver.ErrRefused,
		hasp.ErrInvalid: driver.ErrInvalid, hasp.ErrUnsupported: driver.ErrUnsupported,
	}
	for a, b := range same {
		if a != b { //nolint:errorlint // the very value
			t.Errorf("%v is not %v", a, b)
		}
	}
	wantError(t, &hasp.HeldError{}, hasp.ErrHeld)
	wantError(t, &hasp.LostError{}, hasp.ErrLost)
	wantError(t, hasp.ErrUnsupported, hasp.ErrUnsupported, errors.ErrUnsupported)
}

func TestTheContextsErrorIsInTheTextOfAWaitThatItEnded(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k")
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		_, err := w.client("b").Mutex("k").Lock(ctx)
		if err == nil || !strings.HasPrefix(err.Error(), `hasp: acquire "k": held by a, expires in `) || !strings.HasSuffix(err.Error(), ", waited 1s: context deadline exceeded") {
			t.Errorf("error %v", err)
		}
		wantError(t, l.Release(w.ctx))
	})
}

func TestTheLogIsToldOfWhatNobodyMayBeLookingAt(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		var log strings.Builder
		c := w.clientWith(w.store.Driver(), hasp.Options{
			Logger: slog.New(slog.NewTextHandler(&log, nil)), // and no observer
			Lock:   hasp.LockOptions{Label: "orders"},
		})
		wantError(t, w.lock(c, "quiet").Release(w.ctx))
		l := w.lock(c, "k")
		_, _ = c.Mutex("k").TryLock(w.ctx)
		w.store.Drop("k")
		<-l.Done()
		synctest.Wait()
		got := log.String()
		if strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, `msg="lease lost"`) ||
			!strings.Contains(got, "keys=[k]") || !strings.Contains(got, "label=orders") {
			t.Errorf("log %q", got)
		}
	})
}

func TestALeasePrintsItsKeysAndItsToken(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		l := w.lock(w.client("a"), "k", "k2")
		if got := l.String(); got != `lease ["k" "k2"] token 60587827200000000` {
			t.Errorf("%q", got)
		}
		wantError(t, l.Release(w.ctx))
	})
}
