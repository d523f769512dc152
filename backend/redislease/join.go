package redislease

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Join implements driver.Driver.
func (d *Driver) Join(ctx context.Context, j driver.Join) (driver.Standing, error) {
	if err := errors.Join(d.err, checkJoin(&j)); err != nil {
		return driver.Standing{}, err
	}
	others := otherKeys(&j)
	if len(j.Keys)+len(others) > 1 {
		if err := d.together(slices.Concat(j.Keys, others)); err != nil {
			return driver.Standing{}, err
		}
	}
	if len(j.Keys) == 1 && j.Leaving == nil && j.Resume == nil && !d.crowds.has(j.Keys[0]) {
		c := d.taking(&j)
		if err := d.enter(ctx, c, &j); err != nil {
			return driver.Standing{}, err
		}
		if n, alone := c.reply.(int64); alone {
			return driver.Standing{State: driver.Holding, Number: n, Life: ms(millis(j.Life.Hold))}, nil
		}
	}
	c := d.joining(&j, others)
	if err := d.enter(ctx, c, &j); err != nil {
		return driver.Standing{}, err
	}
	s, err := d.standing(c.reply)
	if err != nil {
		return driver.Standing{}, err
	}
	if s.State == driver.Gone {
		s.Number = j.Number
	}
	d.note(j.Keys, &s)
	return s, nil
}

// enter sends one call of a Join.
func (d *Driver) enter(ctx context.Context, c *call, j *driver.Join) error {
	err := d.call(ctx, c)
	switch {
	case err != nil: // the call may still be under way, so only its error is looked at
		d.undo(j.Ref, err) //nolint:contextcheck // it goes on without the caller
	case c.slow:
		d.suspects.add(j.ID, remembering(j.Life))
	}
	return err
}

// leastUsual is the shortest life, in ms, of a claim whose record begins with "1a".
const leastUsual = 100

// taking makes the call of a Join that hopes for an empty line.
func (d *Driver) taking(j *driver.Join) *call {
	hold, grace := millis(j.Life.Hold), millis(j.Life.Grace)
	keep := keepSeconds(hold)
	c := &call{script: &d.scripts.take, keys: 1, counts: true}
	c.args = append(make([]any, 0, 4), d.naming.line(j.Keys[0]), hold+grace+keep*1000, recordOf(j, keep))
	if j.Life.Grace != 0 || j.Index != 0 || hold < leastUsual {
		c.args = append(c.args, "1A")
		return c
	}
	c.many = true
	return c
}

// otherKeys are those of what leaves that the claim itself has not.
func otherKeys(j *driver.Join) []string {
	var others []string
	if j.Leaving != nil {
		for _, key := range j.Leaving.Keys {
			if !slices.Contains(j.Keys, key) {
				others = append(others, key)
			}
		}
	}
	return others
}

// joining makes the call of a Join.
func (d *Driver) joining(j *driver.Join, others []string) *call {
	hold := millis(j.Life.Hold)
	leaving, remember := "", int64(0)
	if j.Leaving != nil {
		leaving = string(j.Leaving.ID[:])
		remember = d.remember(j.Leaving)
	}
	taken, number := "", int64(0)
	if j.Resume != nil {
		taken, number = string(j.Resume.ID[:]), j.Resume.Number
	}
	c := &call{script: &d.scripts.join, keys: 4 * (len(j.Keys) + len(others)), counts: true}
	c.args = make([]any, 0, c.keys+12)
	c.args = d.naming.appendKeys(c.args, j.Keys...)
	c.args = d.naming.appendKeys(c.args, others...)
	c.args = append(c.args, recordOf(j, keepSeconds(hold)), hold, millis(j.Life.Grace), millis(j.Life.Wait), j.MaxLine,
		bit(j.Try), len(j.Keys), leaving, remember, taken, number, max(j.Number, 0))
	return c
}

// keepSeconds is how long the last number outlives the line, as the scripts reckon.
func keepSeconds(hold int64) int64 {
	return min(max((hold+499)/500, 10), 1<<24-1)
}

