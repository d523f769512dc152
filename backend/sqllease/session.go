package sqllease

import (
	"bytes"
	"context"
	"crypto/rand"
	"database/sql"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

const (
	// sessionLife is how long a session without claims is safe from being swept.
	sessionLife = time.Hour
	// maxSuspects is how many clients in the way of a claim are probed at once.
	maxSuspects = 16
	// maxProbedLines is how many lines are looked at for dead processes at once.
	maxProbedLines = 16
	// maxSessions is how many sessions one sweep looks at.
	maxSessions = 64
)

// session is this client's row and proof of life.
type session struct {
	swept  sync.Once // where nothing is proven: what dead clients left was looked for
	mu     sync.Mutex
	proven bool             // guarded by mu; the proof was asked for
	proof  Proof            // guarded by mu
	opened map[[6]byte]bool // guarded by mu; inboxes with a row
}

// openSession makes sure that this client's life can be seen before it has a claim.
func (d *Driver) openSession(ctx context.Context) error {
	if d.dialect.Witness == nil {
		d.session.swept.Do(d.lookAtSessions)
		return nil
	}
	if d.session.ready() {
		return nil
	}
	first, err := detached(ctx, d.Client, func(ctx context.Context, trouble *atomic.Pointer[error]) (bool, error) {
		first := false
		err := d.retry(ctx, trouble, func() error {
			release, err := d.place(ctx, false)
			if err != nil {
				return err
			}
			defer release()
			first, err = d.session.prove(ctx, d)
			return err
		})
		return first, err
	})
	if err == nil && first {
		d.lookAtSessions()
	}
	return err
}

func (s *session) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proven
}

func (s *session) prove(ctx context.Context, d *Driver) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proven {
		return false, nil
	}
	if err := d.ready.ensure(ctx, d.setup); err != nil {
		return false, err
	}
	proof, err := d.dialect.Witness.Open(ctx, d.db)
	if err != nil {
		return false, err
	}
	s.proof, s.proven = proof, true
	return true, nil
}

func (s *session) own() Proof {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proof
}

func (s *session) note(inbox [6]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened[inbox] = true
}

// keepSession writes the session's row where it is missing or would soon be swept.
func (s *step) keepSession(id driver.ID) error {
	inbox := id.Inbox()
	for _, l := range s.lines {
		if l.session.Valid && l.session.Int64 > s.now+micros(sessionLife/2) {
			return nil
		}
	}
	proof := s.d.session.own()
	s.d.session.note(inbox)
	return s.exec(stOpenSession, inbox[:], proof.Boot, proof.File, s.now+micros(sessionLife))
}

// endSession removes this client's row and proof, unless claims of it are left.
func (d *Driver) endSession(ctx context.Context) error {
	d.session.mu.Lock()
	defer d.session.mu.Unlock()
	if d.setup.Err != nil {
		return nil
	}
	left := false
	var failed error
	for inbox := range d.session.opened {
		dropped, err := d.dropAtClose(ctx, inbox)
		left = left || !dropped
		if failed == nil {
			failed = err
		}
	}
	if d.dialect.Witness != nil && d.session.proven {
		d.dialect.Witness.Close(left)
	}
	if failed != nil {
		return d.explain(failed, d.fault(failed))
	}
	return nil
}

func (d *Driver) dropAtClose(ctx context.Context, inbox [6]byte) (bool, error) {
	dropped := false
	done := make(chan error, 1)
	go func() {
		done <- d.retry(ctx, new(atomic.Pointer[error]), func() error {
			var err error
			dropped, err = attempt(ctx, d.Client, true, func(ctx context.Context) (bool, error) {
				return once(ctx, d, newLocks(nil), func(t *tx) (bool, error) { return t.dropSession(inbox) })
			})
			return err
		})
	}()
	select {
	case err := <-done:
		return dropped && err == nil, err
	case <-ctx.Done():
		return false, d.cut(ctx, nil)
	}
}

