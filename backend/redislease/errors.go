package redislease

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

func invalid(format string, args ...any) error {
	return fmt.Errorf("redislease: %w: %s", driver.ErrInvalid, fmt.Sprintf(format, args...))
}

// named puts the package's name before what package driver found wrong.
func named(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("redislease: %w", err)
}

func unavailable(err error) error {
	return fmt.Errorf("redislease: %w: %w", driver.ErrUnavailable, err)
}

// deaf is the warning of a client that hears nothing.
func deaf(err error) error {
	return fmt.Errorf("redislease: signals do not arrive, so waiting goes by polling: %w", err)
}

// elsewhere is what a client of one server makes of the answer that the key lies on
// another: it will not get any other.
func elsewhere(err error) error {
	if code(err) != "MOVED" {
		return err
	}
	return fmt.Errorf("redislease: %w: the server is one of a cluster, and the key lies on another; use *redis.ClusterClient (redis+cluster:// in a URL): %w",
		driver.ErrRefused, err)
}

var errClosed = errors.New("the driver is closed")

// refusals are the error codes with which a server says no before it did anything, and
// what mends it. Codes are part of Redis' protocol; the text behind them is not looked
// at. Everything else leaves the outcome open or passes by itself: LOADING, BUSY,
// CLUSTERDOWN, MASTERDOWN, and READONLY too, which a failover brings for a moment (a
// server that is a replica for good is refused by Check).
//
//nolint:gochecknoglobals // a table
var refusals = map[string]string{
	"OOM":         "the server is out of memory (maxmemory)",
	"NOPERM":      "the user lacks a right (ACL)",
	"NOAUTH":      "the server asks for a password",
	"WRONGPASS":   "user or password is wrong",
	"WRONGTYPE":   "a foreign value lies under a key of hasp's",
	"HASPFOREIGN": "a foreign value lies under a key of hasp's",
	"HASPNEWER":   "a newer version of hasp wrote the line; update this client",
	"MISCONF":     "the server cannot save its data and takes no writes",
	"NOREPLICAS":  "the server lacks the replicas it demands (min-replicas-to-write)",
	"DENIED":      "the server is in protected mode",
	"CROSSSLOT":   "keys of one lock lie in different slots; set Options.Slot (slot=TAG in a URL)",
	"UNKILLABLE":  "a script that does not end blocks the server",
	"NOPROTO":     "the server does not speak the protocol asked for",
}

// classify puts an error of the client or the server into one of the driver's
// classes.
func classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrInvalid), errors.Is(err, driver.ErrRefused),
		errors.Is(err, driver.ErrUnsupported), errors.Is(err, driver.ErrUnavailable):
		return err
	}
	if hint, no := refusals[code(err)]; no {
		return fmt.Errorf("redislease: %w: %s: %w", driver.ErrRefused, hint, err)
	}
	return unavailable(err)
}

// code is the first word of a server's error, empty where the error is not a server's.
func code(err error) string {
	if err == nil {
		return ""
	}
	var r redis.Error
	if errors.Is(err, redis.Nil) || !errors.As(err, &r) {
		return ""
	}
	word, _, _ := strings.Cut(unwrapped(r.Error()), " ")
	return strings.TrimPrefix(word, "-")
}

// unwrapped takes off what Redis 6.2 puts before the error of a command that a script
// has called: "ERR Error running script (call to f_<sha>): @user_script:<line>: ", and
// the place once more, written otherwise.
func unwrapped(text string) string {
	rest, wrapped := strings.CutPrefix(text, "ERR Error running script (call to f_")
	if !wrapped {
		return text
	}
	for {
		place, after, found := strings.Cut(rest, ": ")
		switch {
		case found && place == "@user_script": // and the number of the line
			_, rest, _ = strings.Cut(after, ": ")
		case found && (strings.HasPrefix(place, "@user_script:") || strings.HasSuffix(place, ")")):
			rest = after
		default:
			return rest
		}
	}
}

// moved reports whether a key has another master now, so that the cluster client must
// find it.
func moved(err error) bool {
	switch code(err) {
	case "MOVED", "ASK", "TRYAGAIN", "READONLY":
		return true
	}
	return false
}

// ended is the error of a call whose context is over.
func ended(ctx context.Context) error { return unavailable(context.Cause(ctx)) }
