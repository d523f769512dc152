package elect

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"
)

// lookLimit bounds how long a health check waits for the store.
const lookLimit = time.Second

// Health answers GET and HEAD with JSON: what this candidate does, since when, and who
// leads. The status is 200 while it runs, whether it leads or follows and also while the
// store is away, which restarting does not mend; it is 503 when it does not run, and when
// its work goes on although it no longer may (Status.Overrun). So it suits as a liveness
// check.
func (e *Elector) Health() http.Handler {
	return check(func(w http.ResponseWriter, r *http.Request) {
		s := e.Status()
		answer := report{
			Election: s.Election, State: s.State.String(), For: time.Since(s.Since).Milliseconds(),
			Token: number(s.Token), Terms: s.Terms, Overrun: s.Overrun,
		}
		ctx, cancel := context.WithTimeout(r.Context(), lookLimit)
		defer cancel()
		leader, err := e.Leader(ctx)
		switch {
		case err != nil:
			answer.Error = err.Error()
		case !leader.Nobody():
			answer.Leader = &leaderReport{
				Name: leader.Name, Token: number(leader.Token), For: time.Since(leader.Since).Milliseconds(),
				InLine: leader.InLine.Milliseconds(), ExpiresIn: leader.ExpiresIn.Milliseconds(),
			}
		}
		if s.Err != nil {
			answer.Error = s.Err.Error()
		}
		send(w, s.State != Stopped && !s.Overrun, answer)
	})
}

// LeaderOnly answers GET and HEAD with 200 while this process leads, and with 503
// otherwise: for a load balancer that sends requests to the leader. It asks no store.
func (e *Elector) LeaderOnly() http.Handler {
	return check(func(w http.ResponseWriter, _ *http.Request) {
		s := e.Status()
		send(w, s.State == Leading, report{
			Election: s.Election, State: s.State.String(), For: time.Since(s.Since).Milliseconds(),
			Token: number(s.Token), Terms: s.Terms, Overrun: s.Overrun,
		})
	})
}

// report is the answer to a health check.
type report struct {
	Election string        `json:"election"`
	State    string        `json:"state"`
	For      int64         `json:"for_ms"`
	Token    string        `json:"token,omitempty"` // a number that JSON readers would round
	Terms    int           `json:"terms"`
	Overrun  bool          `json:"overrun,omitempty"`
	Leader   *leaderReport `json:"leader,omitempty"`
	Error    string        `json:"error,omitempty"`
}

type leaderReport struct {
	Name      string `json:"name"`
	Token     string `json:"token"`
	For       int64  `json:"for_ms"`
	InLine    int64  `json:"in_line_ms"`
	ExpiresIn int64  `json:"expires_in_ms"`
}

func number(token int64) string {
	if token == 0 {
		return ""
	}
	return strconv.FormatInt(token, 10)
}

func check(answer http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "a health check is read with GET", http.StatusMethodNotAllowed)
			return
		}
		answer(w, r)
	})
}

func send(w http.ResponseWriter, healthy bool, answer report) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	if !healthy {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer) // who asked may have gone
}
