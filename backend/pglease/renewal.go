package pglease

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

const (
	// maxChunk is how many renewals share one message, smallChunk how many of those that are
	// done one by one share a transaction, with all their lines locked.
	maxChunk, smallChunk = 200, 32
	// maxSeen is how many claims are looked at in one statement.
	maxSeen = 2000
)

// errParting: a claim cannot be named, since that could be undone.
var errParting = fmt.Errorf("%s: %w: the claim was not renewed for long and is leaving its session", name, driver.ErrUnavailable)

// answer is that of Renew.
type answer = func(i int, s driver.Standing, err error)

// Renew renews the sessions of the claims that have one, looks at those claims only where
// something has happened to one of the client's, and does the rest item by item.
func (s *steps) Renew(ctx context.Context, items []driver.Renewal, order []int, answer answer) {
	var rest []int
	bySession := make(map[int64][]int)
	for _, i := range order {
		if h, ok := s.book.held(items[i]); ok {
			bySession[h.session] = append(bySession[h.session], i)
			continue
		}
		rest = append(rest, i)
	}
	rest = append(rest, s.renewSessions(ctx, items, bySession, answer)...)
	rest = slices.DeleteFunc(rest, func(i int) bool {
		s.book.release(items[i].ID) // from here on nobody takes it out of a session
		if items[i].Mode == driver.Drop || !s.book.parts(items[i].ID) {
			return false
		}
		answer(i, driver.Standing{}, errParting)
		return true
	})
	rest = s.enrol(ctx, items, rest, answer)
	// In the order of their keys, so that two batches are less likely to wait for each other.
	slices.SortFunc(rest, func(a, b int) int {
		return cmp.Or(cmp.Compare(items[a].Keys[0], items[b].Keys[0]), cmp.Compare(items[a].Number, items[b].Number))
	})
	for chunk := range slices.Chunk(rest, maxChunk) {
		some := make([]driver.Renewal, len(chunk)) // a copy: a call given up leaves its goroutine behind
		for n, i := range chunk {
			some[n] = items[i]
		}
		standings, err := s.renew(ctx, some)
		for n, i := range chunk {
			switch {
			case err != nil:
				answer(i, driver.Standing{}, err)
			case standings[n].State == 0:
				answer(i, driver.Standing{}, fmt.Errorf("%s: %w: a transaction guards the claim, which cannot leave before that ends", name, driver.ErrUnavailable))
			default:
				answer(i, standings[n], nil)
			}
		}
	}
}

// touched is a session after its renewal.
type touched struct {
	number  int64
	alive   bool
	until   int64     // its expiry
	changed int64     // the client's counter; below 0: there is none
	at      time.Time // before it was renewed
}

