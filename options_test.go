package hasp_test

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
)

func TestRS7_OptionsThatCannotBeAreRefusedByNewAllAtOnce(t *testing.T) {
	t.Parallel()
	cases := map[string]hasp.Options{
		"TTL below 100 ms":    {Lock: hasp.LockOptions{TTL: 99 * time.Millisecond}},
		"TTL of 1 ns":         {Lock: hasp.LockOptions{TTL: 1}},
		"TTL below 0":         {Lock: hasp.LockOptions{TTL: -time.Second}},
		"TTL above 30 days":   {Lock: hasp.LockOptions{TTL: 400 * 24 * time.Hour}},
		"Wait below 0":        {Lock: hasp.LockOptions{Wait: -time.Second}},
		"Grace below 0":       {Lock: hasp.LockOptions{Grace: -1}},
		"Grace above 30 days": {Lock: hasp.LockOptions{Grace: 31 * 24 * time.Hour}},
		"MaxHold below 0":     {Lock: hasp.LockOptions{MaxHold: -1}},
		"MaxLine below 0":     {Lock: hasp.LockOptions{MaxLine: -1}},
		"Name too long":       {Name: strings.Repeat("x", 129)},
		"Name not UTF-8":      {Name: "a\xff"},
		"Name with NUL":       {Name: "a\x00"},
		"Prefix too long":     {Prefix: strings.Repeat("x", 512)},
		"Prefix with NUL":     {Prefix: "a\x00"},
		"Prefix not UTF-8":    {Prefix: "\xff"},
	}
	for name, o := range cases {
		c, err := hasp.New(memlease.NewStore().Driver(), &o)
		if c != nil {
			t.Errorf("%s: a client", name)
		}
		wantError(t, err, hasp.ErrInvalid)
		wantOp(t, err, "new", "")
	}
	_, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{
		Name: strings.Repeat("x", 129), Prefix: "\xff", Lock: hasp.LockOptions{TTL: 1, Wait: -5},
	})
	for _, part := range []string{"Name", "Prefix", "TTL", "Wait"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not speak of %s", err, part)
		}
	}
}

func TestTR1_TimesAtTheirBoundsWork(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		for _, life := range []time.Duration{100 * time.Millisecond, 1500 * time.Millisecond, 30 * 24 * time.Hour} {
			l := w.lock(c.With(hasp.LockOptions{TTL: life}), "k")
			if rest := w.rest("k"); rest != life {
				t.Errorf("rest %s, want %s", rest, life)
			}
			wantError(t, l.Release(w.ctx))
		}
		l := w.lock(c, "k")
		for _, life := range []time.Duration{300 * time.Microsecond, time.Millisecond, 999 * time.Microsecond, 0, -time.Second, 400 * 24 * time.Hour} {
			wantError(t, l.Extend(w.ctx, life), hasp.ErrInvalid)
		}
		wantError(t, l.Extend(w.ctx, 1500*time.Millisecond))
		wantError(t, l.Err())
		wantError(t, l.Release(w.ctx))
	})
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, err := hasp.New(w.store.Driver(), nil)
		wantError(t, err)
		l := w.lock(c, "k")
		line, err := c.Inspect(w.ctx, "k")
		wantError(t, err)
		host, err := os.Hostname()
		wantError(t, err)
		if h := line.Holders[0]; !strings.HasPrefix(h.Name, host+":") || h.ExpiresIn != 10*time.Second {
			t.Errorf("%+v", h)
		}
		a := w.waiting(c, "k")
		time.Sleep(time.Hour) // Wait is for ever
		if a.ended() {
			t.Error(a.err)
		}
		wantError(t, l.Release(w.ctx))
		wantError(t, w.held(a).Release(w.ctx))
		wantError(t, c.Close(w.ctx))
	})
}

