package redislease_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/redislease"
	"github.com/hasp-dev/hasp/driver"
)

func TestScriptsBeginWithTheirContract(t *testing.T) {
	t.Parallel()
	for name, source := range redislease.Scripts() {
		for i, s := range source {
			for _, word := range []string{"-- KEYS ", "-- ARGV ", "-- Result ", "-- Redis runs a script alone"} {
				if !strings.Contains(s, word) {
					t.Errorf("%s.lua does not say %q", name, word)
				}
			}
			if strings.Contains(s, "--@l") || strings.Contains(s, "--@6 redis") && i == 1 {
				t.Errorf("%s.lua still has a mark in it", name)
			}
			if strings.Contains(s, "tostring") {
				t.Errorf("%s.lua makes text of a number by tostring", name)
			}
		}
	}
}

// A server that has forgotten the scripts, as after a restart or failover, is noticed by
// nobody.
func TestForgottenScriptsAreSentAgain(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rdb := s.client(t)
	p := newParty(t, rdb, nil)
	ctx := t.Context()
	flush := func() {
		if err := rdb.ScriptFlush(ctx).Err(); err != nil {
			t.Fatal(err)
		}
	}
	a, b := p.claim(newKey()), p.claim()
	b.Keys = a.Keys
	flush()
	p.joins(&a, driver.Holding)
	flush()
	p.renews(&a, driver.Holding)
	flush()
	p.joins(&b, driver.Waiting)
	flush()
	p.renews(&b, driver.Waiting)
	flush()
	if _, err := p.Lines(ctx, driver.Query{Key: a.Keys[0]}); err != nil {
		t.Error(err)
	}
	flush()
	if found, err := p.End(ctx, a.Keys[0], []int64{b.Number}, true); err != nil || len(found) != 1 {
		t.Error(found, err)
	}
	flush()
	p.leaves(&a, driver.Left)
}

// The same inside pipelines, with the cache flushed all the time.
func TestForgottenScriptsInPipelines(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rdb := s.client(t)
	p := newParty(t, rdb, nil)
	ctx, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() {
			for ctx.Err() == nil {
				a := p.claim(newKey())
				p.joins(&a, driver.Holding)
				p.renews(&a, driver.Holding)
				p.leaves(&a, driver.Left)
			}
		})
	}
	for ctx.Err() == nil {
		_ = rdb.ScriptFlush(ctx).Err()
		time.Sleep(5 * time.Millisecond)
	}
	wg.Wait()
}
