package memlease

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// maxWaiters is how many waiters of a line are listed.
const maxWaiters = 100

// Lines implements driver.Driver. Of a prefix it answers the lines in which somebody
// stands.
func (d *Driver) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	if err := named(q.Validate()); err != nil {
		return driver.Page{}, err
	}
	if err := d.enter(ctx); err != nil {
		return driver.Page{}, err
	}
	defer d.store.mu.Unlock()
	now := d.store.now()
	if q.Key != "" {
		return driver.Page{Lines: []driver.Line{d.store.list(q.Key, now)}}, nil
	}
	return d.store.page(q, now), nil
}

// page lists the first lines behind q.After.
func (s *Store) page(q driver.Query, now int64) driver.Page {
	limit := q.Limit
	if limit == 0 || limit > driver.MaxPage {
		limit = driver.MaxPage
	}
	var keys []string
	for key, l := range s.lines {
		if strings.HasPrefix(key, q.Prefix) && key > q.After && l.lives(now) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var page driver.Page
	if len(keys) > limit {
		keys = keys[:limit]
		page.Next = keys[limit-1]
	}
	for _, key := range keys {
		page.Lines = append(page.Lines, s.list(key, now))
	}
	return page
}

// lives reports whether anybody alive stands in the line.
func (l *line) lives(now int64) bool {
	for st := l.head; st != nil; st = st.next {
		if !st.claim.dead(now) {
			return true
		}
	}
	return false
}

// list shows one line as it is, without the dead that no step has removed yet.
func (s *Store) list(key string, now int64) driver.Line {
	out := driver.Line{Key: key}
	l := s.lines[key]
	if l == nil {
		return out
	}
	for st := l.head; st != nil; st = st.next {
		c := st.claim
		switch {
		case c.dead(now):
		case c.holding:
			out.Holders = append(out.Holders, c.entry(now))
		default:
			out.Waiting++
			if out.Waiting <= maxWaiters {
				out.Waiters = append(out.Waiters, c.entry(now))
			}
		}
	}
	return out
}

func (c *claim) entry(now int64) driver.Entry {
	return driver.Entry{
		Number: c.number, Weight: c.weight, Capacity: c.capacity,
		Index: c.index, Name: c.name,
		InLine:    time.Duration(now - c.joined),
		ExpiresIn: time.Duration(c.expiry - now),
		Fixed:     c.fixed, Revoked: c.revoked,
	}
}
