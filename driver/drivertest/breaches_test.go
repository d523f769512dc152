package drivertest_test

import (
	"context"
	"slices"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// breaches are the ways of being broken that must be caught.
func breaches() []breach {
	return slices.Concat(brokenJoins(), brokenRenewals(), brokenLeaves(), brokenEnds(), brokenAnswers(), brokenSignals(), brokenListings())
}

func brokenJoins() []breach {
	return []breach{
		{name: "a try overtakes", caughtBy: "a try overtakes nobody who waits", join: overtakingTry},
		{name: "a join checks and enters in two steps", caughtBy: "of many tries of a new key at once one holds", join: tryInTwoSteps},
		{name: "a repeated join goes to the end of the line", caughtBy: "a repeated join renews a waiting claim, which keeps its place", join: joinAnew},
		{name: "a repeated join does not renew", caughtBy: "a repeated join renews a holding claim", join: joinWithoutRenewal},
		{name: "a writer counts as a reader", caughtBy: "readers share, and a writer waits for all of them", join: lightWriter},
		{name: "each claim goes by its own capacity", caughtBy: "the smallest capacity counts while a claim that says it is in line", join: largestCapacity},
		{name: "MaxLine is ignored", caughtBy: "a line that is full refuses", join: func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
			j.MaxLine = 0
			return d.Driver.Join(ctx, j)
		}},
		{name: "a refused try of several keys keeps the first", caughtBy: "a try of several keys takes all or nothing", join: halfJoin},
		{name: "a ticket opens twice", caughtBy: "a second taker is gone and enters nothing", join: resumeAgain},
		{name: "the claim to leave stays in line", caughtBy: "leaving and joining in one step lets the next in and stands behind", join: func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
			j.Leaving = nil
			return d.Driver.Join(ctx, j)
		}},
		{name: "weights are not checked", caughtBy: "a join with a weight outside the capacity is invalid", join: func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
			j.Weight = min(max(j.Weight, 1), max(j.Capacity, 1))
			j.Capacity = max(j.Capacity, 1)
			return d.Driver.Join(ctx, j)
		}},
		{name: "numbers repeat after the line was empty", caughtBy: "numbers rise though the line is empty in between", join: countedJoin, renew: countedRenew},
	}
}

func overtakingTry(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	s, err := d.Driver.Join(ctx, j)
	if err != nil || s.State != driver.Refused || len(j.Keys) > 1 {
		return s, err
	}
	p, _ := d.Driver.Lines(ctx, driver.Query{Key: j.Keys[0]})
	sum := j.Weight
	for _, e := range p.Lines[0].Holders {
		sum += e.Weight
	}
	if sum <= j.Capacity {
		return driver.Standing{State: driver.Holding, Number: 1, Life: j.Life.Hold}, nil
	}
	return s, nil
}

func tryInTwoSteps(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	if !j.Try || len(j.Keys) > 1 || j.Resume != nil || !d.empty(ctx, j.Keys[0]) {
		return d.Driver.Join(ctx, j)
	}
	time.Sleep(time.Nanosecond)
	j.Try = false
	s, err := d.Driver.Join(ctx, j)
	s.State, s.LookAgain = driver.Holding, 0
	return s, err
}

func joinAnew(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	if k := d.of(j.ID); k != nil && k.standing.State == driver.Waiting && !k.left {
		_, _ = d.Driver.Leave(ctx, driver.Leaving{Ref: k.claim.Ref})
	}
	return d.Driver.Join(ctx, j)
}

func joinWithoutRenewal(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	if k := d.of(j.ID); k != nil && !k.left && !k.claim.Life.Own {
		j.Life = least
		s, err := d.Driver.Join(ctx, j)
		s.Life = max(s.Life, k.claim.Life.Hold)
		return s, err
	}
	return d.Driver.Join(ctx, j)
}

func lightWriter(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	if j.Weight == 1<<30 {
		j.Weight = 1
	}
	return d.Driver.Join(ctx, j)
}

func largestCapacity(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	if j.Capacity == 2 || j.Capacity == 3 {
		j.Capacity = 5
	}
	return d.Driver.Join(ctx, j)
}

func halfJoin(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	s, err := d.Driver.Join(ctx, j)
	if j.Try && s.State == driver.Refused && len(j.Keys) > 1 {
		half := j
		half.ID[15] ^= 1
		half.Keys = j.Keys[:1]
		_, _ = d.Driver.Join(ctx, half)
	}
	return s, err
}

