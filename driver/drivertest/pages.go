package drivertest

import (
	"slices"
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

// pages: Lines of a prefix.
func pages() []Case {
	return []Case{
		{Name: "a prefix lists its lines once each, in byte order", run: pagesInOrder},
		{Name: "pages of every size give the same lines", run: pageSizes},
		{Name: "a prefix is taken byte for byte", run: prefixIsLiteral},
		{Name: "keys without a claim are not listed", run: freeAreNotListed},
		{Name: "a page shows holders and waiters as the line does", needs: line, run: pageShowsLines},
		{Name: "a page begins behind After", run: pageAfter},
	}
}

// listed are all lines of a prefix, page by page.
func (b *bench) pages(prefix string, limit int) []driver.Line {
	var all []driver.Line
	q := driver.Query{Prefix: prefix, Limit: limit}
	for range 1000 {
		if b.failed() {
			return nil
		}
		p, err := b.first.d.Lines(b.ctx, q)
		if err != nil {
			b.fail("Lines of prefix %q after %q: %w", prefix, q.After, err)
			return nil
		}
		b.check(limit == 0 || len(p.Lines) <= limit, "a page of at most %d has %d lines", limit, len(p.Lines))
		b.check(len(p.Lines) <= 1000, "a page has %d lines", len(p.Lines))
		all = append(all, p.Lines...)
		if p.Next == "" {
			return all
		}
		b.check(p.Next > q.After, "Next %q does not go on from %q", p.Next, q.After)
		q.After = p.Next
	}
	b.fail("1000 pages of prefix %q and no end", prefix)
	return nil
}

// shown checks which keys are listed, beginning with what all keys of the case do.
func (b *bench) shown(lines []driver.Line, want ...string) {
	got := make([]string, len(lines))
	for i, l := range lines {
		got[i] = strings.TrimPrefix(l.Key, b.space)
	}
	b.check(slices.Equal(got, want), "listed are %q, want %q", got, want)
}

// holds takes keys with these endings.
func (b *bench) holds(ends ...string) {
	c := b.client()
	for _, e := range ends {
		c.claim(b.space + e).try(holding)
	}
}

func pagesInOrder(b *bench) error {
	b.holds("b", "a:2", "é", "a", "Z", "a ", "a:10", "~", "z", "B")
	b.shown(b.pages(b.space, 0), "B", "Z", "a", "a ", "a:10", "a:2", "b", "z", "~", "é")
	b.shown(b.pages(b.space+"a:", 0), "a:10", "a:2")
	b.shown(b.pages(b.space+"nobody", 0))
	return b.result()
}

func pageSizes(b *bench) error {
	ends := []string{"a", "b", "c", "d", "e", "f", "g"}
	b.holds(ends...)
	for _, limit := range []int{1, 2, 3, 7, 8, 1000} {
		b.shown(b.pages(b.space, limit), ends...)
	}
	return b.result()
}

// None of these may mean anything in a pattern.
func prefixIsLiteral(b *bench) error {
	for _, p := range []string{"%", "_", "*", "?", "[a-z]", `\`, `\%`, "'", "{x}", "^", "A"} {
		b.holds(p + "1")
	}
	b.holds("xx1", "a1")
	for _, p := range []string{"%", "_", "*", "?", "[a-z]", `\%`, "'", "{x}", "^", "A", "a"} {
		b.shown(b.pages(b.space+p, 0), p+"1")
	}
	b.shown(b.pages(b.space+`\`, 0), `\%1`, `\1`)
	return b.result()
}

func freeAreNotListed(b *bench) error {
	c := b.client()
	x, y, dead := c.claim(b.space+"x"), c.claim(b.space+"y"), c.claim(b.space+"dead")
	x.try(holding)
	y.try(holding)
	dead.lives(2, 2).try(holding)
	y.leave(left)
	b.sleep(3)
	var keys []string
	for _, l := range b.pages(b.space, 2) {
		if len(l.Holders)+l.Waiting > 0 {
			keys = append(keys, l.Key)
		}
		b.check(l.Key == x.Keys[0] || len(l.Holders)+len(l.Waiters)+l.Waiting == 0, "the free key %q is listed as %+v", l.Key, l)
	}
	b.check(slices.Equal(keys, x.Keys), "held are %q, want %q", keys, x.Keys)
	return b.result()
}

func pageShowsLines(b *bench) error {
	h, w, v := b.trio(b.space + "k")
	h.join(holding)
	w.join(waiting)
	v.join(waiting)
	lines := b.pages(b.space, 10)
	b.shown(lines, "k")
	if len(lines) == 1 {
		b.listed(lines[0].Holders, "holders", h.Keys[0], []*claim{h})
		b.listed(lines[0].Waiters, "waiters", h.Keys[0], []*claim{w, v})
		b.check(lines[0].Waiting == 2, "Waiting is %d, want 2", lines[0].Waiting)
	}
	return b.result()
}

func pageAfter(b *bench) error {
	b.holds("a", "b", "c")
	for after, want := range map[string]int{"": 3, "a": 2, "aa": 2, "b": 1, "c": 0, "zz": 0} {
		p, err := b.first.d.Lines(b.ctx, driver.Query{Prefix: b.space, After: b.space + after})
		b.check(err == nil && len(p.Lines) == want, "behind %q are %d lines, %v, want %d", after, len(p.Lines), err, want)
	}
	return b.result()
}
