package drivertest

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"strings"
	"time"
)

// listing: Lines of one key.
func listing() []Case {
	return []Case{
		{Name: "an empty line is listed without holders", run: emptyLineIsListed},
		{Name: "a holder is listed with all a reader may know", run: holderIsListed},
		{Name: "waiters are listed in order", needs: line | shared, run: waitersAreListed},
		{Name: "the dead are not listed", needs: line, run: deadAreNotListed},
		{Name: "listing changes nothing", needs: line, run: listingChangesNothing},
		{Name: "the first hundred waiters are listed and all are counted", needs: line, run: hundredWaiters},
		{Name: "a listing shows no id", needs: line, run: listingShowsNoID},
		{Name: "a claim of several keys is listed in each", needs: together, run: severalAreListed},
	}
}

func emptyLineIsListed(b *bench) error {
	k := b.key()
	b.free(k)
	x := b.client().claim(k)
	x.try(holding)
	x.leave(left)
	b.free(k)
	return b.result()
}

func holderIsListed(b *bench) error {
	x := b.client().claim(b.key())
	x.Name, x.Index = "host-7:4711 \"näme\"", 3
	x.lives(20, 20).try(holding)
	b.sleep(2)
	b.heldBy(x.Keys[0], x)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.Name == x.Name, "name %q, want %q", e.Name, x.Name)
		b.check(e.Weight == 1 && e.Capacity == 1, "weighs %d of %d, want 1 of 1", e.Weight, e.Capacity)
		b.check(e.InLine >= b.ticks(2)-b.slack && e.InLine <= b.ticks(2)+b.slack, "in line for %v, want %v", e.InLine, b.ticks(2))
		b.check(e.ExpiresIn >= b.ticks(18)-b.slack && e.ExpiresIn <= b.ticks(18)+b.slack, "expires in %v, want %v", e.ExpiresIn, b.ticks(18))
		b.check(!e.Fixed && !e.Revoked, "listed as fixed or revoked: %+v", e)
	}
	x.renew(holding)
	for _, e := range b.line(x.Keys[0]).Holders {
		b.check(e.InLine >= b.ticks(2)-b.slack, "in line for %v after a renewal, want %v", e.InLine, b.ticks(2))
		b.check(e.ExpiresIn >= b.ticks(20)-b.slack, "expires in %v after a renewal, want %v", e.ExpiresIn, b.ticks(20))
	}
	return b.result()
}

func waitersAreListed(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	xs[0].weighs(5, 7).join(holding)
	xs[1].weighs(3, 7).lives(50, 30).join(waiting)
	xs[2].weighs(1, 6).join(waiting)
	xs[3].weighs(7, 7).join(waiting)
	l := b.line(k)
	b.waitedBy(k, xs[1:]...)
	b.check(l.Waiting == 3, "Waiting is %d, want 3", l.Waiting)
	for i, e := range l.Waiters {
		x := xs[i+1]
		b.check(e.Name == x.Name && e.Weight == x.Weight && e.Capacity == x.Capacity, "waiter %d is listed as %+v, want %+v", i, e, x.Claim)
	}
	if len(l.Waiters) > 0 {
		e := l.Waiters[0]
		b.check(e.ExpiresIn <= b.ticks(30)+b.slack, "a waiter expires in %v, want %v", e.ExpiresIn, b.ticks(30))
	}
	return b.result()
}

func deadAreNotListed(b *bench) error {
	k := b.key()
	xs := b.crowd(4, k)
	xs[0].lives(2, 2).join(holding)
	xs[1].lives(20, 2).join(waiting)
	xs[2].join(waiting)
	xs[3].lives(20, 2).join(waiting)
	b.sleep(3)
	l := b.line(k) // no step has passed them
	b.check(l.Waiting+len(l.Holders) == 1, "one lives, but listed are %d holders and %d waiting", len(l.Holders), l.Waiting)
	for _, e := range append(l.Holders, l.Waiters...) {
		b.check(e.Number == xs[2].Number && e.ExpiresIn > 0, "listed is %+v, want #%d", e, xs[2].Number)
	}
	return b.result()
}

func listingChangesNothing(b *bench) error {
	h, w := b.pair(b.key())
	mark := time.Now()
	h.lives(4, 4).join(holding)
	w.join(waiting)
	for n := 1; n <= 3; n++ {
		b.until(mark, n)
		b.heldBy(h.Keys[0], h)
		b.waitedBy(h.Keys[0], w)
	}
	b.until(mark, 5)
	b.line(h.Keys[0])
	w.renew(holding)
	h.renew(gone)
	return b.result()
}

func hundredWaiters(b *bench) error {
	k, c := b.key(), b.client()
	c.claim(k).join(holding)
	var xs []*claim
	for range 105 {
		x := c.claim(k)
		x.join(waiting)
		xs = append(xs, x)
	}
	l := b.line(k)
	b.check(l.Waiting == 105, "Waiting is %d, want 105", l.Waiting)
	b.waitedBy(k, xs[:100]...)
	return b.result()
}

func listingShowsNoID(b *bench) error {
	h, w := b.pair(b.key())
	h.join(holding)
	w.join(waiting)
	text := fmt.Sprintf("%#v", b.line(h.Keys[0]))
	for _, x := range []*claim{h, w} {
		id := x.ID[:]
		for _, form := range []string{string(id), hex.EncodeToString(id), base64.StdEncoding.EncodeToString(id), base64.RawURLEncoding.EncodeToString(id)} {
			b.check(!strings.Contains(strings.ToLower(text), strings.ToLower(form)), "the listing shows an ID")
		}
	}
	return b.result()
}

func severalAreListed(b *bench) error {
	ks := b.keys(3)
	x := b.client().claim(ks...)
	x.try(holding)
	for _, k := range ks {
		b.heldBy(k, x)
	}
	return b.result()
}
