-- The statements of the engine on SQLite.
-- Arguments: $1, $2 … as described with each. Result: rows as described with each.
-- Atomicity: the engine runs the statements of a step in one transaction that begins
-- with lock, so a step sees and changes the tables as if it were alone.

-- The clock.
-- part: now
CAST(ROUND((julianday('now') - 2440587.5) * 86400000.0) AS INTEGER) * 1000

-- When the claim c expires: with its life, or later by itself.
-- part: expiry
CASE c.session WHEN 0 THEN c.expires_at ELSE MAX(c.expires_at, COALESCE(
  (SELECT s.expires_at FROM {sessions} AS s WHERE s.inbox = substr(c.id, 1, 6) AND s.session = c.session), 0)) END

-- "A claim": seventeen columns.
-- part: claim
c.key, c.waiting, c.number, c.id, c.keys, c.weight, c.capacity, {expiry}, c.joined_at, c.hold, c.grace,
c.local_index, c.fixed, c.own, c.revoked, c.name, c.session

-- Takes the right to write before anything is read.
-- name: lock
UPDATE {lines} SET last = last WHERE key = X'' AND last < 0;

-- One look at a line that counts nothing. $1 key, $2 inbox, $3 ID. The clock; the oldest
-- client; the session's safety; last; sweep_at; the front's expiry, and whether it waits;
-- the earliest expiry of the crowd that lives by no life; the first number that waits;
-- whether the ID is known; the earliest expiry of a life.
-- name: glance
SELECT {now},
  (SELECT value FROM {meta} WHERE name = 'oldest_client'),
  (SELECT expires_at FROM {sessions} WHERE inbox = $2 AND session = 0),
  (SELECT last FROM {lines} WHERE key = $1),
  (SELECT sweep_at FROM {lines} WHERE key = $1),
  (SELECT {expiry} FROM {claims} AS c WHERE c.key = $1 ORDER BY c.waiting, c.number LIMIT 1),
  (SELECT waiting FROM {claims} WHERE key = $1 ORDER BY waiting, number LIMIT 1),
  (SELECT MIN(expires_at) FROM {claims} WHERE key = $1 AND session = 0 AND (waiting = 1 OR capacity > 1)),
  (SELECT number FROM {claims} WHERE key = $1 AND waiting = 1 ORDER BY number LIMIT 1),
  EXISTS (SELECT 1 FROM {claims} WHERE id = $3),
  (SELECT expires_at FROM {sessions} WHERE session > 0 AND expires_at >= 0 ORDER BY expires_at LIMIT 1);

-- The clock.
-- name: clock
SELECT {now};

-- What the holders of $1 come to: how many; sum and least of their weights; least
-- capacity; first and last expiry of the first $2.
-- name: held
SELECT a.n, a.weights, a.lightest, a.least, b.soonest, b.latest
FROM (SELECT COUNT(*) AS n, COALESCE(SUM(weight), 0) AS weights, COALESCE(MIN(weight), 0) AS lightest,
    COALESCE(MIN(capacity), 0) AS least
  FROM {claims} WHERE key = $1 AND waiting = 0) AS a
CROSS JOIN (SELECT COALESCE(MIN(expiry), 0) AS soonest, COALESCE(MAX(expiry), 0) AS latest
  FROM (SELECT {expiry} AS expiry FROM {claims} AS c WHERE c.key = $1 AND c.waiting = 0
    ORDER BY c.number LIMIT $2)) AS b;

-- How many wait in $1 with numbers above $2 and below $3.
-- name: ahead
SELECT COUNT(*) FROM {claims} WHERE key = $1 AND waiting = 1 AND number > $2 AND number < $3;

-- What the first $3 that wait in $1 with numbers below $2 come to: as held, without a sum.
-- name: near
SELECT COUNT(*), 0, COALESCE(MIN(weight), 0), COALESCE(MIN(capacity), 0),
  COALESCE(MIN(expires_at), 0), COALESCE(MAX(expires_at), 0)
FROM (SELECT weight, capacity, expires_at FROM {claims}
  WHERE key = $1 AND waiting = 1 AND number < $2 ORDER BY number LIMIT $3);

-- Whether somebody waits in $1 behind number $2.
-- name: behind
SELECT EXISTS (SELECT 1 FROM {claims} WHERE key = $1 AND waiting = 1 AND number > $2);

-- How many wait in $1, counted to $2.
-- name: crowd
SELECT COUNT(*) FROM (SELECT 1 FROM {claims} WHERE key = $1 AND waiting = 1 LIMIT $2);

-- How many wait in $1 and live at $2.
-- name: waiting
SELECT COUNT(*) FROM {claims} WHERE key = $1 AND waiting = 1 AND expires_at > $2;

-- The claim with ID $1, in all its lines.
-- name: find
SELECT {claim}
FROM {claims} AS c WHERE id = $1 ORDER BY key;

-- The claim in $1 with number $2.
-- name: number
SELECT {claim}
FROM {claims} AS c WHERE key = $1 AND waiting IN (0, 1) AND number = $2;

