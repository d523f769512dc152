package sqllease

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/hasp-dev/hasp/driver"
)

// Renew does the items in transactions of a few hundred each. Every item is a step of
// its own.
func (e steps) Renew(ctx context.Context, items []driver.Renewal, order []int, answer func(i int, s driver.Standing, err error)) {
	for _, i := range order {
		if items[i].Mode == driver.Drop {
			e.roster.depart(items[i].ID)
		}
	}
	order = e.renewLives(ctx, items, order, answer)
	// In the order of their lines the items share the counting of who stands ahead.
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(items[a].Keys[0], items[b].Keys[0]), cmp.Compare(items[a].Number, items[b].Number))
	})
	e.lookForDeadHolders(ctx, items, order)
	var slow []int
	done := func(r portionDone) {
		for n, i := range r.order {
			switch {
			case r.err != nil:
				answer(i, driver.Standing{}, r.err)
			case errors.Is(r.answers[n].err, errUnforeseen):
				slow = append(slow, i)
			case r.answers[n].err != nil:
				answer(i, driver.Standing{}, e.explain(r.answers[n].err, e.fault(r.answers[n].err)))
			default:
				answer(i, r.answers[n].value, nil)
			}
		}
	}
	for r := range e.share(ctx, items, e.dialect.portions(items, order, e.dialect.Rows != nil)) {
		done(r)
	}
	for r := range e.share(ctx, items, e.dialect.portions(items, slices.Clone(slow), false)) {
		done(r)
	}
}

// lookForDeadHolders looks, for a few waiting claims, whether a process in their way has
// ended.
func (d *Driver) lookForDeadHolders(ctx context.Context, items []driver.Renewal, order []int) {
	if d.dialect.Witness == nil {
		return
	}
	var keys []string
	for _, i := range order {
		if len(keys) < maxProbedLines && items[i].Mode != driver.Drop && d.known.waits(items[i].ID) {
			keys = append(keys, items[i].Keys...)
		}
	}
	if len(keys) > 0 {
		d.buryProcesses(ctx, keys)
	}
}

// renew does some items in one transaction, or of many those that are quickly done. An item
// whose claim another transaction keeps from being changed has an error of its own, and the
// others go on.
func (d *Driver) renew(ctx context.Context, items []driver.Renewal, quick bool) ([]result[driver.Standing], error) {
	var keys []string
	for _, item := range items {
		keys = append(keys, linesOf(driver.Leaving{
			Ref: item.Ref, Unanswered: item.Mode == driver.Drop && item.Unanswered, Remember: item.Remember,
		})...)
	}
	locks := newLocks(keys)
	return Call(ctx, d.Client, true, func(ctx context.Context) ([]result[driver.Standing], error) {
		touched, ok := d.roster.name(items)
		if !ok {
			return nil, errParting
		}
		defer d.roster.named(items)
		return once(ctx, d, locks, func(t *tx) ([]result[driver.Standing], error) { return t.renew(items, touched, quick) })
	})
}

func (t *tx) renew(items []driver.Renewal, touched map[driver.ID]uint64, quick bool) ([]result[driver.Standing], error) {
	answers := make([]result[driver.Standing], len(items))
	if err := t.foreseeAll(items); err != nil {
		return nil, err
	}
	lines := make(map[string]ahead)
	for i, item := range items {
		if quick && (t.foreseen == nil || !t.foreseen.covers(item)) {
			answers[i].err = errUnforeseen
			continue
		}
		s := newStep(t)
		st, err := s.renew(item, lines)
		if err != nil && !errors.Is(err, errClaimLocked) {
			return nil, err
		}
		if answers[i].err = err; err != nil {
			clear(lines)
		}
		if err := s.finish(); err != nil {
			return nil, err
		}
		if err != nil {
			continue
		}
		answers[i].value = st
		t.after = append(t.after, func() { s.renewed(item, st, touched[item.ID]) })
	}
	return answers, nil
}

