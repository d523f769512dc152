package pglease

import (
	"context"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// pageLimit is how many lines a page has unless the query says.
const pageLimit = 100

// seen is how a claim stands, and what only a renewal asks for.
type seen struct {
	sqllease.Found
	behind  bool
	session int64
}

// see looks at claims.
func (s *steps) see(ctx context.Context, ids []driver.ID) ([]seen, error) {
	return sqllease.Call(ctx, s.Client, false, func(ctx context.Context) ([]seen, error) {
		all, err := s.access.run(ctx, sight(ids))
		if err != nil {
			return nil, err
		}
		return readSeen(all[0], len(ids))
	})
}

func sight(ids []driver.ID) call {
	raw := make([][]byte, len(ids))
	for i := range ids {
		raw[i] = ids[i][:]
	}
	return call{"see", []any{raw}}
}

func readSeen(rows []*row, n int) ([]seen, error) {
	all := make([]seen, n)
	for _, r := range rows {
		i := r.number() - 1
		f := seen{Found: sqllease.Found{Number: r.number(), Waiting: r.yes(), Revoked: r.yes(), Several: r.yes()}}
		f.behind, f.session = r.yes(), r.number()
		if r.err != nil {
			return nil, r.err
		}
		if i < 0 || i >= int64(n) {
			return nil, errColumns
		}
		all[i] = f
	}
	return all, nil
}

// Look says what is to be seen of some lines and claims.
func (s *steps) Look(ctx context.Context, g sqllease.Gaze) (sqllease.Sight, error) {
	calls := []call{{"counter", []any{g.Inbox[:]}}}
	if len(g.Keys) > 0 {
		calls = append(calls, call{"marks", []any{keysOf(g.Keys)}})
	}
	if len(g.IDs) > 0 {
		calls = append(calls, sight(g.IDs))
	}
	return sqllease.Call(ctx, s.Client, false, func(ctx context.Context) (sqllease.Sight, error) {
		seen := sqllease.Sight{Found: make([]sqllease.Found, len(g.IDs)), Marks: make([]sqllease.Mark, len(g.Keys))}
		all, err := s.access.run(ctx, calls...)
		if err != nil {
			return seen, err
		}
		for _, r := range all[0] {
			if seen.Changed = r.number(); r.err != nil {
				return seen, r.err
			}
		}
		rest := all[1:]
		if len(g.Keys) > 0 {
			if err := readMarks(rest[0], seen.Marks); err != nil {
				return seen, err
			}
			rest = rest[1:]
		}
		if len(g.IDs) == 0 {
			return seen, nil
		}
		found, err := readSeen(rest[0], len(g.IDs))
		for i, f := range found {
			seen.Found[i] = f.Found
		}
		return seen, err
	})
}

// readMarks reads what lines are like, a row for each.
func readMarks(rows []*row, marks []sqllease.Mark) error {
	if len(rows) != len(marks) {
		return errColumns
	}
	for i, r := range rows {
		marks[i] = sqllease.Mark{Front: r.bytes(), Newest: r.number(), Holders: r.number(), Last: r.number(), Waited: r.number()}
		if r.err != nil {
			return r.err
		}
	}
	return nil
}

// Lines reads one line or a page in one statement.
func (s *steps) Lines(ctx context.Context, q driver.Query) (driver.Page, error) {
	limit := q.Limit
	if limit == 0 {
		limit = pageLimit
	}
	limit = min(limit, driver.MaxPage)
	// No key begins with NUL, and what does is no line.
	low, after, high := []byte(max(q.Prefix, "\x01")), []byte(q.After), sqllease.Successor(q.Prefix)
	if q.Key != "" {
		low, after, high = []byte(q.Key), []byte{}, []byte(q.Key+"\x00")
	}
	c := call{"lines", []any{low, after, high, int64(limit) + 1}}
	return sqllease.Call(ctx, s.Client, false, func(ctx context.Context) (driver.Page, error) {
		all, err := s.access.run(ctx, c)
		if err != nil {
			return driver.Page{}, err
		}
		page, err := readLines(all[0], limit)
		if q.Key != "" && len(page.Lines) == 0 {
			page.Lines = []driver.Line{{Key: q.Key}}
		}
		return page, err
	})
}

// readLines puts the rows of at most limit lines together, and drops empty lines.
func readLines(rows []*row, limit int) (driver.Page, error) {
	var page driver.Page
	var line *driver.Line
	read, last := 0, ""
	for _, r := range rows {
		key := string(r.bytes())
		if key != last {
			if read == limit {
				page.Next = last
				return page, r.err
			}
			read++
			last, line = key, nil
		}
		e, waits, waiting := r.entry()
		if r.err != nil {
			return page, r.err
		}
		if e.Number == 0 {
			continue
		}
		if line == nil {
			page.Lines = append(page.Lines, driver.Line{Key: key, Waiting: waiting})
			line = &page.Lines[len(page.Lines)-1]
		}
		if waits {
			line.Waiters = append(line.Waiters, e)
		} else {
			line.Holders = append(line.Holders, e)
		}
	}
	return page, nil
}

// entry reads a claim of a listing, whether it waits, and how many of its line do.
func (r *row) entry() (e driver.Entry, waits bool, waiting int) {
	e.Number = r.number()
	waits, waiting = r.yes(), int(r.number())
	e.Weight, e.Capacity, e.Index = r.number(), r.number(), uint8(r.number()) //nolint:gosec // of a column of that range
	e.Name, e.InLine, e.ExpiresIn = string(r.bytes()), micros(r.number()), micros(r.number())
	e.Fixed, e.Revoked = r.yes(), r.yes()
	return e, waits, waiting
}
