package hasp_test

import (
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/driver"
)

// script plays what happens to one claim: calls are sent, answered, and signals heard.
// Times are in seconds since its begin.
type script struct {
	begin time.Time
	stay  hasp.Stay
	sent  []hasp.Sending
}

// move is one line of a script.
type move func(*script)

func (s *script) at(seconds float64) time.Time {
	return s.begin.Add(time.Duration(seconds * float64(time.Second)))
}

// sends is the next call, naming a stay or none.
func sends(at float64, number int64) move {
	return func(s *script) {
		s.sent = append(s.sent, hasp.SendingOf(uint64(len(s.sent)+1), s.at(at), number))
	}
}

// says is an answer to the nth call.
func says(nth int, state driver.State, number int64, life float64) move {
	return func(s *script) {
		a := driver.Standing{State: state, Number: number, Life: time.Duration(life * float64(time.Second))}
		s.stay = s.stay.Answered(s.sent[nth-1], a, uint64(len(s.sent)))
	}
}

// revokes is the answer Gone to the nth call, by an operator.
func revokes(nth int) move {
	return func(s *script) {
		a := driver.Standing{State: driver.Gone, Number: s.stay.Number(), Revoked: true}
		s.stay = s.stay.Answered(s.sent[nth-1], a, uint64(len(s.sent)))
	}
}

// granted is the signal that a stay holds.
func granted(number int64) move {
	return func(s *script) { s.stay = s.stay.Granted(number, uint64(len(s.sent))) }
}

// ended is the signal that a stay was ended.
func ended(number int64, revoked bool) move {
	return func(s *script) { s.stay = s.stay.Ended(number, revoked) }
}

// used lets a grant that was told be used, if enough trust is left.
func used(at float64) move { return func(s *script) { s.stay = s.stay.Used(s.at(at)) } }

// passes lets time pass.
func passes(at float64) move { return func(s *script) { s.stay = s.stay.Passed(s.at(at)) } }

const (
	holds = driver.Holding
	waits = driver.Waiting
	gone  = driver.Gone
)

// stayRow is a schedule, what the claim has come to, and until when it is trusted.
type stayRow struct {
	name   string
	moves  []move
	phase  string
	number int64
	until  float64 // less the margin; 0: not at all
	margin float64
}

