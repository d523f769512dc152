package crew

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/elect"
	"github.com/hasp-dev/hasp/integration/history"
)

// candidate is a process that stands in an election and writes a history of its terms.
type candidate struct {
	brief   Brief
	record  *history.Recorder
	dice    *rand.Rand
	elector *elect.Elector
	terms   int
}

// stand campaigns until standard input ends or the process is sent TERM.
func stand(ctx context.Context, b Brief) error {
	record, err := history.Open(b.History, b.Name)
	if err != nil {
		return err
	}
	client, handle, err := b.open(b.Name)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	standing, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	c := &candidate{brief: b, record: record, dice: rand.New(rand.NewPCG(b.Seed, 2))}
	c.elector, err = elect.New(client, b.Elects, c.lead, &elect.Options{TTL: b.TTL, Grace: b.Grace, Drain: b.Patience})
	if err != nil {
		return err
	}
	fmt.Println("at work")
	if err := c.elector.Run(standing); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	closing, end := context.WithTimeout(ctx, closingLimit)
	defer end()
	return errors.Join(client.Close(closing), record.Close())
}

// lead is one term: it looks at its lease all the time, resigns now and then, and takes
// a while to stop.
func (c *candidate) lead(ctx context.Context) error {
	lease, ok := hasp.FromContext(ctx, c.brief.Elects)
	if !ok {
		return errors.New("a term without a lease")
	}
	c.terms++
	name := fmt.Sprintf("%s/%d", c.brief.Name, c.terms)
	c.record.Add(history.Event{
		Kind: history.Want, Lease: name, Keys: []string{c.brief.Elects}, Weight: 1, Capacity: 1, Life: int64(c.brief.TTL),
	})
	h := &holding{record: c.record, lease: lease, name: name}
	reign := time.Hour
	if c.brief.Hold > 0 {
		reign = c.brief.Hold + between(c.dice, 0, c.brief.Hold)
	}
	h.reign(ctx, reign)
	if ctx.Err() == nil {
		if err := c.elector.Resign(ctx); err != nil {
			return err
		}
	}
	h.drain(c.brief.Drain)
	if !h.over {
		c.record.Add(history.Event{Kind: history.Releasing, Lease: name})
	}
	return ctx.Err()
}

// reign looks at the lease until the time is over or the context has ended.
func (h *holding) reign(ctx context.Context, d time.Duration) {
	h.record.Add(history.Event{
		Kind: history.Held, Lease: h.name, Token: h.lease.Token(), Until: history.Instant(h.lease.TrustedUntil()),
	})
	end := time.NewTimer(d)
	defer end.Stop()
	each := time.NewTicker(lookEvery)
	defer each.Stop()
	for h.look() {
		select {
		case <-each.C:
		case <-end.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// lookEvery is how often a leader looks at its lease.
const lookEvery = 10 * time.Millisecond

// drain goes on for a while, lease or no lease, as work does that is slow to stop.
func (h *holding) drain(d time.Duration) {
	end := time.NewTimer(d)
	defer end.Stop()
	each := time.NewTicker(lookEvery)
	defer each.Stop()
	for {
		if !h.over {
			h.look()
		}
		select {
		case <-each.C:
		case <-end.C:
			return
		}
	}
}
