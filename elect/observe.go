package elect

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/hasp-dev/hasp"
)

// Leader is who leads, as the store had it at one moment. The zero Leader is nobody.
type Leader struct {
	Name      string        // hasp.Options.Name of its client
	Token     int64         // of its term: each later term has a larger one
	Since     time.Time     // when this process saw it lead first, which no store notes; of its own terms, when they began
	InLine    time.Duration // how long it has been a candidate: waiting, then leading
	ExpiresIn time.Duration // until the term expires if it is not renewed, Grace included
}

// Nobody says that there is no leader.
func (l Leader) Nobody() bool { return l.Token == 0 && l.Name == "" }

// Observe answers who leads in the election called name: now, and each time it is
// somebody else or nobody, until ctx ends; a new term of the same process is a change,
// too. One need not be a candidate.
//
// Changes come in order, and never a term with a smaller token after one with a larger.
// The store is looked at when the loop asks for more, so a slow loop holds nobody up; it
// and one whose signals are lost miss terms that came and went, and see the present one
// within two seconds.
//
// A store that does not answer, or refuses, is told once, as an error: who leads is not
// known then. The loop goes on, and its next answer is the leader, the same or not. Any
// other error ends it.
func Observe(ctx context.Context, client *hasp.Client, name string) iter.Seq2[Leader, error] {
	return func(yield func(Leader, error) bool) {
		if client == nil {
			yield(Leader{}, failed("observe", name, invalidf("no client; make one with hasp.New")))
			return
		}
		var o observation
		for line, err := range client.Watch(ctx, name) {
			if err != nil {
				err = failed("observe", name, reason(err))
			}
			if leader, news, err := o.take(line, err); news && !yield(leader, err) {
				return
			}
		}
	}
}

// observation is what a loop was told so far.
type observation struct {
	leader Leader
	known  bool  // leader is what was told last
	behind bool  // or that the store shows an old term
	newest int64 // the largest token that was seen
}

// take answers what to tell of a look at the line, if it is news.
func (o *observation) take(line hasp.Line, err error) (Leader, bool, error) {
	if err != nil {
		o.known, o.behind = false, false
		return Leader{}, true, err
	}
	next := leaderOf(line, o.leader)
	if next.Token != 0 && next.Token < o.newest { // a store that was put back, by a backup or a replica that is behind
		news := !o.behind
		o.known, o.behind = false, true
		return Leader{}, news, fmt.Errorf("%w: it shows term %d, which is older than term %d, seen before: who leads is not known",
			hasp.ErrRefused, next.Token, o.newest)
	}
	news := !o.known || next.Token != o.leader.Token || next.Name != o.leader.Name
	o.leader, o.known, o.behind = next, true, false
	o.newest = max(o.newest, next.Token)
	return next, news, nil
}

// leaderOf is the front of the line. before is whom the last look found.
func leaderOf(line hasp.Line, before Leader) Leader {
	if len(line.Holders) == 0 {
		return Leader{}
	}
	h := line.Holders[0]
	l := Leader{Name: h.Name, Token: h.Token, Since: before.Since, InLine: h.InLine, ExpiresIn: h.ExpiresIn}
	if before.Token != l.Token || before.Since.IsZero() {
		l.Since = time.Now()
	}
	return l
}
