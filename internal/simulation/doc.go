// Package simulation runs clients against a store through a network that fails from a
// seed, writes down who believed what from when to when, and judges that history by
// the promises of the guarantees: exclusion, trust, tokens, order, loss, release.
//
// A run happens in virtual time, inside a testing/synctest bubble. What goes wrong is
// a function of the seed, the claim and the number of its call, and every event falls
// on a nanosecond of its own, so that one seed gives one history, or two or three.
package simulation
