package simulation_test

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
	. "github.com/hasp-dev/hasp/internal/simulation"
)

// tales are histories and the promises they break; none: they are as they should be.
var tales = []struct {
	name    string
	tell    func(*tale)
	weather string
	broken  string
}{
	{"one after the other", func(t *tale) {
		t.takes(0, a1, 7)
		t.returns(1, a1, 7)
		t.takes(2, b1, 9)
		t.returns(3, b1, 9)
	}, "", ""},
	{"a lease is handed over by a signal", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.5, b1, mutex, driver.Waiting, 8)
		t.returns(1, a1, 7)
		t.signal(1.1, b1, driver.Granted, 8)
		t.acquired(1.2, b1, 8)
		t.returns(2, b1, 8)
	}, "slow", ""},
	{"a lease is lost at the end of its trust", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(2.97, a1, 7, "lost")
		t.add(4, Event{Kind: Releasing, Claim: a1, Number: 7})
		t.call(4, a1, Drop, driver.Gone, 7)
		t.add(4, Event{Kind: Released, Claim: a1, Number: 7, Text: "lost"})
	}, "lossy", ""},

	{"G1: two at once", func(t *tale) {
		t.takes(0, a1, 7)
		t.takes(1, b1, 9)
		t.returns(2, a1, 7)
		t.returns(2, b1, 9)
	}, "", "G1"},
	{"G1: a reader beside a writer", func(t *tale) {
		reader := mutex
		reader.Capacity = 1 << 30
		t.takes(0, a1, 7)
		t.joins(1, b1, reader, driver.Holding, 9)
		t.acquired(1.2, b1, 9)
		t.returns(2, a1, 7)
		t.returns(2, b1, 9)
	}, "", "G1"},
	{"G1: two readers are right", func(t *tale) {
		reader := mutex
		reader.Capacity = 1 << 30
		for i, c := range []Claim{a1, b1} {
			t.joins(float64(i)/2, c, reader, driver.Holding, int64(7+i))
			t.acquired(float64(i)/2+0.2, c, int64(7+i))
			t.returns(1.5, c, int64(7+i))
		}
	}, "", ""},
	{"G1: the smallest number of permits counts", func(t *tale) {
		for i, c := range []Claim{a1, b1, c1} {
			permits := mutex
			permits.Capacity = int64(4 - i)
			t.joins(float64(i)/2, c, permits, driver.Holding, int64(7+i))
			t.acquired(float64(i)/2+0.2, c, int64(7+i))
			t.returns(2, c, int64(7+i))
		}
	}, "", "G1"},
	{"G1: one of several keys is enough to exclude", func(t *tale) {
		both := mutex
		both.Keys = []string{"j", "k"}
		t.joins(0, a1, both, driver.Holding, 7)
		t.acquired(0.2, a1, 7)
		t.takes(1, b1, 9)
		t.returns(2, a1, 7)
		t.returns(2, b1, 9)
	}, "", "G1"},
	{"G1: after a wipe the old one may go on", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(0.5, Event{Kind: Wiped})
		t.takes(1, b1, 9)
		t.returns(2, a1, 7)
		t.returns(2, b1, 9)
	}, "", ""},
	{"G1: but no two that came after it", func(t *tale) {
		t.add(0, Event{Kind: Wiped})
		t.takes(0.1, a1, 7)
		t.takes(1, b1, 9)
		t.returns(2, a1, 7)
		t.returns(2, b1, 9)
	}, "", "G1"},
	{"G1: after a force the old one may go on", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(0.5, Event{Kind: Found, Claim: Claim{Client: 2}, Key: "k", Number: 7, Force: true})
		t.takes(1, b1, 9)
		t.returns(2, a1, 7)
		t.returns(2, b1, 9)
	}, "", ""},
	{"G1: after a revoke it may not", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(0.5, Event{Kind: Found, Claim: Claim{Client: 2}, Key: "k", Number: 7})
		t.takes(1, b1, 9)
		t.returns(2, a1, 7)
		t.returns(2, b1, 9)
	}, "", "G1"},

	{"G2: trusted beyond the answers", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(2.98, a1, 7, "lost")
	}, "", "G2"},
	{"G2: released only after the trust was over", func(t *tale) {
		t.takes(0, a1, 7)
		t.returns(4, a1, 7)
	}, "", "G2"},
	{"G2: never over", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(9, Event{Kind: Note})
	}, "", "G2"},
	{"G2: an answer after the end of the trust does not mend it", func(t *tale) {
		t.takes(0, a1, 7)
		t.call(2.9, a1, Extend, driver.Holding, 7)
		t.returns(4, a1, 7)
	}, "", "G2"},
	{"G2: a renewal that was answered in time does", func(t *tale) {
		t.takes(0, a1, 7)
		t.call(2, a1, Extend, driver.Holding, 7)
		t.returns(4, a1, 7)
	}, "", ""},
	{"G2: it says that it is trusted for longer", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(1, Event{Kind: Looked, Claim: a1, Number: 7, Until: 3 * time.Second})
		t.returns(2, a1, 7)
	}, "", "G2"},
	{"G2: a lease whose trust was over when it came", func(t *tale) {
		t.joins(0, a1, mutex, driver.Holding, 7)
		t.acquired(3, a1, 7)
		t.over(3, a1, 7, "lost")
	}, "", "G2"},
	{"G2: it goes on after it was told that it is gone", func(t *tale) {
		t.takes(0, a1, 7)
		t.call(1, a1, Extend, driver.Gone, 7)
		t.returns(2, a1, 7)
	}, "", "G2"},
	{"G2: it goes on after it was told of its end", func(t *tale) {
		t.takes(0, a1, 7)
		t.signal(1, a1, driver.Ended, 7)
		t.returns(2, a1, 7)
	}, "", "G2"},
	{"P6: it goes on after it was told that it waits", func(t *tale) {
		t.takes(0, a1, 7)
		t.call(1, a1, Extend, driver.Waiting, 7)
		t.returns(2, a1, 7)
	}, "", "G2"},
	{"lost without a reason", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(1, a1, 7, "lost")
	}, "", "lost"},
	{"over, though nobody released it", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(1, a1, 7, "released")
	}, "", "lost"},

	{"G3: a later grant has a smaller token", func(t *tale) {
		t.takes(0, a1, 9)
		t.returns(1, a1, 9)
		t.takes(2, b1, 7)
		t.returns(3, b1, 7)
	}, "", "G3"},
	{"G3: also after a wipe", func(t *tale) {
		t.takes(0, a1, 9)
		t.add(0.5, Event{Kind: Wiped})
		t.takes(1, b1, 9)
		t.returns(2, a1, 9)
		t.returns(2, b1, 9)
	}, "", "G3"},

	{"G4: overtaken", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.5, b1, mutex, driver.Waiting, 8)
		t.joins(0.6, c1, mutex, driver.Waiting, 9)
		t.returns(1, a1, 7)
		t.signal(1.1, c1, driver.Granted, 9)
		t.acquired(1.2, c1, 9)
		t.returns(2, c1, 9)
	}, "", "G4"},
	{"G4: the dead are passed", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.5, b1, mutex, driver.Waiting, 8)
		t.call(2, a1, Extend, driver.Holding, 7)
		t.joins(3, c1, mutex, driver.Waiting, 9)
		t.returns(4, a1, 7)
		t.signal(4.1, c1, driver.Granted, 9)
		t.acquired(4.2, c1, 9)
		t.returns(5, c1, 9)
	}, "", ""},

	{"P1: a lease by the signal of an earlier stay", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.joins(4, a1, mutex, driver.Waiting, 9)
		t.signal(4.5, a1, driver.Granted, 7)
		t.acquired(4.6, a1, 9)
		t.returns(5, a1, 9)
	}, "", "P1"},
	{"P1: an id is used again after it was gone", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.call(1, a1, Extend, driver.Gone, 7)
		t.joins(2, a1, mutex, driver.Waiting, 9)
	}, "", "P1"},
	{"P1: an id is used again after it was left", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.call(1, a1, Drop, driver.Left, 7)
		t.call(2, a1, Extend, driver.Gone, 7)
	}, "", "P1"},
	{"P5: a grant is used with little trust left", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.signal(2.2, a1, driver.Granted, 7)
		t.acquired(2.3, a1, 7)
		t.returns(2.5, a1, 7)
	}, "", "P5"},
	{"P5: a fixed lease is used without its renewal", func(t *tale) {
		fixed := mutex
		fixed.Life.Own = true
		t.joins(0, a1, fixed, driver.Waiting, 7)
		t.signal(0.4, a1, driver.Granted, 7)
		t.acquired(0.5, a1, 7)
		t.returns(1, a1, 7)
	}, "", "P5"},
	{"P19: a grant is used without its confirmation", func(t *tale) {
		t.Confirm = true
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.signal(0.4, a1, driver.Granted, 7)
		t.acquired(0.5, a1, 7)
		t.returns(1, a1, 7)
	}, "", "P5"},
	{"G9: renewed after it was lost", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(2.97, a1, 7, "lost")
		t.call(3, a1, Extend, driver.Holding, 7)
	}, "", "G9"},
	{"G9: renewed after it was released", func(t *tale) {
		permit := mutex
		permit.Capacity = 2
		t.joins(0, a1, permit, driver.Holding, 7)
		t.acquired(0.2, a1, 7)
		t.returns(1, a1, 7)
		t.call(2, a1, Extend, driver.Gone, 7)
	}, "", "G9"},
	{"it goes on to the next of its process", func(t *tale) {
		t.takes(0, a1, 7)
		t.hands(1, a1, 7, 1)
		t.call(2, a1, Extend, driver.Holding, 7)
		t.returns(3, a1, 7)
	}, "", ""},
	{"G2: it goes on with too little trust", func(t *tale) {
		t.takes(0, a1, 7)
		t.hands(2.5, a1, 7, 1)
	}, "", "G2"},
	{"G3: it goes on with the same token", func(t *tale) {
		t.takes(0, a1, 7)
		t.hands(1, a1, 7, 0)
	}, "", "G3"},
	{"P17: it goes on with a token of another block", func(t *tale) {
		t.takes(0, a1, 7)
		t.hands(1, a1, 7, 64)
	}, "", "P17"},
	{"P14: it goes on after it was kept", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(1, Event{Kind: Parking, Claim: a1, Number: 7})
		t.over(1, a1, 7, "released")
		t.acquiredWith(1, a1, 7, 1)
	}, "", "P14"},
	{"G1: it goes on before it was released", func(t *tale) {
		t.takes(0, a1, 7)
		t.acquiredWith(1, a1, 7, 1)
	}, "", "G1"},
	{"G4: it goes on while another has waited for long", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.5, b1, mutex, driver.Waiting, 8)
		t.hands(1.8, a1, 7, 1)
	}, "", "G4"},
	{"it goes on before another has waited for long, after a renewal that is owed", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.8, b1, mutex, driver.Waiting, 8)
		t.gives(1.7, a1, 7)
		t.call(1.9, a1, Extend, driver.Holding, 7)
		t.acquiredWith(2.1, a1, 7, 1)
		t.returns(2.5, a1, 7)
		t.call(2.6, b1, Leave, driver.Left, 8)
	}, "", ""},
	{"G4: it lingers, and goes on while another has waited for long", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.5, b1, mutex, driver.Waiting, 8)
		t.gives(0.6, a1, 7)
		t.add(1.8, Event{Kind: Acquired, Claim: a1, Number: 7, Token: 64*7 + 1, Asked: 1800 * time.Millisecond})
		t.returns(1.9, a1, 7)
		t.call(2, b1, Leave, driver.Left, 8)
	}, "", "G4"},
	{"it goes on while another has come just now", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.5, b1, mutex, driver.Waiting, 8)
		t.hands(1.2, a1, 7, 1)
		t.returns(2, a1, 7)
		t.call(2.1, b1, Leave, driver.Left, 8)
	}, "", ""},
	{"P14: renewed after it was kept", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(1, Event{Kind: Parking, Claim: a1, Number: 7})
		t.over(1, a1, 7, "released")
		t.call(1, a1, Fix, driver.Holding, 7)
		t.add(1.2, Event{Kind: Parked, Claim: a1, Number: 7})
		t.call(2, a1, Extend, driver.Holding, 7)
	}, "", "G9"},

	{"P10: a leave is not repeated", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.silent(1, a1, Drop, 7)
		t.add(9, Event{Kind: Note})
	}, "", "P10"},
	{"P10: a leave is repeated", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.silent(1, a1, Drop, 7)
		t.call(2.5, a1, Drop, driver.Left, 7)
		t.add(9, Event{Kind: Note})
	}, "", ""},
	{"P11: a late Join is let in", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.call(1, a1, Drop, driver.Left, 7)
		t.add(2, Event{Kind: Executed, Claim: a1, Verb: Join, State: driver.Holding, Number: 9, Copy: true})
	}, "", "P11"},
	{"P11: unless the store has lost everything meanwhile", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.call(1, a1, Drop, driver.Left, 7)
		t.add(1.5, Event{Kind: Wiped})
		t.add(2, Event{Kind: Executed, Claim: a1, Verb: Join, State: driver.Holding, Number: 9, Copy: true})
	}, "", ""},
	{"P12: all is well, and it was lost", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(2.97, a1, 7, "lost")
		t.add(4, Event{Kind: Releasing, Claim: a1, Number: 7})
		t.add(4, Event{Kind: Released, Claim: a1, Number: 7})
	}, "", "P12"},
	{"P12: all is well, and no Leave found it", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(1, Event{Kind: Releasing, Claim: a1, Number: 7})
		t.over(1, a1, 7, "released")
		t.call(1, a1, Leave, driver.Gone, 7)
		t.add(1.2, Event{Kind: Released, Claim: a1, Number: 7})
	}, "", "P12"},
	{"P12: a repeated one did, in time", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(0.5, Event{Kind: Releasing, Claim: a1, Number: 7})
		t.over(0.5, a1, 7, "released")
		t.silent(0.5, a1, Leave, 7)
		t.call(1.6, a1, Leave, driver.Gone, 7)
		t.add(1.8, Event{Kind: Released, Claim: a1, Number: 7})
	}, "", ""},
	{"P12: lost, and a Leave found it in time", func(t *tale) {
		t.takes(0, a1, 7)
		t.returns(1, a1, 7)
		t.Events[len(t.Events)-1].Text = "lost"
	}, "", "P12"},
	{"P13: left before its owner says so", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(2.97, a1, 7, "lost")
		t.call(3, a1, Drop, driver.Left, 7)
	}, "", "P13"},
	{"P13: Close leaves what is held", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(1, a1, 7, "closed")
		t.call(1, a1, Leave, driver.Left, 7)
	}, "", "P13"},
	{"P14: left after it was kept", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(1, Event{Kind: Parking, Claim: a1, Number: 7})
		t.over(1, a1, 7, "released")
		t.call(1, a1, Fix, driver.Holding, 7)
		t.add(1.2, Event{Kind: Parked, Claim: a1, Number: 7})
		t.call(2, a1, Leave, driver.Left, 7)
	}, "", "P14"},
	{"P14: trusted until Keep is answered", func(t *tale) {
		t.takes(0, a1, 7)
		t.add(1, Event{Kind: Parking, Claim: a1, Number: 7})
		t.call(1, a1, Fix, driver.Holding, 7)
		t.over(1.2, a1, 7, "released")
		t.add(1.2, Event{Kind: Parked, Claim: a1, Number: 7})
	}, "", "P14"},

	{"G5: a grant is not noticed in fair weather", func(t *tale) {
		t.takes(0, a1, 7)
		t.joins(0.5, b1, mutex, driver.Waiting, 8)
		t.returns(1, a1, 7)
		t.add(1.1, Event{Kind: Made, Claim: b1, Signal: "granted", Number: 8, Key: "k"})
		t.call(2, b1, Extend, driver.Holding, 8)
		t.acquired(2.2, b1, 8)
		t.returns(3, b1, 8)
	}, "calm", "G5"},
	{"fair weather loses nothing", func(t *tale) {
		t.takes(0, a1, 7)
		t.over(2.97, a1, 7, "lost")
	}, "calm", "fair"},
	{"G12: something is left behind", func(t *tale) {
		t.joins(0, a1, mutex, driver.Waiting, 7)
		t.add(1, Event{Kind: Listed, Key: "k", Number: 7})
	}, "", "G12"},
	{"what a user sees is passed on", func(t *tale) {
		t.add(1, Event{Kind: Wrong, Text: "G8: neither a lease nor an error"})
	}, "", "G8"},
}
