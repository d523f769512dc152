package keytmpl_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/keytmpl"
)

// from makes a lookup of pairs of name and value.
func from(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func parse(t *testing.T, text string) *keytmpl.Template {
	t.Helper()
	tmpl, err := keytmpl.Parse(text)
	if err != nil {
		t.Fatalf("Parse(%q): %v", text, err)
	}
	return tmpl
}

func TestKeysOfTemplates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		template string
		values   []string
		want     string
	}{
		{"nightly", nil, "nightly"},
		{"order:{orderId}", []string{"orderId", "42"}, "order:42"},
		{"order:{order.ID}:{query.x-y}", []string{"order.ID", "7", "query.x-y", "b"}, "order:7:b"},
		{"{a}:{b}", []string{"a", "x:y", "b", "z"}, "x%3Ay:z"},
		{"{a}:{a}", []string{"a", "1"}, "1:1"},
		{"u/{name}", []string{"name", "Jürgen Ω 東京"}, "u/Jürgen%20Ω%20東京"},
		{"u/{name}", []string{"name", "100%"}, "u/100%25"},
		{"u/{name}", []string{"name", "a{b}c\n"}, "u/a%7Bb%7Dc%0A"},
		{"u/{name|raw}", []string{"name", "a:b/c d"}, "u/a:b/c d"},
		{"{a|raw}{b}", []string{"a", "x:", "b", "y:"}, "x:y%3A"},
		{"{{{id}}}", []string{"id", "1"}, "{1}"},
		{"# lit %3A {id} !\n", []string{"id", "1"}, "# lit %3A 1 !\n"},
		{"e-mail {id}", []string{"id", "a.b-c_d~e"}, "e-mail a.b-c_d~e"},
	} {
		got, err := parse(t, c.template).Key(from(c.values...))
		if err != nil || got != c.want {
			t.Errorf("%q with %q: %q, %v, want %q", c.template, c.values, got, err, c.want)
		}
	}
}

func TestKT2_DifferentPartsMakeDifferentKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ template, a1, b1, a2, b2 string }{
		{"{a}:{b}", "a:b", "c", "a", "b:c"},
		{"{a},{b}", "a", "b,c", "a,b", "c"},
		{"{a}x:{b}", "1x", "2", "1", "x:2"},
		{"{a}:{b}", "a%3Ab", "c", "a:b", "c"},
		{"{a} {b}", "a b", "c", "a", "b c"},
	} {
		tmpl := parse(t, c.template)
		one, err1 := tmpl.Key(from("a", c.a1, "b", c.b1))
		two, err2 := tmpl.Key(from("a", c.a2, "b", c.b2))
		if err1 != nil || err2 != nil || one == two {
			t.Errorf("%q: (%q, %q) and (%q, %q) make %q, %v and %q, %v",
				c.template, c.a1, c.b1, c.a2, c.b2, one, err1, two, err2)
		}
	}
}

func TestKT1_AMissingOrEmptyValueIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	tmpl := parse(t, "order:{id}")
	for _, c := range []struct {
		value  []string
		reason string
	}{
		{nil, "is missing"},
		{[]string{"id", ""}, "is empty"},
		{[]string{"id", " \t "}, "is blank"},
		{[]string{"id", "<nil>"}, `is "<nil>", which is how Go prints one that is missing`},
		{[]string{"id", "\xff"}, "is not valid UTF-8"},
		{[]string{"id", "a\x00b"}, "contains a NUL byte"},
		{[]string{"id", strings.Repeat("k", 507)}, "makes the key longer than 512 bytes"},
	} {
		key, err := tmpl.Key(from(c.value...))
		var bad *keytmpl.ValueError
		if key != "" || !errors.As(err, &bad) || bad.Name != "id" || bad.Reason != c.reason || !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("%q: %q, %v, want an error that {id} %s", c.value, key, err, c.reason)
		}
	}
	if key, err := tmpl.Key(from("id", strings.Repeat("k", 506))); err != nil || len(key) != 512 {
		t.Errorf("a key of 512 bytes: %d bytes, %v", len(key), err)
	}
}

