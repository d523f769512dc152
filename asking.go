package hasp

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// asking is one call that waits at a store without a line: it asks, with a new claim
// each time, until it is not refused. See Backoff for when.
type asking struct {
	*acquisition

	backoff  Backoff
	over     <-chan time.Time // fires when Wait is over
	news     chan struct{}    // the key may be free
	listens  bool             // for news
	queued   string           // the key whose turn the call waits for
	attempts int              // that were refused
	holder   string           // who stood in the way of the latest
	expires  time.Time        // of that holder; not after the refusal: unknown
}

// ask waits for the lease without a line to stand in.
func (a *acquisition) ask(ctx context.Context) (*Lease, error) {
	over, stop := a.patience()
	defer stop()
	backoff, _ := a.want.opts.Backoff.resolve() // what is wrong was said before
	k := &asking{acquisition: a, backoff: backoff, over: over, news: make(chan struct{}, 1)}
	return k.queue(ctx, a.want.keys.full)
}

// queue waits for the call's turn on every key and asks when all have come. Calls take
// their turns in the order of the keys, so no two wait for each other.
func (k *asking) queue(ctx context.Context, keys []string) (*Lease, error) {
	if len(keys) == 0 {
		defer k.deafen()
		return k.insist(ctx)
	}
	key := keys[0]
	mine := k.e.turns.join(key)
	defer k.e.turns.leave(key, mine)
	k.queued = key
	v := k.await(ctx, mine.come, nil)
	if v == outOfTime && k.unheard() { // the one ahead may hear any moment
		k.over = time.After(oneAnswer)
		v = k.await(ctx, mine.come, nil)
	}
	if v != undecided {
		return nil, k.refusal(ctx, v)
	}
	if mine.err != nil {
		return nil, mine.err
	}
	return k.queue(ctx, keys[1:])
}

// unheard says that the store has not answered about the key whose turn the call waits for.
func (k *asking) unheard() bool {
	_, _, heard := k.e.turns.known(k.queued)
	return !heard
}

// insist asks until there is an answer that waiting does not change.
func (k *asking) insist(ctx context.Context) (*Lease, error) {
	for {
		k.tick()
		lease, again, err := k.once(ctx)
		held := (*HeldError)(nil)
		k.pass(err)
		switch {
		case again: // a late Leave has hit the claim: the next one has another id
			continue
		case err == nil:
			return lease, nil
		case errors.As(err, &held):
			k.refused(held)
		case ctx.Err() != nil && k.attempts > 0:
			return nil, k.refusal(ctx, cancelled) // what was heard last counts
		default:
			return nil, err
		}
		if k.backoff.exhausted(k.attempts) {
			return nil, k.refusal(ctx, refused)
		}
		if v := k.rest(ctx); v != undecided {
			return nil, k.refusal(ctx, v)
		}
	}
}

// pass tells those who wait behind whether the store answers.
func (k *asking) pass(err error) {
	for _, key := range k.want.keys.full {
		switch {
		case err == nil || errors.Is(err, ErrHeld):
			k.e.turns.hear(key)
		case k.broken && errors.Is(err, ErrUnavailable): // or each of them would find it out for itself, one after the other
			k.e.turns.disperse(key, err)
		}
	}
}

// refused takes in that an attempt was.
func (k *asking) refused(held *HeldError) {
	k.tick()
	k.attempts++
	k.holder, k.expires = held.Holder, k.now.Add(held.ExpiresIn)
	if len(k.want.keys.full) == 1 { // of several nobody says which one is held
		k.e.turns.note(k.queued, k.holder, k.expires)
	}
}

// rest waits until the store is to be asked again.
func (k *asking) rest(ctx context.Context) verdict {
	k.listen()
	pause := k.backoff.pause(k.attempts, rand.Float64()) //nolint:gosec // it spreads load and guards nothing
	if left := k.expires.Sub(k.now); left > 0 {          // nobody signals that a lease has expired
		pause = min(pause, max(left, k.backoff.Min))
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	return k.await(ctx, nil, t.C)
}

// await waits for the call's turn, for news or for the pause's end; otherwise it says
// why the call is over.
func (k *asking) await(ctx context.Context, turn <-chan struct{}, pause <-chan time.Time) verdict {
	select {
	case <-turn:
		if ctx.Err() != nil {
			return cancelled
		}
	case <-pause:
	case <-k.news:
	case <-k.over:
		return outOfTime
	case <-ctx.Done():
		return cancelled
	case <-k.e.closing:
		return closed
	}
	return undecided
}

// listen asks, after the first refusal, for news of the keys. The store's signals are
// kept for those who wait behind, or each would ask for them anew.
func (k *asking) listen() {
	if k.listens {
		return
	}
	k.listens = true
	sig, heard := k.e.drv.(driver.Signaler)
	for _, key := range k.want.keys.full {
		k.e.watches.add(key, k.news)
		if heard && !k.e.turns.watched(key) {
			k.e.turns.watch(key, sig.Watch(key))
		}
	}
}

// deafen ends what listen began.
func (k *asking) deafen() {
	if !k.listens {
		return
	}
	for _, key := range k.want.keys.full {
		k.e.watches.remove(key, k.news)
	}
}

// refusal is the call's error.
func (k *asking) refusal(ctx context.Context, v verdict) error {
	if v == closed {
		return ErrClosed
	}
	k.tick()
	if k.attempts == 0 {
		var heard bool
		if k.holder, k.expires, heard = k.e.turns.known(k.queued); !heard {
			return errors.Join(errUnheard, ctx.Err())
		}
	}
	held := &HeldError{
		Key: k.want.keys.first(), Holder: k.holder, ExpiresIn: max(0, k.expires.Sub(k.now)),
		Waited: k.now.Sub(k.start), Attempts: k.attempts,
	}
	if v == cancelled {
		held.cause = ctx.Err()
	}
	return held
}

// freedHere tells the calls of this process that wait where there is no line: the store
// may have no signals, or they come later.
func (e *engine) freedHere(w *want) {
	if e.feats.Line {
		return
	}
	for _, key := range w.keys.full {
		e.watches.rouse(key)
	}
}
