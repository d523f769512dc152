package hasp

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/hasp-dev/hasp/driver"
)

// Ticket is a detached lease on its way to the one who resumes it. It is a bearer
// secret: whoever has it can take the keys, once. It prints masked; its text form,
// by MarshalText, is the secret itself.
type Ticket struct {
	ref              driver.Ref
	index            uint8
	weight, capacity int64
}

// ticketVersion is the layout of the text form. A newer one is refused.
const ticketVersion = 1

// ticketSum is the length of the checksum: against mutilation, not forgery.
const ticketSum = 8

func newTicket(c *claim) Ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Ticket{ref: c.ref(), index: c.index, weight: c.want.weight, capacity: c.want.capacity}
}

// String masks the ticket.
func (t Ticket) String() string { return "ticket(masked)" }

// GoString masks the ticket.
func (t Ticket) GoString() string { return t.String() }

// LogValue masks the ticket.
func (t Ticket) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText gives the ticket away.
func (t Ticket) MarshalText() ([]byte, error) {
	if len(t.ref.Keys) == 0 {
		return nil, invalidf("the ticket is empty")
	}
	b := []byte{ticketVersion, t.index}
	b = append(b, t.ref.ID[:]...)
	b = binary.AppendUvarint(b, uint64(t.ref.Number))
	b = binary.AppendUvarint(b, uint64(t.weight))
	b = binary.AppendUvarint(b, uint64(t.capacity))
	b = binary.AppendUvarint(b, uint64(len(t.ref.Keys)))
	for _, key := range t.ref.Keys {
		b = binary.AppendUvarint(b, uint64(len(key)))
		b = append(b, key...)
	}
	sum := sha256.Sum256(b)
	b = append(b, sum[:ticketSum]...)
	return base64.RawURLEncoding.AppendEncode(nil, b), nil
}

// UnmarshalText reads what MarshalText wrote. A ticket that was cut short or altered
// is ErrInvalid.
func (t *Ticket) UnmarshalText(text []byte) error {
	b, err := base64.RawURLEncoding.Strict().AppendDecode(nil, bytes.TrimSpace(text))
	if err != nil {
		return invalidf("the ticket is not one: it has characters that do not belong, or was cut")
	}
	if len(b) < 2+len(driver.ID{})+ticketSum {
		return invalidf("the ticket was cut short: it has %d bytes", len(b))
	}
	body, sum := b[:len(b)-ticketSum], b[len(b)-ticketSum:]
	if want := sha256.Sum256(body); !bytes.Equal(sum, want[:ticketSum]) {
		return invalidf("the ticket was altered or cut short: its checksum does not fit")
	}
	if body[0] != ticketVersion {
		return invalidf("the ticket has format %d, this version reads %d; upgrade hasp", body[0], ticketVersion)
	}
	read, err := readTicket(body[1:])
	if err != nil {
		return fmt.Errorf("%w: the ticket: %w", ErrInvalid, err)
	}
	*t = read
	return nil
}

func readTicket(b []byte) (Ticket, error) {
	t := Ticket{index: b[0]}
	b = b[1:]
	b = b[copy(t.ref.ID[:], b):]
	var count int64
	for _, n := range []*int64{&t.ref.Number, &t.weight, &t.capacity, &count} {
		v, size := binary.Uvarint(b)
		if size <= 0 || v > 1<<62 {
			return Ticket{}, errors.New("a number is cut off")
		}
		*n, b = int64(v), b[size:]
	}
	if count < 1 || count > maxKeys {
		return Ticket{}, fmt.Errorf("%d keys", count)
	}
	for range count {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return Ticket{}, errors.New("a key is cut off")
		}
		t.ref.Keys = append(t.ref.Keys, string(b[n:n+int(size)]))
		b = b[n+int(size):]
	}
	return t, t.check(len(b))
}

// check says what a well-formed ticket cannot be.
func (t Ticket) check(left int) error {
	switch {
	case left != 0:
		return fmt.Errorf("%d bytes too many", left)
	case t.index >= blockSize || t.ref.Number < 1 || t.weight < 1 || t.weight > t.capacity:
		return errors.New("numbers out of range")
	case !slices.IsSorted(t.ref.Keys):
		return errors.New("keys out of order")
	}
	return newKeySet("", slices.Clone(t.ref.Keys)...).err
}

// keys answers what the ticket locks, for a client with that prefix.
func (t Ticket) keys(prefix string) (keySet, error) {
	if len(t.ref.Keys) == 0 {
		return keySet{}, invalidf("the ticket is empty")
	}
	set := keySet{full: t.ref.Keys}
	for _, key := range t.ref.Keys {
		given, ok := strings.CutPrefix(key, prefix)
		if !ok || given == "" {
			return keySet{}, invalidf("the ticket's key %q does not begin with this client's prefix %q", key, prefix)
		}
		set.given = append(set.given, given)
	}
	return set, nil
}

// kindOf tells the kind of lock by what its claim says.
func kindOf(weight, capacity int64) kind {
	switch {
	case capacity == 1:
		return mutexKind
	case capacity == rwCapacity && weight == rwCapacity:
		return writeKind
	case capacity == rwCapacity:
		return readKind
	}
	return permitKind
}
