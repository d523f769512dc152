// Package driver is the contract between hasp and a store.
//
// A key has a line; whoever wants the key puts a claim into it. Claims stand in
// joining order, and a claim holds exactly while nobody before it in any of its
// lines waits, and its weight and the weights of all live claims before it fit
// into the smallest capacity among these claims. The words here are the
// specification: every "must" has a case in package drivertest, and the store in
// package memlease is the reference.
//
// # Steps
//
// Each of [Driver.Join], [Driver.Leave], [Operator.End], and each item of
// [Driver.Renew], is one atomic step of the store. A step reads the store's
// clock once. It must first remove, from every line it touches, each claim whose
// expiry has passed, wherever it stands; then do its own work; then hand over:
// the claims that now hold are marked as holding and their clients are signalled.
// What a step removes never comes back: a later Renew of it must answer [Gone].
//
// A step must stay bounded: at most 32 grants and 64 removals. While dead claims
// are left in front of a claim, or claims that would fit were not reached, the
// claim does not hold and the answer says [Standing.More].
//
// Handing over must not change an expiry: a claim granted by somebody else's step
// keeps the expiry of its last waiting renewal (its Grace, too, counts only from
// its next renewal). A claim that comes to hold by a step of its own gets the life of
// a holding claim in that step. A claim that stands in several lines is never granted by
// somebody else's step. When it comes to fit in one of its lines its client gets
// [Turn], and the claim's own next step grants it if it fits in all of them.
//
// # Calls
//
// Methods must be safe for concurrent use and return within 50 ms of their
// context's end, also on a silent connection. Every call may be repeated,
// duplicated or arrive late, with the outcome as if it had come once. A driver has
// at most four commands in flight on the user's handle, apart from its push
// connection; further calls queue in the driver, where they can be cancelled.
//
// An error that wraps [ErrRefused], [ErrInvalid] or [ErrUnsupported] says that the
// store did nothing. Any other error, [ErrUnavailable] among them, says that the
// outcome is unknown: the step may have been done, or may still be. A driver never
// answers a failure with a Standing, and never a Standing with a failure.
//
// What cannot be right is ErrInvalid, before anything is sent: keys that are missing,
// empty, unsorted, given twice or more than 64; a weight outside 1 to the capacity;
// a life, limit or name out of range; a mode that is none. [Join.Validate] and its like
// find what no store could take; a store may refuse more. A store without lines answers
// ErrUnsupported to a Join that is no Try.
//
// Durations are lives by the store's clock; no client time is ever sent to a store.
package driver

import "context"

// Driver is one client's way to one store. It serves one client, takes the user's
// handle and never closes it.
type Driver interface {
	// Features says what the store can do and, in Err, what the constructor found
	// wrong. It must do no I/O and never change.
	Features() Features

	// Check proves that the store is reachable, that schema, settings and rights fit,
	// and that signals arrive. Warnings do not fail it. A missing or newer schema, a
	// read-only server or a missing right is ErrRefused and says what mends it.
	Check(ctx context.Context) error

	// Join puts a claim into all its lines, or renews it if it lives, in one step.
	//
	// Of a live claim (found by ID) it must do exactly what Renew with Extend does.
	// Of an ID that a Leave asked to remember it must answer Gone. Otherwise the claim
	// enters behind everybody, with a number of its own. With Try it must enter only
	// where it holds at once; with MaxLine it must not begin to wait where, in one of
	// its lines, that many wait already: both answer Refused, and nothing is left.
	//
	// With Resume the claim takes the place of the live holding claim with that ID and
	// Number: same number, weights and place; the new ID, name, index, life and
	// session, with its expiry set anew and no longer fixed. Repeated with the same
	// new ID it must answer the same. Where there is no such claim, or it is revoked,
	// the answer is Gone and nothing enters. The keys and weights named must be the
	// place's own.
	//
	// With Leaving, that claim leaves first, in the same step.
	Join(ctx context.Context, j Join) (Standing, error)

	// Renew does every item in as few round trips as it can. answer is called exactly
	// once for each item, as its answer arrives and from one goroutine at a time, and
	// not after Renew has returned; one silent node must not hold back the others.
	Renew(ctx context.Context, items []Renewal, answer func(i int, s Standing, err error))

	// Leave takes a claim out of all its lines and hands over, in one step. It goes by
	// the ID alone, whatever the Number. The answer is Left, or Gone where the claim was
	// not there.
	Leave(ctx context.Context, l Leaving) (Standing, error)

	// Lines answers one line (Query.Key) or a page of lines (Query.Prefix) in the byte
	// order of their keys. It must not change the store, must not list a dead claim,
	// and must not show an ID.
	Lines(ctx context.Context, q Query) (Page, error)

	// Close stops what the driver started and returns when it has ended. It must send
	// no Leave: claims still held expire by themselves. Calls after it, and calls it
	// cuts short, Listen among them, are ErrUnavailable. Closing twice is allowed.
	Close(ctx context.Context) error
}

// Signaler is implemented by a driver that can shorten waiting. Without it, or
// while nothing is heard, hasp looks again by Standing.LookAgain and Features.Poll:
// a lost signal costs time, never correctness.
type Signaler interface {
	// Listen calls deliver until ctx ends, then returns an error. It reconnects by
	// itself. It must deliver Missed once when it first hears, and after each gap; hasp
	// queues no Join before the first. deliver never blocks and may be called while the
	// caller of a step still waits for its answer: a signal may overtake the answer.
	// inbox is the client's part of each of its IDs.
	Listen(ctx context.Context, inbox [6]byte, deliver func(Signal)) error

	// Watch asks for the unaddressed signals (Freed, Wanted, Changed) of one key, until
	// stop is called. They are hints: they may come late, twice, or not at all. Neither
	// does I/O of its own or waits for a delivery: they are called from within deliver, too.
	Watch(key string) (stop func())
}

// Operator is implemented by a driver whose store lets leases be taken from their
// holders.
type Operator interface {
	// End revokes, or with force removes, exactly the stays of key that have one of
	// these numbers, at most 64, and answers the numbers it found.
	//
	// A revoked stay that holds keeps its place and the expiry it has: renewing or
	// joining it answers Gone with Standing.Revoked, Leave takes it out as ever, and the
	// next is granted when it has left or expired, so nobody overlaps. Revoking it once
	// more finds it once more. A forced stay, and a waiting stay in either case, is
	// removed at once from all its lines. The owner is sent Ended. Another stay is never
	// touched, also when the call is repeated.
	End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error)
}

// Proven is implemented by hasp.Lease, so that a store's guard need not import hasp.
type Proven interface {
	// Ref names the stay that is the proof. It prints masked.
	Ref() Ref
	// Driver is the driver whose claim it is, by which the guard finds its tables.
	Driver() Driver
}