// The rules of stays, replies and signals, P1 to P6 of the protocol, one by one.
var stayRows = []stayRow{
	{"nothing is known of a claim that was only sent", []move{sends(0, 0)}, "joining", 0, 0, 0},
	{"a grant at once", []move{sends(1, 0), says(1, holds, 7, 3)}, "holding", 7, 4, 0.03},
	{"a place in line", []move{sends(1, 0), says(1, waits, 7, 3)}, "waiting", 7, 4, 0.03},
	{"refused", []move{sends(1, 0), says(1, driver.Refused, 0, 0)}, "over", 0, 0, 0},

	{
		"P1: the answer to a Join that was overtaken by a later stay does not count",
		[]move{sends(0, 0), sends(4, 0), says(2, waits, 9, 3), says(1, holds, 7, 3)},
		"waiting", 9, 7, 0.03,
	},
	{
		"P1: nor does the signal of an earlier stay",
		[]move{sends(0, 0), sends(4, 0), says(2, waits, 9, 3), granted(7), used(4)},
		"waiting", 9, 7, 0.03,
	},
	{
		"P1: an earlier stay that is gone says nothing of the later one",
		[]move{sends(0, 0), sends(4, 7), says(1, waits, 9, 3), says(2, gone, 7, 0)},
		"waiting", 9, 3, 0.03,
	},
	{
		"P1: the end of an earlier stay neither",
		[]move{sends(0, 0), says(1, waits, 9, 3), ended(7, false)},
		"waiting", 9, 3, 0.03,
	},
	{
		"P1: a later stay forgets the trust in the earlier one",
		[]move{sends(0, 0), sends(5, 0), says(1, waits, 7, 30), says(2, waits, 9, 3)},
		"waiting", 9, 8, 0.03,
	},
	{
		"P1: and its grant",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), sends(5, 0), says(2, waits, 9, 3), used(5)},
		"waiting", 9, 8, 0.03,
	},
	{
		"P1: a later stay of what is held means that it is lost",
		[]move{sends(0, 0), says(1, holds, 7, 3), sends(2, 0), says(2, holds, 9, 3)},
		"over", 7, 3, 0.03,
	},
	{
		"P1: so does a signal of a later stay",
		[]move{sends(0, 0), says(1, holds, 7, 3), granted(9)},
		"over", 7, 3, 0.03,
	},
	{
		"P1: a signal that overtakes the answer counts from the first sending of the Join",
		[]move{sends(0, 0), sends(2, 0), granted(7), says(1, waits, 7, 3), used(1)},
		"holding", 7, 3, 0.03,
	},
	{
		"P1: it is no grant before something was answered",
		[]move{sends(0, 0), granted(7), used(1)},
		"joining", 7, 0, 0,
	},
	{
		"P1: and none of another stay than the answered one",
		[]move{sends(0, 0), granted(7), says(1, waits, 9, 3), used(1)},
		"waiting", 9, 3, 0.03,
	},
	{
		"P1: an answer of an earlier stay than the signal's does not count",
		[]move{sends(0, 0), granted(9), says(1, holds, 7, 3)},
		"joining", 9, 0, 0,
	},
	{
		"P1: gone is for ever",
		[]move{sends(0, 0), says(1, waits, 7, 3), sends(1, 7), says(2, gone, 7, 0), sends(2, 0), says(3, holds, 9, 3), granted(9)},
		"over", 7, 3, 0.03,
	},
	{
		"P1: gone counts for the stay that the call named",
		[]move{sends(0, 0), says(1, holds, 7, 3), sends(1, 7), says(2, gone, 7, 0)},
		"over", 7, 3, 0.03,
	},
	{
		"P1: gone to a Join of which nothing else is known",
		[]move{sends(0, 0), says(1, gone, 0, 0)},
		"over", 0, 0, 0,
	},
	{
		"P1: refused, answered late, does not end what stands in line",
		[]move{sends(0, 0), sends(1, 0), says(2, holds, 7, 3), says(1, driver.Refused, 0, 0)},
		"holding", 7, 4, 0.03,
	},

	{
		"P2: trust counts from the sending of the call that was answered, not of the last",
		[]move{sends(0, 0), sends(3, 0), says(1, holds, 7, 3)},
		"holding", 7, 3, 0.03,
	},
	{
		"P2: a late answer to an earlier call does not shorten it",
		[]move{sends(0, 0), sends(1, 0), says(2, holds, 7, 3), says(1, holds, 7, 3)},
		"holding", 7, 4, 0.03,
	},
	{
		"P2: a signal moves no window",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), used(1.5)},
		"holding", 7, 3, 0.03,
	},
	{
		"P2: nor does the same signal once more",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), used(1.5), granted(7), used(1.6)},
		"holding", 7, 3, 0.03,
	},
	{
		"P2: the trust of a short life ends 5 ms early",
		[]move{sends(0, 0), says(1, holds, 7, 0.3)},
		"holding", 7, 0.3, 0.005,
	},

	{
		"P3: the answer to a repeated Join renews",
		[]move{sends(0, 0), says(1, waits, 7, 3), sends(2, 0), says(2, holds, 7, 3)},
		"holding", 7, 5, 0.03,
	},
	{
		"P4: a shorter life answered to a later call does not shorten the trust",
		[]move{sends(0, 0), says(1, holds, 7, 6), sends(1, 7), says(2, holds, 7, 2)},
		"holding", 7, 6, 0.06,
	},

	{
		"P5: a third of the trust is enough to use a grant that was told",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), used(1.97)},
		"holding", 7, 3, 0.03,
	},
	{
		"P5: less is not",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), used(1.98)},
		"told", 7, 3, 0.03,
	},
	{
		"P5: then an answered renewal is needed",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), used(2.5), sends(2.5, 7), says(2, holds, 7, 10)},
		"holding", 7, 12.5, 0.1,
	},
	{
		"P5: one that was sent before does not help",
		[]move{sends(0, 0), says(1, waits, 7, 3), sends(1, 7), granted(7), used(2.5), says(2, waits, 7, 3), passes(2.6)},
		"told", 7, 4, 0.03,
	},

	{
		"P6: waiting, answered to a call sent after the grant was known, means lost",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), used(1), sends(1.5, 7), says(2, waits, 7, 3)},
		"over", 7, 3, 0.03,
	},
	{
		"P6: to one sent before it is an ordinary renewal",
		[]move{sends(0, 0), says(1, waits, 7, 3), sends(1, 7), granted(7), used(1.5), says(2, waits, 7, 3)},
		"holding", 7, 4, 0.03,
	},
	{
		"P6: also while the grant is told and not used",
		[]move{sends(0, 0), says(1, waits, 7, 3), sends(1, 7), granted(7), says(2, waits, 7, 3)},
		"told", 7, 4, 0.03,
	},
	{
		"P6: and lost where it is told and not used",
		[]move{sends(0, 0), says(1, waits, 7, 3), granted(7), sends(1, 7), says(2, waits, 7, 3)},
		"over", 7, 3, 0.03,
	},
	{
		"P6: a grant known by an answer is meant, too",
		[]move{sends(0, 0), sends(1, 0), says(1, holds, 7, 3), says(2, waits, 7, 3), sends(2, 7), says(3, waits, 7, 3)},
		"over", 7, 4, 0.03,
	},

	{"the trust ends at its end", []move{sends(0, 0), says(1, holds, 7, 3), passes(2.97)}, "over", 7, 3, 0.03},
	{"and not before", []move{sends(0, 0), says(1, holds, 7, 3), passes(2.969)}, "holding", 7, 3, 0.03},
	{
		"G9: what is lost stays lost, whatever is answered",
		[]move{sends(0, 0), says(1, holds, 7, 3), sends(2, 7), passes(3), says(2, holds, 7, 3), granted(7)},
		"over", 7, 3, 0.03,
	},
	{"waiting has no trust to lose", []move{sends(0, 0), says(1, waits, 7, 3), passes(60)}, "waiting", 7, 3, 0.03},
	{"ended by an operator", []move{sends(0, 0), says(1, holds, 7, 3), ended(7, false)}, "over", 7, 3, 0.03},
	{"ended while it waits", []move{sends(0, 0), says(1, waits, 7, 3), ended(7, true)}, "over", 7, 3, 0.03},
	{"left", []move{sends(0, 0), says(1, holds, 7, 3), sends(1, 7), says(2, driver.Left, 7, 0)}, "over", 7, 3, 0.03},
}

