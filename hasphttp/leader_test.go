package hasphttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/elect"
	"github.com/hasp-dev/hasp/hasphttp"
)

// candidate is a process that takes part in the election "web".
func candidate(t *testing.T, store *memlease.Store, name string) *elect.Elector {
	t.Helper()
	client, err := hasp.New(store.Driver(), &hasp.Options{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	e, err := elect.New(client, "web", elect.Stay, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return e
}

func ask(t *testing.T, e *elect.Elector, o *hasphttp.LeaderOptions) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	handler := hasphttp.Leader(e, o)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }))
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/jobs?x=1", http.NoBody))
	return w
}

func TestOnlyTheLeaderAnswers(t *testing.T) {
	t.Parallel()
	store := memlease.NewStore()
	first := candidate(t, store, "a.example")
	for deadline := time.Now().Add(time.Minute); !first.IsLeader(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it does not lead")
		}
	}
	second := candidate(t, store, "b.example")
	if w := ask(t, first, nil); w.Code != http.StatusAccepted {
		t.Errorf("the leader: %d", w.Code)
	}
	if w := ask(t, second, nil); w.Code != http.StatusServiceUnavailable {
		t.Errorf("the other: %d", w.Code)
	}
	if w := ask(t, nil, nil); w.Code != http.StatusServiceUnavailable {
		t.Errorf("no election: %d", w.Code)
	}
	to := &hasphttp.LeaderOptions{Redirect: func(r *http.Request, l elect.Leader) string {
		if l.Name == "" {
			return ""
		}
		return "https://" + l.Name + r.URL.RequestURI()
	}}
	if w := ask(t, second, to); w.Code != http.StatusTemporaryRedirect || w.Header().Get("Location") != "https://a.example/jobs?x=1" {
		t.Errorf("redirected: %d %s", w.Code, w.Header().Get("Location"))
	}
	own := &hasphttp.LeaderOptions{OnError: func(w http.ResponseWriter, _ *http.Request, err error) {
		if !errors.Is(err, hasphttp.ErrNotLeading) {
			t.Error(err)
		}
		w.WriteHeader(http.StatusMisdirectedRequest)
	}}
	if w := ask(t, second, own); w.Code != http.StatusMisdirectedRequest {
		t.Errorf("replaced: %d", w.Code)
	}
	store.Fail(hasp.ErrUnavailable)
	if w := ask(t, second, to); w.Code != http.StatusServiceUnavailable {
		t.Errorf("without a store: %d", w.Code)
	}
	store.Fail(nil)
}

func TestALeaderThatDrainsIsNotSentToItself(t *testing.T) {
	t.Parallel()
	store := memlease.NewStore()
	client, err := hasp.New(store.Driver(), &hasp.Options{Name: "a.example"})
	if err != nil {
		t.Fatal(err)
	}
	leads, drains, goOn := make(chan struct{}), make(chan struct{}), make(chan struct{})
	e, err := elect.New(client, "web", func(ctx context.Context) error {
		close(leads)
		<-ctx.Done()
		close(drains)
		<-goOn
		return nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	receive(t, leads)
	stop()
	receive(t, drains)
	w := ask(t, e, &hasphttp.LeaderOptions{Redirect: func(r *http.Request, l elect.Leader) string {
		return "https://" + l.Name + r.URL.RequestURI()
	}})
	if w.Code != http.StatusServiceUnavailable {
		t.Errorf("%d %s", w.Code, w.Header().Get("Location"))
	}
	close(goOn)
	if err := <-ended; err != nil {
		t.Errorf("Run: %v", err)
	}
	if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
}