// resumeAgain follows a place from taker to taker.
func resumeAgain(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	if j.Resume == nil {
		return d.Driver.Join(ctx, j)
	}
	ticket := *j.Resume
	d.mu.Lock()
	if now, ok := d.taken[ticket.ID]; ok && now.ID != j.ID {
		j.Resume = &now
	}
	d.mu.Unlock()
	s, err := d.Driver.Join(ctx, j)
	if s.State == driver.Holding {
		d.mu.Lock()
		d.taken[ticket.ID] = driver.Ref{ID: j.ID, Number: s.Number, Keys: j.Keys}
		d.mu.Unlock()
	}
	return s, err
}

// countedJoin numbers the claims of a key from 1 on, and begins anew when nobody is
// in its line.
func countedJoin(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	key := j.Keys[0]
	fresh := d.empty(ctx, key)
	s, err := d.Driver.Join(ctx, j)
	if s.Number == 0 {
		return s, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.known[j.ID]; k != nil && !k.left && !fresh {
		s.Number = k.standing.Number
		return s, err
	}
	if fresh {
		d.counts[key] = 0
	}
	d.counts[key]++
	s.Number = d.counts[key]
	return s, err
}

func countedRenew(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
	named := r.Number
	r.Number = 0
	var s driver.Standing
	var err error
	d.Driver.Renew(ctx, []driver.Renewal{r}, func(_ int, a driver.Standing, e error) { s, err = a, e })
	if s.Number != 0 || s.State == driver.Gone || s.State == driver.Left {
		s.Number = named
	}
	return s, err
}

func brokenRenewals() []breach {
	return []breach{
		{name: "a renewal shortens", caughtBy: "a renewal never shortens a life, and answers what it is", renew: shorteningRenewal, lines: purgedLines, join: purgedJoin},
		{name: "a renewal answers the life that was asked for", caughtBy: "a renewal never shortens a life, and answers what it is", renew: func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
			s, err := d.renewAsIs(ctx, r)
			if s.State == driver.Holding {
				s.Life = r.Life.Hold
			}
			return s, err
		}},
		{name: "a renewal revives the dead", caughtBy: "a claim renewed after its expiry is gone even where nobody wanted the key", renew: revivingRenewal},
		{name: "a renewal does not look at the number", caughtBy: "a renewal that names another stay is gone and changes nothing", renew: func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
			r.Number = 0
			return d.renewAsIs(ctx, r)
		}},
		{name: "a fixed claim is renewed", caughtBy: "no renewal moves a fixed expiry", renew: func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
			if r.Mode == driver.Fix {
				r.Mode = driver.Extend
			}
			return d.renewAsIs(ctx, r)
		}},
		{name: "the life counts the grace", caughtBy: "grace is in no answered life", join: func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
			s, err := d.Driver.Join(ctx, j)
			if s.State == driver.Holding {
				s.Life += j.Life.Grace
			}
			return s, err
		}},
		{name: "a waiting claim has grace", caughtBy: "a waiting claim has no grace", renew: func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
			r.Life.Wait += r.Life.Grace
			return d.renewAsIs(ctx, r)
		}},
		{name: "a drop in a batch is forgotten", caughtBy: "a drop in a batch leaves and hands over", renew: func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
			if r.Mode == driver.Drop {
				return driver.Standing{State: driver.Left, Number: r.Number}, nil
			}
			return d.renewAsIs(ctx, r)
		}},
		{name: "a batch answers its first item twice", caughtBy: "a batch answers each item exactly once", answer: func(_ int, answer func(int, driver.Standing, error)) func(int, driver.Standing, error) {
			return func(i int, s driver.Standing, err error) {
				if answer(i, s, err); i == 0 {
					answer(i, s, err)
				}
			}
		}},
		{name: "a batch forgets its last item", caughtBy: "a batch answers each item exactly once", answer: func(items int, answer func(int, driver.Standing, error)) func(int, driver.Standing, error) {
			return func(i int, s driver.Standing, err error) {
				if i < items-1 || items < 2 {
					answer(i, s, err)
				}
			}
		}},
	}
}

// shorteningRenewal believes in the life asked for last.
func shorteningRenewal(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
	d.purge(ctx)
	s, err := d.renewAsIs(ctx, r)
	d.mu.Lock()
	defer d.mu.Unlock()
	if k := d.known[r.ID]; k != nil && r.Mode == driver.Extend && s.State == driver.Holding {
		k.until = time.Now().Add(r.Life.Hold + r.Life.Grace)
	}
	return s, err
}

