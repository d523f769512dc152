package hasphttp

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/hasp-dev/hasp"
)

// pathValue answers a wildcard of the route's path, decoded. Some routers match the path
// as it was sent where it has an encoding of its own, such as %2F for a slash, and leave
// that in their values: what http.ServeMux has as "a/b" they have as "a%2Fb". Others, gin
// among them, decode such a path as if it were a form, and have "a b/c" for "a+b%2Fc". All
// must give one key.
func pathValue(r *http.Request, name string) (string, error) {
	v, raw := r.PathValue(name), r.URL.RawPath
	if raw == "" || !strings.ContainsAny(v, "% ") {
		return v, nil // without a RawPath they match what is decoded, too
	}
	if segment, ok := segmentOf(r.Pattern, raw, name); ok {
		if plain := unescape(segment); v == segment || v == plain {
			return plain, nil
		}
	}
	switch meant := meanings(v, raw); len(meant) {
	case 0:
		return unescape(v), nil
	case 1:
		return meant[0], nil
	}
	return "", fmt.Errorf("%w: {%s} is in the path twice, encoded in two ways, which could mean either", hasp.ErrInvalid, name)
}

// segmentOf finds the segment of a path that a wildcard of a route's pattern stands for,
// where both have the same number of segments.
func segmentOf(pattern, path, name string) (string, bool) {
	_, route, _ := strings.Cut(pattern, "/") // without method and host
	wild, segments := strings.Split(route, "/"), strings.Split(strings.TrimPrefix(path, "/"), "/")
	at := slices.Index(wild, "{"+name+"}")
	if at < 0 || len(wild) != len(segments) || slices.Contains(wild, "*") {
		return "", false
	}
	return segments[at], true
}

// meanings answers all that a value can mean: each segment of a path, or all of it from
// some segment on, decoded, of which the value is what was sent, or what a router makes of
// that.
func meanings(v, path string) []string {
	var all []string
	rest := path
	for rest != "" {
		_, rest, _ = strings.Cut(rest, "/")
		segment, _, _ := strings.Cut(rest, "/")
		for _, part := range []string{segment, rest} {
			plain := unescape(part)
			form, err := url.QueryUnescape(part)
			if (v == part || v == plain || err == nil && v == form) && !slices.Contains(all, plain) {
				all = append(all, plain)
			}
		}
	}
	return all
}

// unescape decodes, and leaves alone what is not encoded.
func unescape(v string) string {
	plain, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return plain
}
