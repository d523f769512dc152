package simulation

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Network is what lies between the clients of a run and their store.
type Network struct {
	history *History
	weather Weather
	dice    Dice

	step     sync.Mutex // one step of the store and its line in the history
	underWay atomic.Int64
}

// NewNetwork makes one for the run that h tells of. wipe makes the store lose
// everything.
func NewNetwork(h *History, w Weather, wipe func()) *Network {
	n := &Network{history: h, weather: w, dice: Dice(h.Seed)}
	h.Confirm = n.dice.For('g').Chance(20)
	throws := n.dice.For('w')
	for range w.Wipes {
		n.after(throws.Between(0, w.Ends), func() {
			n.step.Lock()
			defer n.step.Unlock()
			wipe()
			h.Add(Event{Kind: Wiped})
		})
	}
	return n
}

// Idle says that no call, copy or signal is under way.
func (n *Network) Idle() bool { return n.underWay.Load() == 0 }

// after runs f in d from now, on a goroutine of its own.
func (n *Network) after(d time.Duration, f func()) {
	n.underWay.Add(1)
	time.AfterFunc(d, func() {
		defer n.underWay.Add(-1)
		f()
	})
}

// answer is what the store says to a call.
type answer struct {
	standing driver.Standing
	found    []int64     // to End
	page     driver.Page // to Lines
	err      error
}

// flight is a call under way.
type flight struct {
	from    *Driver
	sent    Event
	fate    fate
	out     chan answer
	refused atomic.Bool // the answer was Refused, and heard
}

// begin sends a call: step is done at the store when it arrives, perhaps twice.
func (d *Driver) begin(sent Event, step func() answer) *flight {
	n := d.net
	now := n.history.Now()
	throws := d.throws(sent.Claim, string(sent.Verb))
	f := &flight{from: d, sent: sent, fate: n.weather.of(throws, now), out: make(chan answer, 1)}
	f.sent.Call = n.history.sent(sent)
	spread := func() time.Duration { return throws.Between(quick, usual) }
	arrives := past(d.pauses, now, spread) + f.fate.there
	answers := past(d.pauses, arrives+f.fate.back, spread)
	switch {
	case f.fate.refused:
		n.after(answers-now, func() { f.out <- answer{err: fmt.Errorf("%w: in a storm", driver.ErrRefused)} })
		return f
	case f.fate.broken:
		n.after(answers-now, func() { f.out <- answer{err: fmt.Errorf("%w: the connection broke", driver.ErrUnavailable)} })
	}
	if !f.fate.lost {
		n.after(arrives-now, func() {
			a := f.execute(step, false)
			if !f.fate.mute && !f.fate.broken {
				n.after(answers-arrives, func() { f.out <- a })
			}
		})
	}
	if f.fate.copied {
		n.after(arrives-now+f.fate.copyAfter, func() {
			if !f.refused.Load() {
				f.execute(step, true)
			}
		})
	}
	return f
}

// execute does a step at the store and writes it down.
func (f *flight) execute(step func() answer, again bool) answer {
	n := f.from.net
	n.step.Lock()
	defer n.step.Unlock()
	a := step()
	e := f.sent
	e.Kind, e.Copy, e.Ask = Executed, again, nil
	e.State, e.Number, e.Life = a.standing.State, a.standing.Number, a.standing.Life
	if a.err != nil {
		e.Text = a.err.Error()
	}
	n.history.Add(e)
	for _, number := range a.found {
		n.history.Add(Event{Kind: Found, Claim: e.Claim, Key: e.Key, Number: number, Force: e.Force, Call: e.Call})
	}
	if a.standing.State == driver.Waiting && n.weather.Forget > 0 {
		f.from.forget(e)
	}
	return a
}

// wait answers the call, at the latest a moment after the end of ctx.
func (f *flight) wait(ctx context.Context) answer {
	var a answer
	select {
	case a = <-f.out:
	case <-f.from.closing:
		a.err = fmt.Errorf("%w: the driver is closed", driver.ErrUnavailable)
	case <-ctx.Done():
		a = f.late(ctx.Err())
	}
	e := f.sent
	e.Kind, e.Ask = Answered, nil
	e.State, e.Number, e.Life = a.standing.State, a.standing.Number, a.standing.Life
	if a.err != nil {
		e.Text = a.err.Error()
		e.Number = f.sent.Number
	}
	f.from.answered(f, a)
	f.from.net.history.Add(e)
	return a
}

// late waits a little longer than the caller does.
func (f *flight) late(cause error) answer {
	t := time.NewTimer(f.fate.linger)
	defer t.Stop()
	select {
	case a := <-f.out:
		return a
	case <-f.from.closing:
	case <-t.C:
	}
	return answer{err: fmt.Errorf("%w: %w", driver.ErrUnavailable, cause)}
}
