package simulation

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// Kind says what an event is.
type Kind string

// Events of the network and the store.
const (
	Sent     Kind = "sent"     // a client sends a call
	Executed Kind = "executed" // the store has done it, or a copy of it
	Answered Kind = "answered" // the client gets the answer, or an error instead
	Made     Kind = "made"     // the store sends a signal
	Heard    Kind = "heard"    // the client gets it
	Forgot   Kind = "forgot"   // a failover has told of a grant and forgotten it
	Wiped    Kind = "wiped"    // the store has lost everything
	Found    Kind = "found"    // the store has ended a stay for an operator; Force says how
)

// Events of those who use the locks.
const (
	Acquired  Kind = "acquired"  // a call returned a lease: from here on its owner trusts it
	Over      Kind = "over"      // the lease said that it is over; Text says why
	Looked    Kind = "looked"    // the lease said, without an error, until when it is trusted
	Releasing Kind = "releasing" // its owner calls Release
	Released  Kind = "released"  // and that has returned; Text is empty, "lost" or "unknown"
	Parking   Kind = "parking"   // its owner calls Keep or Detach
	Parked    Kind = "parked"    // and that has returned without an error
	Reclaimed Kind = "reclaimed" // another lease has taken its place
	Listed    Kind = "listed"    // at the very end a claim still stands in the store
	Closing   Kind = "closing"   // its client is closed while others may use it
	Note      Kind = "note"      // something a reader of the history wants to know
	Wrong     Kind = "wrong"     // something that must not be, seen by a user of the locks
)

// Verb is what a call asks for.
type Verb string

// Verbs of the calls about one claim.
const (
	Join   Verb = "join"
	Extend Verb = "extend"
	Fix    Verb = "fix"
	Drop   Verb = "drop"
	Leave  Verb = "leave"
	End    Verb = "end"
)

// Claim names a claim: the nth of a client. The zero Claim is none.
type Claim struct {
	Client uint8
	Nth    uint32
}

// ID is the claim's ID in the store.
func (c Claim) ID() driver.ID {
	id := driver.ID{15: byte(c.Nth), 14: byte(c.Nth >> 8), 13: byte(c.Nth >> 16), 12: byte(c.Nth >> 24)}
	copy(id[:], Inbox(int(c.Client)))
	return id
}

// Inbox is the client's part of its IDs.
func Inbox(client int) []byte { return []byte{'c', 'l', 'a', 'i', 'm', byte(client)} }

// ClaimOf is the claim of an ID.
func ClaimOf(id driver.ID) Claim {
	return Claim{id[5], uint32(id[12])<<24 | uint32(id[13])<<16 | uint32(id[14])<<8 | uint32(id[15])}
}

// String is like "b12".
func (c Claim) String() string {
	if c.Nth == 0 {
		return string('a' + rune(c.Client))
	}
	return fmt.Sprintf("%c%d", 'a'+rune(c.Client), c.Nth)
}

// MarshalText writes String.
func (c Claim) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *Claim) UnmarshalText(text []byte) error {
	*c = Claim{}
	if len(text) == 0 {
		return nil
	}
	c.Client = text[0] - 'a'
	if len(text) > 1 {
		_, err := fmt.Sscanf(string(text[1:]), "%d", &c.Nth)
		return err
	}
	return nil
}

// Ask is what a Join asks for.
type Ask struct {
	Keys             []string
	Weight, Capacity int64
	Life             driver.Life
	Try              bool   `json:",omitempty"`
	Resume           *Claim `json:",omitempty"`
	ResumeNumber     int64  `json:",omitempty"`
}

// Event is one thing that happened.
type Event struct {
	At     time.Duration
	Kind   Kind
	Claim  Claim
	Call   int           `json:",omitempty"` // which call it belongs to
	Verb   Verb          `json:",omitempty"`
	Number int64         `json:",omitempty"` // of the stay; of a Sent call the one it names
	State  driver.State  `json:",omitempty"`
	Life   time.Duration `json:",omitempty"`
	Signal string        `json:",omitempty"`
	Copy   bool          `json:",omitempty"`
	Force  bool          `json:",omitempty"`
	Token  int64         `json:",omitempty"`
	Until  time.Duration `json:",omitempty"` // what the lease says
	Passes int           `json:",omitempty"` // how often in a row its call lets local ones go before others
	Asked  time.Duration `json:",omitempty"` // when the call began that acquired it
	Key    string        `json:",omitempty"`
	Text   string        `json:",omitempty"`
	Ask    *Ask          `json:",omitempty"`
	With   *Claim        `json:",omitempty"` // of a Leave: the claim that joins in the same step
}

