package crew

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/integration/history"
)

// worker is one client of a worker process.
type worker struct {
	brief  Brief
	name   string
	client *hasp.Client
	record *history.Recorder
	leases *atomic.Int64 // of the process, to name them
}

// work works until standard input ends, then finishes what it is at and closes.
func work(ctx context.Context, b Brief) error {
	record, err := history.Open(b.History, b.Name)
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	var leases atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, b.Clients)
	for i := range b.Clients {
		all.Go(func() {
			name := fmt.Sprintf("%s.%d", b.Name, i)
			errs[i] = (&worker{brief: b, name: name, record: record, leases: &leases}).run(working, uint64(i))
		})
	}
	fmt.Println("at work")
	all.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return record.Close()
}

func (w *worker) run(ctx context.Context, nth uint64) error {
	client, handle, err := w.brief.open(w.name)
	if err != nil {
		return err
	}
	defer func() { _ = handle.Close() }()
	w.client = client
	var hands sync.WaitGroup
	for h := range w.brief.Hands {
		dice := rand.New(rand.NewPCG(w.brief.Seed, nth<<32|uint64(h)))
		hands.Go(func() {
			for ctx.Err() == nil {
				w.once(ctx, dice)
				pause(ctx, between(dice, 0, w.brief.Think))
			}
		})
	}
	hands.Wait()
	closing, stop := context.WithTimeout(context.WithoutCancel(ctx), closingLimit)
	defer stop()
	return client.Close(closing)
}

// closingLimit is the longest that a worker closes.
const closingLimit = 20 * time.Second

// once wants one lock, holds it for a while, and gives it back, or does not.
func (w *worker) once(ctx context.Context, dice *rand.Rand) {
	j := w.job(dice)
	wanted := history.Event{
		Kind: history.Want, Lease: fmt.Sprintf("%s/%d", w.name, w.leases.Add(1)), Keys: j.keys,
		Weight: j.weight, Capacity: j.capacity, Life: int64(j.options.TTL),
	}
	w.record.Add(wanted)
	calling, stop := ctx, context.CancelFunc(func() {})
	if j.patience > 0 {
		calling, stop = context.WithTimeout(ctx, j.patience)
	}
	lease, err := j.acquire(calling, w.client.With(j.options))
	stop()
	if err != nil {
		class := Class(err)
		if class == "other" || class == "lost" || class == "invalid" {
			class = err.Error()
		}
		w.record.Add(history.Event{Kind: history.Refused, Lease: wanted.Lease, Text: class})
		return
	}
	h := &holding{record: w.record, lease: lease, name: wanted.Lease}
	h.hold(ctx, j.hold)
	if !j.forgets {
		h.release(ctx)
	}
}

// holding is one lease and what is written about it.
type holding struct {
	record *history.Recorder
	lease  *hasp.Lease
	name   string
	over   bool
}

// hold looks at the lease until the time is over or the lease is. Looking is: write,
// then ask, so that a lease which is still held has been held at the place of the line
// before.
func (h *holding) hold(ctx context.Context, d time.Duration) {
	h.record.Add(history.Event{
		Kind: history.Held, Lease: h.name, Token: h.lease.Token(), Until: history.Instant(h.lease.TrustedUntil()),
	})
	end := time.NewTimer(d)
	defer end.Stop()
	step := max(d/4, 2*time.Millisecond)
	for done := h.lease.Done(); ; {
		if !h.look() {
			return
		}
		next := time.NewTimer(step)
		select {
		case <-done:
		case <-next.C:
		case <-end.C:
			next.Stop()
			h.look()
			return
		case <-ctx.Done():
			next.Stop()
			return
		}
		next.Stop()
	}
}

// look asks the lease and writes what it says.
func (h *holding) look() bool {
	until := history.Instant(h.lease.TrustedUntil())
	if err := h.lease.Err(); err != nil {
		h.over = true
		h.record.Add(history.Event{Kind: history.Over, Lease: h.name, Text: Class(err)})
		return false
	}
	h.record.Add(history.Event{Kind: history.Trusted, Lease: h.name, Until: until})
	return true
}

func (h *holding) release(ctx context.Context) {
	h.record.Add(history.Event{Kind: history.Releasing, Lease: h.name})
	err := h.lease.Release(ctx)
	h.record.Add(history.Event{Kind: history.Released, Lease: h.name, Text: Class(err)})
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// between answers a duration in which short ones are the more likely.
func between(dice *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	part := dice.Float64()
	return least + time.Duration(part*part*float64(most-least))
}
