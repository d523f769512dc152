package fence_test

import (
	"math"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/fence"
)

func TestTokenOfALeaseThatExcludes(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		c := client(t, store.Driver(), hasp.Options{})
		writer, err := c.RWMutex("catalog").Lock(ctx)
		wantNil(t, err)
		all, err := c.Semaphore("gpu", 4).Acquire(ctx, 4)
		wantNil(t, err)
		for _, lease := range []*hasp.Lease{lock(ctx, t, c, "a", "b"), writer, all} {
			token, err := fence.Token(lease)
			if err != nil || token != lease.Token() || token == 0 {
				t.Errorf("%v: token %d, %v", lease, token, err)
			}
		}
	})
}

func TestTokenOfASharedLeaseIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		c := client(t, store.Driver(), hasp.Options{})
		reader, err := c.RWMutex("catalog").RLock(ctx)
		wantNil(t, err)
		permit, err := c.Semaphore("gpu", 4).Acquire(ctx, 3)
		wantNil(t, err)
		for _, lease := range []*hasp.Lease{reader, permit} {
			token, err := fence.Token(lease)
			wantIs(t, err, hasp.ErrInvalid)
			if token != 0 {
				t.Errorf("%v: token %d beside an error", lease, token)
			}
			header := http.Header{}
			wantIs(t, fence.SetHeader(header, lease), hasp.ErrInvalid)
			if len(header) != 0 {
				t.Errorf("%v: the header was set: %v", lease, header)
			}
		}
	})
}

// tokenless is a store that cannot keep G3.
type tokenless struct{ driver.Driver }

func (d tokenless) Features() driver.Features {
	f := d.Driver.Features()
	f.Tokens = false
	return f
}

func TestTokenOfAStoreWithoutTokensIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		lease := lock(ctx, t, client(t, tokenless{store.Driver()}, hasp.Options{}), "a")
		_, err := fence.Token(lease)
		wantIs(t, err, hasp.ErrUnsupported)
		wantIs(t, fence.Table{Dialect: fence.SQLite}.Raise(ctx, nil, lease), hasp.ErrUnsupported)
		wantIs(t, fence.Column{}.Raise(ctx, nil, lease), hasp.ErrUnsupported)
	})
}

func TestTokenOfALeaseThatEndedIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		c := client(t, store.Driver(), hasp.Options{})
		released, lost := lock(ctx, t, c, "released"), lock(ctx, t, c, "lost")
		wantNil(t, released.Release(ctx))
		store.Drop("lost")
		<-lost.Done()
		_, err := fence.Token(released)
		wantIs(t, err, hasp.ErrReleased)
		_, err = fence.Token(lost)
		wantIs(t, err, hasp.ErrLost)
		_, err = fence.Token(nil)
		wantIs(t, err, hasp.ErrInvalid)
	})
}

// G11: a lease is kept while its owner finishes, so that he can.
func TestTokenWhileTheClientClosesStillFences(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		c := client(t, store.Driver(), hasp.Options{})
		lease := lock(ctx, t, c, "a")
		closed := make(chan error)
		go func() { closed <- c.Close(ctx) }()
		<-lease.Done()
		wantIs(t, lease.Err(), hasp.ErrClosed)
		token, err := fence.Token(lease)
		if err != nil || token != lease.Token() {
			t.Errorf("token %d, %v", token, err)
		}
		wantNil(t, lease.Release(ctx))
		wantNil(t, <-closed)
	})
}

func TestParseTokenTakesDigitsAlone(t *testing.T) {
	t.Parallel()
	for _, token := range []int64{1, 64, 1 << 53, 1<<53 + 1, math.MaxInt64} {
		got, err := fence.ParseToken(strconv.FormatInt(token, 10))
		if err != nil || got != token {
			t.Errorf("%d is read as %d, %v", token, got, err)
		}
	}
	for _, text := range []string{
		"", "0", "-1", "+1", " 1", "1 ", "01", "1.0", "1e3", "0x1", "1_0", "9223372036854775808", "١", "1,2", "token",
	} {
		got, err := fence.ParseToken(text)
		wantIs(t, err, hasp.ErrInvalid)
		if got != 0 {
			t.Errorf("%q is read as %d", text, got)
		}
	}
}

// A number in JSON would be rounded by readers that know float64 only.
func TestParseTokenReadsWhatFloat64WouldRound(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		time.Sleep(time.Hour)
		c := client(t, store.Driver(), hasp.Options{})
		header := http.Header{}
		lease := lock(ctx, t, c, "a")
		wantNil(t, fence.SetHeader(header, lease))
		got, err := fence.ParseHeader(header)
		if err != nil || got != lease.Token() {
			t.Errorf("the header %v is read as %d, %v, want %d", header, got, err, lease.Token())
		}
	})
}
