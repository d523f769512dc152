package driver

import (
	"fmt"
	"time"
)

// ID names one attempt of one client: the client's inbox in its first 6 bytes,
// then 10 random bytes. It is the only proof of ownership, so it appears in no log,
// listing or error: it prints masked.
type ID [16]byte

// Inbox answers the client's part of the ID.
func (id ID) Inbox() [6]byte { return [6]byte(id[:6]) }

// Format prints the ID masked, whatever the verb.
func (id ID) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("id(masked)")) }

// MarshalText masks the ID, so that no encoder shows it.
func (id ID) MarshalText() ([]byte, error) { return []byte("masked"), nil }

// Ref names a stay: one life of a claim in its lines.
type Ref struct {
	ID     ID
	Number int64    // sequence number of the stay; 0 while unknown
	Keys   []string // with prefix, sorted, distinct, 1 to 64
}

// Life is what a step gives a claim, counted from the store's now.
type Life struct {
	Hold  time.Duration // while it holds
	Grace time.Duration // added by the store while it holds, never answered
	Wait  time.Duration // while it waits: the smaller of the TTL and 6 s
	Own   bool          // the claim keeps an expiry of its own, in no session
}

// Claim is what stands in a line.
type Claim struct {
	Ref
	Weight, Capacity int64 // 1 <= Weight <= Capacity
	Life             Life
	Index            uint8  // local index, for listings
	Name             string // of the client, for listings; at most 128 bytes
}

// Join is one attempt to enter.
type Join struct {
	Claim
	Try     bool     // enter only where it holds at once
	MaxLine int      // do not begin to wait where that many wait; 0: no limit
	Resume  *Ref     // take the place of this live holding claim
	Leaving *Leaving // leave with this claim first, in the same step
}

// Leaving is one claim that goes.
type Leaving struct {
	Ref
	// Unanswered says that a Join of this ID may still arrive. The store then answers
	// Gone to it for as long as Remember says. A driver sets it by itself where its
	// client library may have sent the Join more often than it was asked to.
	Unanswered bool
	Remember   time.Duration
}

// Mode is what a Renewal asks for.
type Mode uint8

const (
	// Extend sets expiry = max(expiry, now + life). It never shortens, and changes
	// nothing of a fixed claim.
	Extend Mode = iota + 1
	// Fix gives a holding claim an expiry of its own, now + Life.Hold without Grace, also
	// an earlier one. Only the first Fix of a stay counts. A waiting claim is extended instead.
	Fix
	// Drop is a Leave.
	Drop
)

// String names the mode.
func (m Mode) String() string {
	switch m {
	case Extend:
		return "extend"
	case Fix:
		return "fix"
	case Drop:
		return "drop"
	}
	return fmt.Sprintf("mode(%d)", uint8(m))
}

// Renewal is one item of Renew. Extend and Fix go by ID and, where it is not 0, by
// Number: of another stay than the one named they must answer Gone.
type Renewal struct {
	Ref
	Mode       Mode
	Life       Life
	Unanswered bool          // with Drop, as in Leaving
	Remember   time.Duration // with Drop, as in Leaving
}
