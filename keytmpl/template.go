package keytmpl

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// maxKeyBytes is the longest key of any store. A client's prefix counts as well, which
// only the client knows.
const maxKeyBytes = 512

// Template is a parsed template. It is not changed by use and may be shared.
type Template struct {
	text  string
	parts []part
}

// part is some text, or a placeholder.
type part struct {
	text string // with "{{" and "}}" resolved; empty for a placeholder
	name string // empty for text
	raw  bool
}

// String answers the template as it was parsed.
func (t *Template) String() string { return t.text }

// Names answers the names of the placeholders, each once, in the order of the template.
func (t *Template) Names() []string {
	var names []string
	for _, p := range t.parts {
		if p.name != "" && !slices.Contains(names, p.name) {
			names = append(names, p.name)
		}
	}
	return names
}

// Key makes the key. Value answers the value of a name, and false where there is none;
// it is asked for each placeholder in turn. The error is a *ValueError.
func (t *Template) Key(value func(name string) (string, bool)) (string, error) {
	var key strings.Builder
	for _, p := range t.parts {
		if p.name == "" {
			key.WriteString(p.text)
			continue
		}
		v, ok := value(p.name)
		if reason := unfit(v, ok); reason != "" {
			return "", &ValueError{Template: t.text, Name: p.name, Reason: reason}
		}
		if !p.raw {
			v = Escape(v)
		}
		key.WriteString(v)
		if key.Len() > maxKeyBytes {
			return "", &ValueError{Template: t.text, Name: p.name, Reason: "makes the key longer than 512 bytes"}
		}
	}
	return key.String(), nil
}

// unfit says what is wrong with a value; empty: nothing.
func unfit(v string, ok bool) string {
	switch {
	case !ok:
		return "is missing"
	case v == "":
		return "is empty"
	case !utf8.ValidString(v):
		return "is not valid UTF-8"
	case strings.IndexByte(v, 0) >= 0:
		return "contains a NUL byte"
	case strings.TrimSpace(v) == "":
		return "is blank"
	case v == "<nil>":
		return `is "<nil>", which is how Go prints one that is missing`
	}
	return ""
}
