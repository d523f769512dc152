package redislease

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

const (
	aloneBudget = 64 // claims that stand alone, in one call
	crowdBudget = 20 // others: each costs five times as much
)

// renewing is one Renew under way.
type renewing struct {
	d       *Driver
	items   []driver.Renewal
	answer  func(i int, s driver.Standing, err error)
	open    []bool // not answered yet
	left    int
	landed  chan landing // calls that have ended
	pending int
}

// batch is some items that one call does.
type batch struct {
	items []int
	alone bool
}

type landing struct {
	call  *call
	batch batch
	err   error
}

// Renew implements driver.Driver. Claims that stand alone go many to a call; what turns
// out to be one of a crowd is sent once more in a call for those. Every server has its
// own pipeline, so a silent one holds nobody else back.
func (d *Driver) Renew(ctx context.Context, items []driver.Renewal, answer func(i int, s driver.Standing, err error)) {
	r := &renewing{d: d, items: items, answer: answer, open: make([]bool, len(items)), left: len(items)}
	for i := range r.open {
		r.open[i] = true
	}
	var alone, crowd []int
	for i := range items {
		err := errors.Join(d.err, checkRenewal(&items[i]))
		if err == nil {
			err = d.together(items[i].Keys)
		}
		switch it := &items[i]; {
		case err != nil:
			r.settle(i, driver.Standing{}, err)
		case it.Mode == driver.Extend && len(it.Keys) == 1 && it.Life.Grace == 0 && !d.crowds.has(it.Keys[0]):
			alone = append(alone, i)
		default:
			crowd = append(crowd, i)
		}
	}
	r.landed = make(chan landing, 2*len(items)+2)
	r.send(ctx, alone, true)
	r.send(ctx, crowd, false)
	r.wait(ctx)
}

func (r *renewing) settle(i int, s driver.Standing, err error) {
	if r.open[i] {
		r.open[i] = false
		r.left--
		r.answer(i, s, err)
	}
}

// wait takes in what lands until all is answered or ctx ends.
func (r *renewing) wait(ctx context.Context) {
	for r.left > 0 && r.pending > 0 {
		select {
		case l := <-r.landed:
			r.pending--
			r.take(ctx, l)
		case <-ctx.Done():
			r.giveUp(ended(ctx))
			return
		}
	}
	r.giveUp(fmt.Errorf("redislease: %w: an item was not answered", driver.ErrUnavailable))
}

func (r *renewing) giveUp(err error) {
	for i := range r.open {
		r.settle(i, driver.Standing{}, err)
	}
}

// where is what the items of one call must have in common.
type where struct {
	tag  string // in a cluster
	hold time.Duration
}

// send puts items into calls and submits them.
func (r *renewing) send(ctx context.Context, items []int, alone bool) {
	if len(items) == 0 {
		return
	}
	budget := crowdBudget
	if alone {
		budget = aloneBudget
	}
	full := make(map[where]*batch)
	for _, i := range items {
		it := &r.items[i]
		var w where
		if r.d.nodes.cluster != nil {
			w.tag = r.d.naming.tag(it.Keys[0])
		}
		if alone {
			w.hold = it.Life.Hold
		}
		b := full[w]
		if b == nil {
			b = &batch{alone: alone}
			full[w] = b
		}
		b.items = append(b.items, i)
		if len(b.items) == budget {
			r.submit(ctx, *b)
			delete(full, w)
		}
	}
	for _, b := range full {
		r.submit(ctx, *b)
	}
}

func (r *renewing) submit(ctx context.Context, b batch) {
	var c *call
	if b.alone {
		c = r.holding(b.items)
	} else {
		c = r.renewal(b.items)
	}
	line, _ := c.args[0].(string)
	r.pending++
	landed := r.landed
	c.then = func(c *call) { landed <- landing{call: c, batch: b, err: c.err} }
	if err := ctx.Err(); err != nil {
		landed <- landing{batch: b, err: ended(ctx)}
		return
	}
	if r.d.life.Err() != nil {
		landed <- landing{batch: b, err: unavailable(errClosed)}
		return
	}
	n, err := r.d.node(ctx, line)
	if err != nil {
		landed <- landing{batch: b, err: err}
		return
	}
	n.submit(ctx, c)
}