// History is what happened in one run, in the order in which it happened.
type History struct {
	Seed    uint64
	Weather string
	Confirm bool // a signalled grant must be renewed before its use (P19)

	start time.Time
	mu    sync.Mutex
	calls int
	// Events are read when the run is over.
	Events []Event
}

// NewHistory begins one, now.
func NewHistory(seed uint64, weather string) *History {
	return &History{Seed: seed, Weather: weather, start: time.Now(), Events: make([]Event, 0, 512)}
}

// Now is the time since the run began.
func (h *History) Now() time.Duration { return time.Since(h.start) }

// At is an instant as a time since the run began.
func (h *History) At(t time.Time) time.Duration { return t.Sub(h.start) }

// Add writes one event down, with the time of now.
func (h *History) Add(e Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	e.At = h.Now()
	h.Events = append(h.Events, e)
}

// Wrongf writes down what must not be.
func (h *History) Wrongf(client int, format string, args ...any) {
	h.Add(Event{Kind: Wrong, Claim: Claim{Client: uint8(client)}, Text: fmt.Sprintf(format, args...)})
}

// Notef writes down what a reader wants to know.
func (h *History) Notef(client int, format string, args ...any) {
	h.Add(Event{Kind: Note, Claim: Claim{Client: uint8(client)}, Text: fmt.Sprintf(format, args...)})
}

// sent writes down that a call is sent, and answers its number.
func (h *History) sent(e Event) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls++
	e.Kind, e.Call, e.At = Sent, h.calls, h.Now()
	h.Events = append(h.Events, e)
	return e.Call
}

// String is the history to be read, one event to a line.
func (h *History) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d, weather %s, %d events\n", h.Seed, h.Weather, len(h.Events))
	for _, e := range h.Events {
		b.WriteString(e.String())
		b.WriteByte('\n')
	}
	return b.String()
}

// String is like "12.000000345s  b3 answered extend holding #946684800000001 life 3s".
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%14.9fs  %-4s %-9s", e.At.Seconds(), e.Claim, e.Kind)
	word := func(format string, arg any, show bool) {
		if show {
			fmt.Fprintf(&b, " "+format, arg)
		}
	}
	word("%s", e.Verb, e.Verb != "")
	word("signal %s", e.Signal, e.Signal != "")
	word("%s", e.State, e.State != 0)
	word("#%d", e.Number, e.Number != 0)
	word("life %s", e.Life, e.Life != 0)
	word("token %d", e.Token, e.Token != 0)
	word("until %.9fs", e.Until.Seconds(), e.Until != 0)
	word("%q", e.Key, e.Key != "")
	word("%s", "(a copy)", e.Copy)
	word("%s", "by force", e.Force)
	if a := e.Ask; a != nil {
		fmt.Fprintf(&b, " %q weight %d of %d, hold %s grace %s wait %s", a.Keys, a.Weight, a.Capacity, a.Life.Hold, a.Life.Grace, a.Life.Wait)
		word("%s", "fixed", a.Life.Own)
		word("%s", "try", a.Try)
		word("in place of %s", a.Resume, a.Resume != nil)
	}
	word("with the join of %s", e.With, e.With != nil)
	word("(call %d)", e.Call, e.Call != 0)
	word("%s", e.Text, e.Text != "")
	return b.String()
}

// Save writes the history so that Load can read it.
func (h *History) Save(w io.Writer) error { return json.NewEncoder(w).Encode(h) }

// Load reads what Save wrote.
func Load(r io.Reader) (*History, error) {
	h := new(History)
	if err := json.NewDecoder(r).Decode(h); err != nil {
		return nil, fmt.Errorf("read a history: %w", err)
	}
	return h, nil
}
