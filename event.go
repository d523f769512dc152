package hasp

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// EventKind says what happened.
type EventKind uint8

const (
	// EventAcquired says: a lease was granted; Took is the time from the call.
	EventAcquired EventKind = iota + 1
	// EventRefused says: a call ended without a lease; Err says why.
	EventRefused
	// EventReleased says: a lease was given back; Took is how long it was held.
	EventReleased
	// EventLost says: a lease was lost; Took is how long it was held.
	EventLost
	// EventRenewed says: a lease was renewed; Took is the round trip.
	EventRenewed
	// EventRenewFailed says: a renewal was not answered and will be tried again.
	EventRenewFailed
	// EventEnded says: a lease was kept or detached; Op says which.
	EventEnded
	// EventClosed says: the client was closed; Err names what was still held.
	EventClosed
)

// String names the kind, as metrics do.
func (k EventKind) String() string {
	switch k {
	case EventAcquired:
		return "acquired"
	case EventRefused:
		return "refused"
	case EventReleased:
		return "released"
	case EventLost:
		return "lost"
	case EventRenewed:
		return "renewed"
	case EventRenewFailed:
		return "renew_failed"
	case EventEnded:
		return "ended"
	case EventClosed:
		return "closed"
	}
	return fmt.Sprintf("event(%d)", uint8(k))
}

// Event is what Options.Observe is told.
type Event struct {
	Kind  EventKind
	Op    string // as in Error.Op
	Keys  []string
	Label string // LockOptions.Label
	Token int64
	Took  time.Duration
	Err   error
}

// observer hands events to Options.Observe and the noteworthy ones to the logger.
// Events without a caller go through a queue, so that a slow observer never delays
// a renewal or the news of a loss; its goroutine lives while there is something to
// tell.
type observer struct {
	tell   func(context.Context, Event) // nil: nobody asks
	logger *slog.Logger

	mu      sync.Mutex
	queue   []Event
	telling bool
}

// now tells an event on the caller's goroutine.
func (o *observer) now(ctx context.Context, ev Event) {
	if o.tell != nil {
		o.tell(ctx, ev)
	}
}

// later tells an event that no caller waits for.
func (o *observer) later(ctx context.Context, ev Event) {
	if o.tell == nil && !ev.noteworthy() {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, ev)
	if !o.telling {
		o.telling = true
		go o.drain(ctx)
	}
}

func (o *observer) drain(ctx context.Context) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.queue) > 0 {
		ev := o.queue[0]
		o.queue = o.queue[1:]
		o.mu.Unlock()
		o.log(ctx, ev)
		o.now(ctx, ev)
		o.mu.Lock()
	}
	o.telling = false
	o.queue = nil
}

// noteworthy says whether an event goes to the logger: what the program may not be
// looking at, and should.
func (e Event) noteworthy() bool {
	return e.Kind == EventLost || (e.Kind == EventReleased || e.Kind == EventEnded) && e.Err != nil
}

func (o *observer) log(ctx context.Context, ev Event) {
	if !ev.noteworthy() {
		return
	}
	o.logger.LogAttrs(ctx, slog.LevelWarn, "lease "+ev.Kind.String(), //nolint:sloglint // one of three fixed words
		slog.Any("keys", ev.Keys), slog.String("label", ev.Label),
		slog.Int64("token", ev.Token), slog.Duration("after", ev.Took), slog.Any("error", ev.Err))
}
