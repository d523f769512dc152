package open

import (
	"net/url"
	"slices"
	"strings"
)

// parameters are what stands behind the ? of a URL.
type parameters struct {
	values url.Values
	known  []string
}

// parseParameters reads a query and refuses what is not known, twice, or no query.
func parseParameters(query string, known ...string) (parameters, error) {
	values, err := url.ParseQuery(query)
	if err != nil {
		return parameters{}, invalidf("what stands behind the ? of the URL is not NAME=VALUE&NAME=VALUE with %% escapes")
	}
	for name, all := range values {
		if !slices.Contains(known, name) {
			return parameters{}, invalidf("%q is no parameter of this kind of URL%s; known: %s", name, suggestion(name, known), strings.Join(known, ", "))
		}
		if len(all) > 1 {
			return parameters{}, invalidf("the parameter %q stands %d times in the URL, once is allowed", name, len(all))
		}
	}
	return parameters{values, known}, nil
}

// oneOf is a parameter with a few possible values; the first is the default.
func (p parameters) oneOf(name string, possible ...string) (string, error) {
	value := p.values.Get(name)
	if !p.values.Has(name) {
		return possible[0], nil
	}
	if !slices.Contains(possible, value) {
		return "", invalidf("the parameter %q of the URL must be one of: %s", name, strings.Join(possible, ", "))
	}
	return value, nil
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
