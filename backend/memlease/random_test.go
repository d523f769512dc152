package memlease_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// TestTheStoreAnswersAsTheModel drives store and model with the same random calls and
// compares every answer whole.
func TestTheStoreAnswersAsTheModel(t *testing.T) {
	t.Parallel()
	seeds := uint64(300)
	if testing.Short() {
		seeds = 100
	}
	for seed := range seeds {
		synctest.Test(t, func(t *testing.T) {
			w := &walk{client: newClient(t), Rand: rand.New(rand.NewPCG(seed, 1)), model: newModel()}
			w.pace = time.Duration(1 + 9*(seed%3)) // the slower time goes, the longer the lines
			for range 150 {
				w.call()
				if t.Failed() {
					t.Fatalf("seed %d:\n%s", seed, w.history)
				}
			}
		})
	}
}

// walk is one random run.
type walk struct {
	*client
	*rand.Rand
	model   *model
	pace    time.Duration
	joins   []driver.Join // made so far
	numbers []int64
	history string
}

func (w *walk) call() {
	time.Sleep([]time.Duration{0, 0, 0, time.Nanosecond, time.Millisecond, w.duration() / w.pace, w.duration() * 2 / w.pace}[w.IntN(7)])
	ctx := w.tb.Context()
	switch w.IntN(10) {
	case 0, 1, 2, 3:
		j := w.attempt()
		got, err := w.Join(ctx, j)
		w.compare("join", j, got, w.model.join(j), err)
		w.numbers = append(w.numbers, got.Number)
	case 4, 5, 6:
		r := w.item()
		w.Renew(ctx, []driver.Renewal{r}, func(_ int, got driver.Standing, err error) {
			w.compare("renew", r, got, w.model.renewal(r), err)
		})
	case 7:
		l := w.leaving()
		got, err := w.Leave(ctx, l)
		w.compare("leave", l, got, w.model.leave(l), err)
	case 8:
		key, number, force := w.key(), w.number(), w.IntN(2) == 0
		got, err := w.End(ctx, key, []int64{number, number + 1}, force)
		w.compare("end", fmt.Sprint(key, number, force), got, w.model.end(key, []int64{number, number + 1}, force), err)
	default:
		// A step that leaves nothing makes both remove the dead before they are listed.
		key := w.key()
		gone := driver.Leaving{Ref: driver.Ref{Keys: []string{key}}}
		s, err := w.Leave(ctx, gone)
		w.expect(s, err, driver.Gone)
		w.model.leave(gone)
		got, err := w.Lines(ctx, driver.Query{Key: key})
		w.compare("lines", key, got.Lines[0], w.model.list(key), err)
	}
}

func (w *walk) compare(call string, in, got, want any, err error) {
	w.tb.Helper()
	w.history += fmt.Sprintf("%v %s %+v\n    %+v\n", w.model.now, call, in, got)
	if err != nil || !reflect.DeepEqual(got, want) {
		w.tb.Errorf("%s %+v:\n got %+v, %v\nwant %+v", call, in, got, err, want)
	}
}

func (w *walk) duration() time.Duration { return time.Duration(1 + w.Int64N(int64(4*time.Second))) }

func (w *walk) life() driver.Life {
	l := driver.Life{Hold: w.duration() * 3, Wait: w.duration() * 2}
	if w.IntN(3) == 0 {
		l.Grace = w.duration()
	}
	return l
}

func (w *walk) key() string { return string(rune('a' + w.IntN(3))) }

func (w *walk) number() int64 {
	if len(w.numbers) == 0 {
		return 1
	}
	return w.numbers[w.IntN(len(w.numbers))]
}

// known is an attempt made before, mostly a recent one.
func (w *walk) known() driver.Join {
	if len(w.joins) == 0 {
		return w.attempt()
	}
	return w.joins[max(0, len(w.joins)-1-w.IntN(12))]
}

// attempt is a new Join or an old one.
func (w *walk) attempt() driver.Join {
	if len(w.joins) > 0 && w.IntN(5) == 0 {
		return w.known()
	}
	keys := []string{w.key()}
	if w.IntN(4) == 0 {
		keys = append(keys, w.key())
		slices.Sort(keys)
		keys = slices.Compact(keys)
	}
	j := w.claim(keys...)
	j.Name = fmt.Sprint("n", len(w.joins))
	j.Life = w.life()
	j.Capacity = []int64{1, 4, 6, 1 << 30, 1 << 50}[w.IntN(5)]
	j.Weight = min(j.Capacity, []int64{1, 1, 2, j.Capacity}[w.IntN(4)])
	j.Try = w.IntN(5) == 0
	if w.IntN(6) == 0 {
		j.MaxLine = 1 + w.IntN(3)
	}
	if len(w.joins) > 0 && w.IntN(6) == 0 {
		j.Resume = &driver.Ref{ID: w.known().ID, Number: w.number(), Keys: j.Keys}
		if c := w.model.find(j.Resume.ID); c != nil && w.IntN(4) > 0 {
			j.Resume.Number = c.Number
			j.Keys = c.Keys
		}
	}
	if len(w.joins) > 0 && w.IntN(8) == 0 {
		l := w.leaving()
		j.Leaving = &l
	}
	w.joins = append(w.joins, j)
	return j
}

func (w *walk) leaving() driver.Leaving {
	l := driver.Leaving{Ref: w.known().Ref, Unanswered: w.IntN(3) == 0}
	if l.Unanswered {
		l.Remember = w.duration()
	}
	return l
}

func (w *walk) item() driver.Renewal {
	l := w.leaving()
	r := driver.Renewal{Ref: l.Ref, Life: w.life(), Unanswered: l.Unanswered, Remember: l.Remember}
	r.Mode = []driver.Mode{driver.Extend, driver.Extend, driver.Extend, driver.Fix, driver.Drop}[w.IntN(5)]
	if c := w.model.find(r.ID); c != nil {
		r.Number = []int64{0, c.Number, c.Number, w.number()}[w.IntN(4)]
	}
	return r
}