func TestWithKeepsWhatIsZeroAndTakesOutWhatIsNegative(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		base := w.locks("a", hasp.LockOptions{
			TTL: time.Minute, Wait: 3 * time.Second, Grace: 10 * time.Second, MaxHold: time.Hour, MaxLine: 1,
		})
		rest := func(c *hasp.Client) time.Duration {
			l := w.lock(c, "k")
			defer func() { wantError(t, l.Release(w.ctx)) }()
			return w.rest("k")
		}
		if got := rest(base.With(hasp.LockOptions{})); got != 70*time.Second {
			t.Errorf("rest %s, want all of the base", got)
		}
		if got := rest(base.With(hasp.LockOptions{TTL: time.Second})); got != 11*time.Second {
			t.Errorf("rest %s, want the Grace of the base", got)
		}
		if got := rest(base.With(hasp.LockOptions{Grace: -1})); got != time.Minute {
			t.Errorf("rest %s, want no Grace", got)
		}
		l := w.lock(base, "k")
		a := w.waiting(base.With(hasp.LockOptions{TTL: time.Second}), "k")
		b := w.waiting(base, "k") // MaxLine
		w.refused(b, hasp.ErrHeld)
		within(t, "the refusal", b.took, 0)
		c := w.waiting(base.With(hasp.LockOptions{MaxLine: -1, Wait: hasp.Forever}), "k")
		w.refused(a, hasp.ErrHeld)
		if a.took != 3*time.Second {
			t.Errorf("took %s, want the Wait of the base", a.took)
		}
		_, err := base.With(hasp.LockOptions{Wait: hasp.NoWait}).Mutex("k").Lock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		time.Sleep(time.Minute)
		if c.ended() {
			t.Error(c.err)
		}
		wantError(t, l.Release(w.ctx))
		wantError(t, w.held(c).Release(w.ctx))
	})
}

func TestWithSwitchesBooleansOnlyOn(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		fixed := w.locks("a", hasp.LockOptions{NoRenew: true, Reentrant: true}).With(hasp.LockOptions{TTL: time.Second})
		l := w.lock(fixed, "k")
		inner, err := fixed.Mutex("k").Lock(l.Context(w.ctx))
		wantError(t, err)
		if inner.Token() != l.Token() {
			t.Error("not shared")
		}
		time.Sleep(2 * time.Second)
		lost(t, l)
	})
}

func TestWithTellsWhatIsInvalidByTheFirstCall(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		for _, o := range []hasp.LockOptions{{TTL: time.Millisecond}, {TTL: -1}, {Wait: -2}, {Grace: 1 << 62}} {
			wrong := c.With(o)
			lease := func(_ *hasp.Lease, err error) error { return err }
			for _, err := range []error{
				lease(wrong.Mutex("k").TryLock(w.ctx)), lease(wrong.RWMutex("k").RLock(w.ctx)), lease(wrong.Semaphore("k", 2).Acquire(w.ctx, 1)),
				lease(wrong.With(hasp.LockOptions{Label: "x"}).Mutex("k").Lock(w.ctx)), lease(wrong.Sub("s").Mutex("k").Lock(w.ctx)),
			} {
				wantError(t, err, hasp.ErrInvalid)
				wantOp(t, err, "acquire", "k")
			}
		}
		if n := line.total(); n != 0 {
			t.Errorf("%d calls", n)
		}
		l, err := c.With(hasp.LockOptions{TTL: time.Millisecond}).With(hasp.LockOptions{TTL: time.Minute}).Mutex("k").Lock(w.ctx)
		if l != nil || !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("what was wrong was forgotten: %v, %v", l, err)
		}
	})
}

func TestSubPutsPrefixesTogetherByteForByte(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.clientWith(w.store.Driver(), hasp.Options{Prefix: "a/"})
		one := w.lock(c.Sub("b").Sub(":").Sub(""), "k")
		if len(w.line("a/b:k").Holders) != 1 {
			t.Error("not the key a/b:k")
		}
		_, err := c.Mutex("b:k").TryLock(w.ctx)
		wantError(t, err, hasp.ErrHeld)
		l, err := c.Sub("b:").Inspect(w.ctx, "k")
		if err != nil || l.Key != "k" || len(l.Holders) != 1 {
			t.Errorf("%+v, %v", l, err)
		}
		wantError(t, one.Release(w.ctx))
	})
}

func TestAVeryLongWaitIsNoShortOne(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.lock(w.client("a"), "k")
		b := w.waiting(w.locks("b", hasp.LockOptions{Wait: hasp.Forever - 1}), "k")
		time.Sleep(time.Minute)
		if b.ended() {
			t.Fatal(b.err)
		}
		wantError(t, a.Release(w.ctx))
		wantError(t, w.held(b).Release(w.ctx))
	})
}

func TestPingProvesThatTheStoreIsThereAndChangesNothing(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		wantError(t, c.Ping(w.ctx))
		wantError(t, c.Sub("x").Ping(w.ctx))
		if n := line.made(check); n != 2 {
			t.Errorf("%d checks", n)
		}
		wantError(t, w.lock(c, "k").Release(w.ctx))
		wantError(t, w.lock(c, "k").Release(w.ctx))
		if n := line.made(check); n != 3 {
			t.Errorf("%d checks, want one more, before the first lock", n)
		}
		w.store.Fail(errors.New("down"))
		err := c.Ping(w.ctx)
		wantError(t, err, hasp.ErrUnavailable)
		wantOp(t, err, "ping", "")
		w.store.Fail(nil)
		wantError(t, c.Ping(w.ctx))
	})
}
