package pglease

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

// steps are the steps of a driver: calls of functions in the database.
type steps struct {
	*sqllease.Client
	access  access
	book    *book
	janitor *sqllease.Janitor
}

// once carries out one call, and done with its rows on the goroutine of the try, so that
// what was done is noted also where the caller has left.
func once[T any](ctx context.Context, s *steps, c call, done func([]*row) (T, error)) (T, error) {
	return sqllease.Call(ctx, s.Client, true, func(ctx context.Context) (T, error) { return try(ctx, s, c, done) })
}

func try[T any](ctx context.Context, s *steps, c call, done func([]*row) (T, error)) (T, error) {
	var none T
	all, err := s.access.run(ctx, c)
	if err != nil {
		return none, err
	}
	if len(all[0]) == 0 {
		return none, errColumns
	}
	value, err := done(all[0])
	for _, r := range all[0] {
		if r.err != nil {
			return none, r.err
		}
	}
	return value, err
}

// errMissed: the answer to a first try was lost, and what a second one does not find may
// have been taken by it. Only who asks again knows that it asks again.
var errMissed = fmt.Errorf("%s: %w: the connection broke and the answer was lost", name, driver.ErrUnavailable)

// sure is once for a call whose answer differs when it is repeated: unsure says that a
// try before the answered one may have been done.
func sure[T any](ctx context.Context, s *steps, c call, unsure *atomic.Bool, done func([]*row) (T, error)) (T, error) {
	return sqllease.Call(ctx, s.Client, true, func(ctx context.Context) (T, error) {
		value, err := try(ctx, s, c, done)
		if err != nil && unknown(err) {
			unsure.Store(true)
		}
		return value, err
	})
}

// transact carries out one call and answers its rows.
func (s *steps) transact(ctx context.Context, c call) ([]*row, error) {
	return once(ctx, s, c, func(rows []*row) ([]*row, error) { return rows, nil })
}

// Check takes the locks of a line that nobody can have, which changes nothing.
func (s *steps) Check(ctx context.Context) error {
	_, err := s.transact(ctx, call{"lock", []any{[][]byte{{0}}}})
	return err
}

// Join does one Join.
func (s *steps) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if j.Leaving != nil {
		l := s.book.leaving(*j.Leaving)
		j.Leaving = &l
	}
	s.book.join(j.ID, j.Keys)
	st, err := sqllease.Call(ctx, s.Client, true, func(ctx context.Context) (driver.Standing, error) { return s.joinOnce(ctx, j) })
	if err != nil {
		return st, err
	}
	s.janitor.Expect()
	if st.State == driver.Refused && s.book.doubtful(j.ID) {
		// An earlier copy of this Join may still be under way.
		if _, err := s.Leave(ctx, driver.Leaving{Ref: j.Ref}); err != nil {
			return driver.Standing{}, err
		}
	}
	return st, nil
}

func (s *steps) joinOnce(ctx context.Context, j driver.Join) (driver.Standing, error) {
	var leave []byte
	leaveKeys, remember := [][]byte{}, int64(0)
	if j.Leaving != nil {
		leave, leaveKeys, remember = j.Leaving.ID[:], keysOf(j.Leaving.Keys), rememberFor(*j.Leaving)
	}
	var resume []byte
	var resumed int64
	if j.Resume != nil {
		resume, resumed = j.Resume.ID[:], j.Resume.Number
	}
	all, err := s.access.run(ctx, call{"join", []any{
		s.self(j.ID), j.ID[:], keysOf(j.Keys),
		[]int64{j.Weight, j.Capacity, int64(j.Index), int64(j.MaxLine)},
		lives(j.Life), j.Life.Own,
		j.Try, []byte(j.Name), resume, resumed, leave, leaveKeys, remember,
	}})
	if err != nil {
		if unknown(err) {
			s.book.doubt(j.ID, j.Life)
		}
		return driver.Standing{}, err
	}
	r := all[0][0]
	st := r.standing(j.Number)
	news := r.text()
	if r.err == nil && st.State == 0 {
		r.fail(errColumns)
	}
	if r.err != nil {
		return driver.Standing{}, r.err
	}
	s.Settle(j.Ref, st)
	switch {
	case st.State == driver.Gone:
		s.book.forget(j.ID)
	case j.Resume != nil && st.State == driver.Holding:
		s.Drop(j.Resume.ID)
		s.book.forget(j.Resume.ID)
	}
	s.tell(news)
	return st, nil
}