-- The first $2 claims of $1.
-- name: head
SELECT {claim}
FROM {claims} AS c WHERE key = $1 ORDER BY waiting, number LIMIT $2;

-- The first $2 that wait in $1.
-- name: front
SELECT {claim}
FROM {claims} AS c WHERE key = $1 AND waiting = 1 ORDER BY number LIMIT $2;

-- Those that hold $1 and live at $2.
-- name: holders
SELECT {claim}
FROM {claims} AS c WHERE key = $1 AND waiting = 0 AND {expiry} > $2 ORDER BY number;

-- At most $3 claims of $1 that live by no life and are dead at $2, but for a holder that
-- excludes all others.
-- name: dead
SELECT {claim}
FROM {claims} AS c WHERE key = $1 AND session = 0 AND (waiting = 1 OR capacity > 1) AND expires_at <= $2 LIMIT $3;

-- The first holder of $1 if it is dead at $2.
-- name: dead_first
SELECT {claim}
FROM {claims} AS c WHERE key = $1 AND waiting = 0 AND {expiry} <= $2
  AND number = (SELECT number FROM {claims} WHERE key = $1 AND waiting = 0 ORDER BY number LIMIT 1);

-- At most $3 claims of $1 that live by one of the first lives that have expired at $2.
-- name: dead_fallen
SELECT {claim}
FROM (SELECT session FROM {sessions} WHERE session > 0 AND expires_at <= $2 ORDER BY expires_at LIMIT 256) AS d
CROSS JOIN {claims} AS c INDEXED BY {prefix}claims_session
WHERE c.session = d.session AND c.session > 0 AND c.key = $1 AND c.expires_at <= $2 LIMIT $3;

