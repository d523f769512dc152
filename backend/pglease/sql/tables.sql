-- The tables of hasp on PostgreSQL, layout 1. The functions are in the other pages.
-- Arguments: none. Result: none; running it again changes nothing.
-- Atomicity: run it in one transaction. Migrate lets one process at a time do so.
-- Times are microseconds since 1970 by PostgreSQL's clock. Keys, IDs and names are bytea,
-- so they are compared byte for byte in every database.

-- Which layout the tables have, and the oldest layout a client must know to use them.
CREATE TABLE IF NOT EXISTS {meta} (
  name  text   NOT NULL PRIMARY KEY,
  value bigint NOT NULL
);

-- A claim in one of its lines: a claim of three keys has three rows. It lives until the
-- later of its own expiry and that of its session. Nothing that a renewal changes is
-- indexed, so rows are rewritten in their page.
CREATE TABLE IF NOT EXISTS {claims} (
  key         bytea    NOT NULL,
  number      bigint   NOT NULL, -- in the order of joining; the token is 64 times it
  id          bytea    NOT NULL, -- 6 bytes of the client, 10 random ones: the proof of ownership
  keys        smallint NOT NULL, -- rows of the claim
  weight      bigint   NOT NULL,
  capacity    bigint   NOT NULL,
  expires_at  bigint   NOT NULL, -- its own
  joined_at   bigint   NOT NULL,
  hold        bigint   NOT NULL, -- life while holding
  grace       bigint   NOT NULL, -- part of expires_at that the client does not count on
  session     integer  NOT NULL, -- of the client; 0: none
  local_index smallint NOT NULL,
  fixed       boolean  NOT NULL, -- kept or detached, its expiry stays
  revoked     boolean  NOT NULL, -- no renewal any more
  name        bytea    NOT NULL, -- of the client, for listings
  PRIMARY KEY (key, number)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS {prefix}claims_id ON {claims} (id);

-- A line, and what outlives it: its last number, until sweep_at at least. Under the NUL
-- and an ID: a claim that was given up, and whose Join may still arrive until "soon".
CREATE TABLE IF NOT EXISTS {lines} (
  key      bytea   NOT NULL PRIMARY KEY,
  last     bigint  NOT NULL,
  granted  bigint  NOT NULL, -- claims up to this number hold, those above wait
  waiting  boolean NOT NULL, -- whether a claim waits
  waited   bigint  NOT NULL, -- the number of the last claim that began to wait
  soon     bigint  NOT NULL, -- no claim of the line expires before
  sweep_at bigint  NOT NULL
) WITH (fillfactor = 60, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX IF NOT EXISTS {prefix}lines_sweep ON {lines} (sweep_at);

-- Session 0 is the client itself: how often a claim of it was ended, moved or queued
-- behind (changed), or granted by others (news). The others are lives its claims share:
-- one for each TTL and Grace. A session that expired is never renewed.
CREATE TABLE IF NOT EXISTS {sessions} (
  inbox      bytea   NOT NULL,
  session    integer NOT NULL,
  expires_at bigint  NOT NULL, -- of session 0: without claims it may be swept then
  grace      bigint  NOT NULL,
  changed    bigint  NOT NULL,
  news       bigint  NOT NULL,
  PRIMARY KEY (inbox, session)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_insert_threshold = -1, autovacuum_vacuum_cost_delay = 0);

INSERT INTO {meta} (name, value) VALUES ('schema', 1), ('oldest_client', 1) ON CONFLICT (name) DO NOTHING;
