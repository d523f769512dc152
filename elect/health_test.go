package elect_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/elect"
)

// health is what a health check answers.
type health struct {
	Election, State, Token, Error string
	Terms                         int
	For                           int64 `json:"for_ms"`
	Overrun                       bool
	Leader                        *struct {
		Name, Token string
		For         int64 `json:"for_ms"`
		ExpiresIn   int64 `json:"expires_in_ms"`
	}
	status int
}

func ask(t *testing.T, h http.Handler, method string) health {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, "/healthz", nil))
	answer := health{status: w.Code}
	if w.Code == http.StatusMethodNotAllowed {
		return answer
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatalf("%q: %v", w.Body, err)
	}
	return answer
}

func TestHealthSaysWhoLeadsAndSinceWhen(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a, b := w.node("a", elect.Stay, nil), w.node("b", elect.Stay, nil)
		time.Sleep(1500 * time.Millisecond)
		ha, hb := ask(t, a.Health(), http.MethodGet), ask(t, b.Health(), http.MethodGet)
		token := strconv.FormatInt(a.Status().Token, 10)
		if ha.status != 200 || ha.Election != "e" || ha.State != "leading" || ha.Token != token || ha.For != 1500 || ha.Terms != 1 {
			t.Errorf("the leader says %+v", ha)
		}
		if hb.status != 200 || hb.State != "following" || hb.Token != "" || hb.For != 1500 || hb.Terms != 0 {
			t.Errorf("the follower says %+v", hb)
		}
		for _, h := range []health{ha, hb} {
			if h.Leader == nil || h.Leader.Name != "a" || h.Leader.Token != token || h.Leader.ExpiresIn <= 0 {
				t.Errorf("the leader is said to be %+v, want a with token %s", h.Leader, token)
			}
		}
		if ha.Leader.For != 1500 {
			t.Errorf("the leader leads for %d ms by its own words, want 1500", ha.Leader.For)
		}
		if la, lb := ask(t, a.LeaderOnly(), http.MethodGet), ask(t, b.LeaderOnly(), http.MethodGet); la.status != 200 || lb.status != 503 {
			t.Errorf("LeaderOnly answers %d to the leader and %d to the follower, want 200 and 503", la.status, lb.status)
		}
		if post := ask(t, a.Health(), http.MethodPost); post.status != http.StatusMethodNotAllowed {
			t.Errorf("POST answers %d", post.status)
		}
		_, _ = b.end(), a.end()
		if h := ask(t, a.Health(), http.MethodGet); h.status != 503 || h.State != "stopped" || h.Leader != nil {
			t.Errorf("a candidate that does not run says %+v", h)
		}
	})
}

func TestHealthWithoutAStore(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		a := w.node("a", elect.Stay, nil)
		resume := w.store.Stall()
		began := time.Now()
		h := ask(t, a.Health(), http.MethodGet)
		within(t, "a health check on a silent store", time.Since(began), 1100*time.Millisecond)
		if h.status != 200 || h.State != "leading" || h.Error == "" || h.Leader != nil {
			t.Errorf("inside its trust window the leader says %+v, want leading and an error", h)
		}
		time.Sleep(ttl)
		if h := ask(t, a.LeaderOnly(), http.MethodGet); h.status != 503 {
			t.Errorf("beyond its trust window LeaderOnly answers %d", h.status)
		}
		if h := ask(t, a.Health(), http.MethodGet); h.status != 200 || h.State != "following" {
			t.Errorf("beyond its trust window it says %+v, want following", h)
		}
		resume()
		_ = a.end()
	})
}

func TestHealthOfWorkThatOverruns(t *testing.T) {
	t.Parallel()
	bubble(t, func(w *world) {
		d := newDiary()
		a := w.node("a", d.work("a", time.Minute), &elect.Options{Overrun: time.Second})
		w.store.Fail(errors.New("away"))
		time.Sleep(ttl + 500*time.Millisecond)
		if h := ask(t, a.Health(), http.MethodGet); h.status != 200 || h.State != "draining" {
			t.Errorf("work that has just lost its term says %+v", h)
		}
		time.Sleep(2 * time.Second)
		if h := ask(t, a.Health(), http.MethodGet); h.status != 503 || !h.Overrun {
			t.Errorf("work that overruns says %+v, want 503", h)
		}
		w.store.Fail(nil)
		a.stop()
		time.Sleep(2 * time.Minute)
		_ = a.end()
	})
}
