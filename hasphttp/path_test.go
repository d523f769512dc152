package hasphttp_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hasp-dev/hasp"
)

// A router that matches the path as it was sent has values that are still encoded; one
// that decodes it has not. Both must lock the same key.
func TestKT2_APathValueGivesOneKeyHoweverItWasEncoded(t *testing.T) {
	t.Parallel()
	key := keyOf(t, "order:{id}")
	for _, c := range []struct{ pattern, sent, raw, plain, want string }{
		{"POST /orders/{id}", "/orders/a%2Fb", "a%2Fb", "a/b", "order:a%2Fb"},
		{"/orders/{id}", "/orders/a%2fb", "a%2fb", "a/b", "order:a%2Fb"},
		{"/orders/{id}", "/orders/%41", "%41", "A", "order:A"},
		{"/orders/{id}", "/orders/%41%25", "%41%25", "A%", "order:A%25"},
		{"/orders/{id}", "/orders/%2541%2F", "%2541%2F", "%41/", "order:%2541%2F"},
		{"/{shop}/{id}", "/a%2Fb/%2525", "%2525", "%25", "order:%2525"},
		{"/{shop}/{id}", "/%2541/%41", "%41", "A", "order:A"},
		{"/{shop}/{id}", "/%41/%2541", "%2541", "%41", "order:%2541"},
		{"/files/{id...}", "/files/a%2Fb/c%25", "a%2Fb/c%25", "a/b/c%", "order:a%2Fb%2Fc%25"},
		{"", "/api/a%2Fb%25/pay", "a%2Fb%25", "a/b%", "order:a%2Fb%25"},
		{"/orders/{id:[a-z%0-9]+}.json", "/orders/%41.json", "%41", "A", "order:A"},
	} {
		for _, value := range []string{c.raw, c.plain} {
			r := httptest.NewRequest(http.MethodPost, c.sent, http.NoBody)
			r.Pattern = c.pattern
			r.SetPathValue("id", value)
			keys, err := key(r)
			if err != nil || len(keys) != 1 || keys[0] != c.want {
				t.Errorf("%s with the value %q: %q, %v, want %q", c.sent, value, keys, err, c.want)
			}
		}
	}
}

// gin with UseRawPath decodes a value as if it were of a form.
func TestKT2_APlusInAPathIsAPlusAlsoWhereARouterMakesItASpace(t *testing.T) {
	t.Parallel()
	key := keyOf(t, "order:{id}")
	for _, c := range []struct{ sent, value, want string }{
		{"/orders/a+b%2Fc", "a b/c", "order:a%2Bb%2Fc"},
		{"/orders/a+b%2Fc", "a+b/c", "order:a%2Bb%2Fc"},
		{"/orders/a%20b%2Fc", "a b/c", "order:a%20b%2Fc"},
		{"/orders/a%2Bb%2Fc", "a+b/c", "order:a%2Bb%2Fc"},
		{"/orders/a+b%2525%2F", "a b%25/", "order:a%2Bb%2525%2F"},
		{"/a%2Fb/a+b", "a b", "order:a%2Bb"},
	} {
		r := httptest.NewRequest(http.MethodPost, c.sent, http.NoBody)
		r.SetPathValue("id", c.value)
		if keys, err := key(r); err != nil || len(keys) != 1 || keys[0] != c.want {
			t.Errorf("%s with the value %q: %q, %v, want %q", c.sent, c.value, keys, err, c.want)
		}
	}
}

func TestKT2_APathValueThatCouldMeanEitherIsRefused(t *testing.T) {
	t.Parallel()
	for sent, value := range map[string]string{"/%2541/%41": "%41", "/a+b%2F/a%20b%2F": "a b/"} {
		r := httptest.NewRequest(http.MethodPost, sent, http.NoBody)
		r.SetPathValue("id", value)
		if keys, err := keyOf(t, "order:{id}")(r); !errors.Is(err, hasp.ErrInvalid) {
			t.Errorf("%s: %q, %v", sent, keys, err)
		}
	}
}
