// Package memlease keeps the lines of package driver in memory. It is the reference
// every other store is measured by, and what users test with: a [Store] stands for the
// server, each [Store.Driver] for one client of it, and [Store.Drop], [Store.Wipe],
// [Store.Fail] and [Store.Stall] for what goes wrong.
//
// # Requirements
//
// None: the standard library, no goroutine, no timer, no file. A store lives and ends
// with its process, and serves the clients of that process only.
//
// # Storage layout
//
// One map finds a line by its key, one a claim by its ID. A line is a list in joining
// order, the holders in front; two heaps by expiry, of holders and of waiters, find the
// dead wherever they stand; counts of blocks of 64 answer how many stand ahead. So
// leaving and renewing cost O(log n) in a line of n, handing over O(grants). One mutex
// guards the whole store, which is what makes a step over several keys atomic.
//
// What must outlive its line, the last number of a key and the IDs to be remembered,
// waits in a third heap, ordered by when it may be forgotten. Every step forgets a few
// that are due, and removes the dead from lines nobody touches, so the store shrinks
// again without a goroutine.
//
// # Clock
//
// The store reads the wall clock once, in [NewStore], and counts monotonic time from
// there. Inside a testing/synctest bubble a store made there runs on the bubble's time.
//
// # Wake-ups
//
// A step puts its signals into the queues of those who listen, before it answers; Listen
// delivers them on its caller's goroutine, in order, holding no lock. A client that does
// not listen gets none. A queue that overflows is dropped whole and replaced by Missed.
//
// # Limits
//
// Claims vanish with the process. A step grants at most 32 claims and removes at most 64,
// as the contract says. Standing.LookAgain takes the first 64 claims of a line into
// account: for a claim further back it may be early, never late. Listing a prefix looks
// at every key of the store.
package memlease
