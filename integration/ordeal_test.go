package integration_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/history"
	"github.com/hasp-dev/hasp/integration/process"
	"github.com/hasp-dev/hasp/integration/proxy"
	"github.com/hasp-dev/hasp/integration/stores"
)

// ordeal is a run of several worker processes on one store, while a seeded schedule of
// faults goes over them.
type ordeal struct {
	t      *testing.T
	store  *store
	brief  crew.Brief
	dice   *rand.Rand
	faults []fault
	record *history.Recorder
	viewer *hasp.Client

	workers []*worker
	started int
}

// worker is one process and its way to the store.
type worker struct {
	*process.Process
	name string
	way  *proxy.Proxy // nil: it needs none
}

// fault is something bad that lasts for a while. It returns when that is over.
type fault struct {
	name string
	do   func(o *ordeal, ctx context.Context)
}

// seedOf is another one in every run of a soak, and the same in CI.
func seedOf() uint64 {
	if soaking() {
		return rand.Uint64()
	}
	return 20260901
}

func newOrdeal(t *testing.T, s *store, brief crew.Brief) *ordeal {
	t.Helper()
	brief.Seed, brief.Store = seedOf(), s.addr
	brief.History = filepath.Join(t.TempDir(), "history")
	t.Logf("seed %d", brief.Seed)
	o := &ordeal{
		t: t, store: s, brief: brief, dice: rand.New(rand.NewPCG(brief.Seed, 1)), viewer: s.client(t),
		record: must(history.Open(brief.History, "schedule"))(t),
	}
	return o
}

// start starts one more worker.
func (o *ordeal) start() *worker {
	o.t.Helper()
	o.started++
	w := &worker{name: fmt.Sprintf("w%d", o.started)}
	b := o.brief
	b.Name, b.Seed = w.name, o.brief.Seed+uint64(o.started)
	if o.store.server != nil {
		s, p := o.store.behind(o.t)
		b.Store, w.way = s.addr, p
	}
	w.Process = must(crew.Start(b, nil))(o.t)
	o.t.Cleanup(w.Kill)
	o.workers = append(o.workers, w)
	wantNil(o.t, w.Await("at work"))
	return w
}

// run lets the faults happen, one after the other, for as long as it says.
func (o *ordeal) run(d time.Duration, enough func() bool) {
	o.t.Helper()
	ctx, stop := context.WithTimeout(o.t.Context(), d)
	defer stop()
	looking := make(chan struct{})
	go func() {
		defer close(looking)
		o.look(ctx)
	}()
	var deck []int // all faults, in an order of the dice
	for ctx.Err() == nil && !enough() {
		o.rest(ctx, o.brief.TTL)
		if len(deck) == 0 {
			deck = o.dice.Perm(len(o.faults))
		}
		if len(deck) > 0 {
			f := o.faults[deck[0]]
			deck = deck[1:]
			o.record.Add(history.Event{Kind: history.Note, Text: f.name})
			f.do(o, ctx)
		}
	}
	stop()
	<-looking
}

// look writes down what the store shows of its lines.
func (o *ordeal) look(ctx context.Context) {
	every := time.NewTicker(25 * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-ctx.Done():
			return
		}
		for line, err := range o.viewer.List(ctx, "") {
			if err != nil {
				break // a fault; there is another look soon
			}
			o.record.Add(history.Event{
				Kind: history.Seen, Keys: []string{line.Key}, Holders: places(line.Holders), Waiters: places(line.Waiters),
			})
		}
	}
}

func places(standings []hasp.Standing) []history.Place {
	all := make([]history.Place, len(standings))
	for i, s := range standings {
		all[i] = history.Place{Token: s.Token, Weight: s.Weight, Capacity: s.Capacity}
	}
	return all
}

// rest waits for a part of d, up to all of it.
func (o *ordeal) rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(time.Duration(o.dice.Int64N(int64(d))))
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// finish lets the workers end by themselves, and checks that they do.
func (o *ordeal) finish() {
	o.t.Helper()
	for _, w := range o.workers {
		wantNil(o.t, w.In.Close())
	}
	ctx, stop := context.WithTimeout(o.t.Context(), 30*time.Second)
	defer stop()
	for _, w := range o.workers {
		wantNil(o.t, w.Wait(ctx))
	}
	wantNil(o.t, o.record.Close())
}

// judge answers what the history breaks.
func (o *ordeal) judge() ([]history.Fault, []history.Event) {
	o.t.Helper()
	events := must(history.Load(o.brief.History))(o.t)
	return history.Judge(events), events
}

// report fails the test with what was found, and with the lines around the first fault.
func (o *ordeal) report(faults []history.Fault, events []history.Event) {
	o.t.Helper()
	for _, f := range faults[:min(len(faults), 20)] {
		o.t.Error(f)
	}
	if len(faults) == 0 {
		return
	}
	o.t.Logf("%d faults; the history is %s", len(faults), keep(o.t, o.brief.History))
	for i := max(0, faults[0].Place-40); i < min(len(events), faults[0].Place+10); i++ {
		o.t.Logf("%6d %+v", i+1, events[i])
	}
}

