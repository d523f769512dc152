package hasp

import (
	"container/heap"
	"context"
	"math/bits"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// renewer knows when each claim is due: to be renewed, to be left, or to be told that
// its trust is over. One goroutine serves it.
type renewer struct {
	mu     sync.Mutex
	queue  dueQueue
	wakeAt time.Time // when the loop wakes by itself; zero while it works
	kick   chan struct{}
}

// schedule sets when the claim is due next, and how much sooner it may be taken along
// with others. It wakes the loop if that is sooner than it would wake.
func (r *renewer) schedule(c *claim, at time.Time, together time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.due, c.together = at, together
	if c.slot > 0 {
		heap.Fix(&r.queue, c.slot-1)
	} else {
		heap.Push(&r.queue, c)
	}
	if !r.wakeAt.IsZero() && at.Before(r.wakeAt) {
		r.wakeAt = time.Time{}
		select {
		case r.kick <- struct{}{}:
		default:
		}
	}
}

func (r *renewer) remove(c *claim) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.slot > 0 {
		heap.Remove(&r.queue, c.slot-1)
	}
}

// take removes what is due, and with it what would be due soon, so that claims
// renewed at about the same time come to be renewed in one call.
func (r *renewer) take(now time.Time, due []*claim) []*claim {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeAt = time.Time{}
	var soon time.Duration
	for len(r.queue) > 0 && !r.queue[0].due.After(now.Add(soon)) {
		c := heap.Pop(&r.queue).(*claim) //nolint:forcetypeassert // the queue holds nothing else
		due = append(due, c)
		if ahead := c.together; soon == 0 || ahead < soon {
			soon = ahead
		}
	}
	return due
}

// sleep answers how long nothing is due, and notes until when the loop sleeps.
func (r *renewer) sleep(now time.Time) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	pause := time.Hour
	if len(r.queue) > 0 {
		// a suspended machine does not count in timers: look at least once a tick
		pause = min(r.queue[0].due.Sub(now), sleepTick)
	}
	pause = max(pause, 0)
	r.wakeAt = now.Add(pause)
	return pause
}

// renewLoop serves the queue until the client has closed.
func (e *engine) renewLoop() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	var due []*claim
	for {
		due = e.renewals.take(e.clk.fresh(), due[:0])
		e.renewDue(due)
		timer.Reset(e.renewals.sleep(e.clk.now()))
		select {
		case <-timer.C:
		case <-e.renewals.kick:
		case <-e.life.Done():
			return
		}
	}
}

// errand is one item of a renewal and the claim it is for.
type errand struct {
	claim    *claim
	item     driver.Renewal
	call     sending
	patience time.Duration // how long it waits for its answer
}

// renewDue asks each claim what it needs and sends that, in calls of claims with
// similar lives: a short one must not wait for the patience of a long one.
func (e *engine) renewDue(due []*claim) {
	var calls map[int][]errand
	for _, c := range due {
		if job, ok := c.tick(e.clk.now()); ok {
			if calls == nil {
				calls = make(map[int][]errand)
			}
			class := bits.Len64(uint64(job.patience / minTTL))
			calls[class] = append(calls[class], job)
		}
	}
	for _, jobs := range calls {
		e.tasks.Go(func() { e.renew(jobs) })
	}
}

// renew sends one call and hands each answer to its claim.
func (e *engine) renew(jobs []errand) {
	patience := jobs[0].patience
	items := make([]driver.Renewal, len(jobs))
	for i, job := range jobs {
		items[i] = job.item
		patience = min(patience, job.patience)
	}
	b := newBudget(e.life, patience)
	defer b.end()
	e.drv.Renew(b, items, func(i int, s driver.Standing, err error) {
		jobs[i].claim.renewed(jobs[i], s, err)
	})
}

// renewOne does one item and answers it: for a caller that waits.
func (e *engine) renewOne(ctx context.Context, item driver.Renewal) (s driver.Standing, err error) {
	e.drv.Renew(ctx, []driver.Renewal{item}, func(_ int, st driver.Standing, er error) { s, err = st, er })
	return s, err
}

// dueQueue is a heap of claims by the time they are due. A claim's slot is its place
// plus one; 0: not in the heap.
type dueQueue []*claim

func (q dueQueue) Len() int           { return len(q) }
func (q dueQueue) Less(i, j int) bool { return q[i].due.Before(q[j].due) }
func (q dueQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].slot, q[j].slot = i+1, j+1
}

// Push is for package heap.
func (q *dueQueue) Push(x any) {
	c := x.(*claim) //nolint:forcetypeassert // the queue holds nothing else
	*q = append(*q, c)
	c.slot = len(*q)
}

// Pop is for package heap.
func (q *dueQueue) Pop() any {
	old := *q
	c := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	c.slot = 0
	return c
}
