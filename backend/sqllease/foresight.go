package sqllease

import (
	"cmp"
	"database/sql"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// Over a network each statement costs a round trip. So a step for many claims reads their
// lines in a few statements and then finds in memory what it would have asked for, and what
// it writes alike of many claims waits for one statement.

const (
	// surveyRows and surveyRowsPer are how many claims are read ahead: so many, and so many
	// more for each line. Longer lines are asked about one by one.
	surveyRows    = 64
	surveyRowsPer = 16
	// maxSurveys is how often it is read on behind a line that is too long.
	maxSurveys = 4
)

// foresight is what a transaction has read ahead of lines that it has locked, kept up with
// what it has changed since. A nil one knows nothing.
type foresight struct {
	now        int64
	oldest     sql.NullInt64
	lifeExpiry sql.NullInt64
	lines      map[string]*seen      // whole lines
	places     map[driver.ID][]claim // locked, or not there
	pending    []pending
	unwritten  map[string]bool // IDs and keys that pending is about
}

// seen is a line and all its claims, in order.
type seen struct {
	last, sweepAt sql.NullInt64
	claims        []claim
}

// pending is a change of several rows that is still to be written.
type pending struct {
	name  string
	which [][]byte
	rest  [6]any // what is the same for all
}

// foresee reads lines ahead, and locks the claims as far as nobody else has them locked.
func (t *tx) foresee(keys []string, ids []driver.ID) error {
	f := &foresight{lines: make(map[string]*seen), places: make(map[driver.ID][]claim), unwritten: make(map[string]bool)}
	if err := t.surveyLines(f, keys); err != nil {
		return err
	}
	if err := t.surveyClaims(f, keys); err != nil {
		return err
	}
	if err := t.surveyPlaces(f, ids); err != nil {
		return err
	}
	t.foreseen = f
	return nil
}

func (t *tx) surveyLines(f *foresight, keys []string) error {
	rows, err := t.query(stSurveyLines, list(keys))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		var l seen
		if err := rows.Scan(&f.now, &f.oldest, &f.lifeExpiry, &key, &l.last, &l.sweepAt); err != nil {
			return err
		}
		f.lines[string(key)] = &l
	}
	return rows.Err()
}

// surveyClaims reads the claims of lines, and forgets the lines it cannot read to the end.
func (t *tx) surveyClaims(f *foresight, keys []string) error {
	left := slices.Clone(keys)
	slices.Sort(left)
	for n := 0; len(left) > 0; n++ {
		if n == maxSurveys {
			f.forget(left)
			return nil
		}
		limit := surveyRows + surveyRowsPer*len(left)
		rows, err := t.claims(stSurvey, list(left), limit)
		if err != nil {
			return err
		}
		whole := len(left)
		if len(rows) == limit {
			whole, _ = slices.BinarySearch(left, rows[limit-1].key)
			f.forget(left[whole : whole+1])
		}
		for _, c := range rows {
			if l := f.lines[c.key]; l != nil {
				l.claims = append(l.claims, c)
			}
		}
		left = left[min(whole+1, len(left)):]
	}
	return nil
}

func (f *foresight) forget(keys []string) {
	for _, key := range keys {
		delete(f.lines, key)
	}
}

// surveyPlaces finds the places of claims. It leaves out those that another transaction has
// locked.
func (t *tx) surveyPlaces(f *foresight, ids []driver.ID) error {
	if len(ids) == 0 {
		return nil
	}
	free, err := t.placesOf(stFindFree, ids)
	if err != nil {
		return err
	}
	var missing []driver.ID
	for _, id := range ids {
		switch rows := free[id]; {
		case len(rows) == 0:
			missing = append(missing, id)
		case len(rows) == rows[0].keys:
			f.places[id] = rows
		}
	}
	if len(missing) == 0 {
		return nil
	}
	there, err := t.placesOf(stFind, missing)
	for _, id := range missing {
		if len(there[id]) == 0 {
			f.places[id] = nil
		}
	}
	return err
}

// placesOf are the rows of claims, in the order of their keys.
func (t *tx) placesOf(name string, ids []driver.ID) (map[driver.ID][]claim, error) {
	which := make([][]byte, len(ids))
	for i, id := range ids {
		which[i] = id[:]
	}
	rows, err := t.claims(name, which)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(rows, func(a, b claim) int { return cmp.Compare(a.key, b.key) })
	all := make(map[driver.ID][]claim)
	for _, c := range rows {
		all[c.id] = append(all[c.id], c)
	}
	return all, nil
}

func list(keys []string) [][]byte {
	all := make([][]byte, len(keys))
	for i, key := range keys {
		all[i] = []byte(key)
	}
	return all
}

