package integration_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/history"
	"github.com/hasp-dev/hasp/schedule"
)

// ledger is what was run, by tick in ms.
type ledger struct {
	mu   sync.Mutex
	runs map[int64]int // that came to their end
}

func newLedger() *ledger { return &ledger{runs: make(map[int64]int)} }

func (l *ledger) add(tick int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs[tick]++
}

// row is how many ticks were run one after the other, from the first on.
func (l *ledger) row(every time.Duration) (first int64, n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.runs) == 0 {
		return 0, 0
	}
	for first = range l.runs {
		break
	}
	for tick := range l.runs {
		first = min(first, tick)
	}
	for l.runs[first+int64(n)*every.Milliseconds()] > 0 {
		n++
	}
	return first, n
}

// again are the ticks that were run more than once.
func (l *ledger) again() (ticks []int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for tick, n := range l.runs {
		if n > 1 {
			ticks = append(ticks, tick)
		}
	}
	return ticks
}

// node starts a scheduler with one job on a client of its own, and answers how it is
// stopped.
func (s *store) node(t *testing.T, o schedule.Options, job schedule.Job) (stop func()) {
	t.Helper()
	n := must(schedule.New(s.client(t), &o))(t)
	wantNil(t, n.Add(job))
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		wantNil(t, <-done)
	})
	t.Cleanup(stop)
	return stop
}

// patience is for many ticks on a machine that does much else.
const patience = 5 * time.Minute

// TestDR1_MR1_EachTickRunsOnceWhateverTheClocks: five nodes, whose clocks are up to 2 s
// off, and a job that is over long before the slowest clock has come to its tick.
func TestDR1_MR1_EachTickRunsOnceWhateverTheClocks(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const every = 100 * time.Millisecond
		l, want := newLedger(), rounds(100, 1000)
		job := schedule.Job{Name: "job", Cron: "@every " + every.String(), Overlap: schedule.OverlapAllow, Run: func(ctx context.Context) error {
			at, _ := schedule.At(ctx)
			time.Sleep(10 * time.Millisecond) // the work
			l.add(at.UnixMilli())
			return nil
		}}
		// On a machine that is too slow for so many ticks the clocks stand still now and then:
		// ticks that begin too late are missed, and that is not the matter here.
		began := time.Now()
		clock := func() time.Time {
			_, n := l.row(every)
			return began.Add(min(time.Since(began), 5*time.Second+time.Duration(n)*every))
		}
		var stops []func()
		for i := range 5 {
			skew := time.Duration(i-2) * time.Second
			now := func() time.Time { return clock().Add(skew) }
			stops = append(stops, s.node(t, schedule.Options{Now: now, TTL: 30 * time.Second}, job))
		}
		eventually(t, time.Duration(max(1, want/100))*patience, fmt.Sprintf("%d ticks in a row have run", want), func() bool {
			_, n := l.row(every)
			return n >= want
		})
		for _, stop := range stops {
			stop()
		}
		if again := l.again(); len(again) > 0 {
			t.Errorf("ticks %v ran more than once", again)
		}
	})
}

// nodes are processes with one job, whose history is in a file.
type nodes struct {
	t     *testing.T
	brief crew.Brief
	alive []*worker
	born  int
	dead  []string // killed
}

func (n *nodes) start() {
	n.t.Helper()
	n.born++
	b := n.brief
	b.Name, b.Skew = fmt.Sprintf("n%d", n.born), time.Duration(n.born%3-1)*time.Second
	w := &worker{name: b.Name, Process: must(crew.Start(b, nil))(n.t)}
	n.t.Cleanup(w.Kill)
	n.alive = append(n.alive, w)
	wantNil(n.t, w.Await("at work"))
}

// kill kills one of those that run.
func (n *nodes) kill(i int) {
	w := n.alive[i]
	n.dead = append(n.dead, w.name)
	w.Kill()
	n.alive = slices.Delete(n.alive, i, i+1)
}

// ran is what has come to its end; by the living, if they alone count.
func (n *nodes) ran(livingOnly bool) *ledger {
	l := newLedger()
	events, _ := history.Load(n.brief.History) // the last line may be half there
	for _, e := range events {
		if e.Kind == history.Note && e.Text == crew.RunEnded && (!livingOnly || !slices.Contains(n.dead, e.Who)) {
			l.add(e.Number)
		}
	}
	return l
}

// explain says of a test that failed what became of the first tick that is missing.
func (n *nodes) explain() {
	if !n.t.Failed() {
		return
	}
	first, row := n.ran(false).row(n.brief.Ticks)
	missing := first + int64(row)*n.brief.Ticks.Milliseconds()
	n.t.Logf("tick %d, the %dth, has not run to its end", missing, row)
	events, err := history.Load(n.brief.History)
	for _, e := range events {
		if e.Number >= missing-1000 && e.Number <= missing+1000 {
			n.t.Logf("%+v", e)
		}
	}
	n.t.Log(err, n.dead)
	for _, w := range n.alive {
		n.t.Logf("%s:\n%s", w.name, w.Output())
	}
}

