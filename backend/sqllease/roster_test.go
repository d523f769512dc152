package sqllease_test

import (
	"testing"
	"time"

	"github.com/hasp-dev/hasp/backend/sqllease"
	"github.com/hasp-dev/hasp/driver"
)

const ttl = 3 * time.Second

// item is a renewal of the claim with that number by which it is known here.
func item(n byte) driver.Renewal {
	return driver.Renewal{
		Ref:  driver.Ref{ID: driver.ID{0: 'c', 15: n}, Number: int64(n), Keys: []string{string(rune(n))}},
		Mode: driver.Extend, Life: driver.Life{Hold: ttl},
	}
}

func items(n int) []driver.Renewal {
	all := make([]driver.Renewal, n)
	for i := range all {
		all[i] = item(byte(i + 1))
	}
	return all
}

func TestOnlyWhatTheRowGivesIsAskedOfIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(i *driver.Renewal)
		want   bool
	}{
		"as it was":             {func(*driver.Renewal) {}, true},
		"another stay":          {func(i *driver.Renewal) { i.Number++ }, false},
		"the stay is not named": {func(i *driver.Renewal) { i.Number = 0 }, false},
		"another TTL":           {func(i *driver.Renewal) { i.Life.Hold++ }, false},
		"another grace":         {func(i *driver.Renewal) { i.Life.Grace++ }, false},
		"an expiry of its own":  {func(i *driver.Renewal) { i.Life.Own = true }, false},
		"to be kept":            {func(i *driver.Renewal) { i.Mode = driver.Fix }, false},
	} {
		r := sqllease.NewRoster(ttl)
		all := items(1)
		r.Enrol(all[0], 3_000_000)
		c.change(&all[0])
		g, rest := r.Call(all)
		if (g != nil) != c.want || (len(rest) == 0) != c.want {
			t.Errorf("%s: asked of the row %v, want %v", name, g != nil, c.want)
		}
	}
}

func TestWhatChangesBeforeOrWhileTheRowIsRenewedIsNotAnsweredByIt(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *sqllease.Roster, id driver.ID){
		"given up":                     func(r *sqllease.Roster, id driver.ID) { r.Depart(id) },
		"gone":                         func(r *sqllease.Roster, id driver.ID) { r.Remove(id) },
		"changed by a step of its own": func(r *sqllease.Roster, id driver.ID) { r.Touch(id) },
		"its life has ended":           func(r *sqllease.Roster, _ driver.ID) { r.Lose() },
	} {
		for _, before := range []bool{true, false} {
			r := sqllease.NewRoster(ttl)
			all := items(1)
			r.Enrol(all[0], 3_000_000)
			if before {
				change(r, all[0].ID)
			}
			g, _ := r.Call(all)
			if !before {
				change(r, all[0].ID)
			}
			if g != nil && r.Answers(g, all[0]) {
				t.Errorf("%s: answered (before: %v)", name, before)
			}
		}
	}
}

func TestAChangeWhileAClaimIsLookedAtIsNotForgotten(t *testing.T) {
	t.Parallel()
	r := sqllease.NewRoster(ttl)
	all := items(1)
	r.Enrol(all[0], 3_000_000)
	r.Touch(all[0].ID)
	enrolled := r.Name(all)
	r.Touch(all[0].ID) // after the transaction has read
	enrolled()
	if g, _ := r.Call(all); g != nil {
		t.Error("answered without looking once more")
	}
	r.Name(all)()
	if g, _ := r.Call(all); g == nil {
		t.Error("not answered though it was looked at since")
	}
}

// Times are µs of the database; each claim was last named when it got its expiry.
func TestWhoIsNamedNoMoreIsTakenOutInTime(t *testing.T) {
	t.Parallel()
	r := sqllease.NewRoster(ttl)
	all := items(3)
	for _, i := range all {
		r.Enrol(i, 3_000_000)
	}
	g, _ := r.Call(all[1:])
	if late := r.Late(g, 4_000_000); len(late) != 0 {
		t.Errorf("%d are taken out a third of the TTL after they were named", len(late))
	}
	r.Renewed(g, 4_000_000)
	g, _ = r.Call(all[1:])
	late := r.Late(g, 5_000_000)
	if len(late) != 1 || late[all[0].ID] != 3_000_000 {
		t.Errorf("taken out are %v, want the first with its own expiry", late)
	}
	if r.MayName(all[:1]) {
		t.Error("named in another transaction while it is taken out")
	}
	r.Parted(g, true)
	if !r.MayName(all[:1]) {
		t.Error("still being taken out")
	}
	if g, rest := r.Call(all); g == nil || len(rest) != 1 {
		t.Errorf("%d are done one by one, want the one that is out", len(rest))
	}
}

func TestAClaimThatATransactionNamesIsNotTakenOut(t *testing.T) {
	t.Parallel()
	r := sqllease.NewRoster(ttl)
	all := items(2)
	r.Enrol(all[0], 3_000_000)
	r.Enrol(all[1], 9_000_000)
	enrolled := r.Name(all[:1])
	g, _ := r.Call(all[1:])
	if late := r.Late(g, 9_000_000); len(late) != 0 {
		t.Error("taken out while it is being enrolled")
	}
	enrolled()
}

// Whose Leave was never answered must not live by the session for ever.
func TestWhatWasGivenUpIsTakenOut(t *testing.T) {
	t.Parallel()
	r := sqllease.NewRoster(ttl)
	all := items(2)
	for _, i := range all {
		r.Enrol(i, 3_000_000)
	}
	r.Depart(all[0].ID)
	g, _ := r.Call(all)
	if late := r.Late(g, 6_000_000); len(late) != 1 {
		t.Errorf("%d are taken out, want 1", len(late))
	}
}

func TestAClientHasSixteenLivesAndMakesRoomWhereNobodyLives(t *testing.T) {
	t.Parallel()
	r := sqllease.NewRoster(ttl)
	for n := range 16 {
		if !r.Home(ttl + time.Duration(n)) {
			t.Fatalf("no life number %d", n+1)
		}
	}
	all := items(1)
	r.Enrol(all[0], 3_000_000)
	if !r.Home(time.Hour) {
		t.Error("no room though nobody lives by most of them")
	}
	if g, _ := r.Call(all); g == nil {
		t.Error("the life with a claim had to go")
	}
}

func TestWhatIsNotSeenInALifeIsLookedForOneByOne(t *testing.T) {
	t.Parallel()
	r := sqllease.NewRoster(ttl)
	all := items(4)
	for _, i := range all[:3] {
		r.Enrol(i, 3_000_000)
	}
	g, _ := r.Call(all)
	saw := r.Look(g)
	r.Enrol(all[3], 3_000_000) // after the look began
	saw(1, map[driver.ID]bool{all[0].ID: true, all[1].ID: false})
	if behind, ok := r.Behind(g, all[0]); !ok || !behind {
		t.Error("nobody behind the first")
	}
	if behind, ok := r.Behind(g, all[1]); !ok || behind {
		t.Error("somebody behind the second")
	}
	if _, ok := r.Behind(g, all[2]); ok {
		t.Error("the third was not seen, and answered")
	}
	if _, ok := r.Behind(g, all[3]); !ok {
		t.Error("the fourth came later, and is forgotten")
	}
	r.Look(g)(0, map[driver.ID]bool{all[0].ID: false, all[1].ID: false, all[3].ID: false}) // an older look
	if behind, _ := r.Behind(g, all[0]); !behind {
		t.Error("an older look counts")
	}
}
