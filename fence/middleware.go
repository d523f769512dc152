package fence

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/hasp-dev/hasp"
)

// Middleware lets requests through to a handler by their tokens: resource says what a
// request writes to, best by the name of the key that was locked for it. Requests of one
// resource run as under [Gate.Do]: side by side with the same token, and never beside or
// after one with a larger token. The handler's context ends when a larger token has come.
//
// A stale request is answered by [WriteError], and so is one without a token, one that
// resource refuses (with an error of hasp.ErrInvalid: 400), and one whose handler was
// overtaken and returned without an answer. None of them is a 2xx. A handler that answers by itself after it was overtaken did its
// work before the next one began.
func Middleware(gate *Gate, resource func(*http.Request) (string, error)) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			a := &answer{ResponseWriter: w}
			if err := pass(gate, resource, next, a, r); err != nil && !a.begun {
				WriteError(w, err)
			}
		})
	}
}

// pass runs the handler if the gate lets the request in.
func pass(gate *Gate, resource func(*http.Request) (string, error), next http.Handler, a *answer, r *http.Request) error {
	token, err := ParseHeader(r.Header)
	if err != nil {
		return err
	}
	name, err := resource(r)
	if err != nil {
		return err
	}
	return gate.Do(r.Context(), name, token, func(ctx context.Context) error {
		next.ServeHTTP(a, r.WithContext(ctx))
		var stale *StaleError
		if errors.As(context.Cause(ctx), &stale) {
			return stale
		}
		return nil
	})
}

// answer knows whether the handler has begun to answer.
type answer struct {
	http.ResponseWriter
	begun bool
}

// WriteHeader notes that the answer has begun.
func (a *answer) WriteHeader(status int) {
	a.begun = a.begun || status >= http.StatusOK // 1xx come before the answer
	a.ResponseWriter.WriteHeader(status)
}

// Write notes that the answer has begun.
func (a *answer) Write(b []byte) (int, error) {
	a.begun = true
	return a.ResponseWriter.Write(b)
}

// Flush begins the answer if the writer below can.
func (a *answer) Flush() {
	a.begun = true
	_ = http.NewResponseController(a.ResponseWriter).Flush() // what cannot flush, does not
}

// Unwrap leads http.ResponseController to the writer below.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// refusal is the body of an answer.
type refusal struct {
	Success  bool   `json:"success"`
	Message  string `json:"message"`
	Resource string `json:"resource,omitempty"`
	Seen     int64  `json:"seen,omitempty,string"`
	Given    int64  `json:"given,omitempty,string"`
}

// WriteError answers a request whose token or write was refused, with the error's text in
// JSON: 412 for ErrStale, 428 for ErrNoToken, 400 for hasp.ErrInvalid, 503 for a context
// that ended. Any other error is a 500 without its text, which may be a secret.
func WriteError(w http.ResponseWriter, err error) {
	status := Status(err)
	body := refusal{Message: http.StatusText(status)}
	if status != http.StatusInternalServerError {
		body.Message = err.Error()
	}
	var stale *StaleError
	if errors.As(err, &stale) {
		body.Message = stale.Error()
		body.Resource, body.Seen, body.Given = stale.Resource, stale.Seen, stale.Given
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body) // whoever asked may have left
}

// Status is the HTTP status that WriteError answers with; it is never a success.
func Status(err error) int {
	switch {
	case errors.Is(err, ErrStale):
		return http.StatusPreconditionFailed
	case errors.Is(err, ErrNoToken):
		return http.StatusPreconditionRequired
	case errors.Is(err, hasp.ErrInvalid):
		return http.StatusBadRequest
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}
