-- The statements of the engine on MySQL and MariaDB.
-- Arguments: $1, $2 … as described with each; the engine writes them into the text, numbers
-- as they are and everything else as X'…', so nothing is prepared on the server. Result:
-- rows as described with each.
-- Atomicity: the engine runs the statements of a step in one READ COMMITTED transaction.
-- It locks the lines of its keys first, so a step sees and changes their claims as if it
-- were alone. What does not lie in those lines is only locked where nobody else has it.
-- An index is forced wherever a walk over the table would wait for other lines.

-- The clock.
-- part: now
TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))

-- When the claim c expires: with its life, or later by itself.
-- part: expiry
CASE c.session WHEN 0 THEN c.expires_at ELSE GREATEST(c.expires_at, COALESCE(
  (SELECT s.expires_at FROM {sessions} AS s WHERE s.inbox = LEFT(c.id, 6) AND s.session = c.session), 0)) END

-- "A claim": seventeen columns.
-- part: claim
c.`key`, c.waiting, c.number, c.id, c.`keys`, c.weight, c.capacity, {expiry}, c.joined_at, c.hold, c.grace,
c.local_index, c.fixed, c.own, c.revoked, c.name, c.session

-- Locks lines in the order of $1, rows of a key and three zeros, and makes those that are not
-- there. Where one is there its whole primary key is known, so no gap is locked.
-- name: lock
INSERT INTO {lines} (`key`, last, waited, sweep_at) VALUES $1 ON DUPLICATE KEY UPDATE last = last;

-- Locks lines with keys $1, a list, without waiting: leaves out what another has locked, and
-- what is not there.
-- name: lock_free
SELECT `key` FROM {lines} FORCE INDEX (PRIMARY) WHERE `key` IN ($1) ORDER BY `key` FOR UPDATE SKIP LOCKED;

-- One look at a line that counts nothing. $1 key, $2 inbox, $3 ID. The clock; the oldest
-- client; the session's safety; last; sweep_at; the front's expiry, and whether it waits;
-- the earliest expiry of all that live by no life; the first number that waits; whether
-- the ID is known; the earliest expiry of a life.
-- name: glance
SELECT {now},
  (SELECT value FROM {meta} WHERE name = 'oldest_client'),
  (SELECT expires_at FROM {sessions} WHERE inbox = $2 AND session = 0),
  (SELECT NULLIF(last, 0) FROM {lines} WHERE `key` = $1),
  (SELECT sweep_at FROM {lines} WHERE `key` = $1),
  (SELECT {expiry} FROM {claims} AS c WHERE c.`key` = $1 ORDER BY c.waiting, c.number LIMIT 1),
  (SELECT waiting FROM {claims} WHERE `key` = $1 ORDER BY waiting, number LIMIT 1),
  (SELECT MIN(expires_at) FROM {claims} WHERE `key` = $1 AND session = 0),
  (SELECT number FROM {claims} WHERE `key` = $1 AND waiting = 1 ORDER BY number LIMIT 1),
  EXISTS (SELECT 1 FROM {claims} WHERE id = $3),
  (SELECT expires_at FROM {sessions} WHERE session > 0 ORDER BY expires_at LIMIT 1);

-- Lines $1, a list: the clock; the oldest client; the earliest expiry of a life; key; last;
-- sweep_at.
-- name: survey_lines
SELECT {now}, (SELECT value FROM {meta} WHERE name = 'oldest_client'),
  (SELECT expires_at FROM {sessions} WHERE session > 0 ORDER BY expires_at LIMIT 1),
  l.`key`, NULLIF(l.last, 0), l.sweep_at
FROM {lines} AS l FORCE INDEX (PRIMARY) WHERE l.`key` IN ($1);

-- The first $2 claims of lines $1, a list, one line after the other.
-- name: survey
SELECT {claim}
FROM {claims} AS c FORCE INDEX (PRIMARY) WHERE c.`key` IN ($1) ORDER BY c.`key`, c.waiting, c.number LIMIT $2;

-- The clock.
-- name: clock
SELECT {now};

-- What the holders of $1 come to: how many; sum and least of their weights; least
-- capacity; first and last expiry of the first $2.
-- name: held
SELECT a.n, a.weights, a.lightest, a.least, b.soonest, b.latest
FROM (SELECT COUNT(*) AS n, COALESCE(SUM(weight), 0) AS weights, COALESCE(MIN(weight), 0) AS lightest,
    COALESCE(MIN(capacity), 0) AS least
  FROM {claims} WHERE `key` = $1 AND waiting = 0) AS a
