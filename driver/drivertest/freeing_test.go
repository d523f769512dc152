package drivertest_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/driver/drivertest"
)

// freeing is the driver of a store without a line that says when a key may be free, and
// nothing else.
type freeing struct {
	poor

	ears  *memlease.Driver
	wrong string // what it does wrong
	deaf  atomic.Bool

	mu      sync.Mutex
	deliver func(driver.Signal)
}

func (d *freeing) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	d.mu.Lock()
	d.deliver = deliver
	d.mu.Unlock()
	return d.ears.Listen(ctx, inbox, func(s driver.Signal) {
		switch {
		case s.Kind == driver.Missed:
			deliver(s)
		case s.Kind == driver.Changed && d.wrong != "silent" && !d.deaf.Load():
			deliver(driver.Signal{Kind: driver.Freed, Key: s.Key})
		}
	})
}

func (d *freeing) Watch(key string) (stop func()) {
	unwatch := d.ears.Watch(key)
	switch d.wrong {
	case "never stops":
		return func() {}
	case "stops for all":
		return func() {
			unwatch()
			d.deaf.Store(true)
		}
	}
	return unwatch
}

// cut tells of a gap.
func (d *freeing) cut() {
	d.mu.Lock()
	deliver := d.deliver
	d.mu.Unlock()
	if deliver != nil && d.wrong != "no gaps" {
		deliver(driver.Signal{Kind: driver.Missed})
	}
}

func freeingSuite(wrong string) drivertest.Suite {
	return drivertest.Suite{Virtual: true, Open: func() (*drivertest.Store, error) {
		m := memlease.NewStore()
		var mu sync.Mutex // clients come also at the same time
		var all []*freeing
		store := storeOf(m, func(d driver.Driver) driver.Driver {
			f := &freeing{poor: poor{d, false}, ears: d.(*memlease.Driver), wrong: wrong}
			mu.Lock()
			defer mu.Unlock()
			all = append(all, f)
			return f
		})
		store.Cut = func() error {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range all {
				f.cut()
			}
			return nil
		}
		return store, nil
	}}
}

func TestAStoreWithoutALineMaySayThatAKeyIsFree(t *testing.T) { drivertest.Run(t, freeingSuite("")) }

func TestSignalsOfAStoreWithoutALineThatAreWrongAreCaught(t *testing.T) {
	for wrong, c := range map[string]struct{ name, says string }{
		"silent":        {"a key without a line tells that it may be free", "hears no freed"},
		"never stops":   {"a key watched no more is silent", "watched no more"},
		"stops for all": {"one of two watches on a key may stop", "hears no freed"},
		"no gaps":       {"after a gap Missed comes again", "no Missed came"},
	} {
		found := false
		for _, one := range drivertest.Cases() {
			if one.Name != c.name {
				continue
			}
			found = true
			if err := freeingSuite(wrong).Check(t, one); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s: %q says %v, want a word about %q", wrong, c.name, err, c.says)
			}
		}
		if !found {
			t.Errorf("there is no case %q", c.name)
		}
	}
}