// holding makes the call for claims that stand alone.
func (r *renewing) holding(items []int) *call {
	c := &call{script: &r.d.scripts.hold, keys: len(items), counts: true}
	c.args = make([]any, 0, 2*len(items)+2)
	hold := millis(r.items[items[0]].Life.Hold)
	keep := string(appendHex(nil, keepSeconds(hold), 6))
	for _, i := range items {
		c.args = append(c.args, r.d.naming.line(r.items[i].Keys[0]))
	}
	c.args = append(c.args, hold, keep)
	for _, i := range items {
		c.args = append(c.args, beginning(&r.items[i], keep))
	}
	return c
}

// beginning is what the record of an item that stands alone begins with; where its number
// is not known, its ID.
func beginning(it *driver.Renewal, keep string) string {
	if it.Number <= 0 {
		return string(it.ID[:])
	}
	b := append(make([]byte, 0, 40), "1a"...)
	b = appendHex(b, it.Number, 13)
	b = append(b, keep...)
	return string(append(b, it.ID[:]...))
}

// renewal makes the call for others.
func (r *renewing) renewal(items []int) *call {
	c := &call{script: &r.d.scripts.renew, counts: true}
	for _, i := range items {
		c.args = r.d.naming.appendKeys(c.args, r.items[i].Keys...)
	}
	c.keys = len(c.args)
	for _, i := range items {
		it := &r.items[i]
		remember := int64(0)
		if it.Mode == driver.Drop {
			remember = r.d.remember(&driver.Leaving{Ref: it.Ref, Unanswered: it.Unanswered, Remember: it.Remember})
		}
		c.args = append(c.args, int(it.Mode), string(it.ID[:]), max(it.Number, 0), millis(it.Life.Hold), millis(it.Life.Grace),
			millis(it.Life.Wait), len(it.Keys), remember)
	}
	return c
}

func (r *renewing) take(ctx context.Context, l landing) {
	if l.err != nil {
		for _, i := range l.batch.items {
			r.settle(i, driver.Standing{}, l.err)
		}
		return
	}
	reply, _ := l.call.reply.([]any)
	if l.batch.alone {
		r.takeAlone(ctx, l.batch.items, reply)
		return
	}
	for at, i := range l.batch.items {
		if at >= len(reply) {
			break
		}
		it := &r.items[i]
		s, err := r.d.standing(reply[at])
		if err == nil {
			r.d.note(it.Keys, &s)
			if it.Mode == driver.Drop {
				r.d.suspects.drop(it.ID)
			}
		}
		r.settle(i, s, err)
	}
}

// takeAlone answers what the script has done; the rest it named is sent on.
func (r *renewing) takeAlone(ctx context.Context, items []int, reply []any) {
	if len(reply) != 2 {
		return
	}
	rest, _ := reply[0].([]any)
	longer, _ := reply[1].([]any)
	again := make([]int, 0, len(rest))
	skip := make(map[int]bool, len(rest))
	for _, at := range integers(rest) {
		i := items[at-1]
		skip[i] = true
		again = append(again, i)
	}
	lives := make(map[int]int64)
	pairs := integers(longer)
	for k := 0; k+1 < len(pairs); k += 2 {
		lives[items[pairs[k]-1]] = pairs[k+1]
	}
	for _, i := range items {
		it := &r.items[i]
		switch life, ok := lives[i]; {
		case skip[i]:
		case it.Number == 0: // its number is not in the reply
			again = append(again, i)
		case ok:
			r.settle(i, driver.Standing{State: driver.Holding, Number: it.Number, Life: ms(life)}, nil)
		default:
			r.settle(i, driver.Standing{State: driver.Holding, Number: it.Number, Life: ms(millis(it.Life.Hold))}, nil)
		}
	}
	r.send(ctx, again, false)
}

// integers reads a list of numbers, which come as numbers or as text.
func integers(list []any) []int64 {
	out := make([]int64, 0, len(list))
	for _, v := range list {
		switch n := v.(type) {
		case int64:
			out = append(out, n)
		case string:
			out = append(out, number(n))
		}
	}
	return out
}
