package hasphttp_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/hasphttp"
)

func TestOfManyRequestsAtOnceOneRunsAndTheOthersAreTold(t *testing.T) {
	t.Parallel()
	const n = 50
	refused := make(chan struct{})
	s := newStage(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		<-refused
		fmt.Fprint(w, "paid")
	})
	replies := make(chan reply, n)
	for range n {
		go func() { replies <- s.post(t.Context(), "/orders/42", "{}") }()
	}
	for range n - 1 {
		r := receive(t, replies)
		if r.err != nil || r.status != http.StatusConflict || r.body != heldBody ||
			r.header.Get("Content-Type") != "application/json" || r.header.Get("Retry-After") != "10" {
			t.Fatalf("%+v", r)
		}
	}
	close(refused)
	if r := receive(t, replies); r.status != http.StatusOK || r.body != "paid" {
		t.Errorf("%+v", r)
	}
	s.line("order:42", 0, 0)
}

func TestWithWaitAllRunOneAfterTheOtherAndOtherKeysBeside(t *testing.T) {
	t.Parallel()
	const n = 50
	var inside [2]atomic.Int32
	both := make(chan struct{}, 2)
	s := newStage(t, &hasphttp.Options{Wait: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		which := 0
		if r.PathValue("id") == "other" {
			which = 1
			both <- struct{}{}
			<-r.Context().Done() // until its client leaves
		}
		if inside[which].Add(1) != 1 {
			t.Error("two requests run at once under one key")
		}
		inside[which].Add(-1)
		fmt.Fprint(w, "paid")
	})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan reply, 1)
	go func() { gone <- s.post(ctx, "/orders/other", "") }()
	receive(t, both)
	replies := make(chan reply, n)
	for range n {
		go func() { replies <- s.post(t.Context(), "/orders/42", "{}") }()
	}
	for range n {
		if r := receive(t, replies); r.err != nil || r.status != http.StatusOK {
			t.Fatalf("%+v", r)
		}
	}
	cancel()
	receive(t, gone)
	s.line("order:other", 0, 0)
}

func TestHT1_AClientThatHangsUpWhileWaitingLeavesTheLine(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"without a body": "", "with a body": `{"amount":1}`, "with a long body": strings.Repeat("x", 60<<10),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			s := newStage(t, &hasphttp.Options{Wait: time.Hour}, func(w http.ResponseWriter, r *http.Request) {
				ran.Add(1)
				fmt.Fprint(w, r.ContentLength)
			})
			lease := s.lock("order:42")
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan reply, 1)
			go func() { gone <- s.post(ctx, "/orders/42", body) }()
			s.line("order:42", 1, 1)
			third := make(chan reply, 1)
			go func() { third <- s.post(t.Context(), "/orders/42", body) }()
			s.line("order:42", 1, 2)
			cancel()
			if r := receive(t, gone); !errors.Is(r.err, context.Canceled) {
				t.Errorf("%+v", r)
			}
			s.line("order:42", 1, 1)
			s.release(lease)
			if r := receive(t, third); r.status != http.StatusOK || r.body != strconv.Itoa(len(body)) {
				t.Errorf("%+v", r)
			}
			if n := ran.Load(); n != 1 {
				t.Errorf("the handler ran %d times", n)
			}
		})
	}
}

func TestTheHandlerReadsTheWholeBodyAfterWaiting(t *testing.T) {
	t.Parallel()
	s := newStage(t, &hasphttp.Options{Wait: time.Minute}, func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, 200<<10)
		buf := make([]byte, 300<<10)
		n := 0
		for {
			more, err := r.Body.Read(buf[n:])
			if n += more; err != nil {
				break
			}
		}
		fmt.Fprint(w, n, strings.Count(string(buf[:n]), "x"))
	})
	lease := s.lock("order:42")
	done := make(chan reply, 1)
	go func() { done <- s.post(t.Context(), "/orders/42", strings.Repeat("x", 150<<10)) }()
	s.line("order:42", 1, 1)
	s.release(lease)
	if r := receive(t, done); r.body != "153600 153600" {
		t.Errorf("%+v", r)
	}
}

