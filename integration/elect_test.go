package integration_test

import (
	"context"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/elect"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/history"
)

// election is the name of the election of these tests.
const election = "e"

// TestTenCandidatesNeverLeadTogether: ten processes stand in one election, while they
// are killed and stopped, resign, and are cut off from a store that itself stops, and
// dies. The judge wants that nobody was granted a term while another was trusted, and that
// tokens rise; besides, each term ends before its process begins the next, and an observer
// sees terms in order.
func TestTenCandidatesNeverLeadTogether(t *testing.T) {
	t.Parallel()
	const ttl = 600 * time.Millisecond
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		contest(t, onRedis(t, persistent), ttl, slices.Concat(worldly(), networked(), serverFaults(), redisFaults()))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		contest(t, startPostgres(t).with("pool=2"), 1500*time.Millisecond, slices.Concat(worldly(), networked(), serverFaults()))
	})
	t.Run("mysql", func(t *testing.T) {
		t.Parallel()
		s := startMySQL(t)
		contest(t, s, s.unhurried(ttl), slices.Concat(worldly(), networked(), serverFaults()))
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		contest(t, startSQLite(t), ttl, slices.Concat(worldly(), sqliteFaults()))
	})
}

func contest(t *testing.T, s *store, ttl time.Duration, faults []fault) {
	t.Helper()
	o := newOrdeal(t, s, crew.Brief{Elects: election, TTL: ttl, Grace: ttl / 2, Hold: ttl, Drain: ttl / 4})
	// After these two leaders do overlap, for one trust window at most; that is another test.
	o.faults = slices.DeleteFunc(faults, func(f fault) bool { return f.name == "force" || f.name == "the server forgets" })
	for range 10 {
		o.start()
	}
	seen, stop := observed(t, s)
	o.replace(o.anyWorker())
	o.run(ordealLasts(), never)
	o.run(20*soon, func() bool { return terms(o.brief.History) >= 6 }) // on a machine that is slow
	o.finish()
	empty(t, s.client(t), soon)
	tokens := stop()
	faulty, events := o.judge()
	o.report(faulty, events)
	again := inOrder(t, events)
	sum := history.Summarize(events)
	t.Logf("%s; %d new terms from the old place; an observer saw %d terms", sum, again, len(tokens))
	if sum.Held < 6 || sum.Killed == 0 || len(seen()) == 0 {
		t.Error("too little happened for a verdict")
	}
}

// terms is how many have begun, by a history that is being written.
func terms(path string) (n int) {
	events, err := history.Load(path)
	if err != nil {
		return 0 // a line is half there
	}
	for _, e := range events {
		if e.Kind == history.Held {
			n++
		}
	}
	return n
}

// observed starts an observer. stop ends it and answers the tokens it was told of.
func observed(t *testing.T, s *store) (seen func() []int64, stop func() []int64) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	c := s.client(t)
	var tokens []int64
	done := make(chan struct{})
	go func() {
		defer close(done)
		for leader, err := range elect.Observe(ctx, c, election) {
			if err == nil && !leader.Nobody() {
				tokens = append(tokens, leader.Token)
			}
		}
	}()
	seen = func() []int64 {
		cancel()
		<-done
		return tokens
	}
	return seen, func() []int64 {
		tokens := seen()
		if !slices.IsSorted(tokens) {
			t.Errorf("the observer was told of %v, an older term after a newer", tokens)
		}
		return tokens
	}
}

// inOrder wants each term to end before its process begins another, and answers how many
// were begun from the place of a lost one.
func inOrder(t *testing.T, events []history.Event) (again int) {
	t.Helper()
	leads := make(map[string]string) // by process, the term it is in
	for i, e := range events {
		switch e.Kind { //nolint:exhaustive // the others are not about terms
		case history.Held:
			if term := leads[e.Who]; term != "" {
				t.Errorf("line %d: %s begins inside %s", i+1, e.Lease, term)
			}
			leads[e.Who] = e.Lease
			if e.Token%64 != 0 {
				again++
			}
		case history.Over, history.Releasing:
			if leads[e.Who] != e.Lease {
				t.Errorf("line %d: %s ends, which is not under way", i+1, e.Lease)
			}
			delete(leads, e.Who)
		}
	}
	return again
}

// rivals are candidates of one election, one process each, the first of which leads.
type rivals struct {
	*ordeal
	ttl time.Duration
}

func rivalry(t *testing.T, s *store, brief crew.Brief) *rivals {
	t.Helper()
	brief.Elects = election
	r := &rivals{ttl: brief.TTL, ordeal: &ordeal{t: t, store: s, brief: brief, viewer: s.client(t)}}
	r.brief.Store, r.brief.History = s.addr, filepath.Join(t.TempDir(), "history")
	for range 2 {
		before := len(r.held())
		w := must(crew.Start(named(r.brief, len(r.workers)), nil))(t)
		t.Cleanup(w.Kill)
		r.workers = append(r.workers, &worker{Process: w})
		if len(r.workers) == 1 {
			eventually(t, soon, "the first leads", func() bool { return len(r.held()) > before })
		}
	}
	waiting(t, r.viewer, election, 1)
	return r
}

func named(b crew.Brief, nth int) crew.Brief {
	b.Name, b.Seed = string(rune('a'+nth)), uint64(nth)
	return b
}

