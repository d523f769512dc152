package hasp

import (
	"context"
	"time"
)

// SetAsleep makes the client take f for the time the machine has been suspended since
// it booted. It must be called before the client's first use.
func SetAsleep(c *Client, f func() time.Duration) {
	c.e.clk.asleep, c.e.clk.base = f, f()
}

// CountClaims answers how many claims the client knows.
func CountClaims(c *Client) int {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return len(c.e.claims)
}

// Parts answers how many contexts and nested leases hang on a lease.
func Parts(l *Lease) int {
	l.claim.mu.Lock()
	defer l.claim.mu.Unlock()
	return len(l.parts)
}

// Budget makes a budget and answers what ends it.
func Budget(parent context.Context, d time.Duration) (b context.Context, end func()) {
	made := newBudget(parent, d)
	return made, made.end
}

// Asleep is how long the machine has been suspended since it booted.
func Asleep() time.Duration { return asleep() }

// Queue is a gate of calls that are known by their labels.
type Queue struct {
	gate  gate
	turns map[string]*turn
}

// Enqueue puts a call behind the others.
func (q *Queue) Enqueue(label string) {
	if q.turns == nil {
		q.turns = make(map[string]*turn)
	}
	q.turns[label] = &turn{want: &want{opts: LockOptions{Label: label}}}
	q.gate.enqueue(q.turns[label])
}

// Next answers whose turn it is; empty: nobody's.
func (q *Queue) Next() string {
	if t := q.gate.next(); t != nil {
		return t.want.opts.Label
	}
	return ""
}

// Leave takes a call out and says whether it still waited.
func (q *Queue) Leave(label string) bool { return q.gate.leave(q.turns[label]) }

// Waits is how many wait.
func (q *Queue) Waits() int { return q.gate.waits() }

// Gates answers how many gates are open, and how many calls wait in them.
func Gates(c *Client) (open, waiting int) {
	c.e.gates.mu.Lock()
	defer c.e.gates.mu.Unlock()
	for _, g := range c.e.gates.open {
		waiting += g.waits()
	}
	return len(c.e.gates.open), waiting
}
