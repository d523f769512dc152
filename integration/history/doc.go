// Package history writes down what the clients of one run saw, from several processes
// into one file, and judges it by the promises G1 to G4 and G9.
//
// All processes append to one file, one write for each event. The kernel puts these
// writes into an order that agrees with real time, so the order of the lines, not a
// clock, says what was before what: who writes "held" after a lock was granted, and
// "trusted" after the lease has said once more that it is held, has certainly held it
// at the moment of the line before. Clocks count only where a client can no longer
// write: a lease says until when it is trusted, on the clock that all processes of a
// machine share, and nobody whom it excludes may be granted before.
//
// The judge is stricter than a promise nowhere, and knows what is allowed: that a store
// which lost its data lets two overlap for one trust window, and who is taken by force.
package history
