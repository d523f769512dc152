package pglease

import (
	"context"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// enrol lets claims live with their client's session that are held and not named by a
// renewal yet, many in one short transaction, and answers those that must be renewed one
// by one: those of lines in which something happens just now, among others.
func (s *steps) enrol(ctx context.Context, items []driver.Renewal, some []int, answer answer) (rest []int) {
	byLife := make(map[lifetime][]int)
	for _, i := range some {
		item := items[i]
		if item.Mode != driver.Extend || item.Life.Own || item.Number == 0 || len(item.Keys) > 1 || s.Waits(item.ID) {
			rest = append(rest, i)
			continue
		}
		l := lifetimeOf(item.Life)
		byLife[l] = append(byLife[l], i)
	}
	for l, all := range byLife {
		for chunk := range slices.Chunk(all, maxChunk) {
			refs := make([]driver.Ref, len(chunk)) // a copy: a call given up leaves its goroutine behind
			for n, i := range chunk {
				refs[n] = items[i].Ref
			}
			held, err := s.enrolled(ctx, refs, l)
			for n, i := range chunk {
				switch {
				case err != nil:
					answer(i, driver.Standing{}, err)
				case held[n].number == 0:
					rest = append(rest, i)
				default:
					answer(i, held[n].standing(), nil)
				}
			}
		}
	}
	return rest
}

// enrolled answers, by their places, the claims that live with the session of a life now.
func (s *steps) enrolled(ctx context.Context, refs []driver.Ref, l lifetime) ([]heldClaim, error) {
	var ids, keys [][]byte
	var numbers []int64
	for i := range refs {
		ids, numbers, keys = append(ids, refs[i].ID[:]), append(numbers, refs[i].Number), append(keys, []byte(refs[i].Keys[0]))
	}
	inbox, all := refs[0].ID.Inbox(), make([]naming, len(refs))
	return sqllease.Call(ctx, s.Client, true, func(ctx context.Context) ([]heldClaim, error) {
		session, open := s.book.session(l)
		named := session
		if !open {
			named = -session
		}
		for i := range refs {
			all[i] = naming{refs[i].ID, session, l}
		}
		at := time.Now()
		if !s.book.begin(all, at) {
			return nil, errParting
		}
		defer s.book.end(all)
		rows, err := s.access.run(ctx, call{"enrol", []any{inbox[:], named, []int64{l.hold, l.grace}, ids, numbers, keys}})
		if err != nil {
			return nil, err
		}
		return s.noteEnrolled(refs, rows[0], heldClaim{life: l, session: session, named: at})
	})
}

// noteEnrolled reads which claims were enrolled, and keeps it. h is what they have in common.
func (s *steps) noteEnrolled(refs []driver.Ref, rows []*row, h heldClaim) ([]heldClaim, error) {
	held := make([]heldClaim, len(refs))
	for i, r := range rows {
		place, behind, until, changed := r.number(), r.yes(), r.number(), r.number()
		switch {
		case r.err != nil:
			return nil, r.err
		case (place == 0) != (i == 0) || place < 0 || place > int64(len(refs)):
			return nil, errColumns
		case place == 0:
			h.until, h.seen = until, changed
		default:
			h.number, h.behind = refs[place-1].Number, behind
			held[place-1] = h
		}
	}
	if h.until == 0 {
		s.book.expired(h.session)
	} else if len(rows) > 1 {
		s.book.opened(h.life, h.session)
	}
	for i, ref := range refs {
		if held[i].number == 0 {
			s.book.apart(ref.ID)
			continue
		}
		s.Settle(ref, held[i].standing())
		s.book.hold(ref.ID, held[i], s.Knows)
	}
	return held, nil
}
