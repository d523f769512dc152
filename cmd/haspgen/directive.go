package main

import (
	"errors"
	"fmt"
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/hasp-dev/hasp/keytmpl"
)

// mark begins a directive.
const mark = "//hasp:lock"

// directive is what a //hasp:lock comment says. Durations are as they were written.
type directive struct {
	keys       []key
	store      string
	prefix     string
	expiration string
	timeout    string
	retry      string
	refresh    string
	manual     bool
	shared     bool
	client     string // empty: the one client of the constructor
	at         token.Position
}

// key is a template and where it stands.
type key struct {
	template *keytmpl.Template
	at       token.Position
}

// Defaults of a directive, which are those of easy-lock's annotation.
const (
	defaultStore      = "lock"
	defaultExpiration = "60s"
	defaultTimeout    = "30s"
	defaultRetry      = "100ms"
	defaultRefresh    = "10s"
)

// fault is an error with its place.
type fault struct {
	at     token.Position
	reason string
}

// Error says file, line, column and reason.
func (f *fault) Error() string { return f.at.String() + ": " + f.reason }

func faultf(at token.Position, format string, args ...any) error {
	return &fault{at: at, reason: fmt.Sprintf(format, args...)}
}

// directiveOf finds the directive in the comment above a method; nil: there is none.
func directiveOf(files *token.FileSet, comments *ast.CommentGroup) (*directive, error) {
	if comments == nil {
		return nil, nil //nolint:nilnil // no directive is no failure
	}
	var found *directive
	for _, c := range comments.List {
		at := files.Position(c.Pos())
		rest, ok := strings.CutPrefix(c.Text, mark)
		if !ok || rest != "" && !unicode.IsSpace(rune(rest[0])) {
			if name, _, _ := strings.Cut(c.Text, " "); strings.HasPrefix(name, "//hasp:") {
				return nil, faultf(at, "unknown directive %s; there is %s", name, mark)
			}
			continue
		}
		if found != nil {
			return nil, faultf(at, "a second %s on one method; give several keys in one, as key=… key=…", mark)
		}
		d, err := parseDirective(rest, at)
		if err != nil {
			return nil, err
		}
		found = d
	}
	return found, nil
}

// almost finds a comment that was meant for a directive.
func almost(files *token.FileSet, comments *ast.CommentGroup) error {
	if comments == nil {
		return nil
	}
	for _, c := range comments.List {
		if strings.HasPrefix(strings.Join(strings.Fields(c.Text), ""), mark) {
			return faultf(files.Position(c.Pos()), "write %s without a space; so it is only a comment", mark)
		}
	}
	return nil
}

// parseDirective reads the attributes of a directive, which begins at a place.
func parseDirective(text string, at token.Position) (*directive, error) {
	d := &directive{
		store: defaultStore, expiration: defaultExpiration, timeout: defaultTimeout,
		retry: defaultRetry, refresh: defaultRefresh, at: at,
	}
	seen := make(map[string]bool)
	s := scanner{text: text, at: at}
	s.at.Column += len(mark)
	for {
		a, err := s.next()
		if err != nil {
			return nil, err
		}
		if a.name == "" {
			break
		}
		if seen[a.name] && a.name != "key" {
			return nil, faultf(a.at, "%s is given twice", a.name)
		}
		seen[a.name] = true
		if err := d.set(a.name, a.value, a.at); err != nil {
			return nil, err
		}
	}
	if len(d.keys) == 0 {
		return nil, faultf(at, `no key; write one as key="order:{orderId}"`)
	}
	if d.shared && len(d.keys) > 1 {
		return nil, faultf(at, "a shared lock has one key, here are %d", len(d.keys))
	}
	return d, nil
}