// dropSession deletes a session's row unless a claim or remembered ID of it is there.
func (t *tx) dropSession(inbox [6]byte) (bool, error) {
	low, high := idRange(inbox)
	n, err := t.affect(stDropSession, inbox[:], low, high)
	return n > 0, err
}

// idRange is the range of the IDs of an inbox.
func idRange(inbox [6]byte) (low, high []byte) {
	l, h := driver.ID{}, driver.ID{}
	copy(l[:], inbox[:])
	copy(h[:], inbox[:])
	for i := len(inbox); i < len(h); i++ {
		h[i] = 0xff
	}
	return l[:], h[:]
}

// suspect is a client in the way, or one a sweep looks at.
type suspect struct {
	inbox [6]byte
	proof Proof
	flag  bool // in the way: it waits; in a sweep: it may be swept
}

// buryProcesses removes from the front of some lines the claims of clients of this
// machine whose processes have ended, and says whether there were any. It answers as
// well how many wait before the claims of this client, where they are the fewest.
func (d *Driver) buryProcesses(ctx context.Context, keys []string) (buried bool, before int) {
	all := d.inTheWay(ctx, keys)
	for _, s := range all.others {
		if d.dialect.Witness.Dead(s.proof) && d.endProcess(ctx, s) == nil {
			buried = true
		}
	}
	return buried, all.before
}

// worthAnother says whether a claim that was told to wait or refused should ask once
// more: where dead processes were in its way. Another client may have buried them a
// moment ago; one that waits is told so, one that was refused is not, and asks again
// unless somebody who lives is seen in the way.
func (d *Driver) worthAnother(ctx context.Context, keys []string, state driver.State) bool {
	was := d.inTheWay(ctx, keys).others
	buried, _ := d.buryProcesses(ctx, keys)
	if buried || state == driver.Waiting {
		return buried
	}
	is := d.inTheWay(ctx, keys).others
	return len(is) == 0 || slices.ContainsFunc(was, func(s suspect) bool { return !slices.Contains(is, s) })
}

// obstacles are the clients of this machine at the front of some lines, and how many
// claims wait before those of this client, where they are the fewest.
type obstacles struct {
	others []suspect
	before int
}

func (d *Driver) inTheWay(ctx context.Context, keys []string) obstacles {
	own := d.session.own()
	if own.Boot == "" {
		return obstacles{}
	}
	// What was found is handed over whole: a read goes on after its caller has left.
	all, err := read(ctx, d, func(t *tx) (obstacles, error) {
		all := obstacles{before: maxSuspects}
		for _, key := range keys {
			more, err := t.suspects(stSuspects, []byte(key), own.Boot, maxSuspects)
			if err != nil {
				return obstacles{}, err
			}
			more, waiting := frontOf(more, own.File)
			all.others, all.before = append(all.others, more...), min(all.before, waiting)
		}
		return all, nil
	})
	if err != nil {
		return obstacles{} // it is only a short cut: the claims expire
	}
	seen := make(map[string]bool)
	all.others = slices.DeleteFunc(all.others, func(s suspect) bool {
		again := s.proof.File == own.File || seen[s.proof.File]
		seen[s.proof.File] = true
		return again
	})
	return all
}

// frontOf are the first claims of a line without those behind the last one of this
// client, and how many of them wait.
func frontOf(line []suspect, own string) ([]suspect, int) {
	found := false
	for i := len(line) - 1; i >= 0 && !found; i-- {
		if found = line[i].proof.File == own; found {
			line = line[:i]
		}
	}
	if !found && len(line) == maxSuspects {
		return line, maxSuspects
	}
	waiting := 0
	for _, s := range line {
		if s.flag && s.proof.File != own {
			waiting++
		}
	}
	return line, waiting
}

