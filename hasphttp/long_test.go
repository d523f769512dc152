package hasphttp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/hasphttp"
)

// onVirtualTime runs a check on a handler's answers under the lock order:{query.id}.
func onVirtualTime(t *testing.T, check func(t *testing.T, under func(http.HandlerFunc) http.Handler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client, err := hasp.New(memlease.NewStore().Driver(), nil)
		if err != nil {
			t.Fatal(err)
		}
		check(t, func(work http.HandlerFunc) http.Handler {
			return hasphttp.Middleware(client, keyOf(t, "order:{query.id}"), nil)(work)
		})
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

func TestHT4_TheLockOfAHandlerThatRunsForLongIsRenewed(t *testing.T) {
	t.Parallel()
	onVirtualTime(t, func(t *testing.T, under func(http.HandlerFunc) http.Handler) {
		t.Helper()
		handler := under(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(30 * time.Second) // three TTLs
			if lease, ok := hasp.FromContext(r.Context(), "order:1"); !ok || lease.Err() != nil || r.Context().Err() != nil {
				t.Errorf("the lease: %v, %v", lease, r.Context().Err())
			}
			fmt.Fprint(w, "paid")
		})
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?id=1", http.NoBody))
		if w.Code != http.StatusOK || w.Body.String() != "paid" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
}

// The store remembers for a while which number a key had last, and forgets that as it
// goes: the second half of the keys takes the room of the first.
func TestHT8_ManyDistinctKeysLeaveNoMemoryBehind(t *testing.T) { //nolint:paralleltest // it measures the heap
	n := 50_000
	if testing.Short() {
		n /= 10
	}
	onVirtualTime(t, func(t *testing.T, under func(http.HandlerFunc) http.Handler) {
		t.Helper()
		handler := under(func(http.ResponseWriter, *http.Request) {})
		ask := func(from, to int) {
			for i := from; i < to; i++ {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprintf("/?id=%d", i), http.NoBody))
				if w.Code != http.StatusOK {
					t.Fatalf("%d %s", w.Code, w.Body)
				}
			}
			time.Sleep(time.Minute)
		}
		ask(0, n)
		before := heap()
		ask(n, 2*n)
		if grown := heap() - before; grown > int64(n)*16 {
			t.Errorf("%d bytes are kept of %d keys", grown, n)
		}
		runtime.KeepAlive(handler)
	})
}

// heap is what is in use.
func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc) //nolint:gosec // far from the bound
}