func TestHT2_TheLockIsKeptUntilTheHandlerReturnsAlsoWhenItsClientLeaves(t *testing.T) {
	t.Parallel()
	running, goOn := make(chan struct{}), make(chan struct{})
	s := newStage(t, nil, func(_ http.ResponseWriter, r *http.Request) {
		close(running)
		<-r.Context().Done()
		<-goOn
	})
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan reply, 1)
	go func() { gone <- s.post(ctx, "/orders/42", "") }()
	receive(t, running)
	cancel()
	receive(t, gone)
	if _, err := s.client.Mutex("order:42").TryLock(t.Context()); !errors.Is(err, hasp.ErrHeld) {
		t.Errorf("while the handler runs: %v", err)
	}
	close(goOn)
	s.line("order:42", 0, 0)
}

func TestTheContextCarriesTheLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, func(w http.ResponseWriter, r *http.Request) {
		lease, ok := hasp.FromContext(r.Context(), "order:a%3Ab")
		if !ok || lease.Err() != nil || lease.Token() == 0 {
			t.Errorf("the lease is %v, %v", lease, ok)
		}
		w.WriteHeader(http.StatusNoContent)
	})
	if r := s.get("/orders/a%3Ab"); r.status != http.StatusNoContent {
		t.Errorf("%+v", r)
	}
}

func TestPN1_APanicReleasesAndGoesOn(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	handler := hasphttp.Middleware(s.client, keyOf(t, "order:{query.id}"), nil)(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { panic("boom") }))
	w := httptest.NewRecorder()
	func() {
		defer func() {
			if v := recover(); v != "boom" {
				t.Errorf("recovered %v", v)
			}
		}()
		handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?id=1", http.NoBody))
	}()
	s.release(s.lock("order:1"))
}

func TestKT7_AStoreThatFailsIs503AndTheHandlerDoesNotRun(t *testing.T) {
	t.Parallel()
	for _, fault := range []error{hasp.ErrUnavailable, hasp.ErrRefused} {
		s := newStage(t, &hasphttp.Options{Wait: time.Second}, func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") })
		s.store.Fail(fmt.Errorf("%w: secret host", fault))
		r := s.get("/orders/42")
		if r.status != http.StatusServiceUnavailable || r.body != `{"success":false,"message":"Lock unavailable"}` {
			t.Errorf("%v: %+v", fault, r)
		}
		s.store.Fail(nil)
	}
}

func TestHT7_AServerThatStopsAnswersThoseThatWait(t *testing.T) {
	t.Parallel()
	stop, running, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	s := newStage(t, &hasphttp.Options{Wait: time.Hour, Stop: stop}, func(_ http.ResponseWriter, r *http.Request) {
		close(running)
		<-goOn
		if err := r.Context().Err(); err != nil {
			t.Errorf("the running request is told %v", err)
		}
	})
	first, second := make(chan reply, 1), make(chan reply, 1)
	go func() { first <- s.post(t.Context(), "/orders/42", "") }()
	receive(t, running)
	go func() { second <- s.post(t.Context(), "/orders/42", "{}") }()
	s.line("order:42", 1, 1)
	close(stop)
	if r := receive(t, second); r.status != http.StatusServiceUnavailable || !strings.Contains(r.body, "shutting down") {
		t.Errorf("the waiting one: %+v", r)
	}
	if r := s.get("/orders/42"); r.status != http.StatusServiceUnavailable {
		t.Errorf("one that would wait: %+v", r)
	}
	close(goOn)
	if r := receive(t, first); r.status != http.StatusOK {
		t.Errorf("the running one: %+v", r)
	}
}

func TestHT5_WhoMayWaitIsBounded(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]*hasphttp.Options{
		"per key": {Wait: time.Hour, MaxLine: 1}, "in total": {Wait: time.Hour, MaxWaiting: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, o, func(http.ResponseWriter, *http.Request) {})
			lease := s.lock("order:42")
			second := make(chan reply, 1)
			go func() { second <- s.post(t.Context(), "/orders/42", "") }()
			s.line("order:42", 1, 1)
			if r := s.get("/orders/42"); r.status != http.StatusConflict || r.body != heldBody {
				t.Errorf("%+v", r)
			}
			s.release(lease)
			if r := receive(t, second); r.status != http.StatusOK {
				t.Errorf("%+v", r)
			}
			if r := s.get("/orders/42"); r.status != http.StatusOK {
				t.Errorf("afterwards: %+v", r)
			}
		})
	}
}

