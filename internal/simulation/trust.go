package simulation

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// margin is what the trust is shorter than the life the store answered, as G2 says.
func margin(life time.Duration) time.Duration { return max(life/100, 5*time.Millisecond) }

// known is what a client may know of one stay.
type known struct {
	number  int64
	bound   time.Duration // trusted until, by the answers heard so far
	life    time.Duration // as last answered
	answers int           // that it stands in line
	held    bool          // an answer said that it holds
	told    bool          // a signal did
	learnt  int           // index of the event by which the grant was known; 0: not yet
	sure    int           // index of the first answer that said so; 0: none
	over    time.Duration // the client was told that it is not there any more; never
	why     string
	enough  bool          // there was a third of the trust left when its grant was known
	renewed time.Duration // when the last answered call was sent
	doubt   time.Duration // it was answered waiting at that time, after its grant was known
}

// trial follows what a client may know of one claim and compares it with what its
// lease says.
type trial struct {
	*judge
	claim Claim
	stays []*known
	lease *lease        // the latest
	ended bool          // that one
	left  time.Duration // a Leave was sent; never
}

// trust is G2, G9 and what a lease may be made of (P1, P2, P5, P6): how long the lease of
// a claim may be trusted, by what its client was told.
func (j *judge) trust(c Claim) {
	t := &trial{judge: j, claim: c, left: never}
	for _, i := range j.events[c] {
		e := &j.history.Events[i]
		switch e.Kind { //nolint:exhaustive // the others say nothing of it
		case Sent:
			t.sent(e)
		case Answered:
			t.answered(i, e)
		case Heard:
			t.heard(i, e)
		case Acquired:
			t.acquired(i, e)
		case Looked:
			if k := t.of(e.Number); e.Until > k.bound && !t.ended {
				j.faultf("G2", e.At, "%s says it is trusted until %s, the answers give it until %s", c, e.Until, k.bound)
			}
		case Over, Releasing, Parking:
			if t.about(e) == t.lease { // and not one that has gone on
				t.end(e)
			}
		default:
		}
	}
	if t.lease != nil && !t.ended {
		t.end(&Event{Kind: Over, At: j.last, Number: t.lease.number, Text: "never"})
	}
}

// newest is the last stay the client knows of.
func (t *trial) newest() *known {
	var last *known
	for _, k := range t.stays {
		if last == nil || k.number > last.number {
			last = k
		}
	}
	return last
}

func (t *trial) of(number int64) *known {
	for _, k := range t.stays {
		if k.number == number {
			return k
		}
	}
	k := &known{number: number, over: never}
	t.stays = append(t.stays, k)
	return k
}

// sent is G9: nothing renews a lease that is over, nor a claim that was left (P1).
func (t *trial) sent(e *Event) {
	if e.Verb == Leave || e.Verb == Drop {
		t.left = min(t.left, e.At)
	}
	if e.Verb != Extend && e.Verb != Join {
		return
	}
	if t.left < e.At {
		t.faultf("P1", e.At, "%s is used again after its Leave was sent at %s", t.claim, t.left)
	}
	if k := t.newest(); k != nil && k.over < e.At {
		t.faultf("P1", e.At, "%s is used again after it %s at %s", t.claim, k.why, k.over)
	}
	if t.lease == nil || !t.ended {
		return
	}
	l := t.lease
	switch {
	case l.releasing != nil && l.releasing.At < e.At && !l.stay.ask.local():
		t.faultf("G9", e.At, "%s is renewed after its owner called Release", t.claim)
	case l.parking != nil && l.parking.At < e.At:
		t.faultf("G9", e.At, "%s is renewed after its owner gave it away", t.claim)
	case l.over != nil && l.over.Text == "lost" && l.over.At < e.At:
		t.faultf("G9", e.At, "%s is renewed after it was lost", t.claim)
	}
}

func (t *trial) answered(index int, e *Event) {
	if e.Text != "" {
		return
	}
	sent := t.history.Events[t.ledger.sent[e.Call]]
	switch e.State {
	case driver.Gone:
		for _, k := range t.stays {
			if sent.Number >= k.number && (e.Verb == Extend || e.Verb == Join) {
				t.tell(k, e.At, "was answered gone")
			}
		}
	case driver.Holding, driver.Waiting:
		if e.Verb == Extend || e.Verb == Join {
			t.stands(index, e, sent)
		}
	case driver.Refused, driver.Left:
	}
}

