// Package integration tests hasp on real servers, through faults, from several
// processes. It holds nothing but tests; the folders below are what they are made of.
package integration
