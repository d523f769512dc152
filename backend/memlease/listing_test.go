package memlease_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

func TestPagesListLinesInByteOrderUpToTheEnd(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	want := []string{"p", "p ", "p-A", "p-a", "p-\xff", "pz"}
	for _, k := range []string{"pz", "p-a", "q", "p", "p-\xff", "p ", "o", "p-A"} {
		c.joins(c.claim(k), driver.Holding)
	}
	gone := c.claim("p-gone")
	c.joins(gone, driver.Holding)
	c.leaves(gone, driver.Left)
	for limit := range 8 {
		var keys []string
		q := driver.Query{Prefix: "p", Limit: limit}
		for pages := 0; ; pages++ {
			page, err := c.Lines(t.Context(), q)
			if err != nil || limit > 0 && len(page.Lines) > limit || pages > len(want) {
				t.Fatal(page, err)
			}
			for _, l := range page.Lines {
				keys = append(keys, l.Key)
			}
			if q.After = page.Next; q.After == "" {
				break
			}
		}
		if !slices.Equal(keys, want) {
			t.Errorf("by %d: %q", limit, keys)
		}
	}
}

func TestAListingShowsNoDeadClaimAndChangesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t)
		a, b := c.claim("k"), c.claim("k")
		a.Life.Hold, a.Name, b.Name = second, "a", "b"
		c.joins(a, driver.Holding)
		c.joins(b, driver.Waiting)
		c.joins(c.claim("other"), driver.Holding)
		time.Sleep(second)
		for range 2 {
			l := c.line("k")
			if len(l.Holders) != 0 || l.Waiting != 1 || l.Waiters[0].Name != "b" || l.Waiters[0].InLine != second {
				t.Errorf("%+v", l)
			}
		}
		time.Sleep(6 * second)
		page, err := c.Lines(t.Context(), driver.Query{})
		if err != nil || len(page.Lines) != 1 || page.Lines[0].Key != "other" || page.Next != "" {
			t.Errorf("%+v, %v", page, err)
		}
	})
}

func TestALineShowsItsFirst100WaitersAndCountsAll(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	crowd(c, 151)
	l := c.line("k")
	if len(l.Holders) != 1 || len(l.Waiters) != 100 || l.Waiting != 150 {
		t.Errorf("%d hold, %d listed, %d wait", len(l.Holders), len(l.Waiters), l.Waiting)
	}
	if l := c.line("nobody"); l.Key != "nobody" || len(l.Holders)+l.Waiting != 0 {
		t.Errorf("%+v", l)
	}
}

func TestInvalidCallsAreRefusedBeforeTheyDoAnything(t *testing.T) {
	t.Parallel()
	c := newClient(t)
	keys := make([]string, 65)
	for i := range keys {
		keys[i] = key(i)
	}
	for name, spoil := range map[string]func(j *driver.Join){
		"no key":          func(j *driver.Join) { j.Keys = nil },
		"an empty key":    func(j *driver.Join) { j.Keys = []string{""} },
		"the same twice":  func(j *driver.Join) { j.Keys = []string{"a", "a"} },
		"unsorted":        func(j *driver.Join) { j.Keys = []string{"b", "a"} },
		"65 keys":         func(j *driver.Join) { j.Keys = keys },
		"weight 0":        func(j *driver.Join) { j.Weight = 0 },
		"weight too much": func(j *driver.Join) { j.Weight = 2 },
		"capacity below":  func(j *driver.Join) { j.Capacity = -1 },
		"no life":         func(j *driver.Join) { j.Life = driver.Life{} },
		"no waiting life": func(j *driver.Join) { j.Life.Wait = 0 },
		"negative grace":  func(j *driver.Join) { j.Life.Grace = -1 },
		"a long name":     func(j *driver.Join) { j.Name = string(make([]byte, 129)) },
		"a negative line": func(j *driver.Join) { j.MaxLine = -1 },
		"leaving no key":  func(j *driver.Join) { j.Leaving = &driver.Leaving{} },
	} {
		j := c.claim("a")
		spoil(&j)
		if s, err := c.Join(t.Context(), j); !errors.Is(err, driver.ErrInvalid) || s != (driver.Standing{}) {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
	ref := c.claim("a").Ref
	for _, r := range []driver.Renewal{
		{Ref: ref, Life: life},
		{Ref: ref, Mode: 9, Life: life},
		{Ref: ref, Mode: driver.Extend},
		{Ref: ref, Mode: driver.Fix, Life: driver.Life{Hold: -1}},
		{Mode: driver.Drop},
	} {
		c.Renew(t.Context(), []driver.Renewal{r}, func(_ int, s driver.Standing, err error) {
			if !errors.Is(err, driver.ErrInvalid) {
				t.Errorf("%v: %+v, %v", r.Mode, s, err)
			}
		})
	}
	_, leave := c.Leave(t.Context(), driver.Leaving{})
	_, end := c.End(t.Context(), "", []int64{1}, true)
	_, lines := c.Lines(t.Context(), driver.Query{Limit: -1})
	for _, err := range []error{leave, end, lines} {
		if !errors.Is(err, driver.ErrInvalid) {
			t.Error(err)
		}
	}
	if n := c.store.Sizes(); n != [4]int{} {
		t.Errorf("sizes %v", n)
	}
}
