package integration_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/elect"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/history"
)

// counted counts the renewals that a client asks its driver for.
type counted struct {
	driver.Driver
	driver.Signaler
	renewals atomic.Int64
}

// Renew implements driver.Driver.
func (d *counted) Renew(ctx context.Context, items []driver.Renewal, answer func(int, driver.Standing, error)) {
	d.renewals.Add(1)
	d.Driver.Renew(ctx, items, answer)
}

// counting makes a client whose renewals are counted.
func (s *store) counting(t *testing.T, name string) (*hasp.Client, *counted) {
	t.Helper()
	below := s.driver(t)
	sig, ok := below.(driver.Signaler)
	if !ok {
		t.Fatalf("the driver %T does not signal", below)
	}
	d := &counted{Driver: below, Signaler: sig}
	c := must(hasp.New(d, &hasp.Options{Name: name}))(t)
	t.Cleanup(func() {
		ctx, stop := context.WithTimeout(context.WithoutCancel(t.Context()), soon)
		defer stop()
		wantNil(t, c.Close(ctx))
	})
	return c, d
}

// candidate makes a candidate and lets it run until the test ends.
func candidate(t *testing.T, c *hasp.Client, ttl time.Duration) *elect.Elector {
	t.Helper()
	e := must(elect.New(c, election, elect.Stay, &elect.Options{TTL: ttl}))(t)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = e.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return e
}

// TestAnIdleElectionCostsOneRenewalCallAnInterval: fifty candidates of one process are
// renewed together. A busy machine may be late, and asks again; not in each of five looks.
func TestAnIdleElectionCostsOneRenewalCallAnInterval(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl, intervals = 6 * time.Second, 3
		c, d := s.counting(t, "fifty")
		for range 50 {
			candidate(t, c, ttl)
		}
		waiting(t, s.client(t), election, 49)
		var calls []int64
		for range 5 {
			before, end := d.renewals.Load(), time.NewTimer(intervals*ttl/3)
			<-end.C
			calls = append(calls, d.renewals.Load()-before)
			if n := calls[len(calls)-1]; n > 0 && n <= intervals+1 {
				t.Logf("%d calls", calls)
				return
			}
		}
		t.Errorf("%d renewal calls in %d intervals", calls, intervals)
	})
}

// TestAResignedLeaderIsFollowedWithoutBeingAskedFor: the next in line leads before it has
// renewed its place once more, which it does every two seconds; on a busy machine not in
// each of ten hand-overs.
func TestAResignedLeaderIsFollowedWithoutBeingAskedFor(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 30 * time.Second
		var electors []*elect.Elector
		var drivers []*counted
		viewer := s.client(t)
		for i := range 3 {
			c, d := s.counting(t, strconv.Itoa(i))
			electors, drivers = append(electors, candidate(t, c, ttl)), append(drivers, d)
			eventually(t, soon, "it stands in line", func() bool {
				line, err := viewer.Inspect(t.Context(), election)
				return err == nil && len(line.Holders)+line.Waiting == i+1
			})
		}
		last, told := int64(0), 0
		for round := range 10 {
			now, next := electors[round%3], electors[(round+1)%3]
			eventually(t, soon, "it leads in its turn", now.IsLeader)
			if token := now.Status().Token; token <= last {
				t.Errorf("token %d after %d", token, last)
			} else {
				last = token
			}
			before := drivers[(round+1)%3].renewals.Load()
			wantNil(t, now.Resign(t.Context()))
			eventually(t, soon, "the next in line leads", next.IsLeader)
			if drivers[(round+1)%3].renewals.Load() == before {
				told++
			}
			waiting(t, viewer, election, 2)
		}
		if told == 0 {
			t.Error("each time the next in line had to ask")
		}
	})
}

// TestLL8_AnExpiredRecordIsNotTakenUpAgain: the leader is stopped until its term has
// expired. On a database its row is still there when it goes on, and nobody else came.
func TestLL8_AnExpiredRecordIsNotTakenUpAgain(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		r := rivalry(t, s, crew.Brief{TTL: 2 * time.Second})
		r.workers[1].Kill()
		waiting(t, r.viewer, election, 0)
		wantNil(t, r.workers[0].Pause())
		eventually(t, soon, "its term has expired", func() bool {
			line, err := r.viewer.Inspect(t.Context(), election)
			return err == nil && len(line.Holders) == 0
		})
		if left := strings.Join(must(s.remain(t.Context()))(t), ", "); s.redis == nil && !strings.Contains(left, "hasp_claims") {
			t.Errorf("of its record there is left: %s; want its row", left)
		}
		wantNil(t, r.workers[0].Resume())
		next := r.second(soon)
		if first := r.held()[0]; next.Token/64 <= first.Token/64 {
			t.Errorf("it leads on with token %d after %d, not by a new claim", next.Token, first.Token)
		}
		wantNil(t, r.workers[0].Signal(syscall.SIGTERM))
		wantNil(t, r.workers[0].Wait(t.Context()))
		inOrder(t, must(history.Load(r.brief.History))(t))
		r.verdict()
	})
}

