package sqllease

import (
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

// Group is a group of claims for tests of the arithmetic.
type Group = held

// NewGroup sums up claims of (weight, capacity, expiry).
func NewGroup(claims ...[3]int64) Group {
	var g held
	for _, c := range claims {
		g = g.with(claim{weight: c[0], capacity: c[1], expiresAt: c[2]})
	}
	return g
}

func (h held) Admits(weight, capacity int64) bool { return h.admits(weight, capacity) }

func (h held) Gone(weight, capacity int64) int64 { return h.gone(weight, capacity) }

func (h held) And(o Group) Group { return h.and(o) }

// Keep is keep.
func Keep(hold int64) int64 { return keep(hold) }

// Parse is parse.
func Parse(page string, marker func(int) string) map[string]string { return parse(page, marker) }

// Split is split.
func Split(text string) []string { return split(text) }

// CheckJoin is checkJoin.
func CheckJoin(j driver.Join) error { return checkJoin(j, 0) }

// FrontOf is frontOf for a line of clients with one letter each; a capital waits.
func FrontOf(clients string, own byte) (string, int) {
	var line []suspect
	for _, c := range []byte(clients) {
		line = append(line, suspect{proof: Proof{File: strings.ToLower(string(c))}, flag: c < 'a'})
	}
	rest, before := frontOf(line, string(own))
	return clients[:len(rest)], before
}
