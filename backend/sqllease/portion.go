package sqllease

import (
	"context"
	"errors"
	"iter"
	"math"

	"github.com/hasp-dev/hasp/driver"
)

// How many renewals share one transaction: fewer where their lines are locked for as long.
const (
	maxChunk  = 200
	rowsChunk = 32
	// aheadChunk is how many do where their lines are read ahead, and aheadPlaces in how many
	// lines they may stand.
	aheadChunk  = 1000
	aheadPlaces = 2000
	// few renewals are done at once whatever it takes.
	few = 2
	// rowsAtOnce is how many such transactions run at once; the others are for other calls.
	rowsAtOnce = maxInFlight - 1
	// reserved is how many writers other calls leave to renewals over a network.
	reserved = 1
)

// errUnforeseen says that a renewal takes more statements than those of the others around it
// can wait for.
var errUnforeseen = errors.New("the renewal is done by itself")

// portion is some renewals that share a transaction.
type portion struct {
	order []int
	quick bool // those that need more than was read ahead are left for later
}

// portions divides renewals.
func (d *Dialect) portions(items []driver.Renewal, order []int, quick bool) []portion {
	size, places := maxChunk, math.MaxInt
	switch {
	case d.Rows != nil && quick:
		size, places = aheadChunk, aheadPlaces
	case d.Rows != nil:
		size = rowsChunk
	}
	var all []portion
	used := 0
	for _, i := range order {
		if last := len(all) - 1; last >= 0 && len(all[last].order) < size && used+len(items[i].Keys) <= places {
			all[last].order = append(all[last].order, i)
			used += len(items[i].Keys)
			continue
		}
		all = append(all, portion{order: []int{i}})
		used = len(items[i].Keys)
	}
	for n := range all {
		all[n].quick = quick && len(all[n].order) > few
	}
	return all
}

// portionDone is what has become of the items of one transaction.
type portionDone struct {
	portion

	answers []result[driver.Standing]
	err     error
}

// share renews items, one transaction after the other, or, over a network, a few at once.
func (e steps) share(ctx context.Context, items []driver.Renewal, all []portion) iter.Seq[portionDone] {
	work, done := make(chan portion, len(all)), make(chan portionDone, len(all))
	for _, p := range all {
		work <- p
	}
	close(work)
	atOnce := 1
	if e.dialect.Rows != nil {
		atOnce = min(len(all), rowsAtOnce)
	}
	for range atOnce {
		go func() {
			for p := range work {
				some := make([]driver.Renewal, len(p.order)) // a copy: a call given up leaves its goroutine behind
				for n, i := range p.order {
					some[n] = items[i]
				}
				answers, err := e.renew(ctx, some, p.quick)
				done <- portionDone{p, answers, err}
			}
		}()
	}
	return func(yield func(portionDone) bool) {
		for range all {
			if !yield(<-done) {
				return
			}
		}
	}
}
