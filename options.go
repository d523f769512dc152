package hasp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"
	"unicode/utf8"
)

// NoWait makes Lock, RLock, Acquire and Do answer at once, as their Try forms do.
// Forever lets them stand in line until their context ends, which is the default.
const (
	NoWait  = time.Duration(-1)
	Forever = time.Duration(1<<63 - 1)
)

// Bounds of the times a lock can have.
const (
	defaultTTL = 10 * time.Second
	minTTL     = 100 * time.Millisecond
	maxTTL     = 30 * 24 * time.Hour
)

// maxNameBytes bounds Options.Name, which every claim carries.
const maxNameBytes = 128

// Options configure a client. Nil and the zero value mean the defaults.
type Options struct {
	// Name is a label in listings and errors. Ownership never rests on it, so clients may
	// share one. At most 128 bytes. Defaults to "<host>:<process id>".
	Name string
	// Prefix is put before every key, byte for byte. Defaults to none.
	Prefix string
	// Lock has the defaults of this client's locks.
	Lock LockOptions
	// Logger is told of leases lost and of what no caller is left to hear. Defaults to
	// discarding.
	Logger *slog.Logger
	// Observe is called with every event, for metrics and audit, one at a time and in the
	// order in which they happened: on the goroutine of the call that caused it, or on one
	// that is telling already. While it blocks, events wait, and nothing else does. Defaults
	// to none.
	Observe func(context.Context, Event)
}

// LockOptions say how a lock is waited for and kept.
type LockOptions struct {
	// TTL is how long the store keeps the lock without a renewal, from 100 ms to 30 days.
	// It is renewed every third of it. Defaults to 10 s.
	TTL time.Duration
	// Wait is how long Lock, RLock, Acquire and Do stand in line, or ask again where the
	// store has none; NoWait: not at all. Defaults to Forever: until the context ends.
	Wait time.Duration
	// Grace is added by the store, after the TTL, before others may hold. The holder
	// trusts its lease no longer for it. Defaults to 0.
	Grace time.Duration
	// MaxHold ends the renewal after this much holding; the lease is lost when the TTL has
	// run out after that. Defaults to no limit.
	MaxHold time.Duration
	// NoRenew makes a fixed lease: the TTL from the grant, and no renewal. Defaults to
	// renewing.
	NoRenew bool
	// MaxLine refuses, with a *HeldError, to begin to wait where that many wait: in this
	// client, and in the store's line, in which the goroutines of another client that hand a
	// lease on among themselves count as one. A store without a line has none to count, and
	// ignores it. Defaults to no limit.
	MaxLine int
	// Backoff says when to ask again at a store that has no line, whose waiting calls cannot
	// stand in one. Each of its fields has its own default.
	Backoff Backoff
	// Reentrant lets a nested lock whose context carries the lease share it; so do all
	// goroutines started with that context. Defaults to refusing nested locks, which would
	// wait for themselves.
	Reentrant bool
	// LocalHandoffs is how many times in a row a lease may go from one goroutine of this
	// client to the next while others wait for the key, up to 63. While nobody else waits it
	// goes on without the store in any case, where a key is wanted exclusively with the same
	// TTL and Grace. More of it is faster, and less fair to others. Negative: none at all, every
	// lock stands in the store's line by itself. Defaults to 0: while others wait, a release
	// lets them go first.
	LocalHandoffs int
	// Sticky keeps a lease that was released for that long, at most 30 days, while nobody
	// else wants the key, so that the next lock of this client, of one key, wanted
	// exclusively with the same TTL and Grace, asks no store. To others it is held by this
	// client; who waits for it gets it at once where the store's signals arrive, else within
	// two seconds. Such a lease is renewed at least every second. A client keeps at most 256, gives
	// the oldest back beyond that, and all in Close. Defaults to 0: a release gives it back.
	Sticky time.Duration
	// Label is a name for metrics, of which there should be few. Defaults to none.
	Label string
}

