// Package pglease keeps hasp's lines in a PostgreSQL database.
//
// # Requirements
//
// PostgreSQL 12 or newer. [New] takes a pgxpool of pgx v5; [NewSQL] takes a *sql.DB with
// any driver, and polls. [Migrate] makes the tables and functions; nothing is ever made at
// lock time. PgBouncer may stand in between, in any pool mode: no prepared statement, no
// setting and no lock outlives a transaction. A standby or a read-only server is refused.
//
// Each verb is one call of a function, sent as one message with its BEGIN and COMMIT, in
// READ COMMITTED whatever the default is. At most four commands run on the pool at a time,
// and a pool of one connection is enough.
//
// # Storage layout
//
// hasp_claims has a row for each claim in each of its lines; hasp_lines each key's last
// number and up to which number claims hold; hasp_sessions the clients and the lives that
// their claims share; hasp_meta the version of the layout. [SchemaSQL] prints it all. What
// has served is swept by clients that joined lately.
//
// The first renewal of a holding claim moves it into a session of its client, one for each
// TTL and Grace. From then on a renewal is an update of the session's row, however many
// claims live with it; the client's counter of changes, answered with it, says whether any
// claim must be looked at.
//
// # Clock
//
// The server's, clock_timestamp(), read once in each step after its locks are taken. No
// time of the program's is ever sent.
//
// # Wake-ups
//
// NOTIFY, to clients whose waiting claims a step has let hold and to those whose claims it
// has ended; a step nobody waits for sends none. One connection outside the pool, made from
// the pool's configuration, listens. It counts as hearing only when it has heard what was
// sent to it through the pool; until then, behind a pooler in transaction mode, and with
// [NewSQL], the driver polls: one row, after 5 ms, then after pauses that double up to 100 ms.
// Watched keys are looked at four times a second.
//
// # Limits
//
// A step grants at most 32 claims and removes at most 64. Lives are microseconds. Of the
// claims that hold a key together, those behind the first 64 may not learn that somebody
// has begun to wait. Steps of one key are one after the other: about as many as the server
// commits. Over database/sql a step takes a message for each of its parts, so a program
// that stops in the middle of one keeps others waiting until the server ends it
// (idle_in_transaction_session_timeout).
package pglease
