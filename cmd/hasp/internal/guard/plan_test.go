package guard_test

import (
	"testing"
	"time"

	"github.com/hasp-dev/hasp/cmd/hasp/internal/guard"
)

const second = guard.Instant(time.Second)

func TestPlanDoesNothingBeforeItsTimes(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	wantPhase(t, p, 8*second-1, "running", false)
	wantNext(t, p, 8*second)
}

func TestPlanSendsTermOnceThenKillsOnce(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	wantPhase(t, p, 8*second, "ending", true)
	wantPhase(t, p, 9*second, "ending", false)
	wantNext(t, p, 10*second)
	wantPhase(t, p, 10*second, "killing", true)
	wantPhase(t, p, 11*second, "killing", false)
}

func TestPlanKillsAtOnceWhenBothTimesArePast(t *testing.T) {
	t.Parallel()
	wantPhase(t, guard.NewPlan(8*second, 10*second), 12*second, "killing", true)
}

func TestPlanTrustMovesBothTimes(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	p.Trust(18*second, 20*second)
	wantPhase(t, p, 12*second, "running", false)
	wantNext(t, p, 18*second)
}

func TestPlanTrustAfterTermChangesNothing(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	wantPhase(t, p, 8*second, "ending", true)
	p.Trust(18*second, 20*second)
	wantPhase(t, p, 10*second, "killing", true)
}

func TestPlanLossSendsTermOnceAndNeverKillsLater(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	if !p.Lost(3 * second) {
		t.Error("the first loss does not send TERM")
	}
	if p.Lost(30 * second) {
		t.Error("the second loss sends TERM again")
	}
	wantPhase(t, p, 2*second, "ending", false)
	wantPhase(t, p, 3*second, "killing", true)
}

func TestPlanGivesWhatIsLeftASecond(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	if !p.Ended(5 * second) {
		t.Error("what is left gets no TERM")
	}
	wantPhase(t, p, 6*second-1, "ending", false)
	wantPhase(t, p, 6*second, "killing", true)
}

func TestPlanGivesWhatIsLeftNoTimeBeyondTheLease(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	wantPhase(t, p, 8*second, "ending", true)
	if p.Ended(19 * second / 2) {
		t.Error("TERM is sent a second time")
	}
	wantNext(t, p, 10*second)
}

func TestPlanHangupKillsAtOnce(t *testing.T) {
	t.Parallel()
	p := guard.NewPlan(8*second, 10*second)
	p.Hangup()
	wantPhase(t, p, 1, "killing", true)
}

func wantPhase(t *testing.T, p *guard.Plan, now guard.Instant, phase string, begun bool) {
	t.Helper()
	got, gotBegun := p.Due(now)
	if got.String() != phase || gotBegun != begun {
		t.Errorf("at %d: %s, begun %t; want %s, begun %t", now, got, gotBegun, phase, begun)
	}
}

func wantNext(t *testing.T, p *guard.Plan, want guard.Instant) {
	t.Helper()
	if got := p.Next(); got != want {
		t.Errorf("next look at %d, want %d", got, want)
	}
}
