// Package drivertest holds the contract of package driver as tests.
//
// A store runs it with one call:
//
//	func TestContract(t *testing.T) {
//		drivertest.Run(t, drivertest.Suite{Open: open})
//	}
//
// Every case is a sentence about one concept, and stands in the file of that
// concept. A case is a plain function that answers an error, so that a broken
// driver being caught can itself be tested. A case works on keys of its own, and
// on a real store many cases run at once.
//
// Lives are counted in ticks, because stores differ in how short a life they can
// keep: a case says "lives four ticks" and looks at three and at five. What a
// store lacks by its Features is not skipped: the case is replaced by a check that
// the lack is answered as the contract says.
package drivertest