// The faults that any store can meet.
func worldly() []fault {
	return []fault{
		{"freeze", func(o *ordeal, ctx context.Context) {
			w := o.anyWorker()
			wantNil(o.t, w.Pause())
			o.rest(ctx, 5*o.brief.TTL/2)
			wantNil(o.t, w.Resume())
		}},
		{"kill", func(o *ordeal, _ context.Context) { o.replace(o.anyWorker()) }},
		{"force", func(o *ordeal, ctx context.Context) { o.force(ctx) }},
	}
}

// replace kills a worker and starts another.
func (o *ordeal) replace(w *worker) {
	o.t.Helper()
	o.record.Add(history.Event{Kind: history.Killing, Who: w.name})
	w.Kill()
	o.workers = slices.DeleteFunc(o.workers, func(other *worker) bool { return other == w })
	o.start()
}

func (o *ordeal) anyWorker() *worker { return o.workers[o.dice.IntN(len(o.workers))] }

// force takes a lease from one of those who hold.
func (o *ordeal) force(ctx context.Context) {
	for line, err := range o.viewer.List(ctx, "") {
		if err != nil || len(line.Holders) == 0 {
			continue
		}
		token := line.Holders[0].Token
		o.record.Add(history.Event{Kind: history.Forcing, Token: token})
		if o.viewer.ForceRelease(ctx, line.Key, token) == nil {
			o.record.Add(history.Event{Kind: history.Forced, Token: token})
		}
		return
	}
}

// networked are the faults of a way through a network.
func networked() []fault {
	during := func(begin func(*proxy.Proxy) (end func())) func(*ordeal, context.Context) {
		return func(o *ordeal, ctx context.Context) {
			end := begin(o.anyWorker().way)
			o.rest(ctx, 2*o.brief.TTL)
			end()
		}
	}
	return []fault{
		{"silence", during(func(p *proxy.Proxy) func() { return p.Hold(proxy.Both) })},
		{"no replies", during(func(p *proxy.Proxy) func() { return p.Hold(proxy.ToClient) })},
		{"swallowed requests", during(func(p *proxy.Proxy) func() { return p.Swallow(proxy.ToServer) })},
		{"swallowed replies", during(func(p *proxy.Proxy) func() { return p.Swallow(proxy.ToClient) })},
		{"refusal", during(func(p *proxy.Proxy) func() { return p.Refuse() })},
		{"slowness", during(func(p *proxy.Proxy) func() {
			p.Slow(20 * time.Millisecond)
			return func() { p.Slow(0) }
		})},
		{"cut", func(o *ordeal, _ context.Context) { o.anyWorker().way.Cut() }},
		{"lost replies", func(o *ordeal, _ context.Context) {
			p := o.anyWorker().way
			p.Forgive()
			for range 3 {
				p.Spoil(proxy.Rule{Fault: proxy.DropReply, Skip: o.dice.IntN(20)})
			}
		}},
	}
}

// serverFaults are what can happen to any server.
func serverFaults() []fault {
	return []fault{
		{"the server stops", func(o *ordeal, ctx context.Context) {
			wantNil(o.t, o.store.server.Pause())
			o.rest(ctx, 2*o.brief.TTL)
			wantNil(o.t, o.store.server.Resume())
		}},
		{"the server dies and comes back", func(o *ordeal, ctx context.Context) {
			o.store.server.Kill()
			o.rest(ctx, o.brief.TTL)
			wantNil(o.t, o.store.server.Start())
		}},
		{"the server forgets", func(o *ordeal, ctx context.Context) { o.wipe(ctx) }},
		{"no connections", func(o *ordeal, ctx context.Context) { _ = o.store.disconnect(ctx) }},
	}
}

// redisFaults are what can happen to a Redis server besides.
func redisFaults() []fault {
	command := func(words ...any) func(*ordeal, context.Context) {
		return func(o *ordeal, ctx context.Context) { _, _ = o.store.redis.Command(ctx, words...) }
	}
	return []fault{
		{"no scripts", command("SCRIPT", "FLUSH")},
		{"no subscribers", command("CLIENT", "KILL", "TYPE", "pubsub")},
		{"client pause", command("CLIENT", "PAUSE", "300", "ALL")},
	}
}

// wipe makes the server lose everything, and writes down when by its own clock.
func (o *ordeal) wipe(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	o.record.Add(history.Event{Kind: history.Wiping})
	wantNil(o.t, o.store.wipe(ctx))
	o.record.Add(history.Event{Kind: history.Wiped, Number: must(o.store.now(ctx))(o.t)})
}

// sqliteFaults are what can happen to a file.
func sqliteFaults() []fault {
	return []fault{{"another writer", func(o *ordeal, ctx context.Context) {
		db := must(sql.Open("sqlite", stores.SQLiteDSN(o.store.file)+"&_txlock=immediate&_pragma=busy_timeout(10000)"))(o.t)
		defer func() { _ = db.Close() }()
		tx, err := db.BeginTx(context.WithoutCancel(ctx), nil)
		if err != nil {
			return
		}
		o.rest(ctx, 3*o.brief.TTL/2)
		wantNil(o.t, tx.Rollback())
	}}}
}

