package sqllease

import (
	"database/sql"
	"time"

	"github.com/hasp-dev/hasp/driver"
)

// claim is a row: a claim in one of its lines. Times are µs of the database's clock,
// lives are µs.
type claim struct {
	key       string
	number    int64
	id        driver.ID
	keys      int // in how many lines the claim stands
	weight    int64
	capacity  int64
	expiresAt int64 // by itself, or later with its life
	joinedAt  int64
	hold      int64 // the life it was last given while holding, for the line's memory
	grace     int64 // part of expiresAt that is never answered
	index     uint8
	waiting   bool
	fixed     bool // Fix gave it its expiry
	own       bool // its expiry is no process's affair
	revoked   bool
	name      string
	session   int64 // the life it lives by; 0: none
}

// claimColumns is how many columns a row of claims has in the page of SQL.
func scanClaim(rows *sql.Rows) (claim, error) {
	var c claim
	var key, id []byte
	err := rows.Scan(&key, &c.waiting, &c.number, &id, &c.keys, &c.weight, &c.capacity, &c.expiresAt, &c.joinedAt,
		&c.hold, &c.grace, &c.index, &c.fixed, &c.own, &c.revoked, &c.name, &c.session)
	c.key = string(key)
	copy(c.id[:], id)
	return c, err
}

func (c claim) args() []any {
	return []any{
		[]byte(c.key), bit(c.waiting), c.number, c.id[:], c.keys, c.weight, c.capacity, c.expiresAt, c.joinedAt,
		c.hold, c.grace, c.index, bit(c.fixed), bit(c.own), bit(c.revoked), c.name,
	}
}

// remembered says whether the row is no claim but an ID that was given up.
func (c claim) remembered() bool { return c.key == RememberedKey }

// diesWithProcess says whether the claim ends with its client's process.
func (c claim) diesWithProcess() bool { return c.waiting || (!c.fixed && !c.own) }

// RememberedKey is the line of the IDs that were given up. No key has a NUL.
const RememberedKey = "\x00"

// held is what the holders of a line come to.
type held struct {
	count       int
	weight      int64 // sum
	lightest    int64 // smallest weight
	capacity    int64 // smallest capacity; 0 without holders
	first, last int64 // earliest and latest expiry
}

// admits says whether a claim behind these holders fits.
func (h held) admits(weight, capacity int64) bool {
	if h.count > 0 {
		capacity = min(capacity, h.capacity)
	}
	return weight <= capacity-h.weight // the sum could pass the largest integer
}

// with is h and one more claim.
func (h held) with(c claim) held {
	if h.count == 0 {
		return held{count: 1, weight: c.weight, lightest: c.weight, capacity: c.capacity, first: c.expiresAt, last: c.expiresAt}
	}
	return held{
		count:    h.count + 1,
		weight:   h.weight + c.weight,
		lightest: min(h.lightest, c.weight),
		capacity: min(h.capacity, c.capacity),
		first:    min(h.first, c.expiresAt),
		last:     max(h.last, c.expiresAt),
	}
}

// and is h and a group of claims behind it.
func (h held) and(o held) held {
	switch {
	case h.count == 0:
		return o
	case o.count == 0:
		return h
	}
	return held{
		count:    h.count + o.count,
		weight:   h.weight, // nobody asks what those come to who do not hold
		lightest: min(h.lightest, o.lightest),
		capacity: min(h.capacity, o.capacity),
		first:    min(h.first, o.first),
		last:     max(h.last, o.last),
	}
}

// gone answers when enough of the claims ahead could be gone for one behind them to
// hold: the latest expiry where it can stand beside none of them, else the earliest,
// after which there is something new to see.
func (h held) gone(weight, capacity int64) int64 {
	if weight > min(capacity, h.capacity)-h.lightest {
		return h.last
	}
	return h.first
}

// minKeep is how long a line's last number outlives it at least.
const minKeep = 10 * time.Second

// keep answers how long, in µs, a line is remembered after a claim of this life.
func keep(hold int64) int64 { return max(2*hold, micros(minKeep)) }

// micros rounds up, so that nothing lives shorter than it was told.
func micros(d time.Duration) int64 {
	return int64((d + time.Microsecond - 1) / time.Microsecond)
}

func duration(micros int64) time.Duration { return time.Duration(micros) * time.Microsecond }

func bit(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