// renewSessions answers the claims that live with a session and answers which of them
// must be renewed one by one.
func (s *steps) renewSessions(ctx context.Context, items []driver.Renewal, bySession map[int64][]int, answer answer) (rest []int) {
	numbers := make([]int64, 0, len(bySession))
	for n := range bySession {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	sessions, err := s.touch(ctx, items, bySession, numbers)
	if err != nil {
		for _, n := range numbers {
			fail(bySession[n], err, answer)
		}
		return nil
	}
	for _, t := range sessions {
		var look []int
		for _, i := range bySession[t.number] {
			h, as, again := s.book.confirm(items[i], t, nil)
			switch {
			case as:
				answer(i, h.standing(), nil)
			case again:
				look = append(look, i)
			default:
				rest = append(rest, i)
			}
		}
		if !t.alive {
			s.book.expired(t.number)
			continue
		}
		for chunk := range slices.Chunk(look, maxSeen) {
			rest = append(rest, s.look(ctx, items, chunk, t, answer)...)
		}
		s.part(ctx, t.number)
	}
	return rest
}

func fail(some []int, err error, answer answer) {
	for _, i := range some {
		answer(i, driver.Standing{}, err)
	}
}

func (h heldClaim) standing() driver.Standing {
	return driver.Standing{State: driver.Holding, Number: h.number, Life: micros(h.life.hold), Behind: h.behind}
}

// touch renews sessions: one row each, however many claims live with it.
func (s *steps) touch(ctx context.Context, items []driver.Renewal, bySession map[int64][]int, numbers []int64) ([]touched, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	calls := make([]call, len(numbers))
	for k, number := range numbers {
		first := items[bySession[number][0]]
		inbox, l := first.ID.Inbox(), lifetimeOf(first.Life)
		calls[k] = call{"touch", []any{inbox[:], number, l.hold + l.grace}}
	}
	return sqllease.Call(ctx, s.Client, true, func(ctx context.Context) ([]touched, error) {
		at := time.Now()
		all, err := s.access.run(ctx, calls...)
		if err != nil {
			return nil, err
		}
		sessions := make([]touched, len(all))
		for k, rows := range all {
			if len(rows) != 1 {
				return nil, errColumns
			}
			sessions[k] = touched{number: numbers[k], alive: rows[0].yes(), until: rows[0].number(), changed: rows[0].number(), at: at}
			if rows[0].err != nil {
				return nil, rows[0].err
			}
		}
		return sessions, nil
	})
}

// look looks at claims of a session that was renewed, and answers those that are as they
// were. The session's counter is as it was before the look.
func (s *steps) look(ctx context.Context, items []driver.Renewal, some []int, t touched, answer answer) (rest []int) {
	ids := make([]driver.ID, len(some))
	for n, i := range some {
		ids[n] = items[i].ID
	}
	found, err := s.see(ctx, ids)
	if err != nil {
		fail(some, err, answer)
		return nil
	}
	for n, i := range some {
		if h, as, _ := s.book.confirm(items[i], t, &found[n]); as {
			answer(i, h.standing(), nil)
		} else {
			rest = append(rest, i)
		}
	}
	return rest
}

// part takes claims out of a session that lives on without them: held beyond MaxHold, or
// left by a call whose outcome is unknown. One that cannot be taken out now is so later.
func (s *steps) part(ctx context.Context, session int64) {
	all := s.book.unnamed(session, time.Now())
	if len(all) == 0 {
		return
	}
	var ids, keys [][]byte
	var untils []int64
	for _, p := range all {
		ids, untils, keys = append(ids, p.id[:]), append(untils, p.until), append(keys, keysOf(p.keys)...)
	}
	if _, err := s.transact(ctx, call{"part", []any{ids, untils, keys}}); err != nil {
		return
	}
	for _, p := range all {
		s.book.parted(p.id)
	}
}

// renew does some renewals in one transaction.
func (s *steps) renew(ctx context.Context, items []driver.Renewal) ([]driver.Standing, error) {
	for i, item := range items {
		if item.Mode == driver.Drop {
			l := s.book.leaving(driver.Leaving{Ref: item.Ref, Unanswered: item.Unanswered, Remember: item.Remember})
			items[i].Unanswered, items[i].Remember = l.Unanswered, l.Remember
		}
	}
	return sqllease.Call(ctx, s.Client, true, func(ctx context.Context) ([]driver.Standing, error) {
		return s.renewOnce(ctx, items, s.plan(items))
	})
}

// plan says with which session each claim shall live; 0: with none. A session that is not
// open yet gets a new number with each try, so that no number is opened twice.
func (s *steps) plan(items []driver.Renewal) []int64 {
	plan := make([]int64, len(items))
	fresh := make(map[lifetime]int64)
	for i, item := range items {
		if item.Mode != driver.Extend || item.Life.Own || s.Waits(item.ID) {
			continue
		}
		l := lifetimeOf(item.Life)
		if n, ok := fresh[l]; ok {
			plan[i] = n
			continue
		}
		n, open := s.book.session(l)
		if !open {
			n = -n
		}
		fresh[l] = n
		plan[i] = n
	}
	return plan
}

// renewOnce renews claims, a few in each transaction: its lines are locked while it runs.
func (s *steps) renewOnce(ctx context.Context, items []driver.Renewal, plan []int64) ([]driver.Standing, error) {
	var named []naming
	for i, item := range items {
		if plan[i] != 0 {
			named = append(named, naming{item.ID, max(plan[i], -plan[i]), lifetimeOf(item.Life)})
		}
	}
	at := time.Now()
	if !s.book.begin(named, at) {
		return nil, errParting
	}
	defer s.book.end(named)
	var calls []call
	for from := 0; from < len(items); from += smallChunk {
		to := min(from+smallChunk, len(items))
		calls = append(calls, s.renewal(items[from:to], plan[from:to]))
		for i := to; i < len(plan); i++ {
			if plan[i] < 0 && slices.Contains(plan[from:to], plan[i]) {
				plan[i] = -plan[i] // it is open by then, or was of no use
			}
		}
	}
	all, err := s.access.each(ctx, calls)
	if err != nil {
		return nil, err
	}
	standings := make([]driver.Standing, 0, len(items))
	for _, rows := range all {
		some := items[len(standings):min(len(standings)+smallChunk, len(items))]
		more, err := s.noteRenewed(some, plan[len(standings):], rows, at)
		if err != nil {
			return nil, err
		}
		standings = append(standings, more...)
	}
	return standings, nil
}

// renewal is the call that renews some claims.
func (s *steps) renewal(items []driver.Renewal, plan []int64) call {
	var ids, keys [][]byte
	var params []int64
	for i, item := range items {
		ids = append(ids, item.ID[:])
		keys = append(keys, keysOf(item.Keys)...)
		own := int64(0)
		if item.Life.Own {
			own = 1
		}
		remember := rememberFor(driver.Leaving{Unanswered: item.Unanswered, Remember: item.Remember})
		params = append(params, item.Number, int64(item.Mode))
		params = append(params, lives(item.Life)...)
		params = append(params, own, plan[i], remember, int64(len(item.Keys)))
	}
	inbox := items[0].ID.Inbox()
	return call{"renew", []any{s.self(items[0].ID), inbox[:], ids, params, keys}}
}

// noteRenewed reads how the claims of one call stand, and keeps it.
func (s *steps) noteRenewed(items []driver.Renewal, plan []int64, rows []*row, at time.Time) ([]driver.Standing, error) {
	if len(rows) != len(items)+1 {
		return nil, errColumns
	}
	last := rows[len(items)]
	changed, news := last.counter()
	now := last.number()
	standings := make([]driver.Standing, len(items))
	for i, r := range rows[:len(items)] {
		_ = r.number() // its place
		standings[i] = r.standing(items[i].Number)
		joined := r.yes()
		if err := r.err; err != nil {
			return nil, err
		}
		if standings[i].State == 0 { // a Drop that a guard is in the way of
			continue
		}
		s.note(items[i], standings[i], joined, heldClaim{session: max(plan[i], -plan[i]), seen: changed, until: now, named: at})
	}
	s.tell(news)
	return standings, last.err
}

// counter reads the last row of a renewal.
func (r *row) counter() (changed int64, news string) {
	for range 12 {
		_ = r.text()
	}
	return r.number(), r.text()
}

// note keeps what a renewal has answered.
func (s *steps) note(item driver.Renewal, st driver.Standing, joined bool, h heldClaim) {
	if item.Mode == driver.Fix && st.State == driver.Holding {
		s.Drop(item.ID)
		s.book.apart(item.ID)
		return
	}
	s.Settle(item.Ref, st)
	switch {
	case st.State == driver.Gone || st.State == driver.Left:
		s.book.forget(item.ID)
	case joined && st.State == driver.Holding:
		h.number, h.life, h.behind = st.Number, lifetimeOf(item.Life), st.Behind
		h.until += h.life.hold + h.life.grace
		s.book.opened(h.life, h.session)
		if st.Life <= item.Life.Hold { // else it has longer to live than its session
			s.book.hold(item.ID, h, s.Knows)
		}
	default:
		s.book.apart(item.ID)
	}
}
