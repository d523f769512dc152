package keytmpl

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Parse reads a template. The error is a *SyntaxError.
func Parse(text string) (*Template, error) {
	p := parser{text: text}
	if err := p.run(); err != nil {
		return nil, err
	}
	return &Template{text: text, parts: p.parts}, nil
}

// ParseAll reads several templates, which give the keys of one lock. It needs at least
// one, and refuses the same template twice: it would give the same key twice.
func ParseAll(texts ...string) ([]*Template, error) {
	if len(texts) == 0 {
		return nil, &SyntaxError{Column: 1, Reason: "there is no template; give at least one"}
	}
	seen := make(map[string]bool)
	all := make([]*Template, 0, len(texts))
	for _, text := range texts {
		t, err := Parse(text)
		if err != nil {
			return nil, err
		}
		if seen[text] {
			return nil, &SyntaxError{Template: text, Column: 1, Reason: "the template is given twice, which would lock its key twice"}
		}
		seen[text] = true
		all = append(all, t)
	}
	return all, nil
}

// Keys makes the keys of several templates, in their order.
func Keys(templates []*Template, value func(name string) (string, bool)) ([]string, error) {
	keys := make([]string, 0, len(templates))
	for _, t := range templates {
		key, err := t.Key(value)
		if err != nil {
			return nil, err
		}
		keys = append(keys, key)
	}
	return keys, nil
}

type parser struct {
	text    string
	at      int // byte offset
	parts   []part
	literal strings.Builder
}

func (p *parser) run() error {
	switch {
	case p.text == "":
		return p.fail(0, "the template is empty")
	case strings.TrimSpace(p.text) == "":
		return p.fail(0, "the template is blank")
	}
	for p.at < len(p.text) {
		if err := p.next(); err != nil {
			return err
		}
	}
	p.flush()
	return nil
}

// next reads one character of text, or one placeholder.
func (p *parser) next() error {
	r, size := utf8.DecodeRuneInString(p.text[p.at:])
	rest := p.text[p.at:]
	switch {
	case r == utf8.RuneError && size == 1:
		return p.fail(p.at, "the template is not valid UTF-8")
	case r == 0:
		return p.fail(p.at, "a key cannot contain a NUL byte")
	case strings.HasPrefix(rest, "{{"), strings.HasPrefix(rest, "}}"):
		size = 2
	case r == '}':
		return p.fail(p.at, `"}" without "{"; write "}}" for a brace`)
	case r == '{':
		return p.placeholder()
	}
	p.literal.WriteRune(r)
	p.at += size
	return nil
}

func (p *parser) placeholder() error {
	start := p.at
	inside, _, ok := strings.Cut(p.text[start+1:], "}")
	if !ok || strings.Contains(inside, "{") {
		return p.fail(start, `"{" without "}"; write "{{" for a brace`)
	}
	name, filter, filtered := strings.Cut(inside, "|")
	if filtered && filter != "raw" {
		return p.fail(start+1+len(name)+1, fmt.Sprintf(`unknown filter %q; the only one is "raw"`, filter))
	}
	if at, reason := badName(name); reason != "" {
		return p.fail(start+1+at, reason)
	}
	p.flush()
	if !filtered && !p.separated() {
		return p.fail(start, "nothing separates this value from the one before it, so that different values could make one key; "+
			`put a character such as ":" or "/" between them`)
	}
	p.parts = append(p.parts, part{name: name, raw: filtered})
	p.at = start + 1 + len(inside) + 1
	return nil
}

// separated says whether an escaped value can follow: whether it is the first one, or
// the text before it has a character that no value has.
func (p *parser) separated() bool {
	if len(p.parts) == 0 {
		return true
	}
	last := p.parts[len(p.parts)-1]
	if last.name != "" {
		return last.raw
	}
	return len(p.parts) == 1 || p.parts[len(p.parts)-2].raw ||
		strings.ContainsFunc(last.text, func(r rune) bool { return r != '%' && separates(r) })
}

func (p *parser) flush() {
	if p.literal.Len() > 0 {
		p.parts = append(p.parts, part{text: p.literal.String()})
		p.literal.Reset()
	}
}

// badName says what is wrong with a placeholder's name, and at which byte of it.
func badName(name string) (at int, reason string) {
	if name == "" {
		return 0, "the placeholder has no name"
	}
	for i, r := range name {
		first := i == 0
		switch {
		case r == '.' && (first || name[i-1] == '.'), r == '.' && i == len(name)-1:
			return i, fmt.Sprintf(`the name %q has an empty part; parts are joined by single dots`, name)
		case first && (unicode.IsDigit(r) || r == '-'):
			return i, fmt.Sprintf(`the name %q begins with %q; it begins with a letter or "_"`, name, r)
		case !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-.", r):
			return i, fmt.Sprintf(`%q in a name; names have letters, digits, "_", "-" and "."`, r)
		}
	}
	return 0, ""
}

func (p *parser) fail(at int, reason string) error {
	return &SyntaxError{Template: p.text, Column: utf8.RuneCountInString(p.text[:at]) + 1, Reason: reason}
}
