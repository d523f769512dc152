-- What hasp on PostgreSQL only looks at, and the sweep, layout 1. A view is one statement,
-- so it sees one moment; the sweep is a step as lines.sql describes it.

-- The lines with keys from p_low on, above p_after and below p_high, at most p_limit: a
-- row for each holder and each of the first hundred that wait, or one without a number.
CREATE OR REPLACE FUNCTION {v1_lines}(p_low bytea, p_after bytea, p_high bytea, p_limit bigint)
RETURNS TABLE (key text, number bigint, waits boolean, waiting bigint, weight bigint, capacity bigint, local_index smallint,
  name text, in_line bigint, expires_in bigint, fixed boolean, revoked boolean)
LANGUAGE sql VOLATILE SET enable_seqscan = off AS $$
  WITH clock AS MATERIALIZED (SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint AS now),
  page AS MATERIALIZED (SELECT l.key, l.granted FROM {lines} l WHERE l.key >= p_low AND l.key > p_after AND l.key < p_high
    ORDER BY l.key LIMIT p_limit)
  SELECT encode(p.key, 'hex'), c.number, c.number > p.granted, c.waiting, c.weight, c.capacity, c.local_index,
    encode(c.name, 'hex'), c.now - c.joined_at, c.ends - c.now, c.fixed, c.revoked
  FROM page p LEFT JOIN LATERAL (
    SELECT a.*, k.now, greatest(a.expires_at, s.expires_at) AS ends,
      count(*) FILTER (WHERE a.number > p.granted) OVER () AS waiting,
      count(*) FILTER (WHERE a.number > p.granted) OVER (ORDER BY a.number) AS place
    FROM clock k CROSS JOIN {claims} a
    LEFT JOIN {sessions} s ON a.session > 0 AND s.inbox = substr(a.id, 1, 6) AND s.session = a.session
    WHERE a.key = p.key AND greatest(a.expires_at, s.expires_at) > k.now
  ) AS c ON c.place <= 100
  ORDER BY p.key, c.number
$$;

-- How often something happened to the claims of a client.
CREATE OR REPLACE FUNCTION {v1_counter}(p_inbox bytea) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
BEGIN
  RETURN (SELECT s.changed + s.news FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = 0);
END $$;

-- What a watcher of lines compares, a row for each key, in their order: the first holder;
-- the greatest number that holds; holders, counted to a hundred; last; waited.
CREATE OR REPLACE FUNCTION {v1_marks}(p_keys bytea[])
RETURNS TABLE (front text, newest bigint, holders bigint, last bigint, waited bigint)
LANGUAGE sql VOLATILE SET enable_seqscan = off AS $$
  SELECT encode((SELECT c.id FROM {claims} c WHERE c.key = k.key AND c.number <= l.granted ORDER BY c.number LIMIT 1), 'hex'),
    coalesce((SELECT c.number FROM {claims} c WHERE c.key = k.key AND c.number <= l.granted ORDER BY c.number DESC LIMIT 1), 0),
    (SELECT count(*) FROM (SELECT 1 FROM {claims} c WHERE c.key = k.key AND c.number <= l.granted LIMIT 100) AS h),
    l.last, l.waited
  FROM unnest(p_keys) WITH ORDINALITY AS k (key, place) LEFT JOIN {lines} l ON l.key = k.key ORDER BY k.place
$$;

-- How the claims with these IDs stand: a row for each that is there, by its place.
CREATE OR REPLACE FUNCTION {v1_see}(p_ids bytea[])
RETURNS TABLE (item bigint, number bigint, waiting boolean, revoked boolean, several boolean, behind boolean, session integer)
LANGUAGE sql VOLATILE SET enable_seqscan = off AS $$
  SELECT i.item, min(c.number), NOT bool_and(c.number <= l.granted), bool_or(c.revoked), max(c.keys) > 1, bool_or(l.waiting),
    CASE WHEN count(*) = max(c.keys) AND NOT bool_or(c.fixed) THEN min(c.session) ELSE 0 END
  FROM unnest(p_ids) WITH ORDINALITY AS i (id, item) JOIN {claims} c ON c.id = i.id JOIN {lines} l ON l.key = c.key
  GROUP BY i.item
$$;

-- Looks at lines that are due, at most p_limit: removes the dead, and the line where it
-- has been empty for long enough; then at as many sessions, all of which it scans: without
-- the compiler that so high a cost would call. swept: how many there were.
-- remaining: whether there are lines. A line in use by another step is left for later. One
-- that has claims is looked at again after as long as the last of them has been there, since
-- a number is the time it was given: what is held for hours costs a few writes.
CREATE OR REPLACE FUNCTION {v1_sweep}(p_limit bigint, OUT swept integer, OUT remaining boolean)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off SET jit = off AS $$
DECLARE
  v_now bigint := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
  v_told bytea[] := '{}';
  v_line record;
  v_open record;
  v_dead_left boolean;
BEGIN
  swept := 0;
  FOR v_line IN SELECT l.key FROM {lines} l WHERE l.sweep_at <= v_now ORDER BY l.sweep_at LIMIT p_limit FOR UPDATE SKIP LOCKED LOOP
    CONTINUE WHEN NOT pg_try_advisory_xact_lock(hashtextextended(encode(v_line.key, 'hex'), 1751217008));
    swept := swept + 1;
    v_dead_left := false;
    IF get_byte(v_line.key, 0) <> 0 THEN
      SELECT * INTO v_open FROM {v1_open}(v_line.key, v_now, 64, 32);
      v_told := v_told || v_open.told;
      v_dead_left := v_open.dead_left;
    END IF;
    DELETE FROM {lines} l WHERE l.key = v_line.key AND l.sweep_at <= v_now
      AND NOT EXISTS (SELECT 1 FROM {claims} c WHERE c.key = l.key);
    IF NOT v_dead_left THEN
      UPDATE {lines} l SET sweep_at = v_now + least(greatest(v_now - l.last, 60000000), 3600000000)
        WHERE l.key = v_line.key AND l.sweep_at <= v_now;
    END IF;
  END LOOP;
  DELETE FROM {sessions} d USING (
    SELECT s.inbox, s.session FROM {sessions} s WHERE s.expires_at <= v_now - 60000000
      AND (s.session > 0 OR NOT EXISTS (SELECT 1 FROM {claims} c
        WHERE c.id >= s.inbox || decode('00000000000000000000', 'hex') AND c.id <= s.inbox || decode('ffffffffffffffffffff', 'hex')))
    LIMIT p_limit FOR UPDATE SKIP LOCKED) AS due
  WHERE d.inbox = due.inbox AND d.session = due.session;
  PERFORM {v1_finish}(v_told, '');
  remaining := EXISTS (SELECT 1 FROM {lines});
END $$;
