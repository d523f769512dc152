package hasphttp

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/keytmpl"
)

// KeyFunc answers the keys of a request's lock: one, or several, all or nothing. Where it
// fails the handler does not run, and the client is told that its request is at fault.
type KeyFunc func(*http.Request) ([]string, error)

// KeyError says that a request gives no key that could be locked. It matches what it
// wraps, mostly [hasp.ErrInvalid].
type KeyError struct{ Err error }

// Error says what is wrong with the key.
func (e *KeyError) Error() string { return "no key to lock: " + e.Err.Error() }

// Unwrap returns the reason.
func (e *KeyError) Unwrap() error { return e.Err }

// Key makes a KeyFunc of templates, one for each key; see package keytmpl. In a template
// {name} is a wildcard of the route's path ([http.Request.PathValue]; so with
// http.ServeMux and routers that set it), decoded also where the router did not do that, {query.name} a parameter of the URL,
// {header.Name} a header and {cookie.name} a cookie. A value that is missing, empty, or
// there more than once is an error; so is, at once, a template that cannot be right.
func Key(template string, more ...string) (KeyFunc, error) {
	templates, err := keytmpl.ParseAll(append([]string{template}, more...)...)
	if err != nil {
		return nil, err
	}
	for _, t := range templates {
		for _, name := range t.Names() {
			if err := checkName(name); err != nil {
				return nil, fmt.Errorf("%w: key template %q: %w", hasp.ErrInvalid, t, err)
			}
		}
	}
	return func(r *http.Request) ([]string, error) {
		s := source{request: r}
		keys, err := keytmpl.Keys(templates, s.value)
		if s.err != nil {
			return nil, s.err
		}
		return keys, err
	}, nil
}

// checkName refuses what no request can have.
func checkName(name string) error {
	kind, rest, dotted := strings.Cut(name, ".")
	switch {
	case !dotted:
		return nil
	case kind != "query" && kind != "header" && kind != "cookie":
		return fmt.Errorf("{%s}: a value comes from the path as {name}, or as {query.name}, {header.Name}, {cookie.name}", name)
	case kind == "header" && strings.EqualFold(rest, "Host"):
		return fmt.Errorf("{%s}: the host is no header of a request; use a function that reads Request.Host", name)
	}
	return nil
}

// source takes values out of one request.
type source struct {
	request *http.Request
	err     error // what is wrong beyond a missing value
}

func (s *source) value(name string) (string, bool) {
	kind, rest, dotted := strings.Cut(name, ".")
	if !dotted {
		return s.fromPath(name)
	}
	var all []string
	switch kind {
	case "query":
		all = s.request.URL.Query()[rest]
	case "header":
		all = s.request.Header.Values(rest)
	case "cookie":
		for _, c := range s.request.CookiesNamed(rest) {
			all = append(all, c.Value)
		}
	}
	if len(all) > 1 && s.err == nil {
		s.err = fmt.Errorf("%w: {%s} is given %d times, which could mean either", hasp.ErrInvalid, name, len(all))
	}
	if len(all) == 0 {
		return "", false
	}
	return all[0], true
}

func (s *source) fromPath(name string) (string, bool) {
	v, err := pathValue(s.request, name)
	if err != nil && s.err == nil {
		s.err = err
	}
	if pattern := s.request.Pattern; v == "" && pattern != "" && s.err == nil && !has(pattern, name) {
		s.err = &routeError{name: name, pattern: pattern}
	}
	return v, v != ""
}

// has says whether a route's pattern has a wildcard of that name: {name}, {name...}, or
// {name:expression} as some routers have it.
func has(pattern, name string) bool {
	for _, end := range []string{"}", ".", ":"} {
		if strings.Contains(pattern, "{"+name+end) {
			return true
		}
	}
	return false
}

// routeError says that the route has no such wildcard, which is not the client's fault.
type routeError struct{ name, pattern string }

// Error says what is missing where.
func (e *routeError) Error() string {
	return fmt.Sprintf("the key needs {%s}, which the route %q does not have", e.name, e.pattern)
}

// Is matches hasp.ErrInvalid.
func (e *routeError) Is(target error) bool { return target == hasp.ErrInvalid }