// ordealLasts is how long the faults go on.
func ordealLasts() time.Duration {
	switch {
	case soaking():
		return 2 * time.Minute
	case testing.Short():
		return 6 * time.Second
	}
	return 15 * time.Second
}

func never() bool { return false }

// lasts lets the faults happen for a time, and on a machine that is slow until plenty has
// happened, now with faults and now without.
func (o *ordeal) lasts(d time.Duration, plenty func(history.Summary) bool) {
	o.t.Helper()
	enough := func() bool {
		events, err := history.Load(o.brief.History)
		return err == nil && plenty(history.Summarize(events)) // else a line is half there
	}
	o.run(d, never)
	faults := o.faults
	for end := time.Now().Add(5 * soon); !enough() && time.Now().Before(end); {
		o.faults = nil
		o.run(soon/5, enough)
		o.faults = faults
		o.run(soon/5, enough)
	}
}

// crowd is how many clients an ordeal has, on average: 8 processes of 4.
const crowd = 8

func endure(t *testing.T, s *store, faults []fault, brief crew.Brief) {
	t.Helper()
	o := newOrdeal(t, s, brief)
	o.faults = faults
	for range crowd {
		o.start()
	}
	lasts, part := ordealLasts(), 1
	if s.sql != nil { // its leases are longer, and its steps fewer
		lasts, part = 2*lasts, 10
	}
	plenty := func(sum history.Summary) bool {
		return sum.Held >= slower(100, 3)/part && sum.Seen >= slower(50, 3)/part &&
			(underRace || sum.Contended >= 50/part && (part > 1 || sum.Killed > 0))
	}
	o.lasts(lasts, plenty)
	o.finish()
	empty(t, s.client(t), soon)
	faulty, events := o.judge()
	o.report(faulty, events)
	sum := history.Summarize(events)
	t.Log(sum)
	if !plenty(sum) {
		t.Error("too little happened for a verdict")
	}
	for _, e := range events {
		if e.Kind == history.Refused && strings.Contains(e.Text, ":") {
			t.Errorf("an error without a fitting class: %s", e.Text)
		}
	}
}

// TestRW2_SM1_FR5_PZ2_NoHistoryBreaksAPromise: 32 clients in 8 processes use mutexes,
// read/write locks, semaphores and several keys at once, with and without renewal, while
// processes are killed and stopped, the network fails, and the server stops, dies, and
// forgets.
func TestRW2_SM1_FR5_PZ2_NoHistoryBreaksAPromise(t *testing.T) {
	brief := crew.Brief{Clients: 4, Hands: 2, Keys: 3, TTL: 600 * time.Millisecond, Think: 100 * time.Millisecond, Breathes: true}
	t.Run("redis", func(t *testing.T) {
		s := onRedis(t, persistent)
		endure(t, s, slices.Concat(worldly(), networked(), serverFaults(), redisFaults()), brief)
	})
	t.Run("mysql", func(t *testing.T) {
		s, brief := startMySQL(t), brief
		brief.TTL = s.unhurried(brief.TTL)
		endure(t, s, slices.Concat(worldly(), networked(), serverFaults()), brief)
	})
	t.Run("postgres", func(t *testing.T) {
		brief := brief
		brief.TTL = 1500 * time.Millisecond // a process for each connection takes its time
		endure(t, startPostgres(t).with("pool=2"), slices.Concat(worldly(), networked(), serverFaults()), brief)
	})
	t.Run("sqlite", func(t *testing.T) {
		brief := brief
		brief.Clients = slower(2, 1)
		endure(t, startSQLite(t), slices.Concat(worldly(), sqliteFaults()), brief)
	})
}

// TestFR5_FixedLeasesHeldForAboutAsLongAsTheyLive has no faults but the clients' own:
// they work for longer than their leases live.
func TestFR5_FixedLeasesHeldForAboutAsLongAsTheyLive(t *testing.T) {
	apart(t, func(t *testing.T, s *store) {
		o := newOrdeal(t, s, crew.Brief{
			Clients: 2, Hands: 4, Keys: 2, TTL: s.unhurried(150 * time.Millisecond), Think: 5 * time.Millisecond,
		})
		for range 4 {
			o.start()
		}
		lasts, part := ordealLasts()/3, 1
		if s.sql != nil {
			lasts, part = 4*lasts, 3
		}
		plenty := func(sum history.Summary) bool { return sum.Held >= slower(50, 3)/part && sum.Lost > 0 }
		o.lasts(lasts, plenty)
		o.finish()
		faults, events := o.judge()
		o.report(faults, events)
		sum := history.Summarize(events)
		t.Log(sum)
		if !plenty(sum) {
			t.Error("too little happened for a verdict")
		}
	})
}
