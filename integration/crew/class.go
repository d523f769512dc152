package crew

import (
	"context"
	"errors"

	"github.com/hasp-dev/hasp"
)

// Class is the class of an error as one word, "" for none and "other" for one that has
// no class, which must not be.
func Class(err error) string {
	if err == nil {
		return ""
	}
	for _, class := range []struct {
		name string
		err  error
	}{
		{"lost", hasp.ErrLost},
		{"held", hasp.ErrHeld},
		{"not held", hasp.ErrNotHeld},
		{"released", hasp.ErrReleased},
		{"closed", hasp.ErrClosed},
		{"refused", hasp.ErrRefused},
		{"invalid", hasp.ErrInvalid},
		{"unsupported", hasp.ErrUnsupported},
		{"unavailable", hasp.ErrUnavailable},
		// without one of hasp's: the context had ended before anything was sent
		{"cancelled", context.Canceled},
		{"too late", context.DeadlineExceeded},
	} {
		if errors.Is(err, class.err) {
			return class.name
		}
	}
	return "other"
}
