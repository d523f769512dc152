package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/hasp-dev/hasp"
)

// line is a key's line in JSON. Tokens are text: they need all 64 bits, which many
// readers of JSON do not keep.
type line struct {
	Key     string     `json:"key"`
	Holders []standing `json:"holders"`
	Waiters []standing `json:"waiters"` // the first 100
	Waiting int        `json:"waiting"`
}

// standing is a holder or a waiter in JSON.
type standing struct {
	Name      string    `json:"name"`
	Token     string    `json:"token"`
	Weight    int64     `json:"weight"`
	Capacity  int64     `json:"capacity"`
	Since     time.Time `json:"since"`
	InLine    int64     `json:"in_line_ms"`
	ExpiresIn int64     `json:"expires_in_ms"`
	Kept      bool      `json:"kept"`
	Revoked   bool      `json:"revoked"`
}

func newLine(l hasp.Line, now time.Time) line {
	out := line{Key: l.Key, Holders: []standing{}, Waiters: []standing{}, Waiting: l.Waiting}
	for _, s := range l.Holders {
		out.Holders = append(out.Holders, newStanding(s, now))
	}
	for _, s := range l.Waiters {
		out.Waiters = append(out.Waiters, newStanding(s, now))
	}
	return out
}

func newStanding(s hasp.Standing, now time.Time) standing {
	return standing{
		Name: s.Name, Token: strconv.FormatInt(s.Token, 10), Weight: s.Weight, Capacity: s.Capacity,
		Since: now.Add(-s.InLine).UTC().Truncate(time.Millisecond), InLine: s.InLine.Milliseconds(),
		ExpiresIn: s.ExpiresIn.Milliseconds(), Kept: s.Kept, Revoked: s.Revoked,
	}
}

// printJSON prints one value.
func (a *app) printJSON(v any) error {
	e := json.NewEncoder(a.Out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// table prints rows under their headings, in columns.
func (a *app) table(headings []string, rows [][]string) error {
	w := tabwriter.NewWriter(a.Out, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{headings}, rows...) {
		fmt.Fprintln(w, strings.TrimRight(strings.Join(row, "\t"), "\t "))
	}
	return w.Flush()
}

// printable is a name as it can stand in a table: quoted where it would be misread.
func printable(name string) string {
	if quoted := strconv.Quote(name); name == "" || strings.ContainsAny(name, " \t") || quoted != `"`+name+`"` {
		return quoted
	}
	return name
}

// short is a duration with as many digits as a reader wants.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// share says what a claim takes of its key.
func share(s hasp.Standing) string {
	switch {
	case s.Weight == s.Capacity:
		return "exclusive"
	case s.Weight == 1 && s.Capacity == sharedCapacity:
		return "shared"
	}
	return fmt.Sprintf("%d/%d", s.Weight, s.Capacity)
}

// sharedCapacity is the capacity of a read/write lock.
const sharedCapacity = 1 << 30

// note says what is unusual about a claim.
func note(s hasp.Standing) string {
	switch {
	case s.Revoked:
		return "revoked"
	case s.Kept:
		return "kept"
	}
	return ""
}
