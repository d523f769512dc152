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
	// EventRefused says: a call ended without a lease; Err says why. Without Keys it had
	// none: see [Client.NoKey].
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
// They are told one at a time in the order in which they happened. Those without a
// caller are told on a goroutine that lives while there is something to tell, so that a
// slow observer never delays a renewal or the news of a loss.
type observer struct {
	tell   func(context.Context, Event) // nil: nobody asks
	logger *slog.Logger

	mu      sync.Mutex
	queue   []telling
	telling bool // somebody tells the first of the queue
}

// telling is an event on its way.
type telling struct {
	ctx context.Context //nolint:containedctx // each event is told with its own
	Event
}

// now tells an event on the caller's goroutine; while another one is being told, on
// that one's, so that a caller waits for no event but its own.
func (o *observer) now(ctx context.Context, ev Event) {
	if o.put(ctx, ev) && o.next() {
		go o.rest()
	}
}

// later tells an event that no caller waits for.
func (o *observer) later(ctx context.Context, ev Event) {
	if o.put(ctx, ev) {
		go o.rest()
	}
}

// put queues an event, and says whether nobody is telling yet.
func (o *observer) put(ctx context.Context, ev Event) bool {
	if o.tell == nil && !ev.noteworthy() {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, telling{ctx, ev})
	idle := !o.telling
	o.telling = true
	return idle
}

func (o *observer) rest() {
	for o.next() {
	}
}

// next tells the first of the queue, and says whether there are more.
func (o *observer) next() (more bool) {
	o.mu.Lock()
	first := o.queue[0]
	o.mu.Unlock()
	told := false
	defer func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.queue = o.queue[1:]
		if more = len(o.queue) > 0; !more {
			o.queue, o.telling = nil, false
		} else if !told { // the observer has panicked
			go o.rest()
		}
	}()
	o.log(first.ctx, first.Event)
	if o.tell != nil {
		o.tell(first.ctx, first.Event)
	}
	told = true
	return more
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
