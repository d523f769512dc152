package hasphttp_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/backend/memlease"
	"github.com/hasp-dev/hasp/hasphttp"
)

func TestKeysComeFromPathQueryHeaderAndCookie(t *testing.T) {
	t.Parallel()
	key := keyOf(t, "a:{id}:{query.shop}", "b:{header.x-tenant}", "c:{cookie.session|raw}")
	mux := http.NewServeMux()
	var keys []string
	var err error
	mux.HandleFunc("GET /{id}", func(_ http.ResponseWriter, r *http.Request) { keys, err = key(r) })
	r := httptest.NewRequest(http.MethodGet, "/4%2F2?shop=x+y", http.NoBody)
	r.Header.Set("X-Tenant", "acme:1")
	r.AddCookie(&http.Cookie{Name: "session", Value: "s:1"})
	mux.ServeHTTP(httptest.NewRecorder(), r)
	if want := []string{"a:4%2F2:x%20y", "b:acme%3A1", "c:s:1"}; err != nil || !slices.Equal(keys, want) {
		t.Errorf("%q, %v, want %q", keys, err, want)
	}
}

func TestKT1_ValuesThatGiveNoKeyAre400(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	for _, c := range []struct {
		template, url string
		change        func(*http.Request)
		says          string
	}{
		{"{query.id}", "/", nil, "query.id is missing"},
		{"{query.id}", "/?id=", nil, "query.id is empty"},
		{"{query.id}", "/?id=%20", nil, "query.id is blank"},
		{"{query.id}", "/?id=%3Cnil%3E", nil, "how Go prints one that is missing"},
		{"{query.id}", "/?id=%ff", nil, "query.id is not valid UTF-8"},
		{"{query.id}", "/?id=%00", nil, "query.id contains a NUL byte"},
		{"{query.id}", "/?id=" + strings.Repeat("k", 600), nil, "longer than 512 bytes"},
		{"{query.id}", "/?id=1&id=2", nil, "no valid lock key"},
		{"{header.X-Id}", "/", nil, "header.X-Id is missing"},
		{"{header.X-Id}", "/", func(r *http.Request) { r.Header["X-Id"] = []string{"1", "2"} }, "no valid lock key"},
		{"{cookie.id}", "/", nil, "cookie.id is missing"},
		{"{id}", "/", nil, "id is missing"},
	} {
		handler := hasphttp.Middleware(s.client, keyOf(t, c.template), nil)(http.HandlerFunc(
			func(http.ResponseWriter, *http.Request) { t.Errorf("%s of %s: the handler runs", c.template, c.url) }))
		r := httptest.NewRequest(http.MethodGet, c.url, http.NoBody)
		if c.change != nil {
			c.change(r)
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s of %s: %d %s, want 400 and %q", c.template, c.url, w.Code, w.Body, c.says)
		}
	}
}

func TestKT1_ARequestWithoutAKeyIsCountedByTheClient(t *testing.T) {
	t.Parallel()
	var told []hasp.Event
	client, err := hasp.New(memlease.NewStore().Driver(), &hasp.Options{
		Lock:    hasp.LockOptions{Label: "orders"},
		Observe: func(_ context.Context, e hasp.Event) { told = append(told, e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	handler := hasphttp.Middleware(client, keyOf(t, "order:{query.id}"), nil)(http.NotFoundHandler())
	urls := []string{"/", "/?id=", "/?id=1&id=2", "/?id=" + strings.Repeat("k", 600)}
	for _, url := range urls {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, url, http.NoBody))
	}
	if len(told) != len(urls) {
		t.Errorf("%d events, want %d", len(told), len(urls))
	}
	for _, e := range told {
		if e.Kind != hasp.EventRefused || e.Op != "acquire" || e.Label != "orders" || !errors.Is(e.Err, hasp.ErrInvalid) {
			t.Errorf("the client tells %+v", e)
		}
	}
	if err := client.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAKeyThatIsTooLongWithThePrefixIs400(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	handler := hasphttp.Middleware(s.client.Sub(strings.Repeat("p", 10)), keyOf(t, "{query.id}"), nil)(http.NotFoundHandler())
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/?id="+strings.Repeat("k", 510), http.NoBody))
	if w.Code != http.StatusBadRequest {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAFunctionMayGiveTheKey(t *testing.T) {
	t.Parallel()
	s := newStage(t, nil, nil)
	secret := errors.New("secret of the server")
	for want, key := range map[int]hasphttp.KeyFunc{
		http.StatusOK:         func(*http.Request) ([]string, error) { return []string{"a", "b"}, nil },
		http.StatusBadRequest: func(*http.Request) ([]string, error) { return nil, secret },
	} {
		w := httptest.NewRecorder()
		ok := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
		hasphttp.Middleware(s.client, key, nil)(ok).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
		if w.Code != want || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("%d %s, want %d", w.Code, w.Body, want)
		}
	}
	none := func(*http.Request) ([]string, error) { return nil, nil }
	w := httptest.NewRecorder()
	hasphttp.Middleware(s.client, none, nil)(http.NotFoundHandler()).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	if w.Code != http.StatusBadRequest {
		t.Errorf("no key: %d", w.Code)
	}
}

func TestTemplatesThatCannotBeRightAreSaidAtOnce(t *testing.T) {
	t.Parallel()
	for template, says := range map[string]string{
		"order:{id":       "column 7",
		"{body.id}":       "{body.id}",
		"{Query.id}":      "{query.name}",
		"{header.Host}":   "Request.Host",
		"{query.a}{id}":   "nothing separates",
		"{cookie.a|trim}": "unknown filter",
	} {
		if _, err := hasphttp.Key(template); !errors.Is(err, hasp.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", template, err, says)
		}
	}
}
