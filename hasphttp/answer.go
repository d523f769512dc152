package hasphttp

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/hasp-dev/hasp"
	"github.com/hasp-dev/hasp/keytmpl"
)

// statusGone is what servers write to their log for a client that went away.
const statusGone = 499

// Status answers the HTTP status of an error of this package or of package hasp; see
// the package's documentation. It is never one of success.
func Status(err error) int {
	var badKey *KeyError
	switch {
	case errors.As(err, &badKey):
		return http.StatusBadRequest
	case errors.Is(err, errGone):
		return statusGone
	case errors.Is(err, hasp.ErrHeld):
		return http.StatusConflict
	case errors.Is(err, hasp.ErrInvalid), errors.Is(err, hasp.ErrUnsupported):
		return http.StatusInternalServerError
	}
	return http.StatusServiceUnavailable
}

// Error answers a request with an error of this package or of package hasp, as the
// package's documentation says. The answer tells what is wrong with the request, and
// nothing of the server's inside.
func Error(w http.ResponseWriter, err error) {
	if after := retryAfter(err); after > 0 {
		w.Header().Set("Retry-After", strconv.FormatInt(after, 10))
	}
	for _, ofTheAnswerReplaced := range []string{"Content-Length", "Content-Encoding", "Content-Range", "Etag", "Last-Modified", "Cache-Control", "Location", "Trailer"} {
		w.Header().Del(ofTheAnswerReplaced)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(Status(err))
	if body, err := json.Marshal(answer{Message: message(err)}); err == nil { // without the newline of an Encoder
		_, _ = w.Write(body) // a client that has gone is told nothing
	}
}

type answer struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

func message(err error) string {
	var value *keytmpl.ValueError
	switch Status(err) {
	case http.StatusBadRequest:
		if errors.As(err, &value) {
			return "The value of " + value.Name + " " + value.Reason
		}
		return "The request gives no valid lock key"
	case http.StatusConflict:
		return "Lock not acquired"
	case statusGone:
		return "The client has gone away"
	case http.StatusInternalServerError:
		return "The lock is not set up correctly"
	}
	switch {
	case errors.Is(err, hasp.ErrLost):
		return "Lock lost"
	case errors.Is(err, ErrNotLeading):
		return "This server does not lead"
	case errors.Is(err, ErrStopping), errors.Is(err, hasp.ErrClosed):
		return "The server is shutting down"
	}
	return "Lock unavailable"
}

// retryAfter is when the lock expires unless it is renewed, in whole seconds; 0: unknown.
func retryAfter(err error) int64 {
	var held *hasp.HeldError
	if !errors.As(err, &held) || held.ExpiresIn <= 0 || Status(err) != http.StatusConflict {
		return 0
	}
	return int64(math.Ceil(float64(held.ExpiresIn) / float64(time.Second)))
}
