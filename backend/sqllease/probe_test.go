package sqllease_test

import (
	"testing"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

func TestOnlyClaimsBeforeOnesOwnAreProbed(t *testing.T) {
	t.Parallel()
	full := "abcdefghijklmnpq" // as many as are looked at
	for name, c := range map[string]struct {
		line   string // one letter for each client; a capital waits
		probed string
		before int
	}{
		"alone":                           {"o", "", 0},
		"first in line":                   {"aO", "a", 0},
		"third in line":                   {"aBCO", "aBC", 2},
		"others behind do not matter":     {"aBOCD", "aB", 1},
		"own claims in between":           {"aoBOC", "aoB", 1},
		"not in the line":                 {"aBC", "aBC", 2},
		"too far behind to see one's own": {full, full, 16},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probed, before := sqllease.FrontOf(c.line, 'o')
			if probed != c.probed || before != c.before {
				t.Errorf("of %s: %q and %d, want %q and %d", c.line, probed, before, c.probed, c.before)
			}
		})
	}
}
