package redislease

import (
	"errors"
	"strings"
	"time"
)

// Options change how a driver works. The zero value is what most need.
type Options struct {
	// Slot is a tag that puts all keys of this driver into one slot of a Redis Cluster, so
	// that several keys can be locked in one step. All clients of a key must use the same
	// Slot: under another one it is another lock. Any text without "}".
	// Defaults to "": each key lies in a slot of its own.
	Slot string

	// Replicas is how many replicas must have acknowledged a step that begins or lengthens a
	// lease before the lease is used (WAIT). Too few: the step does not count, the claim
	// leaves again and the call is driver.ErrUnavailable. It narrows what a failover can
	// forget and does not exclude it. Defaults to 0: the master's answer is enough.
	Replicas int

	// ReplicaTimeout is how long a step waits for the replicas.
	// Defaults to 500 ms.
	ReplicaTimeout time.Duration

	// AllowEviction lets Check pass on a server whose maxmemory-policy may evict locks.
	// Defaults to false: such a server is refused.
	AllowEviction bool

	// Warn is called, once for each reason, with what does not stop locks but makes them
	// worse: a missing right for signals, so that waiting polls; settings this client may
	// not look at. It must not block. Defaults to nil: nobody is told.
	Warn func(error)
}

// validate answers all that is wrong, joined.
func (o *Options) validate() error {
	var errs []error
	if strings.Contains(o.Slot, "}") {
		errs = append(errs, invalid("Options.Slot %q contains a closing brace", o.Slot))
	}
	if o.Replicas < 0 {
		errs = append(errs, invalid("Options.Replicas is %d", o.Replicas))
	}
	if o.ReplicaTimeout < 0 || o.ReplicaTimeout > 0 && o.ReplicaTimeout < time.Millisecond {
		errs = append(errs, invalid("Options.ReplicaTimeout is %v", o.ReplicaTimeout))
	}
	return errors.Join(errs...)
}
