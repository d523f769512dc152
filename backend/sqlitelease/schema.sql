-- The tables of hasp on SQLite, layout 1. {prefix} begins each name, "hasp_" unless set.
-- Arguments: none. Result: none; running it again changes nothing.
-- Atomicity: run it in one transaction. Another process that runs it at the same time
-- waits for it and then finds everything there.
-- Times are microseconds since 1970 by SQLite's clock. Keys and IDs are BLOBs, so they
-- are compared byte for byte.

-- Which layout the tables have, and the oldest layout a client must know to use them.
CREATE TABLE IF NOT EXISTS {meta} (
  name  TEXT NOT NULL PRIMARY KEY,
  value INTEGER NOT NULL
) WITHOUT ROWID;

-- A claim in one of its lines: a claim of three keys has three rows. An ID whose Join
-- may still arrive after its Leave is a row under the key X'00'.
CREATE TABLE IF NOT EXISTS {claims} (
  key         BLOB    NOT NULL,
  waiting     INTEGER NOT NULL, -- 0: it holds
  number      INTEGER NOT NULL, -- in the order of joining; the token is 64 times it
  id          BLOB    NOT NULL, -- 6 bytes of the client, 10 random ones: the proof of ownership
  keys        INTEGER NOT NULL, -- rows of the claim
  weight      INTEGER NOT NULL,
  capacity    INTEGER NOT NULL,
  expires_at  INTEGER NOT NULL, -- of its own; where it lives by a session the later of both counts
  joined_at   INTEGER NOT NULL,
  hold        INTEGER NOT NULL, -- life while holding, in microseconds
  grace       INTEGER NOT NULL, -- part of expires_at that the client does not count on
  local_index INTEGER NOT NULL,
  fixed       INTEGER NOT NULL, -- 1: kept or detached, its expiry stays
  own         INTEGER NOT NULL, -- 1: it outlives its process
  revoked     INTEGER NOT NULL, -- 1: no renewal any more
  name        TEXT    NOT NULL, -- of the client, for listings
  session     INTEGER NOT NULL DEFAULT 0, -- 0: it lives by its own expiry
  PRIMARY KEY (key, waiting, number, id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {prefix}claims_id ON {claims} (id);
CREATE INDEX IF NOT EXISTS {prefix}claims_crowd ON {claims} (key, expires_at)
  WHERE session = 0 AND (waiting = 1 OR capacity > 1);
CREATE INDEX IF NOT EXISTS {prefix}claims_session ON {claims} (session, key, number)
  WHERE session > 0;

-- What outlives a line: its last number, until sweep_at at least.
CREATE TABLE IF NOT EXISTS {lines} (
  key      BLOB    NOT NULL PRIMARY KEY,
  last     INTEGER NOT NULL,
  waited   INTEGER NOT NULL, -- the number of the last claim that began to wait
  sweep_at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {prefix}lines_sweep ON {lines} (sweep_at);

-- Session 0 of an inbox is the client: its claims are those whose ID begins with the inbox.
-- Each other is one life of a client, with a number of its own among all, that claims live
-- by which are renewed together: those of one TTL and grace.
CREATE TABLE IF NOT EXISTS {sessions} (
  inbox      BLOB    NOT NULL,
  session    INTEGER NOT NULL,
  boot       TEXT    NOT NULL, -- of a client: the run of the kernel its process lives in
  file       TEXT    NOT NULL, -- of a client: the name of its lock file beside the database
  changed    INTEGER NOT NULL, -- raised when something happened to one of its claims
  expires_at INTEGER NOT NULL, -- of a client: without claims it may be swept then; of a life: 0 once it is dead
  PRIMARY KEY (inbox, session)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS {prefix}sessions_expiry ON {sessions} (expires_at) WHERE session > 0;

INSERT OR IGNORE INTO {meta} (name, value) VALUES ('schema', 1), ('oldest_client', 1);
