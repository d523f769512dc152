package driver

import (
	"fmt"
	"time"
)

// State is how a claim stands after a step.
type State uint8

const (
	// Holding: the claim holds all its keys.
	Holding State = iota + 1
	// Waiting: the claim stands in line.
	Waiting
	// Refused: Try or MaxLine; the claim did not enter.
	Refused
	// Gone: the claim is not there and never will be: expired, ended, given up, taken
	// over, or revoked.
	Gone
	// Left: this call took it out.
	Left
)

// String names the state.
func (s State) String() string {
	switch s {
	case Holding:
		return "holding"
	case Waiting:
		return "waiting"
	case Refused:
		return "refused"
	case Gone:
		return "gone"
	case Left:
		return "left"
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// Standing is the answer to a step. hasp computes with it, never with what it asked
// for.
type Standing struct {
	State State
	// Number of the stay. Numbers of one key rise in the order of its line: max(last + 1,
	// the store's clock in µs), where last is the key's greatest number so far and outlives
	// the empty line by 2 x TTL, at least 10 s. A claim has one number in all its lines.
	// With Gone it is the number the call named as its own (of a Join with Resume, not the
	// one of Resume); with Refused it is 0.
	Number int64
	// Life is how long the claim lives from the step on, Grace not counted: it must not
	// exceed what the store keeps. Above 0 while Holding or Waiting.
	Life time.Duration
	// LookAgain, of a waiting claim, is when the claims in its way could be gone at the
	// earliest if nobody renews or leaves; a Renew sent then removes them. Above 0 while
	// Waiting.
	LookAgain time.Duration
	// More says that a cap stopped the step. A claim that is Holding or Waiting is renewed at
	// once; with Left or Refused the next step of anybody goes on with the work.
	More    bool
	Behind  bool // somebody waits behind, in one of its lines
	Revoked bool // with Gone: revoked, and still in line until it leaves or expires
	Ahead   int  // claims ahead, in the longest of its lines
	// Holder is the Name of the first holder in the way and ExpiresIn its rest (with
	// Waiting, Refused and, where somebody else holds by now, Gone). Both are zero where
	// only waiting claims are in the way.
	Holder    string
	ExpiresIn time.Duration
}