// set gives an attribute its value.
func (d *directive) set(name, value string, at token.Position) (err error) {
	switch name {
	case "key":
		t, err := keytmpl.Parse(value)
		if err != nil {
			return faultf(at, "%v", err)
		}
		d.keys = append(d.keys, key{template: t, at: at})
	case "store":
		d.store = value
	case "prefix":
		d.prefix = value
	case "expiration":
		d.expiration = value
	case "timeout":
		d.timeout = value
	case "retry":
		d.retry = value
	case "refresh":
		d.refresh = value
	case "manual":
		d.manual, err = flagOf(value)
	case "shared":
		d.shared, err = flagOf(value)
	case "client":
		if value != "auto" {
			d.client = value
		}
		if !token.IsIdentifier(value) {
			err = errors.New("it is no Go identifier")
		}
	default:
		return faultf(at, "unknown attribute %q; there are key, store, prefix, expiration, timeout, retry, refresh, manual, shared and client", name)
	}
	if err == nil {
		err = d.checkTimes(name, value)
	}
	if err != nil {
		return faultf(at, "%s=%s: %v", name, value, err)
	}
	return nil
}

// checkTimes says what is wrong with a duration, as far as it can be known without the
// environment.
func (d *directive) checkTimes(name, value string) error {
	least := time.Duration(0)
	switch name {
	case "expiration":
		least = leastExpiration
	case "retry":
		least = leastRetry
	case "timeout", "refresh":
	default:
		return nil
	}
	if _, err := keytmpl.Duration(value, func(string) (string, bool) { return "1s", true }); err != nil {
		return err
	}
	if needsEnvironment(value) {
		return nil
	}
	got, err := keytmpl.Duration(value, func(string) (string, bool) { return "", false }) // the defaults
	if err == nil && got < least {
		err = fmt.Errorf("at least %s is needed", least)
	}
	return err
}

// The least durations that a lock can have; the others may be 0, which has a meaning.
const (
	leastExpiration = 100 * time.Millisecond
	leastRetry      = time.Millisecond
)

// needsEnvironment says whether a setting has a placeholder without a default.
func needsEnvironment(setting string) bool {
	for {
		_, rest, found := strings.Cut(setting, "${")
		if !found {
			return false
		}
		inside, next, _ := strings.Cut(rest, "}")
		if !strings.Contains(inside, ":") {
			return true
		}
		setting = next
	}
}

func flagOf(value string) (bool, error) {
	if value == "" {
		return true, nil
	}
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, errors.New("write it alone, or with true or false")
	}
	return b, nil
}

// scanner splits a directive into attributes.
type scanner struct {
	text string
	at   token.Position
}

// attribute is what a directive says, name=value, and where.
type attribute struct {
	name, value string
	at          token.Position
}

// next answers the next attribute; without a name: there is none.
func (s *scanner) next() (attribute, error) {
	for s.text != "" && (s.text[0] == ' ' || s.text[0] == '\t') {
		s.skip(1)
	}
	a := attribute{at: s.at}
	end := strings.IndexFunc(s.text, func(r rune) bool { return r == '=' || unicode.IsSpace(r) })
	if end < 0 {
		end = len(s.text)
	}
	if a.name = s.text[:end]; a.name == "" && s.text != "" {
		return a, faultf(a.at, `"=" without a name; attributes are written as name=value`)
	}
	s.skip(end)
	if !strings.HasPrefix(s.text, "=") {
		return a, nil
	}
	s.skip(1)
	var err error
	a.value, err = s.value()
	return a, err
}

// value reads a word, or a string as in Go.
func (s *scanner) value() (string, error) {
	if s.text == "" || s.text[0] != '"' && s.text[0] != '`' {
		end := strings.IndexFunc(s.text, unicode.IsSpace)
		if end < 0 {
			end = len(s.text)
		}
		word := s.text[:end]
		s.skip(end)
		return word, nil
	}
	quoted, err := strconv.QuotedPrefix(s.text)
	if err != nil {
		return "", faultf(s.at, "the string is not closed, or has an escape that Go does not know")
	}
	s.skip(len(quoted))
	value, err := strconv.Unquote(quoted)
	if err != nil || !utf8.ValidString(value) {
		return "", faultf(s.at, "%s is no string of valid UTF-8", quoted)
	}
	return value, nil
}

func (s *scanner) skip(n int) {
	s.text = s.text[n:]
	s.at.Column += n
	s.at.Offset += n
}
