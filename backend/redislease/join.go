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
	if err := d.together(slices.Concat(j.Keys, others)); err != nil {
		return driver.Standing{}, err
	}
	c := d.joining(&j, others)
	err := d.call(ctx, c)
	if err != nil {
		d.undo(&j, err) //nolint:contextcheck // it goes on without the caller
		return driver.Standing{}, err
	}
	if c.slow {
		d.suspects.add(j.ID, remembering(j.Life))
	}
	if n, alone := c.reply.(int64); alone {
		return driver.Standing{State: driver.Holding, Number: n, Life: ms(millis(j.Life.Hold))}, nil
	}
	s, err := standing(c.reply)
	if err != nil {
		return driver.Standing{}, err
	}
	if s.State == driver.Gone {
		s.Number = j.Number
	}
	d.note(j.Keys, &s)
	return s, nil
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
	hold, grace := millis(j.Life.Hold), millis(j.Life.Grace)
	keep := keepSeconds(hold)
	kind, total := "A", hold+grace+keep*1000
	if j.Life.Grace == 0 && j.Index == 0 {
		kind = "a"
	}
	if len(j.Keys) > 1 || j.Leaving != nil || j.Resume != nil {
		total = 0
	}
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
	c.args = make([]any, 0, c.keys+14)
	c.args = d.naming.appendKeys(c.args, j.Keys...)
	c.args = d.naming.appendKeys(c.args, others...)
	c.args = append(c.args, total, kind, recordOf(j, keep), string(j.ID[:]), hold, grace, millis(j.Life.Wait),
		j.MaxLine, bit(j.Try), len(j.Keys), leaving, remember, taken, number)
	return c
}

// keepSeconds is how long the last number outlives the line, as the scripts reckon.
func keepSeconds(hold int64) int64 {
	return min(max((hold+499)/500, 10), 1<<24-1)
}

// recordOf is what stands in a claim's record behind its number.
func recordOf(j *driver.Join, keep int64) string {
	b := make([]byte, 0, 64)
	b = fmt.Appendf(b, "%06x", keep)
	b = append(b, j.ID[:]...)
	b = appendAttribute(b, 'w', j.Weight, 1)
	b = appendAttribute(b, 'c', j.Capacity, 1)
	b = appendAttribute(b, 'g', millis(j.Life.Grace), 0)
	b = appendAttribute(b, 'i', int64(j.Index), 0)
	b = append(b, '|')
	return string(append(b, j.Name...))
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
func (d *Driver) undo(j *driver.Join, err error) {
	if !errors.As(err, new(tooFewError)) {
		return
	}
	d.background(func() {
		ctx, cancel := context.WithTimeout(d.life, time.Second)
		defer cancel()
		_ = d.call(ctx, d.departing(&driver.Leaving{Ref: j.Ref})) // else it expires
	})
}

// Leave implements driver.Driver.
func (d *Driver) Leave(ctx context.Context, l driver.Leaving) (driver.Standing, error) {
	if err := errors.Join(d.err, checkKeys(l.Keys)); err != nil {
		return driver.Standing{}, err
	}
	if err := d.together(l.Keys); err != nil {
		return driver.Standing{}, err
	}
	c := d.departing(&l)
	if err := d.call(ctx, c); err != nil {
		return driver.Standing{}, err
	}
	d.suspects.drop(l.ID)
	if n, alone := c.reply.(int64); alone {
		return driver.Standing{State: driver.Left, Number: n}, nil
	}
	return standing(c.reply)
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