// foreseeAll reads ahead what some renewals need.
func (t *tx) foreseeAll(items []driver.Renewal) error {
	if t.locks == nil {
		return nil
	}
	ids := make([]driver.ID, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	keys := slices.Sorted(maps.Keys(t.locks.have))
	keys = slices.DeleteFunc(keys, func(key string) bool { return key == RememberedKey })
	if err := t.foresee(keys, ids); err != nil {
		return err
	}
	if f := t.foreseen; f.lifeExpiry.Valid && f.lifeExpiry.Int64 <= f.now {
		t.after = append(t.after, t.d.buryFallen)
	}
	return nil
}

// renewed notes what has become of a claim; touched is what was done about it before.
func (s *step) renewed(item driver.Renewal, st driver.Standing, touched uint64) {
	d := s.d
	if item.Mode == driver.Fix && st.State == driver.Holding {
		d.Drop(item.ID)
		d.roster.remove(item.ID)
		return
	}
	d.Settle(item.Ref, st)
	switch {
	case s.enrolled != nil:
		until := s.now + s.enrolled.terms.lasts(d.dialect.Grain)
		m := member{life: s.enrolled, number: st.Number, until: until, behind: st.Behind, looked: touched}
		d.roster.enrol(item.ID, m, !d.Knows(item.ID))
	case !s.kept:
		d.roster.remove(item.ID)
	}
}

// renew is one item. counts carries who stands ahead from one item to the next.
func (s *step) renew(item driver.Renewal, counts map[string]ahead) (driver.Standing, error) {
	if item.Mode == driver.Drop {
		clear(counts)
		return s.tx.leave(driver.Leaving{Ref: item.Ref, Unanswered: item.Unanswered, Remember: item.Remember})
	}
	if err := s.open(item.Keys, item.ID); err != nil {
		return driver.Standing{}, err
	}
	if err := s.handOver(); err != nil {
		return driver.Standing{}, err
	}
	if s.removals > 0 || s.granted > 0 {
		clear(counts)
	}
	for key, l := range s.lines {
		l.ahead = counts[key]
	}
	st, err := s.renewLiving(item)
	if s.granted > 0 {
		clear(counts)
		return st, err
	}
	for key, l := range s.lines {
		counts[key] = l.ahead
	}
	return st, err
}

func (s *step) renewLiving(item driver.Renewal) (driver.Standing, error) {
	rows, err := s.find(item.ID)
	if err != nil {
		return driver.Standing{}, err
	}
	if len(rows) == 0 || rows[0].remembered() || (item.Number != 0 && rows[0].number != item.Number) || rows[0].expiresAt <= s.now {
		return s.gone(item.Ref, false)
	}
	if rows[0].revoked {
		return s.gone(item.Ref, true)
	}
	if item.Mode == driver.Fix && !rows[0].waiting {
		return s.fix(rows, item.Life)
	}
	return s.extend(rows, item.Life, true)
}

// extend gives a living claim more life, never less, and lets it hold where it can. One
// that a renewal has named lives with its client's others from then on.
func (s *step) extend(rows []claim, life driver.Life, named bool) (driver.Standing, error) {
	for _, r := range rows { // the call may have named other keys
		if _, err := s.look(r.key, driver.ID{}); err != nil {
			return driver.Standing{}, err
		}
	}
	if rows[0].waiting && s.mine {
		holds, err := s.standUp(rows)
		if err != nil {
			return driver.Standing{}, err
		}
		for i := range rows {
			rows[i].waiting = !holds
		}
	}
	c := rows[0]
	if c.fixed {
		return s.standing(rows)
	}
	if s.asItIs(c, life, named) {
		rows[0].expiresAt, rows[0].grace = s.expiry(life, false)
		return s.standing(rows)
	}
	if !s.mine { // another keeps it as it is, and alive
		s.kept = true
		return s.standing(rows)
	}
	c.own, c.hold = life.Own, micros(life.Hold)
	expiresAt, grace := s.expiry(life, c.waiting)
	longer := expiresAt >= c.expiresAt
	if longer {
		c.expiresAt, c.grace = expiresAt, grace
	}
	if named || c.own || c.waiting {
		c.session = 0
	}
	if named && longer && !c.own && !c.waiting {
		s.enrol(&c, life)
	}
	return s.rewrite(rows, c)
}

// asItIs says whether a claim lives by the right life already: that one's row is all
// there is to write.
func (s *step) asItIs(c claim, life driver.Life, named bool) bool {
	if !named || c.session == 0 || life.Own || c.hold != micros(life.Hold) {
		return false
	}
	expiresAt, grace := s.expiry(life, false)
	was := c
	return expiresAt >= c.expiresAt && grace == c.grace && s.enrol(&c, life) && c.session == was.session
}

// fix gives a holding claim the expiry it will keep.
func (s *step) fix(rows []claim, life driver.Life) (driver.Standing, error) {
	c := rows[0]
	if c.fixed {
		return s.standing(rows)
	}
	c.fixed, c.own, c.session = true, true, 0
	c.expiresAt, c.grace = s.expiry(driver.Life{Hold: life.Hold}, false)
	return s.rewrite(rows, c)
}

// rewrite stores what a renewal changes, in all places of a claim.
func (s *step) rewrite(rows []claim, c claim) (driver.Standing, error) {
	for i := range rows {
		rows[i].expiresAt, rows[i].grace, rows[i].hold = c.expiresAt, c.grace, c.hold
		rows[i].own, rows[i].fixed, rows[i].session = c.own, c.fixed, c.session
	}
	if !s.mine {
		return driver.Standing{}, errClaimLocked
	}
	if err := s.exec(stExtend, c.id[:], c.expiresAt, c.grace, c.hold, bit(c.own), bit(c.fixed), c.session); err != nil {
		return driver.Standing{}, err
	}
	return s.standing(rows)
}

// standUp lets the lines of a waiting claim move on, and says whether it holds now.
func (s *step) standUp(rows []claim) (bool, error) {
	self, holds := rows[0].id, true
	for _, r := range rows {
		fits, err := s.promote(s.lines[r.key], self)
		if err != nil {
			return false, err
		}
		holds = holds && fits
	}
	if !holds || rows[0].keys == 1 {
		return holds, nil
	}
	s.granted++
	if err := s.exec(stStand, self[:]); err != nil {
		return false, err
	}
	for _, r := range rows {
		if err := s.again(s.lines[r.key]); err != nil {
			return false, err
		}
	}
	return true, nil
}
