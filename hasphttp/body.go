package hasphttp

import (
	"bytes"
	"io"
	"net/http"
)

// maxBody is how much of a body is read before its request waits.
const maxBody = 64 << 10

// drain reads the body of a request that is going to wait, since a server notices that a
// client has gone away only once the body has been read. What does not fit is left to the
// handler, and so is what cannot be read.
func drain(r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	start, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	rest := io.Reader(r.Body)
	if err != nil {
		rest = broken{err}
	}
	r.Body = &body{Reader: io.MultiReader(bytes.NewReader(start), rest), Closer: r.Body}
}

// body is a body whose beginning was read.
type body struct {
	io.Reader
	io.Closer
}

// broken is the rest of a body that could not be read.
type broken struct{ err error }

// Read fails as the body did.
func (b broken) Read([]byte) (int, error) { return 0, b.err }