// covers says whether a renewal needs nothing that was not foreseen.
func (f *foresight) covers(item driver.Renewal) bool {
	rows, ok := f.place(item.ID)
	if !ok || (item.Mode == driver.Drop && item.Unanswered && item.Remember > 0) {
		return false
	}
	for _, key := range item.Keys {
		if !f.quiet(key, item) {
			return false
		}
	}
	return !slices.ContainsFunc(rows, func(c claim) bool { return !f.quiet(c.key, item) })
}

// quiet says whether nobody of a line is dead, and nobody moves on when the item is done.
func (f *foresight) quiet(key string, item driver.Renewal) bool {
	g, ok := f.glance(key)
	if !ok || g.dead() {
		return false
	}
	if !g.firstWaiting.Valid {
		return true
	}
	h, leaves := held{}, false
	for _, c := range f.lines[key].claims {
		self := item.Mode == driver.Drop && c.id == item.ID
		switch {
		case self && !c.waiting:
			return false
		case !c.waiting:
			h = h.with(c)
		case h.admits(c.weight, c.capacity):
			return false
		case self:
			leaves = true
		default:
			return true
		}
	}
	return leaves
}

// place answers what is known of the places of a claim.
func (f *foresight) place(id driver.ID) (rows []claim, ok bool) {
	if f == nil {
		return nil, false
	}
	rows, ok = f.places[id]
	return slices.Clone(rows), ok
}

// glance is one look at a line.
func (f *foresight) glance(key string) (glance, bool) {
	if f == nil || f.lines[key] == nil {
		return glance{}, false
	}
	l := f.lines[key]
	g := glance{now: f.now, oldest: f.oldest, last: l.last, sweepAt: l.sweepAt}
	some := func(n int64) sql.NullInt64 { return sql.NullInt64{Int64: n, Valid: true} }
	for i, c := range l.claims {
		if i == 0 {
			g.frontExpiry, g.frontWaits = some(c.expiresAt), some(bit(c.waiting))
		}
		if c.session != 0 && c.expiresAt <= f.now {
			g.lifeExpiry = f.lifeExpiry // one that counts here
		}
		if c.session == 0 && (!g.crowdExpiry.Valid || c.expiresAt < g.crowdExpiry.Int64) {
			g.crowdExpiry = some(c.expiresAt)
		}
		if c.waiting && !g.firstWaiting.Valid {
			g.firstWaiting = some(c.number)
		}
	}
	return g, true
}

// claims are the rows a statement would answer.
func (f *foresight) claims(name string, args []any) (rows []claim, ok bool) {
	if f == nil || (name != stFront && name != stHead) {
		return nil, false
	}
	l := f.line(args[0])
	if l == nil {
		return nil, false
	}
	limit := args[1].(int) //nolint:forcetypeassert // as with the statement
	for _, c := range l.claims {
		if len(rows) < limit && (c.waiting || name == stHead) {
			rows = append(rows, c)
		}
	}
	return rows, true
}

// sitters are the first that hold a line.
func (f *foresight) sitters(key string) (rows []claim, ok bool) {
	if f == nil || f.lines[key] == nil {
		return nil, false
	}
	for _, c := range f.lines[key].claims {
		if !c.waiting && len(rows) < maxSitters {
			rows = append(rows, c)
		}
	}
	return rows, true
}

// group is what a statement would answer of some claims together.
func (f *foresight) group(name string, args []any) (h held, ok bool) {
	l := f.line(args[0])
	if l == nil {
		return held{}, false
	}
	few := 0
	for _, c := range l.claims {
		switch {
		case name == stHeld && !c.waiting:
			is := h.with(c)
			if few++; few > lookAhead {
				is.first, is.last = h.first, h.last
			}
			h = is
		case name == stNear && c.waiting && c.number < args[1].(int64) && few < lookAhead: //nolint:forcetypeassert // as with the statement
			few++
			h = h.and(held{}.with(c))
		}
	}
	return h, true
}

// count is the number a statement would answer.
func (f *foresight) count(name string, args []any) (n int64, ok bool) {
	if f == nil || (name != stAhead && name != stBehind) {
		return 0, false
	}
	l := f.line(args[0])
	if l == nil {
		return 0, false
	}
	above := args[1].(int64) //nolint:forcetypeassert // as with the statement
	for _, c := range l.claims {
		if c.waiting && c.number > above && (name == stBehind || c.number < args[2].(int64)) { //nolint:forcetypeassert // as with the statement
			n++
		}
	}
	return n, true
}

func (f *foresight) line(key any) *seen {
	if f == nil {
		return nil
	}
	return f.lines[string(key.([]byte))] //nolint:forcetypeassert // as with the statements
}
