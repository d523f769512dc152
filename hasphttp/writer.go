package hasphttp

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"

	"github.com/hasp-dev/hasp"
)

// writer lets no answer of success pass once the lease is lost. It looks when the
// handler begins to answer.
type writer struct {
	http.ResponseWriter
	lease *hasp.Lease
	lost  func(error) // answers instead of the handler

	began bool
	err   error // why what the handler writes is dropped
}

// Unwrap lets an http.ResponseController reach what this writer does not have.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader begins the answer, or another one in its place.
func (w *writer) WriteHeader(status int) {
	if w.began && w.err != nil {
		return
	}
	if w.began || status < http.StatusOK && status != http.StatusSwitchingProtocols {
		w.ResponseWriter.WriteHeader(status)
		return
	}
	w.began = true
	if status < http.StatusBadRequest { // a redirect, too, is what forms answer that were accepted
		if w.err = lost(w.lease); w.err != nil {
			w.lost(w.err)
			return
		}
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write writes to the answer, which it begins.
func (w *writer) Write(p []byte) (int, error) {
	w.begin()
	if w.err != nil {
		return 0, w.err
	}
	return w.ResponseWriter.Write(p)
}

// ReadFrom lets the server send files without copying them.
func (w *writer) ReadFrom(from io.Reader) (int64, error) {
	w.begin()
	if w.err != nil {
		return 0, w.err
	}
	return io.Copy(w.ResponseWriter, from)
}

// FlushError sends what has been written, which begins the answer.
func (w *writer) FlushError() error {
	w.begin()
	if w.err != nil {
		return w.err
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
}

// Hijack hands the connection over, unless the lease is lost.
func (w *writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	if err := lost(w.lease); err != nil && !w.began {
		return nil, nil, err
	}
	conn, buffered, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.began = w.began || err == nil
	return conn, buffered, err
}

// Flush is FlushError for handlers that ask for an http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// lost says how a lease was lost. One that the handler gave back, kept or detached was not.
func lost(lease *hasp.Lease) error {
	if err := lease.Err(); !errors.Is(err, hasp.ErrReleased) {
		return err
	}
	return nil
}

func (w *writer) begin() {
	if !w.began {
		w.WriteHeader(http.StatusOK)
	}
}

// finish begins the answer of a handler that has written none, which means success.
func (w *writer) finish() { w.begin() }
