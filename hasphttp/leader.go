package hasphttp

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/hasp-dev/hasp/elect"
)

// lookLimit bounds how long a request waits for the store to say who leads.
const lookLimit = time.Second

// ErrNotLeading says that this process does not lead, so that it does not answer.
var ErrNotLeading = errors.New("this process does not lead")

// LeaderOptions say what becomes of a request that comes to a process that does not
// lead. Nil and the zero value mean the defaults.
type LeaderOptions struct {
	// Redirect answers the URL of the request at the leader, to which the client is sent
	// with 307, so that it repeats the same method and body there; empty: it is not. The
	// leader's Name is what its client has as hasp.Options.Name. The store is asked for
	// it. Defaults to not redirecting.
	Redirect func(r *http.Request, leader elect.Leader) string
	// OnError answers a request that is not redirected, with an error that wraps
	// ErrNotLeading. Defaults to Error, which says 503.
	OnError func(w http.ResponseWriter, r *http.Request, err error)
}

// Leader lets requests reach a handler only while this process leads: inside the trust
// window, which costs no I/O. Leadership may be lost while the handler runs; what must
// not be done then belongs to the work of the election, or carries its token.
func Leader(election *elect.Elector, o *LeaderOptions) func(http.Handler) http.Handler {
	o = cmp.Or(o, new(LeaderOptions))
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if election != nil && election.IsLeader() {
				next.ServeHTTP(w, r)
				return
			}
			if url := o.leaderURL(r, election); url != "" {
				http.Redirect(w, r, url, http.StatusTemporaryRedirect)
				return
			}
			if o.OnError != nil {
				o.OnError(w, r, ErrNotLeading)
				return
			}
			Error(w, ErrNotLeading)
		})
	}
}

// leaderURL is where the leader answers; empty: nobody leads, or nobody can say who.
func (o *LeaderOptions) leaderURL(r *http.Request, election *elect.Elector) string {
	if election == nil || o.Redirect == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(r.Context(), lookLimit)
	defer cancel()
	leader, err := election.Leader(ctx)
	if err != nil || leader.Nobody() {
		return ""
	}
	if own := election.Status().Token; own != 0 && own == leader.Token {
		return "" // its own term, which is ending: the client would come back here
	}
	return o.Redirect(r, leader)
}
