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

func TestKT2_APathValueThatCouldMeanEitherIsRefused(t *testing.T) {
	t.Parallel()
	r := httptest.NewRequest(http.MethodPost, "/%2541/%41", http.NoBody)
	r.SetPathValue("id", "%41")
	if keys, err := keyOf(t, "order:{id}")(r); !errors.Is(err, hasp.ErrInvalid) {
		t.Errorf("%q, %v", keys, err)
	}
}
