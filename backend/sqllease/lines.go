package sqllease

import (
	"context"

	"github.com/hasp-dev/hasp/driver"
)

// Bounds of a listing.
const (
	pageLimit  = 100
	maxWaiters = 100
)

// Lines answers one line or a page of lines, as one moment saw them.
func (e steps) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	return snapshot(ctx, e.Driver, func(t *tx) (driver.Page, error) {
		var now int64
		if err := t.row(stClock, nil, &now); err != nil {
			return driver.Page{}, err
		}
		if q.Key != "" {
			line, err := t.list(q.Key, now)
			return driver.Page{Lines: []driver.Line{line}}, err
		}
		return t.page(q, now)
	})
}

func (t *tx) page(q driver.Query, now int64) (driver.Page, error) {
	limit := q.Limit
	if limit == 0 {
		limit = pageLimit
	}
	limit = min(limit, driver.MaxPage)
	after := max(q.After, RememberedKey)
	keys, err := t.keys(stPage, []byte(q.Prefix), []byte(after), Successor(q.Prefix), limit+1)
	if err != nil {
		return driver.Page{}, err
	}
	var page driver.Page
	if len(keys) > limit {
		keys = keys[:limit]
		page.Next = keys[limit-1]
	}
	for _, key := range keys {
		line, err := t.list(key, now)
		if err != nil {
			return driver.Page{}, err
		}
		if len(line.Holders) > 0 || line.Waiting > 0 {
			page.Lines = append(page.Lines, line)
		}
	}
	return page, nil
}

func (t *tx) keys(name string, args ...any) ([]string, error) {
	rows, err := t.query(name, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var keys []string
	for rows.Next() {
		var key []byte
		if err := rows.Scan(&key); err != nil {
			return nil, err
		}
		keys = append(keys, string(key))
	}
	return keys, rows.Err()
}

// Successor is the first key behind all that begin with the prefix.
func Successor(prefix string) []byte {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return b[:i+1]
		}
	}
	return []byte{0xff, 0xff} // no key in UTF-8 has this byte
}

// list reads one line: all that hold, and the first that wait.
func (t *tx) list(key string, now int64) (driver.Line, error) {
	line := driver.Line{Key: key}
	holders, err := t.claims(stHolders, []byte(key), now)
	if err != nil {
		return line, err
	}
	for _, c := range holders {
		line.Holders = append(line.Holders, entry(c, now))
	}
	waiting, err := t.claims(stFront, []byte(key), maxWaiters+maxRemovals)
	if err != nil {
		return line, err
	}
	for _, c := range waiting {
		if c.expiresAt > now && len(line.Waiters) < maxWaiters {
			line.Waiters = append(line.Waiters, entry(c, now))
		}
	}
	n, err := t.count(stWaiting, []byte(key), now)
	line.Waiting = int(n)
	return line, err
}

func entry(c claim, now int64) driver.Entry {
	return driver.Entry{
		Number: c.number, Weight: c.weight, Capacity: c.capacity, Index: c.index, Name: c.name,
		InLine: duration(now - c.joinedAt), ExpiresIn: duration(c.expiresAt - now), Fixed: c.fixed, Revoked: c.revoked,
	}
}