func TestSharedRequestsRunBesideEachOther(t *testing.T) {
	t.Parallel()
	inside := make(chan struct{}, 2)
	goOn := make(chan struct{})
	s := newStage(t, &hasphttp.Options{Shared: true}, func(http.ResponseWriter, *http.Request) {
		inside <- struct{}{}
		<-goOn
	})
	replies := make(chan reply, 2)
	for range 2 {
		go func() { replies <- s.post(t.Context(), "/orders/42", "") }()
	}
	receive(t, inside)
	receive(t, inside)
	if _, err := s.client.Mutex("order:42").TryLock(t.Context()); !errors.Is(err, hasp.ErrHeld) {
		t.Errorf("exclusively beside them: %v", err)
	}
	close(goOn)
	for range 2 {
		if r := receive(t, replies); r.status != http.StatusOK {
			t.Errorf("%+v", r)
		}
	}
}

func TestOnErrorReplacesTheAnswer(t *testing.T) {
	t.Parallel()
	s := newStage(t, &hasphttp.Options{OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
		if errors.Is(err, hasp.ErrHeld) {
			http.Error(w, "busy", http.StatusLocked)
			return
		}
		hasphttp.Error(w, err)
	}}, func(http.ResponseWriter, *http.Request) {})
	lease := s.lock("order:42")
	if r := s.get("/orders/42"); r.status != http.StatusLocked || r.body != "busy\n" {
		t.Errorf("%+v", r)
	}
	s.release(lease)
	if r := s.get("/orders/42"); r.status != http.StatusOK {
		t.Errorf("%+v", r)
	}
}

func TestBeginIsForOtherFrameworks(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	key := keyOf(t, "order:{query.id}")
	r := httptest.NewRequest(http.MethodGet, "/?id=42", http.NoBody)
	within, end, ok := hasphttp.Begin(httptest.NewRecorder(), r, s.client, key, nil)
	if _, carried := hasp.FromContext(within.Context(), "order:42"); !ok || !carried {
		t.Fatalf("ok %v, carried %v", ok, carried)
	}
	w := httptest.NewRecorder()
	if _, _, again := hasphttp.Begin(w, r, s.client, key, nil); again || w.Code != http.StatusConflict {
		t.Errorf("held: %v, %d", again, w.Code)
	}
	w = httptest.NewRecorder()
	if _, _, again := hasphttp.Begin(w, within, s.client, key, nil); again || w.Code != http.StatusInternalServerError {
		t.Errorf("nested: %v, %d", again, w.Code)
	}
	end()
	s.line("order:42", 0, 0)
}

func TestWhatCannotBeRightIs500AndNothingRuns(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	key := keyOf(t, "order:{query.id}")
	for name, m := range map[string]func(http.Handler) http.Handler{
		"no client":          hasphttp.Middleware(nil, key, nil),
		"no key":             hasphttp.Middleware(s.client, nil, nil),
		"a short TTL":        hasphttp.Middleware(s.client, key, &hasphttp.Options{TTL: time.Millisecond}),
		"a negative wait":    hasphttp.Middleware(s.client, key, &hasphttp.Options{Wait: -time.Second}),
		"a pause of no time": hasphttp.Middleware(s.client, key, &hasphttp.Options{Retry: time.Microsecond}),
		"a negative bound":   hasphttp.Middleware(s.client, key, &hasphttp.Options{MaxLine: -1}),
		"two keys to share":  hasphttp.Middleware(s.client, keyOf(t, "a:{query.id}", "b"), &hasphttp.Options{Shared: true}),
		"no such path value": hasphttp.Middleware(s.client, keyOf(t, "a:{order}"), nil),
	} {
		mux := http.NewServeMux()
		mux.Handle("GET /{orderId}", m(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Errorf("%s: the handler runs", name) })))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/7?id=1", http.NoBody))
		if w.Code != http.StatusInternalServerError || !strings.Contains(w.Body.String(), "not set up correctly") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}
