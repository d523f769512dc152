package fence_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/fence"
)

// PZ-1: A gets its token, reads, stops for 3 TTL; B gets the next and writes; A goes on and
// writes. In virtual time, with 200 stops: the paused holder does not look at its lease again,
// as one that was stopped right after it looked.
func TestPZ1AWriteAfterAPauseIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		var g fence.Gate
		written := 0 // guarded by the gate
		add := func(seen int) func(context.Context) error {
			return func(context.Context) error {
				written = seen + 1
				return nil
			}
		}
		done := 0
		for range 200 {
			paused := store.Driver()
			a := client(t, paused, hasp.Options{Name: "a"})
			b := client(t, store.Driver(), hasp.Options{Name: "b"})
			old := lock(ctx, t, a, "order:42")
			token, seen := old.Token(), written
			early := rand.IntN(2) == 0
			if early { // it wrote before it was stopped, and will again
				wantNil(t, g.Do(ctx, "order:42", token, add(seen)))
				seen, done = written, done+1
			}
			goOn := paused.Stall()
			time.Sleep(time.Duration(rand.Int64N(int64(3 * ttl))))
			next := lock(ctx, t, b, "order:42")
			wantNil(t, g.Do(ctx, "order:42", next.Token(), add(written)))
			done++

			wantStale(t, g.Do(ctx, "order:42", token, add(seen)), "order:42", next.Token(), token)
			goOn()
			if _, err := fence.Token(old); !errors.Is(err, hasp.ErrLost) {
				t.Fatalf("the lease that was lost is %v", err)
			}
			wantNil(t, next.Release(ctx))
			wantNil(t, errors.Join(a.Close(ctx), b.Close(ctx)))
		}
		if written != done {
			t.Errorf("%d updates, of which %d were written over", done, done-written)
		}
	})
}

// A late packet: the request was sent in time and arrives when the next holder has written.
func TestPZ1ALatePacketIsRefused(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		t, ctx, store := w.t, w.ctx, w.store
		var g fence.Gate
		var written []string
		h := fence.Middleware(&g, byPath)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			written = append(written, r.URL.Query().Get("by"))
		}))
		request := func(by string, lease *hasp.Lease) *http.Request {
			r := httptest.NewRequestWithContext(ctx, http.MethodPut, "/order:42?by="+by, nil)
			wantNil(t, fence.SetHeader(r.Header, lease))
			return r
		}
		c := client(t, store.Driver(), hasp.Options{})
		a := lock(ctx, t, c, "order:42")
		late := request("a", a)
		wantNil(t, a.Release(ctx))
		b := lock(ctx, t, c, "order:42")
		if got := serve(h, request("b", b)); got.Code != http.StatusOK {
			t.Errorf("the holder is answered %d %s", got.Code, got.Body)
		}
		if got := serve(h, late); got.Code != http.StatusPreconditionFailed {
			t.Errorf("a late request is answered %d %s", got.Code, got.Body)
		}
		if len(written) != 1 || written[0] != "b" {
			t.Errorf("written by %v, want b alone", written)
		}
	})
}
