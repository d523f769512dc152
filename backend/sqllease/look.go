package sqllease

import (
	"context"

	"github.com/hasp-dev/hasp/driver"
)

// Gaze is what to look at.
type Gaze struct {
	Inbox [6]byte
	Keys  []string    // lines to see the marks of
	IDs   []driver.ID // claims to find
}

// Sight is what was seen: Marks by Gaze.Keys, Found by Gaze.IDs.
type Sight struct {
	Changed int64 // how often something happened to a claim of the inbox
	Marks   []Mark
	Found   []Found
}

// Mark is enough of a line to see that it has changed.
type Mark struct {
	Front   []byte // ID of the first holder
	Newest  int64  // the greatest number that holds
	Holders int64  // counted to a hundred
	Last    int64  // the greatest number there was
	Waited  int64  // the greatest number that began to wait
}

// changed says whether the holders were others in between, even where they are the same
// again: whoever joined last without waiting has held.
func (m Mark) changed(now Mark) bool {
	return string(m.Front) != string(now.Front) || m.Newest != now.Newest || m.Holders != now.Holders ||
		(now.Last > m.Last && now.Last > now.Waited) || (now.Last > m.Last && m.Holders == 0)
}

// Found is how a claim stands; its Number is 0 where it does not.
type Found struct {
	Number                    int64
	Waiting, Revoked, Several bool
}

// Look reads the counter of changes, the marks of the lines, and the claims.
func (e steps) Look(ctx context.Context, g Gaze) (Sight, error) {
	return read(ctx, e.Driver, func(t *tx) (Sight, error) {
		s := Sight{Marks: make([]Mark, len(g.Keys)), Found: make([]Found, len(g.IDs))}
		if err := t.row(stChanged, []any{g.Inbox[:]}, &s.Changed); err != nil {
			return s, err
		}
		if e.dialect.Rows != nil {
			return s, t.lookTogether(g, &s)
		}
		for i, key := range g.Keys {
			m := &s.Marks[i]
			if err := t.row(stMark, []any{[]byte(key)}, &m.Front, &m.Newest, &m.Holders, &m.Last, &m.Waited); err != nil {
				return s, err
			}
		}
		for i, id := range g.IDs {
			rows, err := t.claims(stFind, id[:])
			if err != nil {
				return s, err
			}
			s.Found[i] = foundAt(rows)
		}
		return s, nil
	})
}

// foundAt is how a claim in these places stands.
func foundAt(rows []claim) Found {
	if len(rows) == 0 || rows[0].remembered() {
		return Found{}
	}
	c := rows[0]
	return Found{Number: c.number, Waiting: c.waiting, Revoked: c.revoked, Several: c.keys > 1}
}

// lookTogether reads all marks in one statement and all claims in one.
func (t *tx) lookTogether(g Gaze, s *Sight) error {
	if len(g.Keys) > 0 {
		marks, err := t.marks(g.Keys)
		if err != nil {
			return err
		}
		for i, key := range g.Keys {
			s.Marks[i] = marks[key]
		}
	}
	if len(g.IDs) == 0 {
		return nil
	}
	places, err := t.placesOf(stFind, g.IDs)
	for i, id := range g.IDs {
		s.Found[i] = foundAt(places[id])
	}
	return err
}

func (t *tx) marks(keys []string) (map[string]Mark, error) {
	rows, err := t.query(stMarks, list(keys))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := make(map[string]Mark, len(keys))
	for rows.Next() {
		var key []byte
		var m Mark
		if err := rows.Scan(&key, &m.Front, &m.Newest, &m.Holders, &m.Last, &m.Waited); err != nil {
			return nil, err
		}
		all[string(key)] = m
	}
	return all, rows.Err()
}
