package sqllease

import (
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Roster is a roster of one client whose claims have one TTL.
type Roster struct {
	*roster
	hold time.Duration
	late []parted
}

// Roll is roll.
type Roll = roll

// NewRoster makes one.
func NewRoster(hold time.Duration) *Roster { return &Roster{roster: newRoster(), hold: hold} }

func (r *Roster) life() *life { return r.home(terms{inbox: [6]byte{'c'}, hold: r.hold}) }

// Home says whether there is a life for a TTL.
func (r *Roster) Home(hold time.Duration) bool {
	return r.home(terms{inbox: [6]byte{'c'}, hold: hold}) != nil
}

// Enrol enrols the claim of an item that was given an expiry.
func (r *Roster) Enrol(i driver.Renewal, until int64) {
	r.enrol(i.ID, member{life: r.life(), number: i.Number, until: until}, false)
}

// Name begins a transaction that names the items; what it answers enrols them and ends it.
func (r *Roster) Name(items []driver.Renewal) (enrolled func()) {
	touched, _ := r.name(items)
	return func() {
		for _, i := range items {
			r.enrol(i.ID, member{life: r.life(), number: i.Number, until: 3_000_000, looked: touched[i.ID]}, false)
		}
		r.named(items)
	}
}

// MayName says whether a transaction may name the items.
func (r *Roster) MayName(items []driver.Renewal) bool {
	_, ok := r.name(items)
	if ok {
		r.named(items)
	}
	return ok
}

// Call is call where there is one life at most.
func (r *Roster) Call(items []driver.Renewal) (*Roll, []int) {
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	rolls, rest := r.call(items, order)
	if len(rolls) == 0 {
		return nil, rest
	}
	return rolls[0], rest
}

// Late is late, as expiries by ID.
func (r *Roster) Late(g *Roll, until int64) map[driver.ID]int64 {
	all := make(map[driver.ID]int64)
	r.late = r.roster.late(g, until)
	for _, p := range r.late {
		all[p.id] = p.until
	}
	return all
}

// Parted notes that what Late answered is out.
func (r *Roster) Parted(_ *Roll, done bool) { r.part(r.late, done) }

// Renewed is renewed.
func (r *Roster) Renewed(g *Roll, until int64) { r.renewed(g, until) }

// Look begins to look at a life; what it answers notes what was seen.
func (r *Roster) Look(g *Roll) func(changed int64, behind map[driver.ID]bool) {
	before := r.counted()
	return func(changed int64, behind map[driver.ID]bool) {
		found := make(map[driver.ID]sitter)
		for id, b := range behind {
			found[id] = sitter{number: int64(id[15]), behind: b}
		}
		r.saw(g, changed, found, before)
	}
}

// Answers says whether the life's row tells how a claim is.
func (r *Roster) Answers(g *Roll, i driver.Renewal) bool {
	_, ok := r.standing(g, i, time.Second)
	return ok
}

// Behind says whether somebody waits behind a claim.
func (r *Roster) Behind(g *Roll, i driver.Renewal) (behind, ok bool) {
	st, ok := r.standing(g, i, time.Second)
	return st.Behind, ok
}

// Depart is depart.
func (r *Roster) Depart(id driver.ID) { r.depart(id) }

// Remove is remove.
func (r *Roster) Remove(id driver.ID) { r.remove(id) }

// Touch is touch.
func (r *Roster) Touch(id driver.ID) { r.touch(id) }

// Lose loses the life.
func (r *Roster) Lose() { r.lose(r.life()) }
