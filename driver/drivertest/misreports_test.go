package drivertest_test

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

func brokenEnds() []breach {
	return []breach{
		{name: "forcing repeated hits the next holder", caughtBy: "forcing repeated does not hit the next holder", end: forceByKey},
		{name: "revoking removes at once", caughtBy: "the next holds when a revoked holder leaves, not before", end: func(ctx context.Context, d *broken, key string, numbers []int64, _ bool) ([]int64, error) {
			return d.Driver.End(ctx, key, numbers, true)
		}},
		{name: "revoking does nothing", caughtBy: "a revoked holder can renew no more, and is told why", end: func(ctx context.Context, d *broken, key string, numbers []int64, force bool) ([]int64, error) {
			if force {
				return d.Driver.End(ctx, key, numbers, true)
			}
			return numbers, nil
		}},
		{name: "ending answers what was asked for, not what was found", caughtBy: "a revoking repeated late does not hit the next holder", end: func(ctx context.Context, d *broken, key string, numbers []int64, force bool) ([]int64, error) {
			_, err := d.Driver.End(ctx, key, numbers, force)
			return numbers, err
		}},
	}
}

func forceByKey(ctx context.Context, d *broken, key string, numbers []int64, force bool) ([]int64, error) {
	found, err := d.Driver.End(ctx, key, numbers, force)
	if k := d.holder(ctx, d, key); force && len(numbers) > 0 && len(found) == 0 && k != nil {
		return d.Driver.End(ctx, key, []int64{k.standing.Number}, true)
	}
	return found, err
}

// misreporting changes the answers of Join and Renew.
func misreporting(name, caughtBy string, wrong func(s *driver.Standing)) breach {
	return breach{
		name: name, caughtBy: caughtBy,
		join: func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
			s, err := d.Driver.Join(ctx, j)
			wrong(&s)
			return s, err
		},
		renew: func(ctx context.Context, d *broken, r driver.Renewal) (driver.Standing, error) {
			s, err := d.renewAsIs(ctx, r)
			wrong(&s)
			return s, err
		},
	}
}

func brokenAnswers() []breach {
	return []breach{
		misreporting("nobody is ever behind", "a holder is told whether somebody waits behind", func(s *driver.Standing) { s.Behind = false }),
		misreporting("a waiter is told to look again too late", "a waiter finds the grant by looking again when told to", func(s *driver.Standing) { s.LookAgain *= 3 }),
		misreporting("More is never said", "a step grants at most 32 claims, and the others hold soon", func(s *driver.Standing) { s.More = false }),
		misreporting("Revoked is never said", "a revoked holder can renew no more, and is told why", func(s *driver.Standing) { s.Revoked = false }),
		misreporting("Ahead counts from one", "Ahead counts the claims ahead", func(s *driver.Standing) { s.Ahead++ }),
		misreporting("the holder is not named", "a second claim waits and is told who is in its way", func(s *driver.Standing) { s.Holder = "" }),
		misreporting("gone without the number", "a renewal that names another stay is gone and changes nothing", func(s *driver.Standing) {
			if s.State == driver.Gone {
				s.Number = 0
			}
		}),
		{name: "a failure comes with a standing", caughtBy: "a call whose context has ended returns at once", join: func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
			s, err := d.Driver.Join(ctx, j)
			if err != nil {
				s.State = driver.Waiting
			}
			return s, err
		}},
		{name: "a failure that says nothing was done", caughtBy: "calls after closing find the store unavailable", leave: func(ctx context.Context, d *broken, l driver.Leaving) (driver.Standing, error) {
			s, err := d.Driver.Leave(ctx, l)
			if errors.Is(err, driver.ErrUnavailable) {
				err = fmt.Errorf("%w: %w", driver.ErrRefused, err)
			}
			return s, err
		}},
	}
}

func brokenSignals() []breach {
	return []breach{
		{name: "a grant names the stay before", caughtBy: "a release signals the claim it grants, and nobody else", hear: func(s driver.Signal) (driver.Signal, bool) {
			if s.Kind == driver.Granted {
				s.Number--
			}
			return s, true
		}},
		{name: "the first Missed is lost", caughtBy: "listening begins with Missed", hear: func(s driver.Signal) (driver.Signal, bool) { return s, s.Kind != driver.Missed }},
		{name: "nobody is told of an end", caughtBy: "a forced holder hears that it ended", hear: func(s driver.Signal) (driver.Signal, bool) { return s, s.Kind != driver.Ended }},
		{name: "a turn is called a grant", caughtBy: "a claim of several keys hears its turn, never a grant by others", hear: func(s driver.Signal) (driver.Signal, bool) {
			if s.Kind == driver.Turn {
				s.Kind = driver.Granted
			}
			return s, true
		}},
	}
}

func brokenListings() []breach {
	return []breach{
		{name: "the dead are listed", caughtBy: "the dead are not listed", lines: linesWithDead},
		{name: "a listing shows ids", caughtBy: "a listing shows no id", lines: linesWithIDs},
		{name: "a page loses its last line", caughtBy: "pages of every size give the same lines", lines: func(ctx context.Context, d *broken, q driver.Query) (driver.Page, error) {
			p, err := d.Driver.Lines(ctx, q)
			if p.Next != "" {
				p.Lines = p.Lines[:len(p.Lines)-1]
			}
			return p, err
		}},
		{name: "listing renews", caughtBy: "listing changes nothing", lines: func(ctx context.Context, d *broken, q driver.Query) (driver.Page, error) {
			for _, k := range d.all() {
				if !k.left {
					k.renewKnown(ctx, k.claim.Life)
				}
			}
			return d.Driver.Lines(ctx, q)
		}},
		{name: "keys are compared without their case", caughtBy: "keys that look alike are different", join: func(ctx context.Context, d *broken, j driver.Join) (driver.Standing, error) {
			j.Keys = []string{strings.ToLower(j.Keys[0])}
			return d.Driver.Join(ctx, j)
		}},
	}
}

func linesWithDead(ctx context.Context, d *broken, q driver.Query) (driver.Page, error) {
	p, err := d.Driver.Lines(ctx, q)
	if err != nil || q.Key == "" {
		return p, err
	}
	l := &p.Lines[0]
	alive := map[int64]bool{}
	for _, e := range append(l.Holders, l.Waiters...) {
		alive[e.Number] = true
	}
	for _, k := range d.all() {
		if k.claim.Keys[0] == q.Key && !k.left && !alive[k.standing.Number] {
			l.Waiters, l.Waiting = append(l.Waiters, driver.Entry{Number: k.standing.Number}), l.Waiting+1
		}
	}
	return p, nil
}

func linesWithIDs(ctx context.Context, d *broken, q driver.Query) (driver.Page, error) {
	p, err := d.Driver.Lines(ctx, q)
	for _, l := range p.Lines {
		for i := range l.Holders {
			for _, k := range d.all() {
				if k.standing.Number == l.Holders[i].Number {
					l.Holders[i].Name = hex.EncodeToString(k.claim.ID[:])
				}
			}
		}
	}
	return p, err
}