// resolve checks o and fills in the defaults.
func (o Options) resolve() (Options, error) {
	var errs []error
	if len(o.Name) > maxNameBytes {
		errs = append(errs, fmt.Errorf("option Name has %d bytes, at most %d are allowed", len(o.Name), maxNameBytes))
	}
	if !utf8.ValidString(o.Name) || strings.IndexByte(o.Name, 0) >= 0 {
		errs = append(errs, fmt.Errorf("option Name %q is not valid UTF-8 without NUL", o.Name))
	}
	o.Name = cmp.Or(o.Name, defaultName())
	if len(o.Prefix) >= maxKeyBytes {
		errs = append(errs, fmt.Errorf("option Prefix has %d bytes, a key with its prefix may have %d", len(o.Prefix), maxKeyBytes))
	}
	if o.Prefix != "" {
		if err := checkKey(o.Prefix, o.Prefix+"k"); err != nil {
			errs = append(errs, fmt.Errorf("option Prefix: %w", err))
		}
	}
	if o.Lock.Grace < 0 || o.Lock.MaxHold < 0 || o.Lock.MaxLine < 0 || o.Lock.Sticky < 0 || o.Lock.Backoff.MaxAttempts < 0 {
		errs = append(errs, errors.New("options Grace, MaxHold, MaxLine, Sticky and Backoff.MaxAttempts must not be negative"))
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	lock, err := LockOptions{}.with(o.Lock).resolve()
	o.Lock = lock
	if errs = append(errs, err); errors.Join(errs...) != nil {
		return o, fmt.Errorf("%w: %w", ErrInvalid, errors.Join(errs...))
	}
	return o, nil
}

func defaultName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	if limit := maxNameBytes - 24; len(host) > limit {
		host = strings.ToValidUTF8(host[:limit], "")
	}
	return fmt.Sprintf("%s:%d", host, os.Getpid())
}

// with lays p over o: zero fields keep o's, negative ones mean none, booleans can
// only be switched on.
func (o LockOptions) with(p LockOptions) LockOptions {
	return LockOptions{
		TTL:       cmp.Or(p.TTL, o.TTL),
		Wait:      cmp.Or(p.Wait, o.Wait),
		Grace:     max(0, cmp.Or(p.Grace, o.Grace)),
		MaxHold:   max(0, cmp.Or(p.MaxHold, o.MaxHold)),
		NoRenew:   p.NoRenew || o.NoRenew,
		MaxLine:   max(0, cmp.Or(p.MaxLine, o.MaxLine)),
		Backoff:   o.Backoff.with(p.Backoff),
		Reentrant: p.Reentrant || o.Reentrant,
		Label:     cmp.Or(p.Label, o.Label),

		LocalHandoffs: cmp.Or(p.LocalHandoffs, o.LocalHandoffs),
		Sticky:        max(0, cmp.Or(p.Sticky, o.Sticky)),
	}
}

// resolve fills in the defaults and says all that is wrong, joined.
func (o LockOptions) resolve() (LockOptions, error) {
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	o.Wait = cmp.Or(o.Wait, Forever)
	var errs []error
	if err := checkTTL(o.TTL); err != nil {
		errs = append(errs, err)
	}
	if o.Wait < 0 && o.Wait != NoWait {
		errs = append(errs, fmt.Errorf("option Wait is %s; it must be positive, NoWait or Forever", o.Wait))
	}
	if o.Grace > maxTTL {
		errs = append(errs, fmt.Errorf("option Grace is %s, at most %s is allowed", o.Grace, maxTTL))
	}
	if o.LocalHandoffs > mostHandoffs {
		errs = append(errs, fmt.Errorf("option LocalHandoffs is %d, at most %d are possible", o.LocalHandoffs, mostHandoffs))
	}
	if o.Sticky > maxTTL {
		errs = append(errs, fmt.Errorf("option Sticky is %s, at most %s is allowed", o.Sticky, maxTTL))
	}
	backoff, err := o.Backoff.resolve()
	o.Backoff = backoff
	return o, errors.Join(append(errs, err)...)
}

func checkTTL(ttl time.Duration) error {
	if ttl < minTTL || ttl > maxTTL {
		return fmt.Errorf("TTL is %s; it must be from %s to %s", ttl, minTTL, maxTTL)
	}
	return nil
}
