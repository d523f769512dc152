package fence

import (
	"errors"
	"fmt"

	"github.com/hasp-dev/hasp"
)

var (
	// ErrStale says that a larger token was seen, so another holder has come since. It comes
	// as a *StaleError. Nothing was written; what was to be written belongs to the past.
	ErrStale = errors.New("stale fencing token")
	// ErrNoToken says that a request carries no token. It also matches hasp.ErrInvalid.
	ErrNoToken = fmt.Errorf("%w: no fencing token", hasp.ErrInvalid)
)

// StaleError says which token was refused, and which was seen before. It matches ErrStale.
type StaleError struct {
	Resource string
	Seen     int64 // the greatest token seen
	Given    int64 // the one that was refused
	// Forgotten says that the Gate no longer knows this resource; Seen is then the
	// greatest token of all resources it has forgotten.
	Forgotten bool
}

// Error names the resource and both tokens.
func (e *StaleError) Error() string {
	if e.Forgotten {
		return fmt.Sprintf("stale fencing token: the gate has forgotten %q and tokens up to %d, this one is %d: raise Gate.Limit if its holder is alive",
			e.Resource, e.Seen, e.Given)
	}
	return fmt.Sprintf("stale fencing token: %q has seen token %d, this one is %d: somebody else has held the lock since",
		e.Resource, e.Seen, e.Given)
}

// Is matches ErrStale.
func (e *StaleError) Is(target error) bool { return target == ErrStale }

func invalidf(format string, args ...any) error {
	return fmt.Errorf("fence: %w: %s", hasp.ErrInvalid, fmt.Sprintf(format, args...))
}

// checkToken refuses what no store gives out.
func checkToken(token int64) error {
	if token <= 0 {
		return invalidf("%d is no fencing token, which is above 0", token)
	}
	return nil
}

// maxResource is the longest name of a resource in bytes: that of a key.
const maxResource = 512

func checkResource(resource string) error {
	if resource == "" || len(resource) > maxResource {
		return invalidf("the name of a resource has 1 to %d bytes, not %d", maxResource, len(resource))
	}
	return nil
}
