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
// that in their values: what http.ServeMux has as "a/b" they have as "a%2Fb", and both
// must give one key.
func pathValue(r *http.Request, name string) (string, error) {
	v, raw := r.PathValue(name), r.URL.RawPath
	if raw == "" || !strings.Contains(v, "%") {
		return v, nil // without a RawPath they match what is decoded, too
	}
	if segment, ok := segmentOf(r.Pattern, raw, name); ok {
		if plain := unescape(segment); v == segment || v == plain {
			return plain, nil
		}
	}
	isRaw, isPlain := stands(v, raw)
	switch {
	case isRaw && isPlain:
		return "", fmt.Errorf("%w: {%s} is in the path twice, with the percent sign encoded and not, which could mean either", hasp.ErrInvalid, name)
	case isPlain:
		return v, nil
	}
	return unescape(v), nil
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

// stands says whether a value is a segment of a path, or all of it from some segment on,
// as it was sent, and whether it is one decoded.
func stands(v, path string) (isRaw, isPlain bool) {
	rest := path
	for rest != "" {
		_, rest, _ = strings.Cut(rest, "/")
		segment, _, _ := strings.Cut(rest, "/")
		for _, part := range []string{segment, rest} {
			isRaw = isRaw || part == v
			isPlain = isPlain || part != v && unescape(part) == v
		}
	}
	return isRaw, isPlain
}

// unescape decodes, and leaves alone what is not encoded.
func unescape(v string) string {
	plain, err := url.PathUnescape(v)
	if err != nil {
		return v
	}
	return plain
}
