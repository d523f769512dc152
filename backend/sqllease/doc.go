// Package sqllease is what hasp's SQL stores share: lines of claims in four tables. A
// program does not use it but a store's package, such as sqlitelease.
//
// [Client] is the part above the steps: it checks and ends calls, repeats what met another
// transaction, knows this client's claims and polls for news of them. [Steps] are what it
// stands on. [Driver] is a client on the engine, which makes its steps in Go from a
// dialect's statements, over database/sql; another store may bring steps of its own.
//
// # Requirements
//
// Of the engine, a [Dialect]: a page of SQL with the engine's statements, the schema, and what the
// database's errors mean. The database must let a transaction take its right to write,
// or the lines it touches, before it reads, and must compare keys byte for byte. Every
// verb is one such transaction on a connection that is given back at once; a driver has
// at most four commands on the user's pool, and a pool of one connection is enough.
//
// The decisions are made in Go, by arithmetic on what bounded, indexed statements load.
//
// # Storage layout
//
// hasp_claims has a row for each claim in each of its lines, holders before waiting
// claims, in the order of their numbers. hasp_lines has each key's greatest number;
// hasp_meta the version of the layout. An ID that must be refused if its Join arrives late
// is a row under a key nobody can have. Steps that make a line look at a few that are due,
// and an idle client sweeps the rest.
//
// hasp_sessions has a row for each client, and one for each life: what claims of the same
// client, TTL and grace live by, so that renewing ten thousand of them writes one row. A
// claim has an expiry of its own until a renewal names it while it holds; from then on the
// later of its own and its life's counts. The life's row counts, too, what happened to its
// claims that a renewal has to tell, and only then are they read. A claim that waits, is
// kept, detached or revoked, or that is not renewed, carries its own expiry; so does one
// that no renewal has named for more than half its TTL: its client takes it out. A life
// that has expired is ended by whoever passes one of its claims, in the same step, and is
// never renewed again.
//
// # Clock
//
// The database's, read once in each step, in SQL. Expiries and numbers are microseconds;
// what the clock's resolution can hide is added to each expiry and never answered.
//
// # Wake-ups
//
// The driver polls: one row, the client's session, whose counter every step raises that
// grants, ends or turns to a claim of this client. Only when it has changed are the
// claims looked at. What a client's own step grants to another claim of the same client
// is told at once.
//
// # Limits
//
// A step grants at most 32 claims and removes at most 64. Standing.Ahead of a holding
// claim is 0. Standing.LookAgain considers the first 64 that hold and the first 64 that
// wait. When somebody begins to wait, the first 32 holders are told so by their next
// renewal. A client has at most 16 lives; claims of further TTLs carry their own expiry.
package sqllease
