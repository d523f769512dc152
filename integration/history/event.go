package history

import (
	"time"

	"golang.org/x/sys/unix"
)

// Kind says what an event is.
type Kind string

// What a client writes about one lease, in this order.
const (
	Want      Kind = "want"      // before the call
	Refused   Kind = "refused"   // the call ended without a lease; Text says why
	Held      Kind = "held"      // the call has returned a lease
	Trusted   Kind = "trusted"   // the lease said that it is held, after its line before was written
	Over      Kind = "over"      // the lease said that it is over; Text is "lost", "closed" or "released"
	Releasing Kind = "releasing" // before Release
	Released  Kind = "released"  // after it; Text is "", "lost" or another failure
)

// What those write who run the clients.
const (
	Killing Kind = "killing" // before a process is killed; Who names it
	Wiping  Kind = "wiping"  // before the store loses what it knew
	Wiped   Kind = "wiped"   // after that; Number is what the store's clock says then, in µs
	Forcing Kind = "forcing" // before the lease with that Token is taken by force
	Forced  Kind = "forced"  // after that
	Seen    Kind = "seen"    // a line as the store showed it
	Note    Kind = "note"    // for the reader
)

// Event is one line of a history.
type Event struct {
	At       int64    `json:"at"` // ns on the machine's monotonic clock, read before the line was written
	Kind     Kind     `json:"kind"`
	Who      string   `json:"who,omitempty"`   // the process
	Lease    string   `json:"lease,omitempty"` // names one call, and the lease it got
	Keys     []string `json:"keys,omitempty"`
	Weight   int64    `json:"weight,omitempty"`
	Capacity int64    `json:"capacity,omitempty"`
	Life     int64    `json:"life,omitempty"`  // the TTL, in ns
	Token    int64    `json:"token,omitempty"` // of the lease
	Until    int64    `json:"until,omitempty"` // the end of its trust, as At
	Number   int64    `json:"number,omitempty"`
	Text     string   `json:"text,omitempty"`
	Holders  []Place  `json:"holders,omitempty"`
	Waiters  []Place  `json:"waiters,omitempty"`
}

// Place is a claim in a line that the store showed.
type Place struct {
	Token    int64 `json:"token"`
	Weight   int64 `json:"weight"`
	Capacity int64 `json:"capacity"`
}

// Now reads the clock that all processes of the machine share.
func Now() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // there is no such clock on no system that Go runs on
	}
	return now.Nano()
}

// Instant is a time of this process as an At. It is never too late: the clock is read
// before the time that is left.
func Instant(t time.Time) int64 {
	now := Now()
	return now + int64(time.Until(t))
}
