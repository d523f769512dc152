package history_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hasp-dev/hasp/integration/history"
)

// scene builds a history, one millisecond to a line.
type scene struct {
	events []history.Event
}

const (
	ms    = int64(1e6)
	block = 64
)

func (s *scene) add(e history.Event) *scene {
	e.At = int64(len(s.events)) * ms
	s.events = append(s.events, e)
	return s
}

// sketch is a lease of a scene: of one process with the same name.
type sketch struct {
	name             string
	weight, capacity int64
	number           int64
	keys             []string
}

func mutex(name string, number int64) sketch {
	return sketch{name, 1, 1, number, []string{"k"}}
}

func (l sketch) event(kind history.Kind) history.Event {
	return history.Event{
		Kind: kind, Who: "of " + l.name, Lease: l.name, Keys: l.keys, Weight: l.weight, Capacity: l.capacity,
		Life: 100 * ms, Token: l.number * block,
	}
}

func (s *scene) want(l sketch) *scene { return s.add(l.event(history.Want)) }

// held says for how many more lines the lease is trusted.
func (s *scene) held(l sketch, lines int64) *scene {
	e := l.event(history.Held)
	e.Until = (int64(len(s.events)) + lines) * ms
	return s.add(e)
}

func (s *scene) trusted(l sketch, lines int64) *scene {
	e := l.event(history.Trusted)
	e.Until = (int64(len(s.events)) + lines) * ms
	return s.add(e)
}

func (s *scene) over(l sketch) *scene {
	e := l.event(history.Over)
	e.Text = "lost"
	return s.add(e)
}

func (s *scene) releasing(l sketch) *scene { return s.add(l.event(history.Releasing)) }

func (s *scene) released(l sketch, text string) *scene {
	e := l.event(history.Released)
	e.Text = text
	return s.add(e)
}

func (s *scene) do(kind history.Kind, e history.Event) *scene {
	e.Kind = kind
	return s.add(e)
}