// TestXR1_MR4_NoTickIsLostWhereNodesAreKilled: of three nodes one is killed at any
// moment, and another started, again and again. Each tick is run to its end, and by no
// two that live.
func TestXR1_MR4_NoTickIsLostWhereNodesAreKilled(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const every = 300 * time.Millisecond
		n := &nodes{t: t, brief: crew.Brief{
			Store: s.addr, History: t.TempDir() + "/history", TTL: 3 * time.Second, Ticks: every, Hold: every / 2,
		}}
		t.Cleanup(n.explain)
		for range 3 {
			n.start()
		}
		ran := func(want int) {
			t.Helper()
			eventually(t, patience, fmt.Sprintf("%d ticks in a row have run", want), func() bool {
				_, row := n.ran(false).row(every)
				return row >= want
			})
		}
		ran(3)
		began := func() (last history.Event) {
			events, _ := history.Load(n.brief.History)
			for _, e := range events {
				if e.Text == crew.RunBegan {
					last = e
				}
			}
			return last
		}
		for i := range rounds(4, 40) {
			before := began()
			victim := i % 3
			if i%2 == 0 { // in the middle of a run
				eventually(t, soon, "a run begins", func() bool { return began().At != before.At })
				victim = slices.IndexFunc(n.alive, func(w *worker) bool { return w.name == began().Who })
			}
			n.kill(max(victim, 0))
			n.start()
			// Somebody who knows of a tick has to live until it has run: the next one dies then.
			_, row := n.ran(false).row(every)
			ran(row + 8)
		}
		for _, w := range n.alive {
			wantNil(t, w.In.Close())
		}
		ctx, stop := context.WithTimeout(t.Context(), patience)
		defer stop()
		for _, w := range n.alive {
			wantNil(t, w.Wait(ctx))
		}
		if again := n.ran(true).again(); len(again) > 0 {
			t.Errorf("ticks %v were run more than once by nodes that live", again)
		}
	})
}

// TestDR4_DR5_DR7_ALongRunIsRunOnce: the first run takes three TTLs, while another node
// comes and goes. No run begins beside it, and its tick is not run again.
func TestDR4_DR5_DR7_ALongRunIsRunOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, s *store) {
		const ttl = 2 * time.Second
		l := newLedger()
		var first, over atomic.Bool
		var ended atomic.Int64
		job := schedule.Job{Name: "job", Cron: "@every 1s", Run: func(ctx context.Context) error {
			at, _ := schedule.At(ctx)
			switch {
			case first.CompareAndSwap(false, true):
				select {
				case <-time.After(3 * ttl): // the work
					over.Store(true)
				case <-ctx.Done(): // a machine so slow that the lease was lost: its tick is run again
					first.Store(false)
					return ctx.Err()
				}
			case !over.Load():
				t.Error("a run began beside the first")
			}
			l.add(at.UnixMilli())
			ended.Add(1)
			return ctx.Err()
		}}
		for range 2 {
			s.node(t, schedule.Options{TTL: ttl}, job)
		}
		eventually(t, patience, "a run has begun", first.Load)
		for !over.Load() {
			stop := s.node(t, schedule.Options{TTL: ttl}, job)
			time.Sleep(ttl / 4) // as long as a node lives that crashes and is started again
			stop()
		}
		eventually(t, patience, "later ticks have run", func() bool { return ended.Load() >= 4 })
		if again := l.again(); len(again) > 0 {
			t.Errorf("ticks %v ran more than once", again)
		}
	})
}

// TestTM4_ASchedulerOutlivesItsServer: it is killed, found away, and comes back; nobody
// restarts a scheduler.
func TestTM4_ASchedulerOutlivesItsServer(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(*testing.T) *store{
		"redis": func(t *testing.T) *store { t.Helper(); return onRedis(t, persistent) }, "postgres": startPostgres, "mysql": startMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, l := start(t), newLedger()
			var failures atomic.Int64
			s.node(t, schedule.Options{TTL: 2 * time.Second, Logger: slog.New(alarm{n: &failures})}, noted(l))
			ran(t, l, 2)
			s.server.Kill()
			eventually(t, patience, "the scheduler says that the store is away", func() bool { return failures.Load() > 0 })
			wantNil(t, s.server.Start())
			ran(t, l, len(l.copy())+3)
			if again := l.again(); len(again) > 0 {
				t.Errorf("ticks %v ran more than once", again)
			}
		})
	}
}

// TestTM1_ASchedulerRunsOnceItsTablesAreThere: without them nothing is run, and said why.
func TestTM1_ASchedulerRunsOnceItsTablesAreThere(t *testing.T) {
	t.Parallel()
	addr := "sqlite:" + t.TempDir() + "/hasp.db"
	s, l := &store{name: "sqlite", addr: addr}, newLedger()
	_, handle := s.open(t)
	var failures atomic.Int64
	s.node(t, schedule.Options{TTL: 2 * time.Second, Logger: slog.New(alarm{n: &failures})}, noted(l))
	eventually(t, patience, "the scheduler says what is missing", func() bool { return failures.Load() > 1 })
	if n := len(l.copy()); n > 0 {
		t.Errorf("%d runs without a lock", n)
	}
	wantNil(t, sqlitelease.Migrate(t.Context(), handle.SQL, nil))
	ran(t, l, 2)
}

// noted is a job that runs every 300 ms.
func noted(l *ledger) schedule.Job {
	return schedule.Job{Name: "job", Cron: "@every 300ms", Overlap: schedule.OverlapAllow, Run: func(ctx context.Context) error {
		at, _ := schedule.At(ctx)
		l.add(at.UnixMilli())
		return nil
	}}
}

// ran waits until so many ticks have run.
func ran(t *testing.T, l *ledger, want int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d ticks have run", want), func() bool { return len(l.copy()) >= want })
}

func (l *ledger) copy() []int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []int64
	for tick := range l.runs {
		all = append(all, tick)
	}
	return all
}

// alarm counts warnings and errors.
type alarm struct {
	slog.Handler
	n *atomic.Int64
}

// Enabled implements slog.Handler.
func (alarm) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (c alarm) Handle(context.Context, slog.Record) error {
	c.n.Add(1)
	return nil
}

// WithAttrs implements slog.Handler.
func (c alarm) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup implements slog.Handler.
func (c alarm) WithGroup(string) slog.Handler { return c }
