package drivertest

import (
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

// keys: every key is kept byte for byte.
func keys() []Case {
	return []Case{
		{Name: "keys that look alike are different", strict: true, run: lookalikes},
		{Name: "keys with signs that mean something elsewhere work", run: signsInKeys},
		{Name: "keys of every length up to 512 bytes work and differ in the last byte", run: longKeys},
		{Name: "waiters are told on keys of every kind", needs: line | signaler, run: signalsForAllKeys},
		{Name: "a name is kept as it is", run: namesAreKept},
	}
}

// alike are endings of different keys that some store or language takes for equal.
var alike = []string{
	"Job-A", "job-a", "JOB-A", "job-a ", " job-a", "job-a  ", "job-a\t", "job-a\n", "jób-a", "jo\u0301b-a", "job‐a",
	"ß", "ss", "ẞ", "i", "ı", "İ", "ﬁ", "fi", "\u00c5", "\u212b", "A\u030a", "0", "00", "0.0", "641",
}

// odd are endings that mean something to some store, shell or format.
var odd = []string{
	"a:b", "a:b:", ":a", "{x}", "}x{", "{}", "{}x", "{{x}}", "{x", "x}", "%", "%s", "%25", "_", "*", "?", "[a]", `\`, `\\`, `\0`,
	"'", `"`, "`", "''", ";--", "$1", "?1", "#", "//", "../..", "a b", "line\nbreak", "tab\t", "\x01", "\x7f", "\u00a0", "\ufeff",
	"ключ", "锁", "🔒", "👩‍👩‍👧", "\u202e", "null", "NULL", "nil", "-1", "1e3",
}

// own adds to each ending what this case's keys begin with.
func (b *bench) own(ends []string) []string {
	ks := make([]string, len(ends))
	for i, e := range ends {
		ks[i] = b.space + e
	}
	return ks
}

// distinct checks that a claim of each key holds, that each key is then held by its
// own claim, and that a release frees that one alone.
func (b *bench) distinct(ks []string) error {
	c, other := b.client(), b.client()
	xs := make([]*claim, len(ks))
	for i, k := range ks {
		xs[i] = c.claim(k)
		xs[i].try(holding)
	}
	for i, k := range ks {
		b.heldBy(k, xs[i])
		other.claim(k).try(refused)
	}
	for i, k := range ks {
		xs[i].renew(holding)
		xs[i].leave(left)
		b.free(k)
		if i+1 < len(ks) {
			b.heldBy(ks[i+1], xs[i+1])
		}
	}
	return b.result()
}

func lookalikes(b *bench) error { return b.distinct(b.own(alike)) }

func signsInKeys(b *bench) error { return b.distinct(b.own(odd)) }

func longKeys(b *bench) error {
	var ks []string
	for _, n := range []int{63, 64, 65, 128, 191, 192, 193, 255, 256, 257, 511, 512} {
		long := b.space + strings.Repeat("k", n-len(b.space))
		ks = append(ks, long, long[:n-1]+"l")
	}
	wide := b.space + strings.Repeat("🔒", (512-len(b.space))/4)
	ks = append(ks, wide, wide[:len(wide)-4]+"🔓")
	return b.distinct(ks)
}

func signalsForAllKeys(b *bench) error {
	h, w := b.client(), b.client().listens()
	ends := append([]string{strings.Repeat("long ", 90)}, odd...)
	var hs, ws []*claim
	for _, k := range b.own(ends) {
		x, y := h.claim(k), w.claim(k)
		x.join(holding)
		y.join(waiting)
		hs, ws = append(hs, x), append(ws, y)
	}
	for _, x := range hs {
		x.leave(left)
	}
	for _, y := range ws {
		y.hears(driver.Granted)
	}
	return b.result()
}

func namesAreKept(b *bench) error {
	for _, name := range []string{"", "a", "host:1", "хост 🔒", `"quoted" \ 'name'`, "%s", strings.Repeat("n", 128), strings.Repeat("é", 64)} {
		h, x := b.pair(b.key())
		h.Name = name
		h.try(holding)
		s := x.try(refused)
		b.check(s.Holder == name, "Holder is %q, want %q", s.Holder, name)
		for _, e := range b.line(h.Keys[0]).Holders {
			b.check(e.Name == name, "listed as %q, want %q", e.Name, name)
		}
	}
	return b.result()
}
