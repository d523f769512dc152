package simulation_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
	. "github.com/hasp-dev/hasp/internal/simulation"
)

// tale is a history told by hand. Times are in seconds.
type tale struct {
	*History
	calls int
}

func (t *tale) add(at float64, e Event) {
	e.At = seconds(at)
	t.Events = append(t.Events, e)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// mutex is what most claims of the tales want.
var mutex = Ask{Keys: []string{"k"}, Weight: 1, Capacity: 1, Life: driver.Life{Hold: 3 * time.Second, Wait: 3 * time.Second}}

// joins is a Join that is done 0.1 s after it was sent and answered 0.1 s later.
func (t *tale) joins(at float64, c Claim, ask Ask, state driver.State, number int64) {
	t.calls++
	t.add(at, Event{Kind: Sent, Claim: c, Verb: Join, Call: t.calls, Ask: &ask})
	t.add(at+0.1, Event{Kind: Executed, Claim: c, Verb: Join, Call: t.calls, State: state, Number: number, Life: 3 * time.Second})
	t.add(at+0.2, Event{Kind: Answered, Claim: c, Verb: Join, Call: t.calls, State: state, Number: number, Life: 3 * time.Second})
}

// calls is another call of a claim, done and answered likewise.
func (t *tale) call(at float64, c Claim, verb Verb, state driver.State, number int64) {
	t.calls++
	life := 3 * time.Second
	if state == driver.Gone || state == driver.Left {
		life = 0
	}
	t.add(at, Event{Kind: Sent, Claim: c, Verb: verb, Call: t.calls, Number: number})
	t.add(at+0.1, Event{Kind: Executed, Claim: c, Verb: verb, Call: t.calls, State: state, Number: number, Life: life})
	t.add(at+0.2, Event{Kind: Answered, Claim: c, Verb: verb, Call: t.calls, State: state, Number: number, Life: life})
}

// silent is a call that is neither done nor answered.
func (t *tale) silent(at float64, c Claim, verb Verb, number int64) {
	t.calls++
	t.add(at, Event{Kind: Sent, Claim: c, Verb: verb, Call: t.calls, Number: number})
	t.add(at+1, Event{Kind: Answered, Claim: c, Verb: verb, Call: t.calls, Number: number, Text: "no answer"})
}

func (t *tale) acquired(at float64, c Claim, number int64) {
	t.add(at, Event{Kind: Acquired, Claim: c, Number: number, Token: 64 * number})
}

func (t *tale) acquiredWith(at float64, c Claim, number, index int64) {
	t.add(at, Event{Kind: Acquired, Claim: c, Number: number, Token: 64*number + index})
}

// hands has a lease released, and go on to the next of its process without the store.
func (t *tale) hands(at float64, c Claim, number, index int64) {
	t.gives(at, c, number)
	t.acquiredWith(at, c, number, index)
}

// gives is a Release that asks nobody.
func (t *tale) gives(at float64, c Claim, number int64) {
	t.add(at, Event{Kind: Releasing, Claim: c, Number: number})
	t.over(at, c, number, "released")
	t.add(at, Event{Kind: Released, Claim: c, Number: number})
}

// takes is a mutex taken at once: trusted from 0.2 s after at until 2.97 s after it.
func (t *tale) takes(at float64, c Claim, number int64) {
	t.joins(at, c, mutex, driver.Holding, number)
	t.acquired(at+0.2, c, number)
}

// returns is a Release that finds the claim: 0.2 s.
func (t *tale) returns(at float64, c Claim, number int64) {
	t.add(at, Event{Kind: Releasing, Claim: c, Number: number})
	t.over(at, c, number, "released")
	t.call(at, c, Leave, driver.Left, number)
	t.add(at+0.2, Event{Kind: Released, Claim: c, Number: number})
}

func (t *tale) over(at float64, c Claim, number int64, why string) {
	t.add(at, Event{Kind: Over, Claim: c, Number: number, Text: why})
}

func (t *tale) signal(at float64, c Claim, kind driver.SignalKind, number int64) {
	t.add(at, Event{Kind: Made, Claim: c, Signal: kind.String(), Number: number, Key: "k"})
	t.add(at+0.1, Event{Kind: Heard, Claim: c, Signal: kind.String(), Number: number, Key: "k"})
}

var a1, b1, c1 = Claim{Client: 0, Nth: 1}, Claim{Client: 1, Nth: 1}, Claim{Client: 2, Nth: 1}

func TestJudgeKnowsRightFromWrong(t *testing.T) {
	t.Parallel()
	for _, c := range tales {
		h := &tale{History: &History{Weather: c.weather}}
		c.tell(h)
		slices.SortStableFunc(h.Events, func(a, b Event) int { return int(a.At - b.At) })
		var promises []string
		for _, f := range Judge(h.History) {
			promises = append(promises, f.Promise)
		}
		switch {
		case c.broken == "" && len(promises) > 0:
			t.Errorf("%s: judged wrong: %v", c.name, Judge(h.History))
		case c.broken != "" && !slices.Contains(promises, c.broken):
			t.Errorf("%s: want %s, judged %v", c.name, c.broken, Judge(h.History))
		}
	}
}

func TestASavedHistoryIsJudgedAlike(t *testing.T) {
	t.Parallel()
	for _, c := range tales {
		h := &tale{History: &History{Seed: 12, Weather: c.weather}}
		c.tell(h)
		slices.SortStableFunc(h.Events, func(a, b Event) int { return int(a.At - b.At) })
		var file bytes.Buffer
		if err := h.Save(&file); err != nil {
			t.Fatal(err)
		}
		back, err := Load(&file)
		if err != nil {
			t.Fatal(err)
		}
		if back.String() != h.String() {
			t.Errorf("%s: it came back as\n%s\nfrom\n%s", c.name, back, h)
		}
		if got, want := Judge(back), Judge(h.History); !slices.Equal(got, want) {
			t.Errorf("%s: judged %v, before %v", c.name, got, want)
		}
	}
}

func TestClaimsSurviveTheirNamesAndIDs(t *testing.T) {
	t.Parallel()
	for _, c := range []Claim{a1, {Client: 3, Nth: 1 << 30}, {Client: 2, Nth: 258}} {
		var named Claim
		if err := named.UnmarshalText([]byte(c.String())); err != nil || named != c {
			t.Errorf("%s came back as %s: %v", c, named, err)
		}
		if got := ClaimOf(c.ID()); got != c {
			t.Errorf("%s came back as %s", c, got)
		}
	}
	if got := (Claim{Client: 1}).String(); got != "b" {
		t.Errorf("a client is %q", got)
	}
}

func TestDiceThrowTheSameForTheSameName(t *testing.T) {
	t.Parallel()
	one, same, other := Dice(7).For(1, 2).Uint64(), Dice(7).For(1, 2).Uint64(), Dice(7).For(2, 1).Uint64()
	if one != same || one == other {
		t.Errorf("threw %d, %d and for another name %d", one, same, other)
	}
}

func TestAHistoryReadsLineByLine(t *testing.T) {
	t.Parallel()
	h := &tale{History: &History{Seed: 12, Weather: "calm"}}
	h.takes(0, a1, 7)
	want := `a1   answered  join holding #7 life 3s (call 1)`
	if !strings.Contains(h.String(), want) {
		t.Errorf("no line %q in\n%s", want, h)
	}
}
