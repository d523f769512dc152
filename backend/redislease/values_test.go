package redislease_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// A foreign value under the exact key is refused by every verb and stays as it is.
func TestForeignValuesAreRefusedAndLeftAlone(t *testing.T) {
	t.Parallel()
	rdb := sharedServer(t).client(t)
	ctx := t.Context()
	for what, put := range map[string]func(name string) error{
		"string": func(name string) error { return rdb.Set(ctx, name, "somebody else's", 0).Err() },
		"empty":  func(name string) error { return rdb.Set(ctx, name, "", 0).Err() },
		"almost": func(name string) error { return rdb.Set(ctx, name, "1a0000", 0).Err() },
		"list":   func(name string) error { return rdb.RPush(ctx, name, "x").Err() },
		"hash":   func(name string) error { return rdb.HSet(ctx, name, "a", "b").Err() },
		"newer":  func(name string) error { return rdb.Set(ctx, name, "2a00065f0e7c1a2b000014|", 0).Err() },
		"side":   func(name string) error { return rdb.Set(ctx, name+":x", "somebody else's", 0).Err() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			newParty(t, rdb, nil).meetsForeign(t, what, put)
		})
	}
}

func (p *party) meetsForeign(t *testing.T, what string, put func(name string) error) {
	t.Helper()
	ctx, rdb := t.Context(), sharedServer(t).client(t)
	key := newKey()
	name := "hasp:{" + key + "}"
	if err := put(name); err != nil {
		t.Fatal(err)
	}
	x, y := p.claim(key), p.claim(key)
	if what == "side" {
		p.joins(&x, driver.Holding) // the side keys are not looked at yet
		name += ":x"
	}
	before := rdb.Dump(ctx, name).Val()
	_, joined := p.Join(ctx, driver.Join{Claim: y})
	if !errors.Is(joined, driver.ErrRefused) {
		t.Errorf("Join: %v, want ErrRefused", joined)
	}
	if what == "newer" && !strings.Contains(joined.Error(), "newer") {
		t.Errorf("Join: %v, does not say that the layout is newer", joined)
	}
	if what != "side" {
		p.otherVerbsRefuse(t, &y)
	}
	if after := rdb.Dump(ctx, name).Val(); after != before {
		t.Errorf("the value was changed")
	}
}

func (p *party) otherVerbsRefuse(t *testing.T, c *driver.Claim) {
	t.Helper()
	ctx := t.Context()
	if _, err := p.renew(c); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("Renew: %v, want ErrRefused", err)
	}
	if _, err := p.Leave(ctx, driver.Leaving{Ref: c.Ref}); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("Leave: %v, want ErrRefused", err)
	}
	if _, err := p.Lines(ctx, driver.Query{Key: c.Keys[0]}); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("Lines: %v, want ErrRefused", err)
	}
	if _, err := p.End(ctx, c.Keys[0], []int64{1}, true); !errors.Is(err, driver.ErrRefused) {
		t.Errorf("End: %v, want ErrRefused", err)
	}
}

// One foreign key in a batch spoils no other item.
func TestAForeignValueSpoilsNoOtherItem(t *testing.T) {
	t.Parallel()
	rdb := sharedServer(t).client(t)
	p := newParty(t, rdb, nil)
	foreign, mine := p.claim(newKey()), p.claim(newKey())
	if err := rdb.LPush(t.Context(), "hasp:{"+foreign.Keys[0]+"}", "x").Err(); err != nil {
		t.Fatal(err)
	}
	p.joins(&mine, driver.Holding)
	waiter := p.claim(mine.Keys[0])
	p.joins(&waiter, driver.Waiting)
	items := make([]driver.Renewal, 3)
	for i, c := range []driver.Claim{foreign, mine, waiter} {
		items[i] = driver.Renewal{Ref: c.Ref, Mode: driver.Extend, Life: life}
	}
	states := make([]string, 3)
	p.Renew(t.Context(), items, func(i int, s driver.Standing, err error) {
		states[i] = s.State.String()
		if errors.Is(err, driver.ErrRefused) {
			states[i] = "error"
		}
	})
	if got := fmt.Sprint(states); got != "[error holding waiting]" {
		t.Errorf("the items are %s", got)
	}
}

// Numbers are digits of 2^51 and more: none may pass through text that rounds.
func TestNumbersAreExact(t *testing.T) {
	t.Parallel()
	rdb := sharedServer(t).client(t)
	p := newParty(t, rdb, nil)
	ctx, key := t.Context(), newKey()
	for range 50 {
		a, b := p.claim(key), p.claim(key)
		p.joins(&a, driver.Holding)
		value := rdb.Get(ctx, "hasp:{"+key+"}").Val()
		if want := fmt.Sprintf("1a%013x", a.Number); !strings.HasPrefix(value, want) {
			t.Fatalf("number %d is stored as %q", a.Number, value[:15])
		}
		p.joins(&b, driver.Waiting)
		if b.Number <= a.Number || b.Number > a.Number+int64(time.Minute/time.Microsecond) {
			t.Fatalf("number %d follows %d", b.Number, a.Number)
		}
		page, err := p.Lines(ctx, driver.Query{Key: key})
		if err != nil || page.Lines[0].Holders[0].Number != a.Number || page.Lines[0].Waiters[0].Number != b.Number {
			t.Fatalf("numbers %d and %d are listed as %+v, %v", a.Number, b.Number, page, err)
		}
		p.leaves(&a, driver.Left)
		if s := p.renews(&b, driver.Holding); s.Number != b.Number {
			t.Fatalf("number %d has become %d", b.Number, s.Number)
		}
		p.leaves(&b, driver.Left)
	}
}

// Nothing stays when a line is empty but its last number, and that for a while only.
func TestOnlyTheLastNumberOutlivesALine(t *testing.T) {
	t.Parallel()
	rdb := sharedServer(t).client(t)
	p := newParty(t, rdb, nil)
	ctx, key := t.Context(), newKey()
	a, b, c := p.claim(key), p.claim(key), p.claim(key)
	p.joins(&a, driver.Holding)
	p.joins(&b, driver.Waiting)
	p.joins(&c, driver.Waiting)
	name := "hasp:{" + key + "}"
	d, e := p.claim(key), p.claim(key)
	d.Life.Wait = time.Minute
	p.leaves(&b, driver.Left)
	p.leaves(&c, driver.Left)
	p.joins(&d, driver.Waiting) // the list begins anew
	e.Capacity = 5
	for i, side := range []string{"", ":q", ":n", "", ":q", ":x", ":n"} {
		if i == 3 {
			p.joins(&e, driver.Waiting) // now it is a line for any capacity
		}
		if left := rdb.PTTL(ctx, name+side).Val(); left < time.Minute || left > 2*time.Minute {
			t.Errorf("%q would stay for %v", name+side, left)
		}
	}
	p.leaves(&d, driver.Left)
	if n := rdb.ZCard(ctx, name+":q").Val(); n != 2 {
		t.Errorf("a waiter has left, %d entries stayed", n)
	}
	p.leaves(&a, driver.Left)
	p.leaves(&e, driver.Left)
	keys := rdb.Keys(ctx, "hasp:{"+key+"}*").Val()
	if len(keys) != 1 {
		t.Errorf("left are %q", keys)
	}
	if left := rdb.PTTL(ctx, name).Val(); left < 19*time.Second || left > 21*time.Second {
		t.Errorf("the last number stays for %v, want 20 s", left)
	}
}
