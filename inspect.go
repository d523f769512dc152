package hasp

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Line is a key and who stands in its line, as the store had it at one moment.
type Line struct {
	Key     string // without this client's prefix
	Holders []Standing
	Waiters []Standing // the first 100
	Waiting int        // how many wait; goroutines of a client that hand a lease on count as one
}

// Standing is one holder or waiter.
type Standing struct {
	Name             string // Options.Name of its client
	Token            int64  // a waiter's: the one it will hold with; within its client it may have gone up by less than 64 since
	Weight, Capacity int64
	InLine           time.Duration // since it joined
	ExpiresIn        time.Duration // until it expires if it is not renewed, Grace included
	Kept             bool          // kept or detached: it is not renewed
	Revoked          bool          // by an operator: it is not renewed
}

// Inspect answers who holds a key and who waits for it. A key nobody wants is an empty
// line, not an error.
func (c *Client) Inspect(ctx context.Context, key string) (Line, error) {
	line, err := c.lineOf(ctx, newKeySet(c.prefix, key))
	if err != nil {
		return Line{}, &Error{Op: "inspect", Key: key, Err: err}
	}
	return line, nil
}

// lineOf reads one line.
func (c *Client) lineOf(ctx context.Context, keys keySet) (Line, error) {
	var page driver.Page
	err := c.ask(ctx, keys.err, func(ctx context.Context) (err error) {
		page, err = c.e.drv.Lines(ctx, driver.Query{Key: keys.full[0]})
		return err
	})
	if err != nil {
		return Line{}, err
	}
	if len(page.Lines) == 0 {
		return Line{Key: keys.first()}, nil
	}
	return c.line(page.Lines[0]), nil
}

// List answers the lines whose keys begin with prefix, after this client's own, in the
// order of their bytes. It reads page by page, so a line that changes meanwhile may be
// seen before or after the change. An error ends it.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[Line, error] {
	return func(yield func(Line, error) bool) {
		query := driver.Query{Prefix: c.prefix + prefix}
		for {
			var page driver.Page
			err := c.ask(ctx, nil, func(ctx context.Context) (err error) {
				page, err = c.e.drv.Lines(ctx, query)
				return err
			})
			if err != nil {
				yield(Line{}, &Error{Op: "list", Key: prefix, Err: err})
				return
			}
			for _, line := range page.Lines {
				if !yield(c.line(line), nil) {
					return
				}
			}
			if page.Next == "" {
				return
			}
			query.After = page.Next
		}
	}
}

// Revoke ends a lease in an orderly way: it is no longer renewed and its holder is
// told; the next in line holds when the lease has left or expired, so nobody overlaps.
// token is one that Inspect showed; 0 means the holders of the moment. ErrNotHeld says
// that there is none.
func (c *Client) Revoke(ctx context.Context, key string, token int64) error {
	return c.endStays(ctx, "revoke", key, token, false)
}

// ForceRelease takes a lease away at once: the next in line may hold while the old
// holder still trusts its lease, until its next renewal. token is as with Revoke: of the
// 64 tokens that a claim has within its client, any names it.
func (c *Client) ForceRelease(ctx context.Context, key string, token int64) error {
	return c.endStays(ctx, "force", key, token, true)
}

func (c *Client) endStays(ctx context.Context, op, key string, token int64, force bool) error {
	err := c.tryEnd(ctx, key, token, force)
	if err != nil {
		return &Error{Op: op, Key: key, Err: err}
	}
	return nil
}

func (c *Client) tryEnd(ctx context.Context, key string, token int64, force bool) error {
	operator, ok := c.e.drv.(driver.Operator)
	keys := newKeySet(c.prefix, key)
	switch {
	case keys.err != nil:
		return keys.err
	case token < 0:
		return invalidf("token %d is negative", token)
	case !ok:
		return fmt.Errorf("%w: taking leases from their holders", ErrUnsupported)
	}
	numbers := []int64{token / blockSize}
	if token == 0 {
		line, err := c.Inspect(ctx, key)
		if err != nil {
			return err
		}
		numbers = numbers[:0]
		for _, holder := range line.Holders {
			numbers = append(numbers, holder.Token/blockSize)
		}
		if len(numbers) == 0 {
			return ErrNotHeld
		}
	}
	asked, ended := 0, 0
	for chunk := range slices.Chunk(numbers, maxEnded) {
		err := c.ask(ctx, nil, func(ctx context.Context) error {
			asked++
			found, err := operator.End(ctx, keys.full[0], chunk, force)
			ended += len(found)
			c.e.ended(keys.full[0], found, force)
			return err
		})
		if err != nil {
			return err
		}
	}
	if ended == 0 && asked == 1 { // not found by a repeated call: an earlier one did it
		return fmt.Errorf("%w: no such token in the line of the key", ErrNotHeld)
	}
	return nil
}

// ended tells this client's own leases that they were ended, whose signal may come late:
// who is told so by the operator's call may lock at once.
func (e *engine) ended(key string, numbers []int64, force bool) {
	for _, c := range e.all() {
		c.mu.Lock()
		number := c.stay.number
		mine := number != 0 && slices.Contains(numbers, number) && slices.Contains(c.want.keys.full, key)
		c.mu.Unlock()
		if mine {
			c.signal(driver.Signal{Kind: driver.Ended, Key: key, ID: c.id, Number: number, Revoked: !force})
		}
	}
}

// maxEnded is how many stays one call of an operator ends.
const maxEnded = 64

// ask makes one read or operator's call.
func (c *Client) ask(ctx context.Context, invalid error, call func(context.Context) error) error {
	if invalid != nil {
		return invalid
	}
	if err := c.e.usable(); err != nil {
		return err
	}
	return c.e.persist(ctx, c.e.closing, answerLimit, call)
}

func (c *Client) line(l driver.Line) Line {
	out := Line{Key: strings.TrimPrefix(l.Key, c.prefix), Waiting: l.Waiting}
	for _, e := range l.Holders {
		out.Holders = append(out.Holders, standing(e))
	}
	for _, e := range l.Waiters {
		out.Waiters = append(out.Waiters, standing(e))
	}
	return out
}

func standing(e driver.Entry) Standing {
	return Standing{
		Name: e.Name, Token: blockSize*e.Number + int64(e.Index), Weight: e.Weight, Capacity: e.Capacity,
		InLine: e.InLine, ExpiresIn: e.ExpiresIn, Kept: e.Fixed, Revoked: e.Revoked,
	}
}
