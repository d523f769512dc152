package driver

import "fmt"

// SignalKind says what happened.
type SignalKind uint8

const (
	// Granted: this stay holds (addressed).
	Granted SignalKind = iota + 1
	// Turn: this claim of several keys has come to fit in one of its lines; Renew it
	// now (addressed).
	Turn
	// Ended: this stay was revoked or forced (addressed).
	Ended
	// Freed: a key of a store without lines may be free.
	Freed
	// Wanted: somebody began to wait on the key.
	Wanted
	// Changed: the holders of the key changed.
	Changed
	// Missed: signals may have been lost; renew every waiting claim now.
	Missed
)

// String names the kind.
func (k SignalKind) String() string {
	switch k {
	case Granted:
		return "granted"
	case Turn:
		return "turn"
	case Ended:
		return "ended"
	case Freed:
		return "freed"
	case Wanted:
		return "wanted"
	case Changed:
		return "changed"
	case Missed:
		return "missed"
	}
	return fmt.Sprintf("signal(%d)", uint8(k))
}

// Signal is a hint. An addressed one names the stay it is for, and counts for no
// other.
type Signal struct {
	Kind    SignalKind
	Key     string // of the line it speaks of; empty with Missed
	ID      ID     // addressed kinds
	Number  int64  // addressed kinds
	Revoked bool   // with Ended: the stay is still in line until it leaves or expires
}
