package sqllease

import (
	"context"
	"database/sql"
	"time"
)

// Dialect is what one database brings to the engine. Everything in it is constant.
type Dialect struct {
	// Name begins every error text: the name of the package.
	Name string
	// Statements is the page of SQL: the engine's statements by name, see [Parse].
	Statements string
	// Schema makes the tables; each statement may be run again.
	Schema string
	// Marker writes the n-th parameter, from 1. It must be able to stand twice.
	Marker func(n int) string
	// Literal writes a value into the text of a statement, in the place of its marker.
	// Nil: the statements are prepared, and their values are parameters.
	Literal func(v any) string
	// Rows is how a database with many writers begins and ends a step's transaction. The
	// engine locks the rows of the step's lines then. Nil: the statement lock takes the
	// one right to write there is.
	Rows Rows
	// Quote writes a checked identifier, with its schema where that is not empty.
	Quote func(schema, name string) string
	// LongestKey is how many bytes a key may have. 0: any number.
	LongestKey int
	// Grain is the resolution of the database's clock, added to each expiry.
	Grain time.Duration
	// Writers is how many write transactions of one client gain from running at once.
	Writers int
	// SweepAfter is how long after a line was made the client looks for what has served.
	SweepAfter time.Duration
	// PollMin and PollMax are the shortest and the longest pause between two looks while a claim waits.
	PollMin, PollMax time.Duration
	// Classify says what an error of the database means.
	Classify func(error) Fault
	// Inspect looks at what Classify cannot know and at what the database must be like:
	// mode, tables, rights. A nil error: all is well. It runs before the first step.
	Inspect func(ctx context.Context, db *sql.DB, t Tables) error
	// Rehearse proves for Check that steps may write, and writes nothing. Nil: what Check
	// does proves it.
	Rehearse func(ctx context.Context, db *sql.DB, t Tables) error
	// Intact says whether the database is still the one that others find. It runs before
	// each transaction. Nil: always.
	Intact func() error
	// Witness proves which clients' processes live. Nil: by expiry alone.
	Witness Witness
}

// Rows is how transactions begin and end on a connection of a database that locks rows. A
// transaction sees what others have committed before each of its statements.
type Rows interface {
	// Begin makes the next statement the first of a transaction.
	Begin(ctx context.Context, conn *sql.Conn) error
	// Commit returns nil when what was done is there to stay, and the connection is what it was
	// before Begin.
	Commit(ctx context.Context, conn *sql.Conn) error
	// Rollback undoes what was done, also where Begin or Commit failed, and makes the connection
	// what it was before Begin. Where that fails the connection is closed.
	Rollback(ctx context.Context, conn *sql.Conn) error
}

// Selected are values that a statement selects as the column v of a table.
type Selected [][]byte

// Fault is the meaning of a database's error.
type Fault struct {
	Kind FaultKind
	Text string // what happened and what to do, for people
}

// FaultKind says what the engine does about an error.
type FaultKind uint8

const (
	// Unavailable: no answer, or a broken connection.
	Unavailable FaultKind = iota
	// Busy: another transaction is in the way; the step is rolled back and done again.
	Busy
	// Refused: the database says no.
	Refused
	// Unclear: only Inspect can tell what is wrong.
	Unclear
	// Broken: the connection broke, so a step that was not committed yet is undone, and is
	// done again on another connection a few times.
	Broken
)

// Witness knows by other means than time which clients of this machine are dead. Its
// methods may be slow, so they are never called inside a transaction.
type Witness interface {
	// Open begins to prove that this client lives and names the proof. An empty file
	// means that nothing can be proven, and is no failure.
	Open(ctx context.Context, db *sql.DB) (Proof, error)
	// Dead says whether the process behind a proof of this machine has ended.
	Dead(p Proof) bool
	// Strays answers some proofs of dead clients, whoever they were.
	Strays(limit int) []Proof
	// Discard removes what a dead client left.
	Discard(p Proof)
	// Close ends this client's proof, or, where claims of it are left, keeps it until
	// the process ends.
	Close(keep bool)
}

// Proof is where the life of a client's process can be seen.
type Proof struct {
	Boot string // names the run of the machine's kernel
	File string // a file name beside the database
}
