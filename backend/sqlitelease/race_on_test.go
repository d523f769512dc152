//go:build race

package sqlitelease_test

import "time"

// The race detector makes SQLite, which is Go here, many times slower.
const (
	underRace     = true
	contractTick  = 500 * time.Millisecond
	contractWidth = 4
)
