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
