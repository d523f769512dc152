package hasphttp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/hasphttp"
)

const heldBody = `{"success":false,"message":"Lock not acquired"}`

// stage is a server whose handlers run under the lock "order:{id}", and its store.
type stage struct {
	*testing.T
	store  *memlease.Store
	client *hasp.Client
	server *httptest.Server
}

func newStage(t *testing.T, o *hasphttp.Options, handler http.HandlerFunc) *stage {
	t.Helper()
	s := &stage{T: t, store: memlease.NewStore()}
	client, err := hasp.New(s.store.Driver(), &hasp.Options{
		Name: "server", Lock: hasp.LockOptions{LocalHandoffs: -1}, // each request stands in the line that the tests look at
	})
	if err != nil {
		t.Fatal(err)
	}
	s.client = client
	mux := http.NewServeMux()
	mux.Handle("/orders/{id}", hasphttp.Middleware(client, keyOf(t, "order:{id}"), o)(handler))
	s.server = httptest.NewServer(mux)
	t.Cleanup(func() {
		s.server.Close()
		if err := client.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

func keyOf(t *testing.T, template string, more ...string) hasphttp.KeyFunc {
	t.Helper()
	key, err := hasphttp.Key(template, more...)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// reply is an answer that has been read.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func (s *stage) post(ctx context.Context, path, body string) reply {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.server.URL+path, strings.NewReader(body))
	if err != nil {
		return reply{err: err}
	}
	return s.send(r)
}

func (s *stage) send(r *http.Request) reply {
	answer, err := s.server.Client().Do(r)
	if err != nil {
		return reply{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return reply{status: answer.StatusCode, header: answer.Header, body: string(text), err: err}
}

func (s *stage) get(path string) reply {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), http.MethodGet, s.server.URL+path, http.NoBody)
	if err != nil {
		s.Fatal(err)
	}
	return s.send(r)
}

// line waits until the line of a key is as wanted.
func (s *stage) line(key string, holders, waiting int) {
	s.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		l, err := s.client.Inspect(s.Context(), key)
		if err != nil {
			s.Fatal(err)
		}
		if len(l.Holders) == holders && l.Waiting == waiting {
			return
		}
		if time.Now().After(deadline) {
			s.Fatalf("%q has %d holders and %d waiting, want %d and %d", key, len(l.Holders), l.Waiting, holders, waiting)
		}
	}
}

func (s *stage) lock(key string) *hasp.Lease {
	s.Helper()
	lease, err := s.client.Mutex(key).Lock(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

func (s *stage) release(l *hasp.Lease) {
	s.Helper()
	if err := l.Release(s.Context()); err != nil {
		s.Fatal(err)
	}
}

// receive waits for what must come.
func receive[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(time.Minute):
		t.Fatal("nothing came")
	}
	panic("unreachable")
}
