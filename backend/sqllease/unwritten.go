package sqllease

import (
	"maps"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// later says whether a change is written with others like it, later. One that is not comes
// behind those that were, and what was read ahead may be no longer so.
func (t *tx) later(name string, args []any) (bool, error) {
	f := t.foreseen
	if f == nil {
		return false, nil
	}
	switch name {
	case stExtend, stDelete, stKeepLine, stDropLine:
		if which, _ := args[0].([]byte); f.unwritten[string(which)] {
			if err := t.write(); err != nil {
				return false, err
			}
		}
		f.take(name, args)
		return true, nil
	case stRenewLife, stOpenLife, stChange, stLock: // of no line
	default:
		t.foreseen = nil
	}
	return false, t.writeAll(f)
}

// take notes a change to be written later.
func (f *foresight) take(name string, args []any) {
	which, _ := args[0].([]byte)
	switch name {
	case stExtend:
		f.extended(driver.ID(which), args)
	case stDelete:
		f.deleted(driver.ID(which))
	case stKeepLine:
		if l := f.lines[string(which)]; l != nil {
			l.sweepAt.Int64, l.sweepAt.Valid = args[1].(int64), true //nolint:forcetypeassert // as with the statement
		}
	case stDropLine:
		delete(f.lines, string(which))
	}
	f.unwritten[string(which)] = true
	f.put(name, append([]byte(nil), which...), args[1:])
}

func (f *foresight) put(name string, which []byte, rest []any) {
	p := pending{name: name}
	copy(p.rest[:], rest)
	for i := range f.pending {
		if f.pending[i].name == name && f.pending[i].rest == p.rest {
			f.pending[i].which = append(f.pending[i].which, which)
			return
		}
	}
	p.which = [][]byte{which}
	f.pending = append(f.pending, p)
}

// extended keeps what the statement changes of a claim.
func (f *foresight) extended(id driver.ID, args []any) {
	f.each(id, func(c *claim) bool {
		c.expiresAt, c.grace, c.hold = args[1].(int64), args[2].(int64), args[3].(int64)        //nolint:forcetypeassert // as with the statement
		c.own, c.fixed, c.session = args[4].(int64) != 0, args[5].(int64) != 0, args[6].(int64) //nolint:forcetypeassert // as with the statement
		return true
	})
}

func (f *foresight) deleted(id driver.ID) {
	f.each(id, func(*claim) bool { return false })
	f.places[id] = nil
}

// each changes all that is known of a claim, or removes it where change answers false.
func (f *foresight) each(id driver.ID, change func(*claim) bool) {
	rows := f.places[id]
	for i := range rows {
		change(&rows[i])
	}
	for _, l := range f.standsIn(rows) {
		kept := l.claims[:0]
		for _, c := range l.claims {
			if c.id != id || change(&c) {
				kept = append(kept, c)
			}
		}
		l.claims = kept
	}
}

// standsIn are the lines that a claim in these places may stand in: all of them, where its
// places are not known.
func (f *foresight) standsIn(places []claim) []*seen {
	if len(places) == 0 {
		return slices.Collect(maps.Values(f.lines))
	}
	var lines []*seen
	for _, c := range places {
		if l := f.lines[c.key]; l != nil {
			lines = append(lines, l)
		}
	}
	return lines
}

// write writes what is pending.
func (t *tx) write() error { return t.writeAll(t.foreseen) }

func (t *tx) writeAll(f *foresight) error {
	if f == nil || len(f.pending) == 0 {
		return nil
	}
	all := f.pending
	f.pending = nil
	clear(f.unwritten)
	for _, p := range all {
		if err := t.writeOne(p); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) writeOne(p pending) error {
	name, which := p.name, any(p.which)
	switch name {
	case stDelete:
		name, which = stDeleteAll, Selected(p.which)
	case stDropLine:
		name, which = stDropLines, Selected(p.which)
	}
	_, err := t.send(name, append([]any{which}, p.rest[:]...)...)
	return err
}
