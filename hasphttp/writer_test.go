package hasphttp_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/hasphttp"
)

// lose drops the lease of a request and waits until its context says so.
func lose(t *testing.T, s *stage, r *http.Request) {
	t.Helper()
	s.store.Drop("order:42")
	select {
	case <-r.Context().Done():
	case <-time.After(time.Minute):
	}
	if !errors.Is(context.Cause(r.Context()), hasp.ErrLost) {
		t.Errorf("the handler's context says %v", context.Cause(r.Context()))
	}
}

func TestHT4_NoSuccessAfterALoss(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(http.ResponseWriter){
		"nothing":       func(http.ResponseWriter) {},
		"a status":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusCreated) },
		"a body":        func(w http.ResponseWriter) { _, _ = io.WriteString(w, "paid") },
		"a copied body": func(w http.ResponseWriter) { _, _ = io.Copy(w, strings.NewReader("paid")) },
		"a flush":       func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() },
		"an old flush":  func(w http.ResponseWriter) { w.(http.Flusher).Flush() },
		"early hints": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusOK)
		},
		"a length": func(w http.ResponseWriter) {
			w.Header().Set("Content-Length", "4")
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, "paid")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *stage
			s = newStage(t, &hasphttp.Options{TTL: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
				lose(t, s, r)
				answer(w)
			})
			r := s.get("/orders/42")
			if r.err != nil || r.status != http.StatusServiceUnavailable || r.body != `{"success":false,"message":"Lock lost"}` {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestAnswersThatAreNoSuccessPassAfterALoss(t *testing.T) {
	t.Parallel()
	var s *stage
	s = newStage(t, &hasphttp.Options{TTL: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		lose(t, s, r)
		http.Error(w, "not paid", http.StatusPaymentRequired)
	})
	if r := s.get("/orders/42"); r.status != http.StatusPaymentRequired || r.body != "not paid\n" {
		t.Errorf("%+v", r)
	}
}

func TestTheControllerOfAResponseWorks(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		c := http.NewResponseController(w)
		if err := c.SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Errorf("SetWriteDeadline: %v", err)
		}
		if err := c.EnableFullDuplex(); err != nil {
			t.Errorf("EnableFullDuplex: %v", err)
		}
		_, _ = io.WriteString(w, "a")
		if err := c.Flush(); err != nil {
			t.Errorf("Flush: %v", err)
		}
		_, _ = io.WriteString(w, "b")
		w.WriteHeader(http.StatusTeapot) // too late, as without the middleware
	})
	if r := s.get("/orders/42"); r.status != http.StatusOK || r.body != "ab" {
		t.Errorf("%+v", r)
	}
}

func TestAHijackedConnectionIsLeftAlone(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 418 I'm a teapot\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
		_ = conn.Close()
	})
	if r := s.get("/orders/42"); r.err != nil || r.status != http.StatusTeapot {
		t.Errorf("%+v", r)
	}
}

func TestALostLeaseIsNotHijacked(t *testing.T) {
	t.Parallel()
	var s *stage
	s = newStage(t, &hasphttp.Options{TTL: 300 * time.Millisecond}, func(w http.ResponseWriter, r *http.Request) {
		lose(t, s, r)
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, hasp.ErrLost) {
			t.Errorf("Hijack: %v", err)
		}
	})
	if r := s.get("/orders/42"); r.status != http.StatusServiceUnavailable {
		t.Errorf("%+v", r)
	}
}

func TestStatusIsNeverOneOfSuccess(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{
		&hasphttp.KeyError{Err: hasp.ErrInvalid}: http.StatusBadRequest,
		&hasp.HeldError{}:                        http.StatusConflict,
		hasp.ErrInvalid:                          http.StatusInternalServerError,
		hasp.ErrUnsupported:                      http.StatusInternalServerError,
		hasp.ErrUnavailable:                      http.StatusServiceUnavailable,
		hasp.ErrRefused:                          http.StatusServiceUnavailable,
		hasp.ErrClosed:                           http.StatusServiceUnavailable,
		hasp.ErrLost:                             http.StatusServiceUnavailable,
		hasp.ErrReleased:                         http.StatusServiceUnavailable,
		hasphttp.ErrNotLeading:                   http.StatusServiceUnavailable,
		hasphttp.ErrStopping:                     http.StatusServiceUnavailable,
		errors.New("anything"):                   http.StatusServiceUnavailable,
	} {
		w := httptest.NewRecorder()
		hasphttp.Error(w, err)
		if got := hasphttp.Status(err); got != want || w.Code != want {
			t.Errorf("%v: %d and %d, want %d", err, got, w.Code, want)
		}
	}
}
