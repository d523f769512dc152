package integration_test

import (
	"context"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/history"
)

// TestG1_G3_ADatabaseKilledUnderLoadGrantsNothingTwice: again and again the server is killed
// and started while 16 hands hold and want its locks, whose leases mostly outlive that.
func TestG1_G3_ADatabaseKilledUnderLoadGrantsNothingTwice(t *testing.T) {
	for name, start := range map[string]func(*testing.T) *store{"mysql": startMySQL, "postgres": startPostgres} {
		t.Run(name, func(t *testing.T) { killAndRestart(t, start(t), max(rounds(4, 40), 2)) })
	}
}

// killAndRestart kills and restarts a server that often, each time after it has granted anew.
func killAndRestart(t *testing.T, s *store, kills int) {
	t.Helper()
	const ttl = 6 * time.Second
	o := newOrdeal(t, s, crew.Brief{Clients: 2, Hands: 2, Keys: 1, TTL: ttl, Hold: ttl / 2, Think: 50 * time.Millisecond, Breathes: true})
	for range 4 {
		o.start()
	}
	summary := func() history.Summary {
		events, err := history.Load(o.brief.History)
		if err != nil {
			return history.Summary{} // a line is half there
		}
		return history.Summarize(events)
	}
	grants := func(ctx context.Context, more int) {
		for all := summary().Held + more; summary().Held < all && ctx.Err() == nil; {
			o.rest(ctx, time.Second)
		}
	}
	done := 0
	o.faults = []fault{{"the server is killed and started", func(o *ordeal, ctx context.Context) {
		grants(ctx, 3)
		s.server.Kill()
		o.rest(ctx, time.Second)
		wantNil(t, s.server.Start())
		grants(ctx, 3)
		done++
	}}}
	o.run(8*time.Minute, func() bool { return done == kills })
	o.finish()
	empty(t, s.client(t), soon)
	faults, events := o.judge()
	o.report(faults, events)
	sum := history.Summarize(events)
	t.Log(sum)
	if done < kills || sum.Contended == 0 {
		t.Errorf("too little happened for a verdict: %d of %d restarts", done, kills)
	}
}