func (t *tx) suspects(name string, args ...any) ([]suspect, error) {
	rows, err := t.query(name, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []suspect
	for rows.Next() {
		var s suspect
		var inbox sql.RawBytes
		if err := rows.Scan(&inbox, &s.proof.Boot, &s.proof.File, &s.flag); err != nil {
			return nil, err
		}
		copy(s.inbox[:], inbox)
		all = append(all, s)
	}
	return all, rows.Err()
}

// endProcess removes the claims that died with a process, a bounded number to a step,
// then its session and its proof.
func (d *Driver) endProcess(ctx context.Context, s suspect) error {
	for {
		more, err := transact(ctx, d, nil, func(t *tx) (bool, error) {
			st := newStep(t)
			n, err := st.buryOwned(s.inbox)
			if err != nil || n == maxRemovals {
				return err == nil, err
			}
			dropped, err := t.dropSession(s.inbox)
			if dropped {
				t.after = append(t.after, func() { d.dialect.Witness.Discard(s.proof) })
			}
			return false, err
		})
		if err != nil || !more {
			return err
		}
	}
}

func (s *step) buryOwned(inbox [6]byte) (int, error) {
	low, high := idRange(inbox)
	rows, err := s.claims(stOwned, low, high, maxRemovals)
	if err != nil {
		return 0, err
	}
	gone := make(map[driver.ID]bool)
	for _, c := range rows {
		if gone[c.id] || !c.diesWithProcess() {
			continue
		}
		gone[c.id] = true
		if err := s.remove(c); err != nil {
			return 0, err
		}
	}
	if err := s.handOver(); err != nil {
		return 0, err
	}
	return len(rows), s.finish()
}

// lookAtSessions sweeps sessions, once and beside the caller.
func (d *Driver) lookAtSessions() {
	if d.enter() != nil {
		return
	}
	go func() {
		defer d.calls.Done()
		d.sweepSessions(d.base)
	}()
}

// sweepSessions looks at some sessions, from a random one on, and removes what dead
// clients left: at once where they are known to be dead, else after their time.
func (d *Driver) sweepSessions(ctx context.Context) {
	var from [6]byte
	_, _ = rand.Read(from[:]) // never fails
	suspects, err := read(ctx, d, func(t *tx) ([]suspect, error) { return t.someSessions(from) })
	if err != nil {
		return // the next client sweeps
	}
	own := d.session.own()
	for _, s := range suspects {
		switch {
		case s.proof.File == own.File && s.proof.Boot == own.Boot && s.proof.File != "":
		case s.proof.Boot == own.Boot && own.Boot != "" && d.dialect.Witness.Dead(s.proof):
			_ = d.endProcess(ctx, s) // the next client sweeps
		case s.flag:
			d.dropExpired(ctx, s)
		}
	}
	if d.dialect.Witness != nil {
		d.discardStrays(ctx)
	}
}

// someSessions answers the sessions from an inbox on and, behind the last, from the first
// on: each has the same chance, and where there are few all of them are seen.
func (t *tx) someSessions(from [6]byte) ([]suspect, error) {
	some, err := t.suspects(stSessions, from[:], maxSessions)
	if err != nil || len(some) == maxSessions {
		return some, err
	}
	var first [6]byte
	more, err := t.suspects(stSessions, first[:], maxSessions-len(some))
	for _, s := range more {
		if bytes.Compare(s.inbox[:], from[:]) >= 0 {
			break
		}
		some = append(some, s)
	}
	return some, err
}

func (d *Driver) dropExpired(ctx context.Context, s suspect) {
	dropped, err := transact(ctx, d, nil, func(t *tx) (bool, error) { return t.dropSession(s.inbox) })
	if err == nil && dropped && d.dialect.Witness != nil && s.proof.File != "" {
		d.dialect.Witness.Discard(s.proof)
	}
}

// discardStrays removes proofs that no session names.
func (d *Driver) discardStrays(ctx context.Context) {
	for _, p := range d.dialect.Witness.Strays(maxSessions) {
		n, err := read(ctx, d, func(t *tx) (int64, error) { return t.count(stNamed, p.File) })
		if err != nil {
			return
		}
		if n == 0 {
			d.dialect.Witness.Discard(p)
		}
	}
}