-- Puts a claim in: the sixteen columns.
-- name: insert
INSERT INTO {claims} (key, waiting, number, id, keys, weight, capacity, expires_at, joined_at, hold, grace, local_index, fixed, own, revoked, name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- Gives claim $1 the expiry $2 with grace $3, hold $4, own $5, fixed $6, and life $7.
-- name: extend
UPDATE {claims} SET expires_at = $2, grace = $3, hold = $4, own = $5, fixed = $6, session = $7 WHERE id = $1;

-- Makes claim $1 hold.
-- name: stand
UPDATE {claims} SET waiting = 0 WHERE id = $1;

-- Revokes claim $1: it keeps the expiry $2.
-- name: revoke
UPDATE {claims} SET revoked = 1, expires_at = $2, session = 0 WHERE id = $1;

-- Gives the place of claim $1 to ID $2: name $3, index $4, own $5, expiry $6, grace $7, hold $8.
-- name: take_over
UPDATE {claims} SET id = $2, name = $3, local_index = $4, own = $5, expires_at = $6, grace = $7, hold = $8, fixed = 0, session = 0
WHERE id = $1;

-- Takes claim $1 out of all its lines, or forgets a remembered ID.
-- name: delete
DELETE FROM {claims} WHERE id = $1;

-- Writes line $1: last $2, waited $3 (0: as it was).
-- name: numbered
UPDATE {lines} SET last = $2, waited = MAX(waited, $3) WHERE key = $1;

-- Writes line $1: last $2, sweep_at $3, waited $4 (0: as it was).
-- name: save_line
INSERT INTO {lines} (key, last, sweep_at, waited) VALUES ($1, $2, $3, $4)
ON CONFLICT (key) DO UPDATE SET last = excluded.last, sweep_at = excluded.sweep_at,
  waited = MAX(waited, excluded.waited);

-- Writes line $1: sweep_at $2.
-- name: keep_line
UPDATE {lines} SET sweep_at = $2 WHERE key = $1;

-- The keys of at most $2 lines that are due at $1.
-- name: due
SELECT key FROM {lines} WHERE sweep_at <= $1 ORDER BY sweep_at LIMIT $2;

-- Forgets line $1.
-- name: drop_line
DELETE FROM {lines} WHERE key = $1;

-- Keys from $1 on, above $2 and below $3, at most $4.
-- name: page
SELECT key FROM {lines} WHERE key >= $1 AND key > $2 AND key < $3 ORDER BY key LIMIT $4;

-- What a watcher of $1 compares: ID of the first holder; greatest number that holds;
-- holders, counted to a hundred; last; waited.
-- name: mark
SELECT (SELECT id FROM {claims} WHERE key = $1 AND waiting = 0 ORDER BY number LIMIT 1),
  COALESCE((SELECT number FROM {claims} WHERE key = $1 AND waiting = 0 ORDER BY number DESC LIMIT 1), 0),
  (SELECT COUNT(*) FROM (SELECT 1 FROM {claims} WHERE key = $1 AND waiting = 0 LIMIT 100)),
  COALESCE((SELECT last FROM {lines} WHERE key = $1), 0),
  COALESCE((SELECT waited FROM {lines} WHERE key = $1), 0);

-- Writes the client with inbox $1: boot $2, file $3, safe until $4.
-- name: open_session
INSERT INTO {sessions} (inbox, session, boot, file, changed, expires_at) VALUES ($1, 0, $2, $3, 0, $4)
ON CONFLICT (inbox, session) DO UPDATE SET boot = excluded.boot, file = excluded.file, expires_at = excluded.expires_at;

-- Tells session $2 of inbox $1 that something happened to one of its claims.
-- name: change
UPDATE {sessions} SET changed = changed + 1 WHERE inbox = $1 AND session = $2;

-- How often something happened to the claims of inbox $1.
-- name: changed
SELECT changed FROM {sessions} WHERE inbox = $1 AND session = 0;

-- The sessions of kernel run $2 behind the first $3 claims of $1: inbox, boot, file,
-- whether the claim waits.
-- name: suspects
SELECT s.inbox, s.boot, s.file, c.waiting
FROM (SELECT id, waiting FROM {claims} WHERE key = $1 AND (waiting = 1 OR (fixed = 0 AND own = 0))
  ORDER BY waiting, number LIMIT $3) AS c
CROSS JOIN {sessions} AS s ON s.inbox = substr(c.id, 1, 6) AND s.session = 0 AND s.boot = $2 AND s.file <> '';

-- At most $2 clients from inbox $1 on: inbox, boot, file, whether it may be swept.
-- name: sessions
SELECT inbox, boot, file,
  expires_at <= {now}
FROM {sessions} WHERE inbox >= $1 AND session = 0 ORDER BY inbox LIMIT $2;

-- How many sessions name the lock file $1.
-- name: named
SELECT COUNT(*) FROM {sessions} WHERE file = $1;

-- At most $3 claims with IDs from $1 to $2 that end with their process.
-- name: owned
SELECT {claim}
FROM {claims} AS c WHERE id >= $1 AND id <= $2 AND (waiting = 1 OR (fixed = 0 AND own = 0)) LIMIT $3;

-- Removes the sessions of inbox $1 unless there is a claim with an ID from $2 to $3.
-- name: drop_session
DELETE FROM {sessions} WHERE inbox = $1
AND NOT EXISTS (SELECT 1 FROM {claims} WHERE id >= $2 AND id <= $3);

-- For a guard, in the user's transaction: the place of claim $3 with number $2 in $1, if it
-- holds: its number, whether it holds, whether it was revoked. That it is an UPDATE gives
-- the transaction the right to write, so that no step runs before it ends.
-- name: guard
UPDATE {claims} SET fixed = fixed WHERE key = $1 AND waiting = 0 AND number = $2 AND id = $3
RETURNING number, 1, revoked;

-- Renews life $2 of inbox $1, unless it is dead: it lasts $3 from now on, or longer.
-- name: renew_life
UPDATE {sessions} SET expires_at = MAX(expires_at, {now} + $3)
WHERE inbox = $1 AND session = $2 AND expires_at > {now};

-- Begins life $2 of inbox $1, which lasts $3. No row: there was one of that number.
-- name: open_life
INSERT OR IGNORE INTO {sessions} (inbox, session, boot, file, changed, expires_at)
VALUES ($1, $2, '', '', 0, {now} + $3);

-- Life $2 of inbox $1: the clock, how often something happened to its claims, its expiry.
-- name: life
SELECT {now}, changed, expires_at FROM {sessions} WHERE inbox = $1 AND session = $2;

-- Ends life $2 of inbox $1 for ever if it has expired at $3.
-- name: kill_life
UPDATE {sessions} SET expires_at = 0 WHERE inbox = $1 AND session = $2 AND expires_at > 0 AND expires_at <= $3;

-- Removes life $2 of inbox $1 if it is dead and no claim lives by it.
-- name: drop_life
DELETE FROM {sessions} WHERE inbox = $1 AND session = $2 AND expires_at = 0
AND NOT EXISTS (SELECT 1 FROM {claims} WHERE session = $2 AND session > 0);

-- At most $2 lives that have expired at $1: inbox, session.
-- name: fallen_lives
SELECT inbox, session FROM {sessions} WHERE session > 0 AND expires_at <= $1 ORDER BY expires_at LIMIT $2;

-- At most $2 claims that live by life $1.
-- name: owed
SELECT {claim}
FROM {claims} AS c WHERE c.session = $1 AND c.session > 0 LIMIT $2;

-- At most $4 places of claims that live by life $1, behind key $2 and number $3: ID,
-- number, key, whether somebody waits there.
-- name: mine
SELECT c.id, c.number, c.key, EXISTS (SELECT 1 FROM {claims} AS w WHERE w.key = c.key AND w.waiting = 1)
FROM {claims} AS c WHERE c.session = $1 AND c.session > 0 AND (c.key, c.number) > ($2, $3)
ORDER BY c.key, c.number LIMIT $4;

-- Takes claim $1 out of life $2; it lives until $3 at least.
-- name: part
UPDATE {claims} SET session = 0, expires_at = MAX(expires_at, $3) WHERE id = $1 AND session = $2;

-- The first $2 holders of $1, those of them that live by a life: ID, session.
-- name: sitters
SELECT id, session FROM (SELECT id, session FROM {claims} WHERE key = $1 AND waiting = 0 ORDER BY number LIMIT $2)
WHERE session > 0;
