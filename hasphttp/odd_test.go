package hasphttp_test

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/hasphttp"
)

// slow sends a request whose body never comes, and answers the status line.
func (s *stage) slow(path string) <-chan string {
	s.Helper()
	conn, err := net.Dial("tcp", s.server.Listener.Addr().String())
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"); err != nil {
		s.Fatal(err)
	}
	status := make(chan string, 1)
	go func() {
		buf := make([]byte, 64)
		n, _ := conn.Read(buf)
		line, _, _ := strings.Cut(string(buf[:n]), "\r\n")
		status <- line
	}()
	return status
}

func TestHT7_ARequestWhoseBodyDoesNotComeIsAnsweredWhenTheServerStops(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	s := newStage(t, &hasphttp.Options{Wait: time.Hour, Stop: stop}, func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") })
	defer s.release(s.lock("order:42"))
	status := s.slow("/orders/42")
	time.Sleep(100 * time.Millisecond) // most often it waits for the body now
	close(stop)
	if line := receive(t, status); line != "HTTP/1.1 503 Service Unavailable" {
		t.Error(line)
	}
}

func TestARequestWhoseBodyDoesNotComeWaitsNoLonger(t *testing.T) {
	t.Parallel()
	s := newStage(t, &hasphttp.Options{Wait: 200 * time.Millisecond}, func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") })
	defer s.release(s.lock("order:42"))
	if line := receive(t, s.slow("/orders/42")); line != "HTTP/1.1 409 Conflict" {
		t.Error(line)
	}
}

func TestALeaseThatTheHandlerGaveAwayIsNotLost(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(context.Context, *hasp.Lease) error{
		"released": func(ctx context.Context, l *hasp.Lease) error { return l.Release(ctx) },
		"kept":     func(ctx context.Context, l *hasp.Lease) error { return l.Keep(ctx, time.Minute) },
		"detached": func(ctx context.Context, l *hasp.Lease) error { _, err := l.Detach(ctx, time.Minute); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, nil, func(w http.ResponseWriter, r *http.Request) {
				lease, _ := hasp.FromContext(r.Context(), "order:42")
				if err := end(r.Context(), lease); err != nil {
					t.Error(err)
				}
				w.WriteHeader(http.StatusCreated)
			})
			if r := s.get("/orders/42"); r.status != http.StatusCreated {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestHT1_AClientThatIsGoneIsNoFaultOfTheServer(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	var log bytes.Buffer
	o := &hasphttp.Options{Wait: time.Second, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	handler := hasphttp.Middleware(s.client, keyOf(t, "order:{query.id}"), o)(http.HandlerFunc(
		func(http.ResponseWriter, *http.Request) { t.Error("the handler runs") }))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/?id=1", http.NoBody))
	if w.Code != 499 || log.Len() > 0 {
		t.Errorf("%d %s", w.Code, log.String())
	}
}
