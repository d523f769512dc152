package handlers_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/hasphttp"
	"github.com/hasp-dev/hasp/keytmpl"
)

// chi has the values of a path as they were sent where net/http has them decoded, and gin
// has a space for a plus where a path has an encoding of its own.
func TestKT2_AnIDGivesOneKeyHoweverThePathWasEncoded(t *testing.T) {
	eachFramework(t, func(t *testing.T, client *hasp.Client, serve func(*hasphttp.Options, http.HandlerFunc) string) {
		url := serve(nil, func(w http.ResponseWriter, r *http.Request) {
			for line, err := range client.List(r.Context(), "order:") {
				if err != nil {
					t.Error(err)
				}
				fmt.Fprint(w, line.Key)
			}
		})
		for _, c := range []struct{ sent, id string }{
			{"42", "42"},
			{"%34%32", "42"},
			{"a%2Fb", "a/b"},
			{"a%2fb", "a/b"},
			{"%61%2Fb", "a/b"},
			{"a%3Ab", "a:b"},
			{"50%25", "50%"},
			{"%2541", "%41"},
			{"%41%2525", "A%25"},
			{"caf%C3%A9", "café"},
			{"caf%C3%A9%2F", "café/"},
			{"a+b", "a+b"},
			{"a%2Bb", "a+b"},
			{"a+b%2Fc", "a+b/c"},
			{"a%2Bb%2Fc", "a+b/c"},
			{"a%20b", "a b"},
			{"a%20b%2Fc", "a b/c"},
			{"a+%20%2B%2F%2525", "a+ +/%25"},
		} {
			got, err := post(t.Context(), url+"/orders/"+c.sent)
			if want := "order:" + keytmpl.Escape(c.id); err != nil || got.status != http.StatusOK || got.body != want {
				t.Errorf("/orders/%s locks %+v, %v, want %q", c.sent, got, err, want)
			}
		}
	})
}
