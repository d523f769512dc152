//go:build !race

package sqlitelease_test

// Zero: as the suite has it.
const (
	underRace     = false
	contractTick  = 0
	contractWidth = 0
)