// recordOf is what stands in a claim's record behind its number.
func recordOf(j *driver.Join, keep int64) string {
	b := make([]byte, 0, 64)
	b = appendHex(b, keep, 6)
	b = append(b, j.ID[:]...)
	b = appendAttribute(b, 'w', j.Weight, 1)
	b = appendAttribute(b, 'c', j.Capacity, 1)
	b = appendAttribute(b, 'g', millis(j.Life.Grace), 0)
	b = appendAttribute(b, 'i', int64(j.Index), 0)
	b = append(b, '|')
	return string(append(b, j.Name...))
}

// appendHex appends a number in so many hex digits.
func appendHex(b []byte, n int64, digits int) []byte {
	for shift := 4 * (digits - 1); shift >= 0; shift -= 4 {
		b = append(b, "0123456789abcdef"[n>>shift&15])
	}
	return b
}

func appendAttribute(b []byte, letter byte, value, usual int64) []byte {
	if value == usual {
		return b
	}
	return strconv.AppendInt(append(b, letter), value, 10)
}

// remembering is how long a late copy of a Join could do harm.
func remembering(life driver.Life) time.Duration {
	return max(2*(life.Hold+life.Grace), 10*time.Second)
}

// tooFewError says how many replicas have acknowledged.
type tooFewError struct {
	got  int64
	want int
}

func (e tooFewError) Error() string {
	return fmt.Sprintf("%d of %d replicas have acknowledged", e.got, e.want)
}

// undo leaves with a claim that too few replicas have acknowledged. It does so in the
// background; the caller knows only that the outcome is open.
func (d *Driver) undo(ref driver.Ref, err error) {
	if !errors.As(err, new(tooFewError)) {
		return
	}
	d.background(func() {
		ctx, cancel := context.WithTimeout(d.life, time.Second)
		defer cancel()
		_ = d.call(ctx, d.departing(&driver.Leaving{Ref: ref})) // else it expires
	})
}

// Leave implements driver.Driver.
func (d *Driver) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	if err := errors.Join(d.err, checkKeys(l.Keys...)); err != nil {
		return driver.Standing{}, err
	}
	if err := d.together(l.Keys); err != nil {
		return driver.Standing{}, err
	}
	if len(l.Keys) == 1 && d.remember(&l) == 0 && !d.crowds.has(l.Keys[0]) {
		c := d.giving(&l)
		if err := d.call(ctx, c); err != nil {
			return driver.Standing{}, err
		}
		if n, alone := c.reply.(int64); alone {
			return driver.Standing{State: driver.Left, Number: n}, nil
		}
		d.crowds.set(l.Keys[0], true)
	}
	c := d.departing(&l)
	if err := d.call(ctx, c); err != nil {
		return driver.Standing{}, err
	}
	d.suspects.drop(l.ID)
	return d.standing(c.reply)
}

// giving makes the call of a Leave that hopes that the claim stands alone.
func (d *Driver) giving(l *driver.Leaving) *call {
	c := &call{script: &d.scripts.give, keys: 1, many: true}
	c.args = append(make([]any, 0, 2), d.naming.line(l.Keys[0]), string(l.ID[:]))
	return c
}

func (d *Driver) departing(l *driver.Leaving) *call {
	c := &call{script: &d.scripts.leave, keys: 4 * len(l.Keys)}
	c.args = make([]any, 0, c.keys+3)
	c.args = d.naming.appendKeys(c.args, l.Keys...)
	c.args = append(c.args, string(l.ID[:]), max(l.Number, 0), d.remember(l))
	return c
}

// remember is for how many ms the store must answer Gone to a late Join: as the caller
// says, and where the client library may have sent the Join by itself once more.
func (d *Driver) remember(l *driver.Leaving) int64 {
	wish := d.suspects.find(l.ID)
	if l.Unanswered {
		wish = max(wish, l.Remember)
	}
	return min(millis(wish), math.MaxInt32*1000)
}
