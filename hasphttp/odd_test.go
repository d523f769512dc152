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

func TestATimeoutAroundTheLockEndsItWithTheHandler(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	timedOut, goOn := make(chan struct{}), make(chan struct{})
	inner := hasphttp.Middleware(s.client, keyOf(t, "order:{query.id}"), nil)(http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(timedOut)
			<-goOn
			w.WriteHeader(http.StatusOK)
		}))
	w := httptest.NewRecorder()
	http.TimeoutHandler(inner, 50*time.Millisecond, "late").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?id=1", http.NoBody))
	receive(t, timedOut)
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != "late" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.line("order:1", 1, 0)
	close(goOn)
	s.line("order:1", 0, 0)
}

func TestHT4_ARedirectAfterALossIsReplacedToo(t *testing.T) {
	t.Parallel()
	var s *stage
	s = newStage(t, &hasphttp.Options{TTL: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		lose(t, s, r)
		w.Header().Set("Trailer", "Digest")
		http.Redirect(w, r, "/paid", http.StatusSeeOther)
	})
	r := s.get("/orders/42")
	if r.status != http.StatusServiceUnavailable || r.header.Get("Location") != "" || r.body != `{"success":false,"message":"Lock lost"}` {
		t.Errorf("%+v", r)
	}
}

func TestTheLockWorksOverHTTP2(t *testing.T) {
	t.Parallel()
	stop := make(chan struct{})
	s := newStage(t, &hasphttp.Options{Wait: time.Hour, Stop: stop}, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		if err := http.NewResponseController(w).Flush(); err != nil {
			t.Error(err)
		}
		w.Header().Set(http.TrailerPrefix+"Digest", "x")
	})
	server := httptest.NewUnstartedServer(s.server.Config.Handler)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	s.server = server
	answer, err := server.Client().Get(server.URL + "/orders/42")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
	if answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK || answer.Trailer.Get("Digest") != "x" {
		t.Errorf("%+v", answer)
	}
	s.line("order:42", 0, 0)
	defer s.release(s.lock("order:42"))
	body, sender := io.Pipe()
	defer sender.Close()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/orders/42", body)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan reply, 1)
	go func() { done <- s.send(r) }()
	time.Sleep(100 * time.Millisecond) // most often it waits for the body now
	close(stop)
	if got := receive(t, done); got.err != nil || got.status != http.StatusServiceUnavailable {
		t.Errorf("%+v", got)
	}
}
