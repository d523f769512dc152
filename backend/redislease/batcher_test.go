package redislease_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Callers come and go, leaders among them; nobody gets another's answer, and nothing is
// left that nobody knows of.
func TestCallersMayGiveUpAnyTime(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	rdb := s.client(t)
	p := newParty(t, rdb, nil)
	var wg sync.WaitGroup
	for g := range 48 {
		wg.Go(func() {
			for range 30 {
				p.joinOrGiveUp(g%3 == 0)
			}
		})
	}
	wg.Wait()
	page, err := p.Lines(t.Context(), driver.Query{Prefix: "test:"})
	if err != nil || len(page.Lines) != 0 {
		t.Errorf("left: %+v, %v", page, err)
	}
}

func (p *party) joinOrGiveUp(hasty bool) {
	x := p.claim(newKey())
	ctx := p.tb.Context()
	if hasty {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, rand.N(time.Millisecond))
		defer cancel()
	}
	s, err := p.Join(ctx, driver.Join{Claim: x})
	switch {
	case err != nil && (!hasty || !errors.Is(err, driver.ErrUnavailable)):
		p.tb.Errorf("join: %v", err)
	case err == nil && (s.State != driver.Holding || s.Number == 0):
		p.tb.Errorf("join: %+v", s)
	}
	left, err2 := p.Leave(p.tb.Context(), driver.Leaving{Ref: x.Ref, Unanswered: err != nil, Remember: 5 * time.Second})
	if err2 != nil || err == nil && (left.State != driver.Left || left.Number != s.Number) {
		p.tb.Errorf("leave: %+v, %v, after %+v", left, err2, s)
	}
}
