package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	cron "github.com/netresearch/go-cron"
)

// spec is a specification in its zone. It answers ticks to the millisecond.
type spec struct {
	zone  *time.Location
	each  bool          // DSTEach
	wall  cron.Schedule // on a clock without zone, which UTC stands for
	every time.Duration // instead: multiples of it since 1970
}

// span is more than any zone's clock is set forward or back by.
const span = 4 * time.Hour

func parseSpec(text, zone string, dst DST) (*spec, error) {
	where, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return nil, fmt.Errorf("unknown time zone %q; it must be an IANA name such as Europe/Berlin, and its data must be on this machine", zone)
	}
	fields := strings.Fields(text)
	if len(fields) == 0 {
		return nil, errors.New("cron is blank")
	}
	if strings.EqualFold(fields[0], "@every") { // never the library's, which counts from each call
		rest := strings.Join(fields[1:], " ")
		d, err := time.ParseDuration(rest)
		if err != nil || d < minTime || d%time.Millisecond != 0 {
			return nil, fmt.Errorf("cron %q, column %d: %q is no duration of whole milliseconds from %s on", text, column(text, min(1, len(fields)-1)), rest, minTime)
		}
		return &spec{zone: where, every: d}, nil
	}
	if strings.Contains(fields[0], "=") {
		return nil, fmt.Errorf("cron %q, column 1: name the time zone in Zone, not in the specification", text)
	}
	wall, err := parseFields(text, fields)
	if err != nil {
		return nil, err
	}
	s := &spec{zone: where, wall: wall, each: dst == DSTEach || dst == DSTAuto && everyHour(fields)}
	if s.next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, fmt.Errorf("cron %q names no day that exists", text)
	}
	return s, nil
}

// everyHour says whether the hour of a specification is not fixed.
func everyHour(fields []string) bool {
	if len(fields) == 1 {
		return fields[0] == "@hourly"
	}
	return strings.HasPrefix(fields[len(fields)-4], "*")
}

func parseFields(text string, fields []string) (cron.Schedule, error) {
	const named = cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow
	parser, err := cron.TryNewParser(named | cron.SecondOptional | cron.Descriptor)
	if err != nil {
		return nil, err
	}
	descriptor := strings.HasPrefix(fields[0], "@")
	if !descriptor && len(fields) != 5 && len(fields) != 6 {
		return nil, fmt.Errorf("cron %q has %d fields; write minute, hour, day of month, month and day of week, or seconds before them", text, len(fields))
	}
	s, err := parser.Parse(strings.Join(fields, " "))
	if err == nil {
		return s, nil
	}
	if descriptor {
		return nil, fmt.Errorf("cron %q, column 1: there is @hourly, @daily, @weekly, @monthly, @yearly and @every", text)
	}
	for i, field := range fields { // which of them is it?
		alone := strings.Fields(strings.Repeat("* ", len(fields)))
		alone[i] = field
		if _, wrong := parser.Parse(strings.Join(alone, " ")); wrong != nil {
			return nil, fmt.Errorf("cron %q, column %d, %s: %w", text, column(text, i), fieldName(i, len(fields)), wrong)
		}
	}
	return nil, fmt.Errorf("cron %q: %w", text, err)
}

// column is where a field of a specification begins, in characters from 1.
func column(text string, field int) int {
	at, n, inside := 0, -1, false
	for _, r := range text {
		at++
		if blank := strings.ContainsRune(" \t\n\r\v\f", r); blank || inside {
			inside = !blank
			continue
		}
		if inside, n = true, n+1; n == field {
			return at
		}
	}
	return at
}

func fieldName(i, of int) string {
	return []string{"second", "minute", "hour", "day of month", "month", "day of week"}[i+6-of]
}

// next is the first tick after a time; zero: there is none.
func (s *spec) next(after time.Time) time.Time {
	if s.every > 0 {
		ms := s.every.Milliseconds()
		return time.UnixMilli((floor(after.UnixMilli(), ms) + 1) * ms)
	}
	after = after.In(s.zone)
	start, end := after.ZoneBounds()
	_, offset := after.Zone()
	steady := time.Duration(offset) * time.Second
	candidate := s.wall.Next(naive(after))
	if candidate.IsZero() {
		return time.Time{}
	}
	at := candidate.Add(-steady).In(s.zone)
	if (start.IsZero() || after.Sub(start) > span) && (end.IsZero() || end.Sub(at) > span) {
		return at
	}
	return s.nextAtAChange(after)
}

// floor divides, also before 1970.
func floor(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// nextAtAChange is next where the zone's clock has just been set or soon will be. It
// looks at every time of the specification around, and at which moments the clock shows
// it.
func (s *spec) nextAtAChange(after time.Time) time.Time {
	best := time.Time{}
	shown := naive(after).Add(-span)
	for {
		if shown = s.wall.Next(shown); shown.IsZero() {
			return best
		}
		for _, at := range s.moments(shown) {
			if at.After(after) && (best.IsZero() || at.Before(best)) {
				best = at
			}
		}
		if !best.IsZero() && shown.Sub(naive(best.In(s.zone))) > span {
			return best
		}
	}
}

// moments are the moments at which a time of the specification counts.
func (s *spec) moments(shown time.Time) []time.Time {
	y, m, d := shown.Date()
	at := time.Date(y, m, d, shown.Hour(), shown.Minute(), shown.Second(), 0, s.zone)
	var all []time.Time
	for _, other := range around(at) {
		_, offset := other.Zone()
		if c := shown.Add(-time.Duration(offset) * time.Second).In(s.zone); naive(c).Equal(shown) {
			all = append(all, c)
		}
	}
	switch {
	case len(all) == 0 && !s.each:
		return []time.Time{change(at)}
	case len(all) == 2 && all[0].Equal(all[1]):
		return all[:1]
	case len(all) == 2 && !s.each:
		return all[:1]
	}
	return all
}

// around are two moments, the earlier first, between which lies the change of the clock
// that is nearest, or no change.
func around(at time.Time) [2]time.Time { return [2]time.Time{at.Add(-span), at.Add(span)} }

// change is the moment at which the clock skips.
func change(at time.Time) time.Time {
	_, end := around(at)[0].ZoneBounds()
	return end
}

// naive is what a zone's clock shows, on a clock without zone.
func naive(t time.Time) time.Time {
	_, offset := t.Zone()
	return t.UTC().Add(time.Duration(offset) * time.Second)
}
