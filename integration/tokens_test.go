package integration_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/fence"
	"github.com/hasp-dev/hasp/integration/crew"
	"github.com/hasp-dev/hasp/integration/process"
)

// tokens is the guarded store of a test: it takes each token once, and only a larger one
// than before.
type tokens struct {
	gate fence.Gate

	mu    sync.Mutex
	last  int64
	all   int
	local int // of the grants that asked no store: not the first of their block
}

// ServeHTTP implements http.Handler.
func (l *tokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	token, err := fence.ParseHeader(r.Header)
	if err == nil {
		err = l.note(token)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
	}
}

func (l *tokens) note(token int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.gate.Admit(crew.CountedKey, token); err != nil {
		return err
	}
	if token <= l.last {
		return fmt.Errorf("token %d after %d", token, l.last)
	}
	l.last = token
	l.all++
	if token%64 != 0 {
		l.local++
	}
	return nil
}

// TestTokensRiseOverLocalAndRemoteGrants: three processes of many goroutines each hand one
// lock on among themselves and to each other, one of them strictly in turn, one three times
// in a row, and one that keeps what it has released. Every grant has a larger token than the
// one before.
func TestTokensRiseOverLocalAndRemoteGrants(t *testing.T) {
	t.Parallel()
	s := startRedis(t)
	grants := rounds(5_000, 100_000)
	var ledger tokens
	server := httptest.NewServer(&ledger)
	defer server.Close()
	var counters []*process.Process
	total := 0
	for _, b := range []crew.Brief{{Name: "in turn"}, {Name: "in a row", LocalHandoffs: 3}, {Name: "keeps", LocalHandoffs: 1, Sticky: time.Second}} {
		b.Store, b.Ledger, b.Hands, b.TTL, b.Grants = s.addr, server.URL, 8, time.Minute, (grants+2)/3
		total += b.Grants
		p := must(crew.Start(b, nil))(t)
		t.Cleanup(p.Kill)
		wantNil(t, p.Await("at work"))
		counters = append(counters, p)
	}
	for _, p := range counters { // all begin now
		wantNil(t, p.In.Close())
	}
	ctx, stop := context.WithTimeout(t.Context(), 10*soon+time.Duration(total)*10*time.Millisecond)
	defer stop()
	for _, p := range counters {
		wantNil(t, p.Wait(ctx))
	}
	t.Logf("%d grants, %d of them local", ledger.all, ledger.local)
	if ledger.all != total {
		t.Errorf("%d grants were written down, want %d", ledger.all, total)
	}
	if remote := ledger.all - ledger.local; ledger.local < total/10 || remote < total/100 {
		t.Errorf("%d grants were local and %d were not, want many of both", ledger.local, remote)
	}
}
