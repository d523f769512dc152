package hasp_test

import (
	"testing"
	"time"

	"github.com/hasp-dev/hasp"
)

// Trust ends a margin before the life does, counted from the sending (G2).
func TestTrustEndsBeforeTheLifeThatTheStoreAnswered(t *testing.T) {
	t.Parallel()
	sent := time.Now()
	for _, c := range []struct {
		life, trust time.Duration
	}{
		{100 * time.Millisecond, 95 * time.Millisecond},
		{300 * time.Millisecond, 295 * time.Millisecond},
		{500 * time.Millisecond, 495 * time.Millisecond},
		{501 * time.Millisecond, 495990 * time.Microsecond},
		{time.Second, 990 * time.Millisecond},
		{10 * time.Second, 9900 * time.Millisecond},
		{30 * 24 * time.Hour, 30*24*time.Hour - 432*time.Minute},
		{5 * time.Millisecond, 0},
		{time.Millisecond, -4 * time.Millisecond}, // never trusted
	} {
		if got := hasp.TrustedUntil(sent, c.life).Sub(sent); got != c.trust {
			t.Errorf("a life of %s is trusted for %s, not %s", c.life, got, c.trust)
		}
	}
}

// Two of three renewals may fail, and what is left is enough for another.
func TestRenewalsComeThreeTimesInALife(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{100 * time.Millisecond, time.Second, 6 * time.Second, 10 * time.Second, 720 * time.Hour} {
		third := hasp.Interval(life)
		if 3*third > life || 3*third < life-2 {
			t.Errorf("a life of %s is renewed every %s", life, third)
		}
		sent := time.Now()
		if !hasp.TrustedUntil(sent, life).After(sent.Add(2 * third)) {
			t.Errorf("a life of %s: the third renewal comes after the trust", life)
		}
	}
	if hasp.Interval(6*time.Second) > 2*time.Second {
		t.Error("a waiting claim looks less often than every 2 s (G5)")
	}
}

// After a failure several tries fit into what is left, without haste on a long life.
func TestRetriesFitIntoTheTrustThatIsLeft(t *testing.T) {
	t.Parallel()
	for _, life := range []time.Duration{100 * time.Millisecond, 300 * time.Millisecond, time.Second, 10 * time.Second, time.Minute, 720 * time.Hour} {
		var sum, last time.Duration
		tries := 0
		for ; sum < hasp.Interval(life); tries++ {
			pause := hasp.RetryPause(life, tries)
			switch {
			case pause < last:
				t.Errorf("life %s: pause %d is %s, shorter than the one before", life, tries, pause)
			case pause < 5*time.Millisecond:
				t.Errorf("life %s: pause %d is %s", life, tries, pause)
			case pause > hasp.Interval(life)/2:
				t.Errorf("life %s: pause %d is %s, more than half of what is between renewals", life, tries, pause)
			}
			last = pause
			sum += pause
		}
		if tries < 3 {
			t.Errorf("life %s: only %d tries in a third of it", life, tries)
		}
	}
	if got := hasp.RetryPause(time.Hour, 1<<40); got != 250*time.Millisecond<<10 {
		t.Errorf("after very many failures the pause is %s", got)
	}
}

// A store remembers an id for as long as a late Join of it could live (P11).
func TestIdsAreRememberedAsLongAsALateJoinCouldLive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ ttl, grace, want time.Duration }{
		{100 * time.Millisecond, 0, 10 * time.Second},
		{5 * time.Second, 0, 10 * time.Second},
		{5 * time.Second, time.Second, 12 * time.Second},
		{10 * time.Second, 0, 20 * time.Second},
		{time.Minute, time.Minute, 4 * time.Minute},
	} {
		if got := hasp.RememberFor(c.ttl, c.grace); got != c.want {
			t.Errorf("TTL %s, Grace %s: remembered for %s, not %s", c.ttl, c.grace, got, c.want)
		}
	}
}