// held are the terms that have begun.
func (r *rivals) held() (terms []history.Event) {
	r.t.Helper()
	events, err := history.Load(r.brief.History)
	if err != nil {
		return nil // not there yet
	}
	for _, e := range events {
		if e.Kind == history.Held {
			terms = append(terms, e)
		}
	}
	return terms
}

// second waits for the second term and answers it.
func (r *rivals) second(within time.Duration) history.Event {
	r.t.Helper()
	eventually(r.t, within, "the other leads", func() bool { return len(r.held()) > 1 })
	return r.held()[1]
}

// last answers the last event of a kind that a process wrote before the second term.
func (r *rivals) last(who string, kinds ...history.Kind) (last history.Event) {
	r.t.Helper()
	terms := 0
	for _, e := range must(history.Load(r.brief.History))(r.t) {
		if e.Kind == history.Held {
			terms++
		}
		if terms < 2 && e.Who == who && slices.Contains(kinds, e.Kind) {
			last = e
		}
	}
	return last
}

func (r *rivals) verdict() {
	r.t.Helper()
	faults := history.Judge(must(history.Load(r.brief.History))(r.t))
	for _, f := range faults {
		r.t.Error(f)
	}
}

// TestSR1_ALeaderDrainsAndNobodyElseLeads: a leader that is sent TERM works on for three
// TTLs; it leads all the while, and then the other does.
func TestSR1_ALeaderDrainsAndNobodyElseLeads(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 2 * time.Second
		r := rivalry(t, s, crew.Brief{TTL: ttl, Drain: 3 * ttl})
		told := history.Now()
		wantNil(t, r.workers[0].Signal(syscall.SIGTERM))
		next := r.second(3*ttl + soon)
		end := r.last("a", history.Releasing)
		if end.Kind == "" || end.At-told < int64(3*ttl) {
			t.Errorf("the leader's last word is %+v, want that it leaves when its work has ended", end)
		}
		if next.Who != "b" || next.At < end.At {
			t.Errorf("then leads %+v, want b, after the work has ended", next)
		}
		wantNil(t, r.workers[0].Wait(t.Context()))
		r.verdict()
	})
}

// TestXR1_AKilledLeaderIsFollowedWithinTTLAndGrace: not before what was trusted is over,
// unless the store knows better, and at the latest when TTL and Grace are.
func TestXR1_AKilledLeaderIsFollowedWithinTTLAndGrace(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl, grace = 4 * time.Second, 2 * time.Second
		r := rivalry(t, s, crew.Brief{TTL: ttl, Grace: grace})
		time.Sleep(ttl) // Grace counts from the first renewal
		r.workers[0].Kill()
		killed := history.Now()
		next := r.second(ttl + grace + soon)
		if took := time.Duration(next.At - killed); took > 2*(ttl+grace) { // twice, for a busy machine
			t.Errorf("the other leads after %s, want within TTL and Grace (%s)", took, ttl+grace)
		}
		if trusted := r.last("a", history.Held, history.Trusted); s.name != "sqlite" && next.At < trusted.Until {
			t.Errorf("the other leads %s before the trust of the first is over", time.Duration(trusted.Until-next.At))
		}
	})
}

// TestAPausedLeaderHasLostItsTermWhenItGoesOn: stopped beyond its TTL, it finds another
// leading, and stands in line again.
func TestAPausedLeaderHasLostItsTermWhenItGoesOn(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 2 * time.Second
		r := rivalry(t, s, crew.Brief{TTL: ttl})
		wantNil(t, r.workers[0].Pause())
		next := r.second(ttl + soon)
		wantNil(t, r.workers[0].Resume())
		waiting(t, r.viewer, election, 1)
		if next.Who != "b" || next.Token <= r.held()[0].Token {
			t.Errorf("the second term is %+v", next)
		}
		r.verdict()
	})
}

// TestLL7_ATermThatIsTakenEndsBeforeTheNextOfItsProcess: the leader's record is taken from
// it, again and again, and given to the other or back to itself; each process has one end
// for each beginning.
func TestLL7_ATermThatIsTakenEndsBeforeTheNextOfItsProcess(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl, times = 2 * time.Second, 6
		r := rivalry(t, s, crew.Brief{TTL: ttl, Drain: 50 * time.Millisecond})
		for n := range times {
			if n == times/2 {
				r.workers[1].Kill() // from here on there is no other
			}
			eventually(t, ttl+soon, "somebody leads", func() bool {
				line, err := r.viewer.Inspect(t.Context(), election)
				return err == nil && len(line.Holders) > 0 && len(r.held()) > n &&
					r.viewer.ForceRelease(t.Context(), election, line.Holders[0].Token) == nil
			})
		}
		eventually(t, ttl+soon, "the next term has begun", func() bool { return len(r.held()) > times })
		wantNil(t, r.workers[0].Signal(syscall.SIGTERM))
		wantNil(t, r.workers[0].Wait(t.Context()))
		own := slices.DeleteFunc(must(history.Load(r.brief.History))(t), func(e history.Event) bool { return e.Who != "a" })
		inOrder(t, own)
		if last := own[len(own)-1]; last.Kind != history.Releasing && last.Kind != history.Over {
			t.Errorf("the last word of a is %+v, want the end of a term", last)
		}
		var tokens []int64
		for _, e := range r.held() {
			tokens = append(tokens, e.Token)
		}
		if !slices.IsSorted(tokens) {
			t.Errorf("tokens %v, want them to rise", tokens)
		}
	})
}