// TestSR2_ALeaderWhoseWorkDoesNotEndIsNotFollowedBeforeItsTermExpires: told to end, it
// gives up on its work and exits with an error, and hands nothing over.
func TestSR2_ALeaderWhoseWorkDoesNotEndIsNotFollowedBeforeItsTermExpires(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		r := rivalry(t, s, crew.Brief{TTL: 2 * time.Second, Drain: time.Hour, Patience: time.Second})
		wantNil(t, r.workers[0].Signal(syscall.SIGTERM))
		next := r.second(soon)
		if err := r.workers[0].Wait(t.Context()); err == nil {
			t.Error("it ended without an error")
		}
		if end := r.last("a", history.Releasing); end.Kind != "" {
			t.Errorf("it released while its work ran: %+v", end)
		}
		if trusted := r.last("a", history.Held, history.Trusted); s.name != "sqlite" && next.At < trusted.Until { // there it is known that it died
			t.Errorf("the other leads %s before the trust of the first is over", time.Duration(trusted.Until-next.At))
		}
	})
}

// checkup is what a health check answers.
type checkup struct {
	State, Error string
	Leader       *struct{ Name string }
	status       int
}

func (s *checkup) ask(t *testing.T, url string) *checkup {
	t.Helper()
	*s = checkup{}
	req := must(http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil))(t)
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	wantNil(t, json.NewDecoder(answer.Body).Decode(s))
	s.status = answer.StatusCode
	return s
}

// TestHealthOfALeaderWhoseStoreIsSilent: the process is well all the while, and the
// leader no longer when its term has ended.
func TestHealthOfALeaderWhoseStoreIsSilent(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		c := s.client(t, hasp.Options{Name: "host:1"})
		e := candidate(t, c, 2*time.Second)
		mux := http.NewServeMux()
		mux.Handle("/healthz", e.Health())
		mux.Handle("/leader", e.LeaderOnly())
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		var got checkup
		leads := func() bool { return got.ask(t, server.URL+"/leader").status == http.StatusOK }
		eventually(t, soon, "it leads", leads)
		eventually(t, soon, "it says so", func() bool {
			got.ask(t, server.URL+"/healthz")
			return got.status == http.StatusOK && got.State == "leading" && got.Leader != nil && got.Leader.Name == "host:1"
		})
		if s.server == nil {
			return
		}
		wantNil(t, s.server.Pause())
		t.Cleanup(func() { _ = s.server.Resume() })
		eventually(t, soon, "it leads no longer", func() bool { return !leads() })
		if got.ask(t, server.URL+"/healthz"); got.status != http.StatusOK || got.State != "following" || got.Leader != nil || got.Error == "" {
			t.Errorf("without an answer of the store it says %+v", got)
		}
		wantNil(t, s.server.Resume())
		eventually(t, soon, "it leads again", leads)
	})
}

// TestSR4_EveryTermEndsOnceOnAStore: candidates are stopped, resign and have their terms
// taken from them in the same moment.
func TestSR4_EveryTermEndsOnceOnAStore(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		c := s.client(t)
		var mu sync.Mutex
		var diary []string
		note := func(word string) {
			mu.Lock()
			defer mu.Unlock()
			diary = append(diary, word)
		}
		for range rounds(20, 1000) {
			led := make(chan struct{}, 1)
			e := must(elect.New(c, election, func(ctx context.Context) error {
				note("start")
				defer note("stop")
				select {
				case led <- struct{}{}:
				default:
				}
				return elect.Stay(ctx)
			}, nil))(t)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = e.Run(ctx)
			}()
			<-led
			var all sync.WaitGroup
			all.Go(func() { _ = e.Resign(t.Context()) })
			all.Go(func() { _ = c.Revoke(t.Context(), election, 0) })
			all.Go(cancel)
			<-done
			all.Wait()
		}
		for i, word := range diary {
			if want := []string{"start", "stop"}[i%2]; word != want {
				t.Fatalf("entry %d of %d is %q, want %q: %v", i, len(diary), word, want, diary[max(0, i-4):])
			}
		}
		if len(diary)%2 != 0 || !slices.Contains(diary, "stop") {
			t.Errorf("%d entries, the last of which is %q", len(diary), diary[len(diary)-1])
		}
	})
}