func TestAnErrorDoesNotTellTheValue(t *testing.T) {
	t.Parallel()
	_, err := parse(t, "s:{token|raw}").Key(from("token", "hunter2\x00"))
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

func TestBadTemplatesNameThePlace(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		template string
		column   int
		reason   string
	}{
		{"", 1, "empty"},
		{" \n", 1, "blank"},
		{"order:{}", 8, "no name"},
		{"order:{id", 7, `"{" without "}"`},
		{"ärger:{a{b}}", 7, `"{" without "}"`},
		{"order:id}", 9, `"}" without "{"`},
		{"order:{id|upper}", 11, "unknown filter"},
		{"order:{id|}", 11, "unknown filter"},
		{"order:{ id}", 8, `' ' in a name`},
		{"order:{order..id}", 14, "empty part"},
		{"order:{.id}", 8, "empty part"},
		{"order:{id.}", 10, "empty part"},
		{"order:{1}", 8, "begins with"},
		{"order:{-x}", 8, "begins with"},
		{"{a}{b}", 4, "nothing separates"},
		{"{a}-{b}", 5, "nothing separates"},
		{"{a}xyz{b}", 7, "nothing separates"},
		{"{a}%{b}", 5, "nothing separates"},
		{"a\x00b", 2, "NUL"},
		{"a\xffb", 2, "UTF-8"},
	} {
		_, err := keytmpl.Parse(c.template)
		var bad *keytmpl.SyntaxError
		if !errors.As(err, &bad) || bad.Column != c.column || !strings.Contains(bad.Reason, c.reason) || !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("%q: %v, want column %d, %q", c.template, err, c.column, c.reason)
		}
	}
}

func TestNamesStandOnceInTheirOrder(t *testing.T) {
	t.Parallel()
	tmpl := parse(t, "{b}:{a}:{b}:x")
	if got := tmpl.Names(); !slices.Equal(got, []string{"b", "a"}) || tmpl.String() != "{b}:{a}:{b}:x" {
		t.Errorf("%q has %q", tmpl, got)
	}
}

func TestSeveralTemplatesGiveSeveralKeysOrNone(t *testing.T) {
	t.Parallel()
	all, err := keytmpl.ParseAll("account:{from}", "account:{to}")
	if err != nil {
		t.Fatal(err)
	}
	keys, err := keytmpl.Keys(all, from("from", "a", "to", "b"))
	if err != nil || !slices.Equal(keys, []string{"account:a", "account:b"}) {
		t.Errorf("%q, %v", keys, err)
	}
	if keys, err := keytmpl.Keys(all, from("from", "a")); err == nil || keys != nil {
		t.Errorf("without {to}: %q, %v", keys, err)
	}
	for _, texts := range [][]string{nil, {"a", "a"}, {"a", "{"}} {
		if _, err := keytmpl.ParseAll(texts...); !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("ParseAll(%q): %v", texts, err)
		}
	}
}

// What the documentation says of escaped values, for any values.
func FuzzDifferentValuesMakeDifferentKeys(f *testing.F) {
	f.Add("a:b", "c", "a", "b:c")
	f.Add("a%3Ab", "c", "a:b", "c")
	f.Add("é", "\u0301", "e", "\u0301\u0301")
	f.Fuzz(func(t *testing.T, a1, b1, a2, b2 string) {
		for _, text := range []string{"{a}:{b}", "{a}x:y{b}", "{b} {a}", "k{a}/z{b}1"} {
			tmpl := parse(t, text)
			one, err1 := tmpl.Key(from("a", a1, "b", b1))
			two, err2 := tmpl.Key(from("a", a2, "b", b2))
			if err1 != nil || err2 != nil {
				continue
			}
			if (one == two) != (a1 == a2 && b1 == b2) {
				t.Errorf("%q: (%q, %q) makes %q, (%q, %q) makes %q", text, a1, b1, one, a2, b2, two)
			}
		}
	})
}

func FuzzParseNeverPanics(f *testing.F) {
	for _, s := range []string{"order:{id}", "{a}{b}", "{{}}", "{a|raw}", "{", "}", "{é.x-1}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tmpl, err := keytmpl.Parse(text)
		if err != nil {
			return
		}
		key, err := tmpl.Key(func(string) (string, bool) { return "v", true })
		if err == nil && key == "" {
			t.Errorf("%q makes an empty key", text)
		}
	})
}
