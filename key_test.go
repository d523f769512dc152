package hasp_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp"
)

// oddKeys are keys that something on the way could take for something else.
func oddKeys() []string {
	return []string{
		"a", "{a}:b", "a:{}", "{}a", "{x}", "}x{", "{{a}}", "%s", "%00", "a:b", "a/b", "a b", " ", "\n", "\t", "'", "\"", "\\", "*", "?", "[a]",
		"Job-A", "job-a", "Job-A ", "job-a ", " job-a", "J\u00f6b-A", "Jo\u0308b-A", "jób-a", "ключ", "🔒", "\u200b", "\ufeff", "0", "641", "-1", "null", "nil",
		strings.Repeat("x", 300), strings.Repeat("x", 512), strings.Repeat("ж", 256), strings.Repeat("🔒", 128),
	}
}

func TestKL2_OddKeysAreAllDifferentAndAllWork(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.client("a"), w.client("b")
		var leases []*hasp.Lease
		for _, k := range oddKeys() {
			l, err := a.Mutex(k).TryLock(w.ctx)
			if err != nil {
				t.Fatalf("%q: %v", k, err)
			}
			leases = append(leases, l)
		}
		for i, k := range oddKeys() {
			_, err := b.Mutex(k).TryLock(w.ctx)
			wantError(t, err, hasp.ErrHeld)
			line, err := b.Inspect(w.ctx, k)
			if err != nil || line.Key != k || len(line.Holders) != 1 || line.Holders[0].Token != leases[i].Token() {
				t.Errorf("%q: %+v, %v", k, line, err)
			}
		}
		for _, l := range leases {
			wantError(t, l.Release(w.ctx))
		}
		w.empty()
	})
}

func TestKL1_KeysThatDifferOnlyFarBehindAreDifferent(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c := w.client("a")
		for _, n := range []int{1, 63, 64, 65, 191, 192, 193, 255, 256, 511, 512} {
			k := strings.Repeat("x", n-1)
			one, two := w.lock(c, k+"1"), w.lock(c, k+"2")
			_, err := c.Mutex(k + "1").TryLock(w.ctx)
			wantError(t, err, hasp.ErrHeld)
			wantError(t, one.Release(w.ctx))
			wantError(t, two.Release(w.ctx))
		}
	})
}

func TestKL5_KeysThatCannotBeAreInvalidBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		c, line := w.wired("a")
		sub := c.Sub("app:")
		tooMany := make([]string, 64)
		for i := range tooMany {
			tooMany[i] = key(i)
		}
		cases := map[string]func() (*hasp.Lease, error){
			"empty":               func() (*hasp.Lease, error) { return c.Mutex("").Lock(w.ctx) },
			"empty with prefix":   func() (*hasp.Lease, error) { return sub.Mutex("").Lock(w.ctx) },
			"empty second":        func() (*hasp.Lease, error) { return c.Mutex("a", "").Lock(w.ctx) },
			"too long":            func() (*hasp.Lease, error) { return c.Mutex(strings.Repeat("x", 513)).Lock(w.ctx) },
			"1024":                func() (*hasp.Lease, error) { return c.Mutex(strings.Repeat("x", 1024)).Lock(w.ctx) },
			"too long, 4 bytes":   func() (*hasp.Lease, error) { return c.Mutex(strings.Repeat("🔒", 129)).Lock(w.ctx) },
			"too long by prefix":  func() (*hasp.Lease, error) { return sub.Mutex(strings.Repeat("x", 509)).Lock(w.ctx) },
			"no UTF-8":            func() (*hasp.Lease, error) { return c.Mutex("a\xffb").Lock(w.ctx) },
			"half a rune":         func() (*hasp.Lease, error) { return c.Mutex("ж"[:1]).Lock(w.ctx) },
			"NUL":                 func() (*hasp.Lease, error) { return c.Mutex("a\x00b").Lock(w.ctx) },
			"NUL in the prefix":   func() (*hasp.Lease, error) { return c.Sub("a\x00").Mutex("b").Lock(w.ctx) },
			"no UTF-8 by prefix":  func() (*hasp.Lease, error) { return c.Sub("\xff").Mutex("b").Lock(w.ctx) },
			"twice":               func() (*hasp.Lease, error) { return c.Mutex("a", "b", "a").Lock(w.ctx) },
			"65 keys":             func() (*hasp.Lease, error) { return c.Mutex("one more", tooMany...).Lock(w.ctx) },
			"try":                 func() (*hasp.Lease, error) { return c.Mutex("").TryLock(w.ctx) },
			"read":                func() (*hasp.Lease, error) { return c.RWMutex("").RLock(w.ctx) },
			"write":               func() (*hasp.Lease, error) { return c.RWMutex("").TryLock(w.ctx) },
			"permit":              func() (*hasp.Lease, error) { return c.Semaphore("", 3).Acquire(w.ctx, 1) },
			"no permits":          func() (*hasp.Lease, error) { return c.Semaphore("k", 3).Acquire(w.ctx, 0) },
			"negative permits":    func() (*hasp.Lease, error) { return c.Semaphore("k", 3).TryAcquire(w.ctx, -1) },
			"more than there are": func() (*hasp.Lease, error) { return c.Semaphore("k", 3).Acquire(w.ctx, 4) },
			"none at all":         func() (*hasp.Lease, error) { return c.Semaphore("k", 0).Acquire(w.ctx, 1) },
			"far too many":        func() (*hasp.Lease, error) { return c.Semaphore("k", 1<<31).Acquire(w.ctx, 1) },
			"Do": func() (*hasp.Lease, error) {
				return nil, c.Mutex("").Do(w.ctx, func(context.Context) error { t.Error("fn ran"); return nil })
			},
			"nil function": func() (*hasp.Lease, error) { return nil, c.Mutex("k").Do(w.ctx, nil) },
			"inspect": func() (*hasp.Lease, error) {
				_, err := c.Inspect(w.ctx, "")
				return nil, err
			},
			"revoke":         func() (*hasp.Lease, error) { return nil, c.Revoke(w.ctx, "\xff", 0) },
			"force":          func() (*hasp.Lease, error) { return nil, c.ForceRelease(w.ctx, "", 0) },
			"negative token": func() (*hasp.Lease, error) { return nil, c.ForceRelease(w.ctx, "k", -1) },
		}
		for name, call := range cases {
			l, err := call()
			if l != nil {
				t.Errorf("%s: a lease", name)
			}
			wantError(t, err, hasp.ErrInvalid)
		}
		if n := line.total(); n != 0 {
			t.Errorf("%d calls were sent: %v", n, line.log())
		}
		all := c.Mutex(tooMany[0], tooMany[1:]...)
		l, err := all.Lock(w.ctx) // 64 are allowed
		wantError(t, err)
		wantError(t, l.Release(w.ctx))
	})
}
