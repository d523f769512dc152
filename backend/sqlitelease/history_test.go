package sqlitelease_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqlitelease"
	"github.com/hasp-dev/hasp/driver"
)

// trusts is until when each client may trust the keys it has, as seen by one who sees
// all.
type trusts struct {
	t     *testing.T
	mu    sync.Mutex
	until map[string]map[*player]time.Time // guarded by mu
	count int                              // guarded by mu; grants
}

// granted notes that a step has let a client hold, and that nobody else may trust then.
func (w *trusts) granted(key string, p *player, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	for other, end := range w.until[key] {
		if other != p && end.After(now) {
			w.t.Errorf("%s was granted while another may trust it for %v more", key, end.Sub(now))
		}
	}
	w.count++
	w.note(key, p, until)
}

func (w *trusts) note(key string, p *player, until time.Time) {
	if w.until[key] == nil {
		w.until[key] = make(map[*player]time.Time)
	}
	w.until[key][p] = until
}

// player is a client that holds what it can get, for as long as it likes.
type player struct {
	world *trusts
	d     *sqlitelease.Driver
	inbox string
	held  []driver.Claim
}

const (
	playTTL  = 400 * time.Millisecond
	playKeys = 12
)

// play does one thing at random.
func (p *player) play(ctx context.Context) error {
	switch n := rand.IntN(20); {
	case n < 7 && len(p.held) < 6:
		return p.try(ctx)
	case n < 15:
		return p.renew(ctx)
	case n < 17 && len(p.held) > 0: // gives one up, or just names it no more
		c := p.pick()
		p.world.mu.Lock()
		if n == 16 {
			delete(p.world.until[c.Keys[0]], p)
		}
		p.world.mu.Unlock()
		if n == 16 {
			_, err := p.d.Leave(ctx, driver.Leaving{Ref: c.Ref})
			return err
		}
	case n == 17:
		time.Sleep(rand.N(2 * playTTL)) // some are lost
	case n == 18:
		return p.revoke(ctx)
	}
	return nil
}

// pick takes one of the claims out.
func (p *player) pick() driver.Claim {
	i := rand.IntN(len(p.held))
	c := p.held[i]
	p.held = append(p.held[:i:i], p.held[i+1:]...)
	return c
}

func (p *player) try(ctx context.Context) error {
	c := mutex(p.inbox, fmt.Sprintf("key-%d", rand.IntN(playKeys)))
	c.Life = held(playTTL, 0)
	sent := time.Now()
	st, err := p.d.Join(ctx, driver.Join{Claim: c, Try: true})
	if err != nil || st.State != driver.Holding {
		return err
	}
	c.Number = st.Number
	p.world.granted(c.Keys[0], p, sent.Add(st.Life))
	p.held = append(p.held, c)
	return nil
}

// renew renews all the client has, in one call as hasp does.
func (p *player) renew(ctx context.Context) error {
	items := make([]driver.Renewal, len(p.held))
	for i, c := range p.held {
		items[i] = driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: c.Life}
		if rand.IntN(10) == 0 {
			items[i].Life.Hold *= 2 // another session
		}
	}
	sent := time.Now()
	var kept []driver.Claim
	var failed error
	p.d.Renew(ctx, items, func(i int, st driver.Standing, err error) {
		if err != nil {
			failed = err
			return
		}
		if st.State != driver.Holding {
			return
		}
		kept = append(kept, p.held[i])
		p.world.mu.Lock()
		defer p.world.mu.Unlock()
		key := p.held[i].Keys[0]
		if until := sent.Add(st.Life); until.After(p.world.until[key][p]) {
			p.world.note(key, p, until)
		}
	})
	p.held = kept
	return failed
}

// revoke ends somebody's claim; its owner may trust it for as long as it could.
func (p *player) revoke(ctx context.Context) error {
	key := fmt.Sprintf("key-%d", rand.IntN(playKeys))
	page, err := p.d.Lines(ctx, driver.Query{Key: key})
	if err != nil || len(page.Lines[0].Holders) == 0 {
		return err
	}
	_, err = p.d.End(ctx, key, []int64{page.Lines[0].Holders[0].Number}, false)
	return err
}

// Whatever clients do with their sessions, nobody is granted what another may trust, and
// in the end everything is free.
func TestNobodyIsGrantedWhatAnotherMayTrust(t *testing.T) {
	t.Parallel()
	length := 8 * time.Second
	if testing.Short() {
		length = 2 * time.Second
	}
	path, db := newFile(t)
	w := &trusts{t: t, until: make(map[string]map[*player]time.Time)}
	var wg sync.WaitGroup
	for i := range 6 {
		p := &player{world: w, d: sqlitelease.New(openFile(t, path), nil), inbox: fmt.Sprintf("play-%d", i)}
		wg.Go(func() {
			for end := time.Now().Add(length); time.Now().Before(end); {
				if err := p.play(t.Context()); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if w.count == 0 {
		t.Error("nothing was granted")
	}
	last := sqlitelease.New(db, nil)
	for i := range playKeys {
		key := fmt.Sprintf("key-%d", i)
		eventually(t, key+" is free", func() bool {
			st, err := last.Join(t.Context(), driver.Join{Claim: mutex("last-1", key), Try: true})
			return err == nil && st.State == driver.Holding
		})
	}
}
