// Package stores opens the stores of the tests by an address, so that a test, and a
// process that it starts, need to know nothing else about them.
package stores
