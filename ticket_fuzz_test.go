package hasp_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"testing"

	"github.com/hasp-dev/hasp"
)

// sealed is the text of a ticket with that body.
func sealed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return base64.RawURLEncoding.AppendEncode(nil, append(bytes.Clone(body), sum[:8]...))
}

// FuzzTicketBody reads tickets with a right checksum, so that what follows it is reached.
func FuzzTicketBody(f *testing.F) {
	id := bytes.Repeat([]byte{7}, 16)
	body := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	f.Add(body([]byte{1, 0}, id, []byte{200, 1, 1, 1, 1, 1, 'k'}))
	f.Add(body([]byte{1, 63}, id, []byte{5, 2, 3, 2, 1, 'a', 1, 'b'}))
	f.Add(body([]byte{1, 0}, id, []byte{5, 1, 1, 1, 255, 255, 255, 255, 15, 'k'}))
	f.Add(body([]byte{1, 0}, id, []byte{5, 1, 1, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1}))
	f.Add(body([]byte{2, 0}, id))
	f.Add([]byte{1})
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, body []byte) {
		text := sealed(body)
		var ticket hasp.Ticket
		if err := ticket.UnmarshalText(text); err != nil {
			if !errors.Is(err, hasp.ErrInvalid) {
				t.Errorf("error %v", err)
			}
			return
		}
		first, err := ticket.MarshalText()
		if err != nil {
			t.Fatal(err)
		}
		var again hasp.Ticket
		if err := again.UnmarshalText(first); err != nil {
			t.Fatalf("its own text is not read: %v", err)
		}
		if second, err := again.MarshalText(); err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s, then %s, %v", first, second, err)
		}
	})
}
