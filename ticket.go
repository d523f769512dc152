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
	// nil: empty. fmt prints a function as an address, whatever the verb and however deep.
	open func() *place
}

// place is what a ticket is for: a stay that holds, and how it does.
type place struct {
	ref              driver.Ref
	index            uint8
	weight, capacity int64
}

// ticketVersion is the layout of the text form. A newer one is refused.
const ticketVersion = 1

// ticketSum is the length of the checksum: against mutilation, not forgery.
const ticketSum = 8

var errEmptyTicket = invalidf("the ticket is empty")

func newTicket(c *claim) Ticket {
	c.mu.Lock()
	defer c.mu.Unlock()
	return ticketOf(&place{ref: c.ref(), index: c.index, weight: c.want.weight, capacity: c.want.capacity})
}

func ticketOf(p *place) Ticket { return Ticket{func() *place { return p }} }

// place answers what the ticket is for; nil: it is empty.
func (t Ticket) place() *place {
	if t.open == nil {
		return nil
	}
	return t.open()
}

// String masks the ticket.
func (t Ticket) String() string { return "ticket(masked)" }

// Format prints the ticket masked, whatever the verb.
func (t Ticket) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(t.String())) }

// LogValue masks the ticket.
func (t Ticket) LogValue() slog.Value { return slog.StringValue(t.String()) }

// MarshalText gives the ticket away.
func (t Ticket) MarshalText() ([]byte, error) {
	p := t.place()
	if p == nil {
		return nil, errEmptyTicket
	}
	b := []byte{ticketVersion, p.index}
	b = append(b, p.ref.ID[:]...)
	b = binary.AppendUvarint(b, uint64(p.ref.Number))
	b = binary.AppendUvarint(b, uint64(p.weight))
	b = binary.AppendUvarint(b, uint64(p.capacity))
	b = binary.AppendUvarint(b, uint64(len(p.ref.Keys)))
	for _, key := range p.ref.Keys {
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
	read, err := readPlace(body[1:])
	if err != nil {
		return fmt.Errorf("%w: the ticket: %w", ErrInvalid, err)
	}
	*t = ticketOf(read)
	return nil
}

func readPlace(b []byte) (*place, error) {
	p := &place{index: b[0]}
	b = b[1:]
	b = b[copy(p.ref.ID[:], b):]
	var count int64
	for _, n := range []*int64{&p.ref.Number, &p.weight, &p.capacity, &count} {
		v, size := binary.Uvarint(b)
		if size <= 0 || v > 1<<62 {
			return nil, errors.New("a number is cut off")
		}
		*n, b = int64(v), b[size:]
	}
	if count < 1 || count > maxKeys {
		return nil, fmt.Errorf("%d keys", count)
	}
	for range count {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return nil, errors.New("a key is cut off")
		}
		p.ref.Keys = append(p.ref.Keys, string(b[n:n+int(size)]))
		b = b[n+int(size):]
	}
	return p, p.check(len(b))
}

// check says what a well-formed ticket cannot be.
func (p *place) check(left int) error {
	switch {
	case left != 0:
		return fmt.Errorf("%d bytes too many", left)
	case p.index >= blockSize || p.ref.Number < 1 || p.weight < 1 || p.weight > p.capacity:
		return errors.New("numbers out of range")
	case !slices.IsSorted(p.ref.Keys):
		return errors.New("keys out of order")
	}
	return newKeySet("", slices.Clone(p.ref.Keys)...).err
}

// keys answers what the ticket locks, for a client with that prefix.
func (p *place) keys(prefix string) (keySet, error) {
	if p == nil {
		return keySet{}, errEmptyTicket
	}
	set := keySet{full: p.ref.Keys}
	for _, key := range p.ref.Keys {
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
