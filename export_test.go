package hasp

import (
	"maps"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Simulate has a client take its claim ids from next, which all must begin with inbox,
// and leave the machine's suspended time out of account.
func Simulate(c *Client, inbox [6]byte, next func() driver.ID) {
	c.e.ids.inbox = inbox
	c.e.ids.make = next
	base := c.e.clk.base
	c.e.clk.asleep = func() time.Duration { return base }
}

// PauseOf is the pause after that many attempts with these options, filled in.
func PauseOf(b Backoff, attempts int, chance float64) time.Duration {
	b, _ = Backoff{}.with(b).resolve()
	return b.pause(attempts, chance)
}

// BackoffOf is what a client has for a Backoff.
func BackoffOf(c *Client) Backoff { return c.lock.Backoff }

// Asking answers how many keys calls wait for that no store has a line for, and on how
// many keys somebody waits for news.
func Asking(c *Client) (keys, watches int) {
	c.e.turns.mu.Lock()
	defer c.e.turns.mu.Unlock()
	c.e.watches.mu.Lock()
	defer c.e.watches.mu.Unlock()
	return len(c.e.turns.byKey), len(c.e.watches.byKey)
}

// ClaimIDs answers the claims the client still has something to do for.
func ClaimIDs(c *Client) []driver.ID {
	c.e.mu.Lock()
	defer c.e.mu.Unlock()
	return slices.Collect(maps.Keys(c.e.claims))
}

// The arithmetic of trust, and what a client knows of a stay, for their tables.
var (
	TrustedUntil = trustedUntil
	Interval     = interval
	RetryPause   = retryPause
	RememberFor  = rememberFor
)

// Stay is what a client knows of a claim, and Sending one call under way.
type (
	Stay    = stay
	Sending = sending
)

// SendingOf makes the nth call of its claim, which names a stay or none.
func SendingOf(nth uint64, at time.Time, number int64) Sending {
	return sending{ordinal: nth, at: at, number: number}
}

// Answered is stay.answered.
func (s stay) Answered(call Sending, a driver.Standing, last uint64) Stay {
	return s.answered(call, a, last)
}

// Granted is stay.granted.
func (s stay) Granted(number int64, last uint64) Stay { return s.granted(number, last) }

// Used is stay.used.
func (s stay) Used(now time.Time) Stay { return s.used(now) }

// Ended is stay.ended.
func (s stay) Ended(number int64, revoked bool) Stay { return s.ended(number, revoked) }

// Passed is stay.passed.
func (s stay) Passed(now time.Time) Stay { return s.passed(now) }

// Phase is the phase by its name.
func (s stay) Phase() string { return s.phase.String() }

// Number is the stay's.
func (s stay) Number() int64 { return s.number }

// Until is the end of the trust.
func (s stay) Until() time.Time { return s.until }

// Revoked says that an operator ended it.
func (s stay) Revoked() bool { return s.revoked }

// Rivals is what a claim knows of those who wait outside of its process.
type Rivals = rivals

// Answered is rivals.answered.
func (r rivals) Answered(sent time.Time, behind bool) Rivals { return r.answered(sent, behind) }

// Wanted is rivals.wanted.
func (r rivals) Wanted(now time.Time) Rivals { return r.wanted(now) }

// Wait is rivals.wait.
func (r rivals) Wait(now time.Time) bool { return r.wait(now) }

// Allow is rivals.allow.
func (r rivals) Allow(now time.Time, handoffs int) bool { return r.allow(now, handoffs) }

// Granted is rivals.granted with that many grants at once.
func (r rivals) Granted(now time.Time, times int) Rivals {
	for range times {
		r = r.granted(now)
	}
	return r
}

// Handed is stay.handed.
func (s stay) Handed(now time.Time) Stay { return s.handed(now) }