CROSS JOIN (SELECT COALESCE(MIN(few.expiry), 0) AS soonest, COALESCE(MAX(few.expiry), 0) AS latest
  FROM (SELECT {expiry} AS expiry FROM {claims} AS c WHERE c.`key` = $1 AND c.waiting = 0
    ORDER BY c.number LIMIT $2) AS few) AS b;

-- How many wait in $1 with numbers above $2 and below $3.
-- name: ahead
SELECT COUNT(*) FROM {claims} WHERE `key` = $1 AND waiting = 1 AND number > $2 AND number < $3;

-- What the first $3 that wait in $1 with numbers below $2 come to: as held, without a sum.
-- name: near
SELECT COUNT(*), 0, COALESCE(MIN(weight), 0), COALESCE(MIN(capacity), 0),
  COALESCE(MIN(expires_at), 0), COALESCE(MAX(expires_at), 0)
FROM (SELECT weight, capacity, expires_at FROM {claims}
  WHERE `key` = $1 AND waiting = 1 AND number < $2 ORDER BY number LIMIT $3) AS few;

-- Whether somebody waits in $1 behind number $2.
-- name: behind
SELECT EXISTS (SELECT 1 FROM {claims} WHERE `key` = $1 AND waiting = 1 AND number > $2);

-- How many wait in $1, counted to $2.
-- name: crowd
SELECT COUNT(*) FROM (SELECT 1 FROM {claims} WHERE `key` = $1 AND waiting = 1 LIMIT $2) AS few;

-- How many wait in $1 and live at $2.
-- name: waiting
SELECT COUNT(*) FROM {claims} WHERE `key` = $1 AND waiting = 1 AND expires_at > $2;

-- The claim with ID $1, or those with one of the IDs $1, in all their lines.
-- name: find
SELECT {claim}
FROM {claims} AS c WHERE id IN ($1) ORDER BY `key`;

-- The same, locked: leaves out the rows that another has locked.
-- name: find_free
SELECT {claim}
FROM {claims} AS c FORCE INDEX (by_id) WHERE id IN ($1) FOR UPDATE SKIP LOCKED;

-- The claim in $1 with number $2.
-- name: number
SELECT {claim}
FROM {claims} AS c WHERE `key` = $1 AND waiting IN (0, 1) AND number = $2;

-- The first $2 claims of $1.
-- name: head
SELECT {claim}
FROM {claims} AS c WHERE `key` = $1 ORDER BY waiting, number LIMIT $2;

-- The first $2 that wait in $1.
-- name: front
SELECT {claim}
FROM {claims} AS c WHERE `key` = $1 AND waiting = 1 ORDER BY number LIMIT $2;

-- Those that hold $1 and live at $2.
-- name: holders
SELECT {claim}
FROM {claims} AS c WHERE `key` = $1 AND waiting = 0 AND {expiry} > $2 ORDER BY number;

-- At most $3 claims of $1 that live by no life, are dead at $2, and that nobody has locked;
-- they are now.
-- name: dead
SELECT {claim}
FROM {claims} AS c FORCE INDEX (by_expiry) WHERE c.`key` = $1 AND c.session = 0 AND c.expires_at <= $2
ORDER BY c.expires_at LIMIT $3 FOR UPDATE SKIP LOCKED;

-- The first holder of $1 if it is dead at $2 and nobody has locked it; it is now.
-- name: dead_first
SELECT {claim}
FROM {claims} AS c FORCE INDEX (PRIMARY) WHERE c.`key` = $1 AND c.waiting = 0 AND {expiry} <= $2
  AND c.number = (SELECT MIN(f.number) FROM {claims} AS f WHERE f.`key` = $1 AND f.waiting = 0)
FOR UPDATE SKIP LOCKED;

-- At most $3 claims of $1 that live by one of the first lives that have expired at $2, and
-- that nobody has locked; they are now.
-- name: dead_fallen
SELECT {claim}
FROM (SELECT session FROM {sessions} WHERE session > 0 AND expires_at <= $2 ORDER BY expires_at LIMIT 256) AS d
STRAIGHT_JOIN {claims} AS c FORCE INDEX (by_session) ON c.session = d.session AND c.`key` = $1
WHERE c.expires_at <= $2 LIMIT $3 FOR UPDATE SKIP LOCKED;

-- Puts a claim in: the sixteen columns.
-- name: insert
INSERT INTO {claims} (`key`, waiting, number, id, `keys`, weight, capacity, expires_at, joined_at, hold, grace, local_index, fixed, own, revoked, name)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16);

