// Package mysqllease keeps hasp's lines in a MySQL or MariaDB database: locks between
// the processes that use one server, without another system.
//
// # Requirements
//
// MySQL 8.0 or MariaDB 10.6 or later with InnoDB, through database/sql and
// github.com/go-sql-driver/mysql, autocommit on. [Migrate] makes the tables; nothing is ever
// made at lock time. The user needs SELECT, INSERT, UPDATE and DELETE on them, and CREATE to
// migrate. Steps go to a server that takes writes: the primary of a replication, or a node of
// a Galera cluster. Its nodes do not see each other's row locks, but of two steps on one line
// the second to commit is rolled back and tried again. Their clocks must agree, and a guard
// needs all clients of its key on one node; see docs/stores.md.
//
// The handle's DSN needs nothing special. interpolateParams makes no difference: hasp
// prepares nothing on the server and writes its values into the text, as digits and X'…'.
// Set timeout to a few seconds, so that a host that is gone costs a connection attempt no
// more than that.
//
// # Storage layout
//
// Four InnoDB tables. hasp_claims has a row for each claim in each of its lines, those that
// hold before those that wait. hasp_lines has each key's last number, which outlives the
// line by twice the TTL, at least 10 s; its rows are what steps lock. hasp_sessions has
// rows for each client, one of which renews all that it holds with one TTL. hasp_meta says which layout this is and which clients may use it;
// newer tables are refused. [SchemaSQL] prints them all. Keys are VARBINARY(512), so they
// are compared byte for byte whatever the collation, and longer ones are refused.
//
// A step is a transaction of its own, READ COMMITTED whatever the default, and has happened
// when its last statement was answered, which commits by switching autocommit on. It locks
// the rows of its lines first, in the order of their keys, and makes those that are not there
// by the same statement, so only steps of the same keys wait for each other. Deadlocks, lock
// waits that took too long and rollbacks by a cluster are tried again until the call's context
// ends. A claim whose row another transaction has locked counts as alive.
//
// While a step runs its connection has a wait_timeout of 3 s and an innodb_lock_wait_timeout
// of 1 s: the server itself ends the transaction of a client that has vanished, whose locks
// would bar everybody's way. Both are set back before the pool gets the connection.
//
// # Clock
//
// The server's, in microseconds, read once in each step, in SQL, after the locks were got.
// The session's time zone does not matter. No time of the program's is ever sent. A clock
// that is set forward frees locks early by as much, see docs/guarantees.md.
//
// # Wake-ups
//
// MySQL tells nobody anything, so while a claim of this client waits, one poller reads one
// row: after 5 ms, then after pauses that double up to 100 ms. While claims only hold it
// reads twice a second, to see a lease that was revoked. While there are neither, it rests.
//
// # Limits
//
// Replication that is asynchronous can lose the last claims with the primary. A dead client's
// locks are free when they expire. Steps begin and end with a statement that sets the
// connection, so a middleman that spreads a connection's statements over several servers
// does not fit; one that passes a transaction on whole does.
package mysqllease