// purge takes out what has ended by that belief.
func (d *broken) purge(ctx context.Context) {
	for _, k := range d.all() {
		if !k.until.IsZero() && time.Now().After(k.until) {
			_, _ = d.Driver.Leave(ctx, driver.Leaving{Ref: k.claim.Ref})
		}
	}
}

func purgedLines(ctx context.Context, d *broken, q driver.Query) (driver.Page, error) {
	d.purge(ctx)
	return d.Driver.Lines(ctx, q)
}

func purgedJoin(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	d.purge(ctx)
	return d.Driver.Join(ctx, j)
}

func revivingRenewal(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
	s, err := d.renewAsIs(ctx, r)
	k := d.of(r.ID)
	if err != nil || s.State != driver.Gone || r.Mode != driver.Extend || k == nil || k.left {
		return s, err
	}
	s, err = d.joinAsIs(ctx, driver.Join{Claim: k.claim, Try: true})
	s.Number = r.Number
	return s, err
}

func brokenLeaves() []breach {
	return []breach{
		{name: "a release goes by the key", caughtBy: "a late release of the dead does not touch the next holder", leave: leaveByKey},
		{name: "a release does not hand over", caughtBy: "a release hands over to the next at once", leave: lazyLeave, join: flushingJoin},
		{name: "a release restarts the life of the next", caughtBy: "being granted changes no expiry", leave: restartingLeave},
		{name: "a release grants without bounds", caughtBy: "a step grants at most 32 claims, and the others hold soon", leave: drainingLeave},
		{name: "a release removes without bounds", caughtBy: "a step removes at most 64 dead claims, and nobody passes the rest", leave: drainingLeave},
		{name: "a release grants a claim of several keys", caughtBy: "nobody else's step grants a claim of several keys", leave: drainingLeave},
		{name: "an id is not remembered", caughtBy: "a join overtaken by its release is gone", leave: func(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
			l.Unanswered = false
			return d.Driver.Leave(ctx, l)
		}},
		{name: "an id is remembered only where its claim was there", caughtBy: "a join overtaken by its release is gone", leave: func(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
			l.Unanswered = l.Unanswered && d.of(l.ID) != nil
			return d.Driver.Leave(ctx, l)
		}},
		{name: "a repeated release says it was done again", caughtBy: "a repeated release is gone and harmless", leave: func(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
			s, err := d.Driver.Leave(ctx, l)
			if s.State == driver.Gone && d.of(l.ID) != nil {
				s.State = driver.Left
			}
			return s, err
		}},
		{name: "closing releases", caughtBy: "closing frees nothing", close: func(ctx context.Context, d *broken) {
			for _, k := range d.all() {
				if k.d == d {
					_, _ = d.Driver.Leave(ctx, driver.Leaving{Ref: k.claim.Ref})
				}
			}
		}},
	}
}

func leaveByKey(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
	s, err := d.Driver.Leave(ctx, l)
	if err != nil || s.State != driver.Gone {
		return s, err
	}
	if k := d.holder(ctx, d, l.Keys[0]); k != nil {
		_, _ = d.Driver.Leave(ctx, driver.Leaving{Ref: k.claim.Ref})
		s.State = driver.Left
	}
	return s, err
}

// lazyLeave is done with the next join.
func lazyLeave(_ context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
	k := d.of(l.ID)
	if k == nil {
		return driver.Standing{State: driver.Gone, Number: l.Number}, nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pending = append(d.pending, l)
	return driver.Standing{State: driver.Left, Number: l.Number}, nil
}

func flushingJoin(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
	d.mu.Lock()
	pending := d.pending
	d.pending = nil
	d.mu.Unlock()
	for _, l := range pending {
		_, _ = d.Driver.Leave(ctx, l)
	}
	return d.Driver.Join(ctx, j)
}

func restartingLeave(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
	s, err := d.Driver.Leave(ctx, l)
	if len(l.Keys) == 0 {
		return s, err
	}
	if k := d.holder(ctx, d, l.Keys[0]); k != nil && k.standing.State == driver.Waiting {
		k.renewKnown(ctx, k.claim.Life)
	}
	return s, err
}

// drainingLeave lets every claim that waits look at once, again and again.
func drainingLeave(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
	s, err := d.Driver.Leave(ctx, l)
	for range 4 {
		for _, k := range d.all() {
			if k.standing.State == driver.Waiting && !k.left {
				k.renewKnown(ctx, least)
			}
		}
	}
	return s, err
}