-- Gives claim $1, or several, the expiry $2 with grace $3, hold $4, own $5, fixed $6, and life $7.
-- name: extend
UPDATE {claims} FORCE INDEX (by_id) SET expires_at = $2, grace = $3, hold = $4, own = $5, fixed = $6, session = $7 WHERE id IN ($1);

-- Makes claim $1 hold.
-- name: stand
UPDATE {claims} FORCE INDEX (by_id) SET waiting = 0 WHERE id = $1;

-- Revokes claim $1: it keeps the expiry $2.
-- name: revoke
UPDATE {claims} FORCE INDEX (by_id) SET revoked = 1, expires_at = $2, session = 0 WHERE id = $1;

-- Gives the place of claim $1 to ID $2: name $3, index $4, own $5, expiry $6, grace $7, hold $8.
-- name: take_over
UPDATE {claims} FORCE INDEX (by_id) SET id = $2, name = $3, local_index = $4, own = $5, expires_at = $6, grace = $7, hold = $8, fixed = 0, session = 0
WHERE id = $1;

-- Takes claim $1 out of all its lines, or forgets a remembered ID.
-- name: delete
DELETE c FROM {claims} AS c FORCE INDEX (by_id) WHERE c.id = $1;

-- The same of several claims, whose IDs $1 selects: for a long list the server would walk over
-- the table.
-- name: delete_all
DELETE c FROM ($1) AS d STRAIGHT_JOIN {claims} AS c FORCE INDEX (by_id) ON c.id = d.v;

-- Writes line $1: last $2, waited $3 (0: as it was).
-- name: numbered
UPDATE {lines} SET last = $2, waited = GREATEST(waited, $3) WHERE `key` = $1;

-- Writes line $1: last $2, sweep_at $3, waited $4 (0: as it was).
-- name: save_line
UPDATE {lines} SET last = $2, sweep_at = $3, waited = GREATEST(waited, $4) WHERE `key` = $1;

-- Writes line $1, or several: sweep_at $2.
-- name: keep_line
UPDATE {lines} FORCE INDEX (PRIMARY) SET sweep_at = $2 WHERE `key` IN ($1);

-- The keys of at most $2 lines that are due at $1.
-- name: due
SELECT `key` FROM {lines} WHERE sweep_at <= $1 ORDER BY sweep_at LIMIT $2;

-- Forgets line $1.
-- name: drop_line
DELETE FROM {lines} WHERE `key` = $1;

-- Forgets the lines whose keys $1 selects.
-- name: drop_lines
DELETE l FROM ($1) AS d STRAIGHT_JOIN {lines} AS l FORCE INDEX (PRIMARY) ON l.`key` = d.v;

-- Keys from $1 on, above $2 and below $3, at most $4.
-- name: page
SELECT `key` FROM {lines} WHERE `key` >= $1 AND `key` > $2 AND `key` < $3 ORDER BY `key` LIMIT $4;

-- What a watcher of lines $1, a list, compares: key; ID of the first holder; greatest number
-- that holds; holders, counted to a hundred; last; waited.
-- name: marks
SELECT l.`key`, (SELECT c.id FROM {claims} AS c WHERE c.`key` = l.`key` AND c.waiting = 0 ORDER BY c.number LIMIT 1),
  COALESCE((SELECT c.number FROM {claims} AS c WHERE c.`key` = l.`key` AND c.waiting = 0 ORDER BY c.number DESC LIMIT 1), 0),
  (SELECT LEAST(COUNT(*), 100) FROM {claims} AS c WHERE c.`key` = l.`key` AND c.waiting = 0),
  l.last, l.waited
FROM {lines} AS l FORCE INDEX (PRIMARY) WHERE l.`key` IN ($1);

-- Writes the client with inbox $1: boot $2, file $3, safe until $4.
-- name: open_session
INSERT INTO {sessions} (inbox, session, boot, file, changed, expires_at) VALUES ($1, 0, $2, $3, 0, $4)
ON DUPLICATE KEY UPDATE boot = $2, file = $3, expires_at = $4;

-- Tells session $2 of inbox $1 that something happened to one of its claims.
-- name: change
UPDATE {sessions} FORCE INDEX (PRIMARY) SET changed = changed + 1 WHERE inbox = $1 AND session = $2;

-- How often something happened to the claims of inbox $1.
-- name: changed
SELECT changed FROM {sessions} WHERE inbox = $1 AND session = 0;

-- At most $2 clients from inbox $1 on: inbox, boot, file, whether it may be swept.
-- name: sessions
SELECT inbox, boot, file,
  expires_at <= {now}