func TestTheJudge(t *testing.T) {
	t.Parallel()
	a, b := mutex("a", 5), mutex("b", 6)
	reader := func(name string, number int64) sketch { return sketch{name, 1, 1 << 30, number, []string{"k"}} }
	writer := sketch{"w", 1 << 30, 1 << 30, 9, []string{"k"}}
	pair := sketch{"pair", 1, 1, 8, []string{"j", "k"}}
	permits := func(name string, n, of, number int64) sketch { return sketch{name, n, of, number, []string{"k"}} }
	wiped := history.Event{Number: 7}
	for _, c := range []struct {
		name  string
		scene *scene
		want  string // the promises that are broken, in order
	}{
		{"one after the other", new(scene).want(a).held(a, 9).trusted(a, 9).want(b).trusted(a, 9).releasing(a).released(a, "").held(b, 9).trusted(b, 9), ""},
		{"two at once", new(scene).want(a).want(b).held(a, 9).trusted(a, 9).held(b, 9).trusted(b, 9).trusted(a, 9).trusted(a, 9), "G1"},
		{"two at once, the first of which never spoke again", new(scene).want(a).want(b).held(a, 9).held(b, 9).trusted(b, 9), "G2"},
		{"granted when the trust has run out", new(scene).want(a).want(b).held(a, 2).do(history.Note, history.Event{}).do(history.Note, history.Event{}).held(b, 9).trusted(b, 9), ""},
		{"told and granted, and only then written", new(scene).want(a).want(b).held(a, 1).trusted(a, 1).held(b, 9).trusted(b, 9).over(a), ""},
		{"granted while the one before is being released", new(scene).want(a).want(b).held(a, 9).trusted(a, 9).releasing(a).held(b, 9).released(a, "").trusted(b, 9), ""},
		{"granted when the one before was killed", new(scene).want(a).want(b).held(a, 9).trusted(a, 9).do(history.Killing, history.Event{Who: "of a"}).held(b, 9).trusted(b, 9), ""},
		{"granted when another was killed", new(scene).want(a).want(b).held(a, 9).trusted(a, 9).do(history.Killing, history.Event{Who: "of x"}).held(b, 9).trusted(b, 9), "G2"},
		{"readers together", new(scene).want(reader("a", 1)).want(reader("b", 2)).held(reader("a", 1), 9).held(reader("b", 2), 9).trusted(reader("a", 1), 9).trusted(reader("b", 2), 9).trusted(reader("a", 1), 9), ""},
		{"a writer beside a reader", new(scene).want(writer).want(reader("a", 1)).held(reader("a", 1), 9).held(writer, 9).trusted(writer, 9).trusted(reader("a", 1), 9).trusted(reader("a", 1), 9), "G1"},
		{"permits that fit", new(scene).want(permits("a", 2, 3, 1)).want(permits("b", 1, 3, 2)).held(permits("a", 2, 3, 1), 9).held(permits("b", 1, 3, 2), 9).trusted(permits("b", 1, 3, 2), 9).trusted(permits("a", 2, 3, 1), 9), ""},
		{"permits over the smallest capacity", new(scene).want(permits("a", 2, 4, 1)).want(permits("b", 2, 3, 2)).held(permits("a", 2, 4, 1), 9).held(permits("b", 2, 3, 2), 9).trusted(permits("b", 2, 3, 2), 9).trusted(permits("a", 2, 4, 1), 9), "G2"},
		{"several keys beside one of them", new(scene).want(a).want(pair).held(a, 9).held(pair, 9).trusted(pair, 9).trusted(a, 9), "G2"},
		{"the later grant has the smaller token", new(scene).want(b).held(b, 9).trusted(b, 9).releasing(b).released(b, "").want(a).held(a, 9).trusted(a, 9), "G3"},
		{"a token used twice", new(scene).want(a).held(a, 9).trusted(a, 9).releasing(a).want(mutex("b", 5)).held(mutex("b", 5), 9).trusted(mutex("b", 5), 9), "G3"},
		{"a grant that was late to say so", new(scene).want(a).want(b).held(b, 9).trusted(b, 9).releasing(b).held(a, -9).over(a).released(a, "lost"), ""},
		{"trusted after it was over", new(scene).want(a).held(a, 9).over(a).trusted(a, 9), "G9"},
		{"lost, and released as if it were not", new(scene).want(a).held(a, 9).trusted(a, 9).over(a).released(a, ""), "G9"},
		{"forgotten by the store", new(scene).want(a).held(a, 9).trusted(a, 9).do(history.Wiping, history.Event{}).do(history.Wiped, wiped).want(mutex("c", 8)).held(mutex("c", 8), 9).trusted(mutex("c", 8), 9).trusted(a, 9).trusted(a, 9), ""},
		{"forgotten by the store, and trusted for long", new(scene).want(a).held(a, 9).do(history.Wiping, history.Event{}).do(history.Wiped, wiped).notes(101).trusted(a, 9).trusted(a, 9), "G2"},
		{"two that came after the store forgot", new(scene).do(history.Wiping, history.Event{}).do(history.Wiped, history.Event{Number: 4}).want(a).want(b).held(a, 9).held(b, 9).trusted(b, 9), "G2"},
		{"the token falls over a wipe", new(scene).want(b).held(b, 9).trusted(b, 9).releasing(b).do(history.Wiping, history.Event{}).do(history.Wiped, history.Event{Number: 2}).want(a).held(a, 9).trusted(a, 9), "G3"},
		{"taken by force", new(scene).want(a).held(a, 9).trusted(a, 9).do(history.Forcing, history.Event{Token: 5 * block}).want(b).held(b, 9).trusted(b, 9).do(history.Forced, history.Event{Token: 5 * block}).trusted(a, 9).trusted(a, 9), ""},
		{"taken by force, and trusted for long", new(scene).want(a).held(a, 9).do(history.Forcing, history.Event{Token: 5 * block}).do(history.Forced, history.Event{Token: 5 * block}).notes(101).trusted(a, 9).trusted(a, 9), "G2"},
		{"shown holders weigh too much", new(scene).do(history.Seen, history.Event{Holders: []history.Place{{64, 1, 1}, {128, 1, 1}}}), "G1"},
		{"a shown waiter stands before a holder", new(scene).do(history.Seen, history.Event{Holders: []history.Place{{128, 1, 2}}, Waiters: []history.Place{{64, 2, 2}}}), "G4"},
		{"a shown line", new(scene).do(history.Seen, history.Event{Holders: []history.Place{{64, 1, 2}, {128, 1, 2}}, Waiters: []history.Place{{192, 1, 2}}}), ""},
		{"a lease that nobody wanted", new(scene).held(a, 9), "history"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var broken []string
			for _, f := range history.Judge(c.scene.events) {
				broken = append(broken, f.Promise)
			}
			if got := strings.Join(slices.Compact(broken), " "); got != c.want {
				t.Errorf("broken %q, want %q:\n%v", got, c.want, history.Judge(c.scene.events))
			}
		})
	}
}

func (s *scene) notes(n int) *scene {
	for range n {
		s.do(history.Note, history.Event{})
	}
	return s
}

func TestSeveralWritersMakeOneHistory(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "history")
	const writers, each = 8, 200
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			r, err := history.Open(path, fmt.Sprint("writer ", w))
			if err != nil {
				t.Error(err)
				return
			}
			for i := range each {
				r.Add(history.Event{Kind: history.Note, Number: int64(i)})
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	events, err := history.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	next := make(map[string]int64)
	for _, e := range events {
		if e.Number != next[e.Who] {
			t.Fatalf("%s: event %d where %d was expected", e.Who, e.Number, next[e.Who])
		}
		next[e.Who]++
	}
	if len(events) != writers*each {
		t.Errorf("%d events, want %d", len(events), writers*each)
	}
}