func (t *trial) stands(index int, e *Event, sent Event) {
	for _, k := range t.stays {
		if k.number < e.Number {
			t.tell(k, e.At, "was answered a later stay")
		}
	}
	k := t.of(e.Number)
	if t.believed(e.Number) && e.At > k.bound {
		t.faultf("G2", e.At, "%s is still trusted, its trust ended at %s", t.claim, k.bound)
	}
	if e.State == driver.Waiting && k.learnt > 0 && t.ledger.sent[e.Call] > k.learnt {
		if t.ledger.sent[e.Call] > k.sure {
			t.tell(k, e.At, "was answered waiting to a call sent after its grant was known")
		}
		k.doubt = e.At // it may as well take the answer for one that was overtaken
		return
	}
	k.answers++
	k.life = e.Life
	k.renewed = max(k.renewed, sent.At)
	k.bound = max(k.bound, sent.At+e.Life-margin(e.Life))
	if e.State == driver.Holding && !k.held {
		k.held, k.sure = true, index
	}
	k.learn(index, e.At)
}

// learn notes when the client knew both the stay and that it holds.
func (k *known) learn(index int, at time.Duration) {
	if k.learnt == 0 && (k.held || k.told && k.answers > 0) {
		k.learnt = index
	}
	k.enough = k.enough || k.learnt > 0 && k.bound-at >= k.life/3
}

func (t *trial) tell(k *known, at time.Duration, why string) {
	if k.over == never {
		k.over, k.why = at, why
	}
}

func (t *trial) heard(index int, e *Event) {
	switch e.Signal {
	case driver.Granted.String():
		for _, k := range t.stays {
			if k.number < e.Number {
				t.tell(k, e.At, "was told of a later stay")
			}
		}
		k := t.of(e.Number)
		k.told = true
		k.learn(index, e.At)
	case driver.Ended.String():
		for _, k := range t.stays {
			if k.number <= e.Number {
				t.tell(k, e.At, "was told that it was ended")
			}
		}
	}
}

// believed says whether somebody trusts the lease of that stay.
func (t *trial) believed(number int64) bool {
	return t.lease != nil && !t.ended && t.lease.number == number
}

func (t *trial) acquired(index int, e *Event) {
	t.lease, t.ended = t.at(t.claim, index), false
	k := t.of(e.Number)
	t.passed(k, e)
	switch {
	case !k.held && !k.told:
		t.faultf("P1", e.At, "%s is a lease, and nobody said that its stay #%d holds", t.claim, e.Number)
	case k.over != never:
		t.faultf("G9", e.At, "%s is a lease, but %s", t.claim, k.why)
	case e.At >= k.bound:
		t.faultf("G2", e.At, "%s is a lease, its trust ended at %s", t.claim, k.bound)
	case !k.held && (!k.enough || t.lease.stay.ask.Life.Own || t.history.Confirm):
		t.faultf("P5", e.At, "%s is a lease by a signal, without the renewal that is due before its use", t.claim)
	case e.Until > k.bound:
		t.faultf("G2", e.At, "%s says it is trusted until %s, the answers give it until %s", t.claim, e.Until, k.bound)
	}
}

// passed judges a lease that came from another one of its process: with enough trust, or
// renewed for it (G2), and larger by its token (G3).
func (t *trial) passed(k *known, e *Event) {
	was := t.before(t.lease)
	if was == nil {
		return
	}
	switch {
	case was.end > e.At:
		t.faultf("G1", e.At, "%s goes on to the next of its process before its owner has released it", t.claim)
	case k.bound-e.At < k.life/3 && k.renewed < was.end:
		t.faultf("G2", e.At, "%s goes on to the next of its process with trust until %s only", t.claim, k.bound)
	case !was.stay.ask.local() || was.parking != nil || was.over != nil && was.over.Text == "lost":
		t.faultf("P14", e.At, "%s goes on to the next of its process, and must not", t.claim)
	case e.Token >= 64*(e.Number+1):
		t.faultf("P17", e.At, "%s has token %d, which is not in the block of #%d", t.claim, e.Token, e.Number)
	}
}

// end judges the moment in which the owner stopped to trust the lease.
func (t *trial) end(e *Event) {
	if t.lease == nil || t.ended {
		return
	}
	t.ended = true
	k := t.of(t.lease.number)
	switch {
	case e.At > k.bound:
		t.faultf("G2", e.At, "%s is over (%s %s), its trust ended at %s", t.claim, e.Kind, e.Text, k.bound)
	case e.At > k.over:
		t.faultf("G2", e.At, "%s is over (%s %s), but it %s at %s", t.claim, e.Kind, e.Text, k.why, k.over)
	case e.Kind == Over && e.Text == "lost" && e.At < k.bound && k.over == never && e.At != k.doubt && !t.judge.ended(t.lease):
		t.faultf("lost", e.At, "%s is lost without a reason: its trust would have ended at %s", t.claim, k.bound)
	case e.Kind == Over && e.Text == "released":
		t.faultf("lost", e.At, "%s is over as released, and its owner released nothing", t.claim)
	case e.Kind != Over && (t.lease.over == nil || t.lease.over.At > e.At):
		t.faultf("P14", e.At, "%s does not end when its owner gives it back or away", t.claim)
	}
}