func TestStaysFollowTheProtocol(t *testing.T) {
	t.Parallel()
	for _, row := range stayRows {
		s := &script{begin: time.Now()}
		for _, m := range row.moves {
			m(s)
		}
		if got := s.stay.Phase(); got != row.phase {
			t.Errorf("%s: it is %s, want %s", row.name, got, row.phase)
		}
		if got := s.stay.Number(); got != row.number {
			t.Errorf("%s: its number is %d, want %d", row.name, got, row.number)
		}
		want := s.at(row.until - row.margin)
		got := s.stay.Until()
		if row.until == 0 {
			if !got.IsZero() {
				t.Errorf("%s: trusted until %s", row.name, got.Sub(s.begin))
			}
		} else if off := got.Sub(want); off < -time.Microsecond || off > time.Microsecond {
			t.Errorf("%s: trusted until %s, want %s", row.name, got.Sub(s.begin), want.Sub(s.begin))
		}
	}
}

// A revoked lease is told apart from a forced one: nobody else holds yet (P16).
func TestARevokedStayIsKnownAsSuch(t *testing.T) {
	t.Parallel()
	held := []move{sends(0, 0), says(1, holds, 7, 3)}
	for _, row := range []struct {
		name  string
		moves []move
		want  bool
	}{
		{"by signal", append(held, ended(7, true)), true},
		{"forced, by signal", append(held, ended(7, false)), false},
		{"by the answer to a renewal", append(held, sends(1, 7), revokes(2)), true},
		{"gone, by the answer to a renewal", append(held, sends(1, 7), says(2, gone, 7, 0)), false},
	} {
		s := &script{begin: time.Now()}
		for _, m := range row.moves {
			m(s)
		}
		if s.stay.Phase() != "over" || s.stay.Revoked() != row.want {
			t.Errorf("%s: it is %s, revoked %v, want %v", row.name, s.stay.Phase(), s.stay.Revoked(), row.want)
		}
	}
}

// Whatever is answered and told in whatever order: trust never exceeds what an answered
// call gave, and nothing that is over comes back.
func FuzzStay(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7})
	f.Add([]byte{0, 8, 32, 5, 0, 9, 40, 3})
	f.Fuzz(func(t *testing.T, tape []byte) {
		s := &script{begin: time.Now()}
		var most time.Time
		now := 0.0
		for i, b := range tape {
			over := s.stay.Phase() == "over"
			number := int64(1 + b>>3&3)
			now += float64(b>>5) / 4
			switch b & 7 {
			case 0, 1:
				sends(now, s.stay.Number()*int64(b&1))(s)
			case 2, 3:
				if len(s.sent) == 0 {
					continue
				}
				nth := 1 + i%len(s.sent)
				if until := hasp.TrustedUntil(s.at(now), 3*time.Second); until.After(most) {
					most = until
				}
				says(nth, driver.State(1+b&1), number, 3)(s)
			case 4:
				granted(number)(s)
			case 5:
				used(now)(s)
			case 6:
				passes(now)(s)
			case 7:
				ended(number, b&8 != 0)(s)
			}
			if over && s.stay.Phase() != "over" {
				t.Fatalf("move %d: it is over, and then %s", i, s.stay.Phase())
			}
			if s.stay.Until().After(most) {
				t.Fatalf("move %d: trusted until %s, no answer gave that", i, s.stay.Until().Sub(s.begin))
			}
		}
	})
}
