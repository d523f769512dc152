package open

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// parameters are what stands behind the ? of a URL. The first value that is wrong is
// kept as err; no message shows a value, since one may be a password.
type parameters struct {
	values url.Values
	known  []string
	err    error
}

// parseParameters reads a query and refuses what is not known, twice, or no query.
// hints say of names that others have for something what to write here.
func parseParameters(query string, hints map[string]string, known ...string) (*parameters, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return nil, invalidf("what stands behind the ? of the URL is not NAME=VALUE&NAME=VALUE with %% escapes")
	}
	for name, all := range values {
		if !slices.Contains(known, name) {
			hint := suggestion(name, known)
			if usual, ok := hints[name]; ok {
				hint = " (" + usual + ")"
			}
			return nil, invalidf("%q is no parameter of this kind of URL%s; known: %s", name, hint, strings.Join(known, ", "))
		}
		if len(all) > 1 {
			return nil, invalidf("the parameter %q stands %d times in the URL, once is allowed", name, len(all))
		}
	}
	return &parameters{values: values, known: known}, nil
}

// want keeps what was expected of a parameter.
func (p *parameters) want(name, what string) {
	if p.err == nil {
		p.err = invalidf("the parameter %q of the URL must be %s", name, what)
	}
}

// text is a parameter that is not empty where it is given.
func (p *parameters) text(name string) string {
	value := p.values.Get(name)
	if p.values.Has(name) && (value == "" || strings.ContainsRune(value, 0)) {
		p.want(name, "a text that is not empty")
	}
	return value
}

// textOr is text, or what is meant where it is not given.
func (p *parameters) textOr(name, otherwise string) string {
	if !p.values.Has(name) {
		return otherwise
	}
	return p.text(name)
}

// oneOf is a parameter with a few possible values; the first is the default.
func (p *parameters) oneOf(name string, possible ...string) string {
	value := p.values.Get(name)
	if !p.values.Has(name) {
		return possible[0]
	}
	if !slices.Contains(possible, value) {
		p.want(name, "one of: "+strings.Join(possible, ", "))
	}
	return value
}

// truth is a parameter that is false where it is not given.
func (p *parameters) truth(name string) bool { return p.oneOf(name, "false", "true") == "true" }

// number is a whole number within bounds.
func (p *parameters) number(name string, otherwise, low, high int) int {
	if !p.values.Has(name) {
		return otherwise
	}
	n, err := strconv.Atoi(p.values.Get(name))
	if err != nil || n < low || n > high {
		p.want(name, "a number from "+strconv.Itoa(low)+" to "+strconv.Itoa(high))
	}
	return n
}

// duration is a time with its unit.
func (p *parameters) duration(name string, otherwise time.Duration) time.Duration {
	const low, high = time.Millisecond, time.Hour
	if !p.values.Has(name) {
		return otherwise
	}
	d, err := time.ParseDuration(p.values.Get(name))
	if err != nil || d < low || d > high {
		p.want(name, "a time with its unit from 1ms to 1h, such as 500ms or 3s")
	}
	return d
}

// suggestion names the nearest of the candidates, if one is near.
func suggestion(word string, candidates []string) string {
	best, least := "", 1+max(2, len(word)/3)
	for _, candidate := range candidates {
		if d := distance(strings.ToLower(word), candidate); d < least {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return " (did you mean " + best + "?)"
}

// distance counts the insertions, deletions and replacements that make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