// Leave does one Leave.
func (s *steps) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	l = s.book.leaving(l)
	c := call{"leave", []any{s.self(l.ID), l.ID[:], keysOf(l.Keys), rememberFor(l)}}
	unsure := new(atomic.Bool)
	return sure(ctx, s, c, unsure, func(rows []*row) (driver.Standing, error) {
		r := rows[0]
		st := driver.Standing{State: driver.State(r.number()), Number: r.number(), More: r.yes()}
		if st.State == driver.Gone {
			if unsure.Load() {
				return st, errMissed
			}
			st.Number = l.Number
		}
		st.Holder, st.ExpiresIn = string(r.bytes()), micros(r.number())
		s.book.forget(l.ID)
		s.tell(r.text())
		return st, nil
	})
}

// End does one End.
func (s *steps) End(ctx context.Context, key string, numbers []int64, force bool) ([]int64, error) {
	self := s.listener()
	c := call{"end", []any{self, []byte(key), numbers, force}}
	unsure := new(atomic.Bool)
	return sure(ctx, s, c, unsure, func(rows []*row) ([]int64, error) {
		var found []int64
		for _, text := range strings.Fields(rows[0].text()) {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, err
			}
			found = append(found, n)
		}
		s.tell(rows[0].text())
		if unsure.Load() && len(found) < len(numbers) {
			return found, errMissed
		}
		return found, nil
	})
}

// self is the inbox whose news this client wants back with the answer.
func (s *steps) self(id driver.ID) []byte {
	inbox := id.Inbox()
	if !s.Hears(inbox) {
		return []byte{}
	}
	return inbox[:]
}

// listener is the inbox this client listens for.
func (s *steps) listener() []byte {
	inbox := s.book.inbox()
	if !s.Hears(inbox) {
		return []byte{}
	}
	return inbox[:]
}

// notify sends a text on a channel, through the pool.
func (s *steps) notify(ctx context.Context, channel, text string) error {
	_, err := sqllease.Call(ctx, s.Client, false, func(ctx context.Context) ([]*row, error) {
		return s.access.query(ctx, "SELECT pg_notify('"+channel+"', '"+text+"')")
	})
	return err
}

// tell passes on the news a step of this client's own has brought its claims.
func (s *steps) tell(news string) {
	for _, text := range strings.Fields(news) {
		b, err := hex.DecodeString(text)
		if err != nil || len(b) != 25 {
			continue
		}
		id := driver.ID(b[1:17])
		if key, ok := s.book.key(id); ok {
			s.pass(b[0], id, key, int64(binary.BigEndian.Uint64(b[17:]))) //nolint:gosec // a number of the store's
		}
	}
}

// pass tells what happened to one claim.
func (s *steps) pass(what byte, id driver.ID, key string, number int64) {
	n := sqllease.News{Key: key, ID: id, Number: number}
	switch what {
	case 'G':
		n.Kind = driver.Granted
	case 'T':
		n.Kind = driver.Turn
	case 'E':
		n.Kind = driver.Ended
	case 'R':
		n.Kind, n.Revoked = driver.Ended, true
	default:
		return
	}
	s.Tell(n)
}

// standing reads what a step answers of a claim. named is the number the call named.
func (r *row) standing(named int64) driver.Standing {
	st := driver.Standing{
		State: driver.State(r.number()), Number: r.number(), Life: micros(r.number()), LookAgain: micros(r.number()), More: r.yes(),
		Behind: r.yes(), Revoked: r.yes(), Ahead: int(r.number()), Holder: string(r.bytes()), ExpiresIn: micros(r.number()),
	}
	switch st.State {
	case driver.Gone:
		st.Number = named
	case driver.Refused:
		st.Number = 0
	case driver.Holding, driver.Waiting, driver.Left, 0:
	default:
		r.fail(errColumns)
	}
	return st
}

func keysOf(keys []string) [][]byte {
	all := make([][]byte, len(keys))
	for i, key := range keys {
		all[i] = []byte(key)
	}
	return all
}

// lives are hold, grace and wait in microseconds.
func lives(l driver.Life) []int64 { return []int64{ceil(l.Hold), ceil(l.Grace), ceil(l.Wait)} }

func rememberFor(l driver.Leaving) int64 {
	if !l.Unanswered {
		return 0
	}
	return ceil(l.Remember)
}

// ceil rounds up, so that nothing lives shorter than it was told.
func ceil(d time.Duration) int64 { return int64((d + time.Microsecond - 1) / time.Microsecond) }

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