FROM {sessions} WHERE inbox >= $1 AND session = 0 ORDER BY inbox LIMIT $2;

-- Removes the sessions of inbox $1 unless there is a claim with an ID from $2 to $3.
-- name: drop_session
DELETE s FROM {sessions} AS s FORCE INDEX (PRIMARY) WHERE s.inbox = $1
AND NOT EXISTS (SELECT 1 FROM {claims} FORCE INDEX (by_id) WHERE id >= $2 AND id <= $3);

-- Renews life $2 of inbox $1, unless it is dead: it lasts $3 from now on, or longer.
-- name: renew_life
UPDATE {sessions} FORCE INDEX (PRIMARY) SET expires_at = GREATEST(expires_at, {now} + $3)
WHERE inbox = $1 AND session = $2 AND expires_at > {now};

-- Begins life $2 of inbox $1, which lasts $3. No row: there was one of that number.
-- name: open_life
INSERT IGNORE INTO {sessions} (inbox, session, boot, file, changed, expires_at)
VALUES ($1, $2, '', '', 0, {now} + $3);

-- Life $2 of inbox $1: the clock, how often something happened to its claims, its expiry.
-- name: life
SELECT {now}, changed, expires_at FROM {sessions} WHERE inbox = $1 AND session = $2;

-- Locks life $2 of inbox $1, if it is there and nobody else has it locked: 1.
-- name: free_life
SELECT 1 FROM {sessions} FORCE INDEX (PRIMARY) WHERE inbox = $1 AND session = $2 FOR UPDATE SKIP LOCKED;

-- Ends life $2 of inbox $1 for ever if it has expired at $3.
-- name: kill_life
UPDATE {sessions} FORCE INDEX (PRIMARY) SET expires_at = 0
WHERE inbox = $1 AND session = $2 AND expires_at > 0 AND expires_at <= $3;

-- Removes life $2 of inbox $1 if it is dead and no claim lives by it.
-- name: drop_life
DELETE s FROM {sessions} AS s FORCE INDEX (PRIMARY) WHERE s.inbox = $1 AND s.session = $2 AND s.expires_at = 0
AND NOT EXISTS (SELECT 1 FROM {claims} AS c FORCE INDEX (by_session) WHERE c.session = $2);

-- At most $2 lives that have expired at $1: inbox, session.
-- name: fallen_lives
SELECT inbox, session FROM {sessions} WHERE session > 0 AND expires_at <= $1 ORDER BY expires_at LIMIT $2;

-- At most $2 claims that live by life $1 and that nobody has locked; they are now.
-- name: owed
SELECT {claim}
FROM {claims} AS c FORCE INDEX (by_session) WHERE c.session = $1 LIMIT $2 FOR UPDATE SKIP LOCKED;

-- At most $4 places of claims that live by life $1, behind key $2 and number $3: ID,
-- number, key, whether somebody waits there.
-- name: mine
SELECT c.id, c.number, c.`key`, EXISTS (SELECT 1 FROM {claims} AS w WHERE w.`key` = c.`key` AND w.waiting = 1)
FROM {claims} AS c FORCE INDEX (by_session)
WHERE c.session = $1 AND c.`key` >= $2 AND (c.`key` > $2 OR c.number > $3)
ORDER BY c.`key`, c.number LIMIT $4;

-- Takes claims $1 out of life $2; they live until $3 at least.
-- name: part
UPDATE {claims} FORCE INDEX (by_id) SET session = 0, expires_at = GREATEST(expires_at, $3) WHERE id IN ($1) AND session = $2;

-- The first $2 holders of $1, those of them that live by a life: ID, session.
-- name: sitters
SELECT few.id, few.session FROM (SELECT id, session FROM {claims} WHERE `key` = $1 AND waiting = 0 ORDER BY number LIMIT $2) AS few
WHERE few.session > 0;

-- For a guard, in the user's transaction: the place of claim $3 with number $2 in $1, if it
-- holds: its number, whether it holds, whether it was revoked. Whoever would delete it has
-- to wait. Its whole primary key is named, so a row that is there is locked without the gap
-- beside it, whatever the isolation; where it is not there a REPEATABLE READ transaction
-- locks the gap, and other keys may wait until it is rolled back.
-- name: guard
SELECT number, 1, revoked FROM {claims} FORCE INDEX (PRIMARY)
WHERE `key` = $1 AND waiting = 0 AND number = $2 AND id = $3 LOCK IN SHARE MODE;
