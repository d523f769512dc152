package fence_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/fence"
)

func byPath(r *http.Request) (string, error) { return r.URL.Path[1:], nil }

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(final{w}, r)
	return w
}

// final records the answer and not what comes before it, which a recorder takes for it.
type final struct{ *httptest.ResponseRecorder }

func (w final) WriteHeader(status int) {
	if status >= http.StatusOK {
		w.ResponseRecorder.WriteHeader(status)
	}
}

// put is a request with these tokens.
func put(ctx context.Context, tokens ...string) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPut, "/a", nil)
	for _, token := range tokens {
		r.Header.Add(fence.Header, token)
	}
	return r
}

func TestMiddlewareRefusesWithAStatusThatSaysWhy(t *testing.T) {
	t.Parallel()
	var g fence.Gate
	wantNil(t, g.Admit("a", 64<<50))
	h := fence.Middleware(&g, byPath)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") }))
	for _, c := range []struct {
		tokens []string
		status int
		body   string
	}{
		{nil, 428, `{"success":false,"message":"invalid: no fencing token"}`},
		{[]string{""}, 400, `{"success":false,"message":"fence: invalid: \"\" is no fencing token, which is a decimal number above 0"}`},
		{[]string{"12x"}, 400, `{"success":false,"message":"fence: invalid: \"12x\" is no fencing token, which is a decimal number above 0"}`},
		{[]string{"1", "2"}, 400, `{"success":false,"message":"fence: invalid: the request carries 2 fencing tokens, want one"}`},
		{[]string{"640"}, 412, `{"success":false,"message":"stale fencing token: \"a\" has seen token 72057594037927936, this one is 640: ` +
			`somebody else has held the lock since","resource":"a","seen":"72057594037927936","given":"640"}`},
	} {
		w := serve(h, put(t.Context(), c.tokens...))
		if w.Code != c.status || w.Body.String() != c.body+"\n" {
			t.Errorf("%q is answered %d %s, want %d %s", c.tokens, w.Code, w.Body, c.status, c.body)
		}
		if got := w.Header().Get("Content-Type"); got != "application/json; charset=utf-8" {
			t.Errorf("the body is %q", got)
		}
	}
}

func TestMiddlewareRefusesWhatNamesNoResource(t *testing.T) {
	t.Parallel()
	for err, status := range map[error]int{
		fmt.Errorf("%w: no such order", hasp.ErrInvalid): http.StatusBadRequest,
		errors.New("a secret"):                           http.StatusInternalServerError,
	} {
		h := fence.Middleware(new(fence.Gate), func(*http.Request) (string, error) { return "", err })(
			http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") }))
		w := serve(h, put(t.Context(), "64"))
		var body struct {
			Success bool
			Message string
		}
		if decoded := json.Unmarshal(w.Body.Bytes(), &body); decoded != nil || body.Success || body.Message == "a secret" || w.Code != status {
			t.Errorf("%v is answered %d %s, want %d", err, w.Code, w.Body, status)
		}
	}
}

func TestMiddlewareLeavesTheAnswerToTheHandler(t *testing.T) {
	t.Parallel()
	h := fence.Middleware(new(fence.Gate), byPath)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token, err := fence.ParseHeader(r.Header)
		wantNil(t, err)
		wantNil(t, http.NewResponseController(w).Flush())
		fmt.Fprint(w, token)
	}))
	if w := serve(h, put(t.Context(), "640")); w.Code != http.StatusOK || w.Body.String() != "640" || !w.Flushed {
		t.Errorf("answered %d %q", w.Code, w.Body)
	}
}

// An answer that nobody wrote is a 200 to net/http, unless somebody says otherwise.
func TestMiddlewareAnswersForAHandlerThatWasOvertaken(t *testing.T) {
	t.Parallel()
	for begun, status := range map[bool]int{false: http.StatusPreconditionFailed, true: http.StatusAccepted} {
		synctest.Test(t, func(t *testing.T) {
			var g fence.Gate
			h := fence.Middleware(&g, byPath)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Header.Get(fence.Header) != "5" {
					return
				}
				if begun {
					w.WriteHeader(http.StatusAccepted)
				} else {
					w.WriteHeader(http.StatusEarlyHints) // is no answer yet
				}
				<-r.Context().Done()
				wantIs(t, context.Cause(r.Context()), fence.ErrStale)
			}))
			old := make(chan *httptest.ResponseRecorder)
			go func() { old <- serve(h, put(t.Context(), "5")) }()
			synctest.Wait()
			if w := serve(h, put(t.Context(), "6")); w.Code != http.StatusOK {
				t.Errorf("the later holder is answered %d %s", w.Code, w.Body)
			}
			if w := <-old; w.Code != status {
				t.Errorf("the one that was overtaken is answered %d %s, want %d", w.Code, w.Body, status)
			}
		})
	}
}

func TestMiddlewareAnswersWhoWaitedInVain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var g fence.Gate
		first := holdGate(t.Context(), &g, "a", 5)
		first.inside()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		h := fence.Middleware(&g, byPath)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it ran") }))
		if w := serve(h, put(ctx, "6")); w.Code != http.StatusServiceUnavailable {
			t.Errorf("answered %d %s", w.Code, w.Body)
		}
		close(first.goOn)
		wantStale(t, <-first.ended, "a", 6, 5)
	})
}

func TestStatusIsNeverASuccess(t *testing.T) {
	t.Parallel()
	for _, err := range []error{
		fence.ErrStale, fence.ErrNoToken, hasp.ErrInvalid, hasp.ErrLost, context.Canceled, errors.New("other"), nil,
	} {
		if status := fence.Status(err); status < 400 {
			t.Errorf("%v is %d", err, status)
		}
	}
}
