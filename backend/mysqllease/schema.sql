-- The tables of hasp on MySQL and MariaDB, layout 1. {prefix} begins each name, "hasp_"
-- unless set.
-- Arguments: none. Result: none; running it again changes nothing.
-- Atomicity: each statement is whole. Processes that run it at the same time wait for each
-- other and then find everything there.
-- Times are microseconds since 1970 by the database's clock. Keys, IDs and names are binary
-- strings, so they are compared byte for byte whatever the collation.

-- Which layout the tables have, and the oldest layout a client must know to use them.
CREATE TABLE IF NOT EXISTS {meta} (
  name  VARBINARY(64) NOT NULL PRIMARY KEY,
  value BIGINT NOT NULL
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- A claim in one of its lines: a claim of three keys has three rows. An ID whose Join
-- may still arrive after its Leave is a row under the key X'00'.
CREATE TABLE IF NOT EXISTS {claims} (
  `key`       VARBINARY(512) NOT NULL,
  waiting     TINYINT        NOT NULL, -- 0: it holds
  number      BIGINT         NOT NULL, -- in the order of joining; the token is 64 times it
  id          VARBINARY(16)  NOT NULL, -- 6 bytes of the client, 10 random ones: the proof of ownership
  `keys`      INT            NOT NULL, -- rows of the claim
  weight      BIGINT         NOT NULL,
  capacity    BIGINT         NOT NULL,
  expires_at  BIGINT         NOT NULL, -- of its own; where it lives by a session the later of both counts
  joined_at   BIGINT         NOT NULL,
  hold        BIGINT         NOT NULL, -- life while holding, in microseconds
  grace       BIGINT         NOT NULL, -- part of expires_at that the client does not count on
  local_index INT            NOT NULL,
  fixed       TINYINT        NOT NULL, -- 1: kept or detached, its expiry stays
  own         TINYINT        NOT NULL, -- 1: it outlives its process
  revoked     TINYINT        NOT NULL, -- 1: no renewal any more
  name        VARBINARY(128) NOT NULL, -- of the client, for listings
  session     BIGINT         NOT NULL DEFAULT 0, -- 0: it lives by its own expiry
  PRIMARY KEY (`key`, waiting, number, id),
  KEY by_id (id),
  KEY by_expiry (`key`, session, expires_at),
  KEY by_session (session, `key`, number)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- What outlives a line: its last number, until sweep_at at least. Whoever changes a line's
-- claims has locked its row here.
CREATE TABLE IF NOT EXISTS {lines} (
  `key`    VARBINARY(512) NOT NULL PRIMARY KEY,
  last     BIGINT         NOT NULL, -- 0: there was no claim yet
  waited   BIGINT         NOT NULL, -- the number of the last claim that began to wait
  sweep_at BIGINT         NOT NULL,
  KEY by_sweep (sweep_at)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

-- Session 0 of an inbox is the client: its claims are those whose ID begins with the inbox.
-- Each other is one life of a client, with a number of its own among all, that claims live
-- by which are renewed together: those of one TTL and grace.
CREATE TABLE IF NOT EXISTS {sessions} (
  inbox      VARBINARY(6)   NOT NULL,
  session    BIGINT         NOT NULL,
  boot       VARBINARY(128) NOT NULL, -- empty on a database server
  file       VARBINARY(255) NOT NULL, -- empty on a database server
  changed    BIGINT         NOT NULL, -- raised when something happened to one of its claims
  expires_at BIGINT         NOT NULL, -- of a client: without claims it may be swept then; of a life: 0 once it is dead
  PRIMARY KEY (inbox, session),
  KEY by_expiry (expires_at, session)
) ENGINE=InnoDB ROW_FORMAT=DYNAMIC;

INSERT IGNORE INTO {meta} (name, value) VALUES ('schema', 1), ('oldest_client', 1);
