package crew

import "time"

// Order is one thing that a puppet is to do.
type Order struct {
	N     int    // which one; the answer has the same
	Do    string // lock, look, release, extend, spin, write, close
	Lease string // the puppet's name for the lease

	// Of lock.
	Keys    []string
	Kind    string // "" (a mutex), read, write, permits
	Permits int    // wanted
	Of      int    // of how many
	TTL     time.Duration
	Wait    time.Duration
	NoRenew bool
	Try     bool

	For  time.Duration // of lock: ends its context; of spin and extend: how long
	File string        // of write: the guarded database
	Text string        // of write
}

// Answer is what came of an order, or the news that a lease is over.
type Answer struct {
	N     int
	Over  bool   // the news; N is 0
	Lease string // of the news
	Class string // of the error, "" for none
	Text  string // the error
	Token int64
	Until int64 // the end of the trust, as history.Event.At
	At    int64 // when it happened, as history.Event.At
	Rows  int64 // of write: what it changed
}
