// Package broken has drivers that do not keep the contract, each in one way. A history
// of clients that use one must be judged a bad one, or the judge is worth nothing.
package broken

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/hasp-dev/hasp/driver"
)

// Kind is one way of being broken.
type Kind string

// The ways.
const (
	Lives   Kind = "lives"   // says that a claim lives ten times as long as it does
	Permits Kind = "permits" // says that a claim holds which waits
	Robs    Kind = "robs"    // takes what others hold when it leaves
	Revives Kind = "revives" // says that a claim which was taken away still holds
	Falls   Kind = "falls"   // answers numbers that fall
	Repeats Kind = "repeats" // answers the same number again and again
)

// Kinds are all ways.
func Kinds() []Kind { return []Kind{Lives, Permits, Robs, Revives, Falls, Repeats} }

// whole is a driver that can do everything.
type whole interface {
	driver.Driver
	driver.Signaler
	driver.Operator
}

// broken changes what the driver below it answers.
type broken struct {
	whole
	kind Kind

	mu    sync.Mutex
	asked map[driver.ID]asked
}

type asked struct {
	keys    []string
	life    driver.Life
	number  int64 // the store's
	nearest driver.Standing
}

// Wrap breaks a driver.
func Wrap(kind Kind, d driver.Driver) (driver.Driver, error) {
	w, ok := d.(whole)
	if !ok {
		return nil, errors.New("only a driver that can do everything can be broken")
	}
	for _, known := range Kinds() {
		if kind == known {
			return &broken{whole: w, kind: kind, asked: make(map[driver.ID]asked)}, nil
		}
	}
	return nil, fmt.Errorf("no way of being broken is called %q", kind)
}

// Join implements driver.Driver.
func (b *broken) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	b.mu.Lock()
	b.asked[j.ID] = asked{keys: j.Keys, life: j.Life}
	b.mu.Unlock()
	s, err := b.whole.Join(ctx, j)
	if err != nil {
		return s, err
	}
	return b.twist(j.ID, s), nil
}

// Renew implements driver.Driver.
func (b *broken) Renew(ctx context.Context, items []driver.Renewal, answer func(int, driver.Standing, error)) {
	asked := make([]driver.Renewal, len(items))
	for i, item := range items {
		item.Number = b.number(item.ID, item.Number)
		asked[i] = item
	}
	b.whole.Renew(ctx, asked, func(i int, s driver.Standing, err error) {
		if err == nil && items[i].Mode != driver.Drop {
			s = b.twist(items[i].ID, s)
		}
		answer(i, s, err)
	})
}

// Leave implements driver.Driver.
func (b *broken) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	l.Number = b.number(l.ID, l.Number)
	s, err := b.whole.Leave(ctx, l)
	if b.kind == Robs {
		for _, key := range l.Keys {
			b.rob(ctx, key)
		}
	}
	return s, err
}

// Listen implements driver.Signaler.
func (b *broken) Listen(ctx context.Context, inbox [6]byte, deliver func(driver.Signal)) error {
	return b.whole.Listen(ctx, inbox, func(s driver.Signal) {
		switch {
		case b.kind == Revives && s.Kind == driver.Ended:
			return
		case b.kind == Falls && s.Number > 0:
			s.Number = turning - s.Number
		case b.kind == Repeats && s.Number > 0:
			s.Number = constant
		}
		deliver(s)
	})
}

// rob ends whoever holds a key.
func (b *broken) rob(ctx context.Context, key string) {
	page, err := b.Lines(ctx, driver.Query{Key: key})
	if err != nil || len(page.Lines) == 0 {
		return
	}
	for _, holder := range page.Lines[0].Holders {
		_, _ = b.End(ctx, key, []int64{holder.Number}, true)
	}
}

// number answers the store's number for one that was answered.
func (b *broken) number(id driver.ID, n int64) int64 {
	switch {
	case n == 0:
	case b.kind == Falls:
		return turning - n
	case b.kind == Repeats:
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.asked[id].number
	}
	return n
}

// Numbers are µs since 1970. What is left to a time far away falls, and is never used
// twice.
const (
	turning  = int64(1) << 52
	constant = int64(1) << 40
)

// twist changes an answer.
func (b *broken) twist(id driver.ID, s driver.Standing) driver.Standing {
	b.mu.Lock()
	defer b.mu.Unlock()
	a := b.asked[id]
	switch b.kind {
	case Lives:
		s.Life *= 10
	case Permits:
		if s.State == driver.Waiting {
			s.State, s.Life = driver.Holding, a.life.Hold
		}
	case Revives:
		if s.State == driver.Holding {
			a.nearest = s
			b.asked[id] = a
		}
		if s.State == driver.Gone && a.nearest.State == driver.Holding {
			s = a.nearest
		}
	case Falls:
		if s.Number > 0 {
			s.Number = turning - s.Number
		}
	case Repeats:
		if s.Number > 0 {
			a.number, s.Number = s.Number, constant
			b.asked[id] = a
		}
	case Robs:
	}
	return s
}
