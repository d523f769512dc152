package sqllease_test

import (
	"bytes"
	"math"
	"strconv"
	"testing"

	"github.com/hasp-dev/hasp/backend/sqllease"
)

const writer = 1 << 30

func TestHoldersAdmitWhatFitsTheSmallestCapacity(t *testing.T) {
	t.Parallel()
	type claims = [][3]int64
	for name, c := range map[string]struct {
		holders          claims
		weight, capacity int64
		want             bool
	}{
		"a free mutex":                             {nil, 1, 1, true},
		"a held mutex":                             {claims{{1, 1, 9}}, 1, 1, false},
		"a reader beside readers":                  {claims{{1, writer, 9}, {1, writer, 9}}, 1, writer, true},
		"a writer behind a reader":                 {claims{{1, writer, 9}}, writer, writer, false},
		"a reader behind a writer":                 {claims{{writer, writer, 9}}, 1, writer, false},
		"the last permit":                          {claims{{3, 4, 9}}, 1, 4, true},
		"one permit too many":                      {claims{{3, 4, 9}}, 2, 4, false},
		"a holder that believes in less":           {claims{{3, 4, 9}}, 2, 6, false},
		"a claim that believes in less":            {claims{{3, 6, 9}}, 2, 4, false},
		"after the semaphore has grown":            {claims{{3, 6, 9}}, 3, 6, true},
		"weights whose sum is no integer":          {claims{{math.MaxInt64, math.MaxInt64, 9}}, math.MaxInt64, math.MaxInt64, false},
		"the smallest beside the largest capacity": {claims{{1, 1, 9}}, 1, math.MaxInt64, false},
	} {
		if got := sqllease.NewGroup(c.holders...).Admits(c.weight, c.capacity); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestClaimsAheadCouldBeGone(t *testing.T) {
	t.Parallel()
	mutexes := sqllease.NewGroup([3]int64{1, 1, 30}, [3]int64{1, 1, 10})
	if got := mutexes.Gone(1, 1); got != 30 {
		t.Errorf("behind mutexes at %d, want when the last is gone, 30", got)
	}
	permits := sqllease.NewGroup([3]int64{1, 2, 30}, [3]int64{1, 2, 10})
	if got := permits.Gone(1, 2); got != 10 {
		t.Errorf("for one permit at %d, want when the first is gone, 10", got)
	}
	if got := permits.Gone(2, 2); got != 30 {
		t.Errorf("for all permits at %d, want when the last is gone, 30", got)
	}
	both := permits.And(sqllease.NewGroup([3]int64{1, 2, 5}))
	if got := both.Gone(1, 2); got != 5 {
		t.Errorf("with one more at %d, want 5", got)
	}
}

func TestALineIsRememberedForTwiceTheTTLAtLeastTenSeconds(t *testing.T) {
	t.Parallel()
	for hold, want := range map[int64]int64{0: 10e6, 1e6: 10e6, 5e6: 10e6, 6e6: 12e6, 3600e6: 7200e6} {
		if got := sqllease.Keep(hold); got != want {
			t.Errorf("keep(%d) is %d, want %d", hold, got, want)
		}
	}
}

func TestSuccessorIsBehindEveryKeyWithThePrefix(t *testing.T) {
	t.Parallel()
	for prefix, want := range map[string][]byte{
		"a": []byte("b"), "a\xff": []byte("b"), "": {0xff, 0xff}, "\xff": {0xff, 0xff}, "aé": {'a', 0xc3, 0xaa},
	} {
		if got := sqllease.Successor(prefix); !bytes.Equal(got, want) {
			t.Errorf("after %q comes %q, want %q", prefix, got, want)
		}
	}
}

func TestAPageOfSQLFallsIntoItsStatements(t *testing.T) {
	t.Parallel()
	page := "-- head\n-- name: one\nSELECT $1,\n  $2; \n\n-- words about two\n-- name: two\nDELETE FROM x;\n"
	got := sqllease.Parse(page, func(n int) string { return ":" + strconv.Itoa(n) })
	if len(got) != 2 || got["one"] != "SELECT :1, :2" || got["two"] != "DELETE FROM x" {
		t.Errorf("%q", got)
	}
	if got := sqllease.Split("-- c\nCREATE a (\n  b; -- not here\n);\nCREATE c;\n"); len(got) != 2 {
		t.Errorf("%d statements: %q", len(got), got)
	}
}
