// Package sqlitelease keeps hasp's lines in a SQLite database: locks between the
// processes of one machine, in one file, without a server.
//
// # Requirements
//
// SQLite 3.35 or later through database/sql. The package imports no SQLite driver: open
// the *sql.DB with the one the program uses already. modernc.org/sqlite,
// github.com/mattn/go-sqlite3 and github.com/ncruces/go-sqlite3 are known to tell their
// result codes in a way the package reads; with another driver every failure looks like
// an unreachable store and is still a failure.
//
// The file must be in WAL mode (PRAGMA journal_mode = WAL, once; it stays), or steps are
// refused. ":memory:" works for tests, with one connection to the pool. [Migrate] makes
// the tables; nothing is ever made at lock time. The file must be on a disk of this
// machine: SQLite's own locks do not hold over a network.
//
// With PRAGMA synchronous = NORMAL a loss of power may lose the last moments of the
// lines; every process that held a lock is gone then, too.
//
// # Storage layout
//
// Four tables. hasp_claims has a row for each claim in each of its lines, those that
// hold before those that wait. hasp_lines has each key's last number, which outlives
// the line by twice the TTL, at least 10 s. hasp_sessions has a row for each client, and
// one that all its held claims of the same TTL are renewed by, see package sqllease.
// hasp_meta says which layout this is and which clients may use it; newer tables are
// refused. [SchemaSQL] prints them all. Rows that have served are swept by later steps
// and by clients that have been idle for half a minute.
//
// # Clock
//
// SQLite's, which is the machine's, in milliseconds. It is read once in each step, in
// SQL; no time of the program's is ever sent. A clock that is set forward frees locks
// early by as much, see docs/guarantees.md.
//
// # Wake-ups
//
// SQLite tells nobody anything, so while a claim of this client waits, one poller reads
// one row: after 2 ms, then after pauses that double up to 50 ms. While claims only hold
// it reads twice a second, to see a lease that was revoked. While there are neither, it
// rests.
//
// # Limits
//
// SQLite has one writer at a time for the whole file. A step waits for its turn until
// its context ends, also while the program's own transaction is open: keep those short,
// for a lock whose holder cannot renew within its TTL is lost. With many waiting
// processes set busy_timeout low or leave it at 0; the package retries by itself, and
// sooner than SQLite does.
//
// On Linux and other Unix systems each client keeps a lock file beside the database,
// named after it and locked with flock. When the process ends, however it ends, the
// kernel frees the file, and whoever waits for one of its locks sees that within a
// fraction of a second; without it, as for ":memory:", on other systems, and for
// processes of another boot or machine, a dead holder's lock is free when it expires.
// Claims that must outlive their process (kept, detached, without renewal) do.
package sqlitelease
