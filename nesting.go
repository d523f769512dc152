package hasp

import (
	"context"
	"slices"
)

// carriedKey is the key of the leases a context carries.
type carriedKey struct{}

// carried is the innermost lease a context carries, and those around it.
type carried struct {
	lease *Lease
	outer *carried
}

func carriedBy(ctx context.Context) *carried {
	c, _ := ctx.Value(carriedKey{}).(*carried)
	return c
}

// FromContext answers the lease on key that ctx carries: inside Do, and below
// Lease.Context. The key is meant as it was locked, without prefix; of several leases
// on it the innermost counts.
func FromContext(ctx context.Context, key string) (*Lease, bool) {
	for c := carriedBy(ctx); c != nil; c = c.outer {
		if slices.Contains(c.lease.keys().given, key) {
			return c.lease, true
		}
	}
	return nil, false
}

// nested finds a live lease of ctx that w would wait for, and shares it or says no.
// It answers nothing where there is none.
func (c *Client) nested(ctx context.Context, w *want) (*Lease, error) {
	for held := carriedBy(ctx); held != nil; held = held.outer {
		l := held.lease
		if l.claim.e != c.e || l.Err() != nil || !overlap(l.claim.want.keys.full, w.keys.full) {
			continue
		}
		if !w.opts.Reentrant {
			return nil, invalidf("the context carries a lease on %q, and this lock would wait for it; "+
				"use the lease, pass another context, or set LockOptions.Reentrant", w.keys.first())
		}
		if !l.covers(w) {
			return nil, invalidf("the context carries a lease on %q that does not cover this lock, which would wait for it: "+
				"only the same keys or fewer, and the same kind or a read under a write, can share it", w.keys.first())
		}
		if inner, ok := l.share(w); ok {
			return inner, nil
		}
	}
	return nil, nil //nolint:nilnil // no lease and nothing wrong: the caller goes on
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(key string) bool { return slices.Contains(b, key) })
}

// covers says whether the lease is enough for w.
func (l *Lease) covers(w *want) bool {
	have := l.claim.want
	for _, key := range w.keys.full {
		if !slices.Contains(have.keys.full, key) {
			return false
		}
	}
	if have.kind == writeKind && w.kind == readKind {
		return true
	}
	return have.kind == w.kind && have.weight >= w.weight && have.capacity == w.capacity
}

// share makes a lease that ends with l at the latest, and whose release leaves l alone.
func (l *Lease) share(w *want) (*Lease, bool) {
	inner := &Lease{claim: l.claim, outer: l, asked: w}
	l.claim.mu.Lock()
	defer l.claim.mu.Unlock()
	if l.cause != nil {
		return nil, false
	}
	l.parts = append(l.parts, &part{nested: inner})
	return inner, true
}
