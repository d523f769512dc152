-- The steps of hasp on PostgreSQL, layout 1. Their names carry the layout: a later one
-- that old clients must not use drops them, so no old client can pass by it.
--
-- Atomicity: each verb is one call in a transaction of its own, READ COMMITTED whatever
-- the default. It first takes the locks of its lines, each in a statement of its own; as
-- the functions are VOLATILE, every statement behind that sees what was committed before.
-- So the steps of a line are one after the other. Only sessions are renewed beside them:
-- whoever passes an expired claim has deleted its session, under a row lock got without
-- waiting, and a row somebody has locked counts as alive.
-- What is called from outside plans without scans of whole tables: a session keeps its plans,
-- and one made while a table was small would be slow for long after it has grown.
-- Lives are in microseconds; "told" is news, an element each: what happened (G granted,
-- T turn, E ended, R revoked, B only counted), the ID, the number.

-- Takes the lines' locks in the order of their hashes. Result: the clock, read once.
CREATE OR REPLACE FUNCTION {v1_lock}(p_keys bytea[]) RETURNS bigint
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_hash bigint;
BEGIN
  IF current_setting('transaction_isolation') <> 'read committed' THEN
    RAISE EXCEPTION 'hasp: a step needs READ COMMITTED' USING ERRCODE = '25001';
  END IF;
  IF cardinality(p_keys) = 1 THEN
    PERFORM pg_advisory_xact_lock(hashtextextended(encode(p_keys[1], 'hex'), 1751217008));
  ELSE
    FOR v_hash IN SELECT DISTINCT hashtextextended(encode(k, 'hex'), 1751217008) FROM unnest(p_keys) AS k ORDER BY 1 LOOP
      PERFORM pg_advisory_xact_lock(v_hash);
    END LOOP;
  END IF;
  RETURN (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
END $$;

-- Whether a session that seems expired is dead, and then it is deleted. One whose row is
-- locked is being renewed, and lives.
CREATE OR REPLACE FUNCTION {v1_dead}(p_inbox bytea, p_session integer, p_now bigint) RETURNS boolean
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM 1 FROM {sessions} WHERE inbox = p_inbox AND session = p_session FOR UPDATE SKIP LOCKED;
  IF FOUND THEN
    DELETE FROM {sessions} WHERE inbox = p_inbox AND session = p_session AND expires_at <= p_now;
    RETURN FOUND;
  END IF;
  RETURN NOT EXISTS (SELECT 1 FROM {sessions} WHERE inbox = p_inbox AND session = p_session);
END $$;

-- Lets those waiting at the front of a line hold, as far as they fit, at most p_room. It
-- stops at a claim of several keys, which only its own step lets hold: that one is told.
-- fits: whether claim p_self holds by now or, with several keys, could here. cut: whether
-- somebody who fits was left. An expiry never changes here.
CREATE OR REPLACE FUNCTION {v1_promote}(p_key bytea, p_now bigint, p_self bytea, p_room integer,
  OUT fits boolean, OUT granted integer, OUT cut boolean, OUT told bytea[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_line record;
  v_claim record;
  v_weight bigint;
  v_capacity bigint;
  v_granted bigint;
  v_waiting boolean := false;
BEGIN
  fits := false; granted := 0; cut := false; told := '{}';
  SELECT l.granted, l.waiting INTO v_line FROM {lines} l WHERE l.key = p_key;
  IF NOT FOUND OR NOT v_line.waiting THEN
    RETURN;
  END IF;
  SELECT coalesce(sum(c.weight), 0), coalesce(min(c.capacity), 9223372036854775807) INTO v_weight, v_capacity
    FROM {claims} c WHERE c.key = p_key AND c.number <= v_line.granted;
  v_granted := v_line.granted;
  FOR v_claim IN SELECT c.number, c.id, c.keys, c.weight, c.capacity, greatest(c.expires_at, s.expires_at) AS ends
    FROM {claims} c LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
    WHERE c.key = p_key AND c.number > v_line.granted ORDER BY c.number
  LOOP
    v_waiting := true;
    v_capacity := least(v_capacity, v_claim.capacity);
    EXIT WHEN v_claim.ends <= p_now OR v_claim.weight > v_capacity - v_weight;
    IF v_claim.keys > 1 THEN
      fits := fits OR v_claim.id IS NOT DISTINCT FROM p_self;
      IF v_claim.id IS DISTINCT FROM p_self THEN
        told := told || (decode('54', 'hex') || v_claim.id || int8send(v_claim.number));
      END IF;
      EXIT;
    END IF;
    IF granted = p_room THEN
      cut := true;
      EXIT;
    END IF;
    v_waiting := false;
    granted := granted + 1;
    v_granted := v_claim.number;
    v_weight := v_weight + v_claim.weight;
    fits := fits OR v_claim.id IS NOT DISTINCT FROM p_self;
    IF v_claim.id IS DISTINCT FROM p_self THEN
      told := told || (decode('47', 'hex') || v_claim.id || int8send(v_claim.number));
    END IF;
  END LOOP;
  IF NOT v_waiting THEN
    told := told || {v1_holders}(p_key, v_line.granted);
  END IF;
  IF granted > 0 OR NOT v_waiting THEN
    UPDATE {lines} l SET granted = v_granted, waiting = v_waiting WHERE l.key = p_key;
  END IF;
END $$;

-- The first holders that are renewed with a session, to be counted as changed: whether
-- somebody waits behind them is not what it was.
CREATE OR REPLACE FUNCTION {v1_holders}(p_key bytea, p_granted bigint) RETURNS bytea[]
LANGUAGE sql VOLATILE AS $$
  SELECT coalesce(array_agg(decode('42', 'hex') || h.id), '{}') FROM (
    SELECT c.id FROM {claims} c WHERE c.key = p_key AND c.number <= p_granted AND c.session > 0
    ORDER BY c.number LIMIT 64) AS h
$$;

-- Looks at a line before anything is done there: removes its dead, at most p_room, and
-- hands over. dead_left: dead claims are left, since no more may be removed.
CREATE OR REPLACE FUNCTION {v1_open}(p_key bytea, p_now bigint, p_room integer, p_grants integer,
  OUT removed integer, OUT granted integer, OUT dead_left boolean, OUT cut boolean, OUT told bytea[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_claim record;
  v_soon bigint;
  v_kept bigint := 0;
  v_healed boolean := false;
  v_handed record;
BEGIN
  removed := 0; granted := 0; dead_left := false; cut := false; told := '{}';
  SELECT l.soon INTO v_soon FROM {lines} l WHERE l.key = p_key;
  IF NOT FOUND THEN
    -- Claims without a line: somebody has deleted the line's row. Who holds is found again.
    INSERT INTO {lines} (key, last, granted, waiting, waited, soon, sweep_at)
      SELECT p_key, max(c.number), 0, true, max(c.number), 0, p_now + 60000000 FROM {claims} c
      WHERE c.key = p_key HAVING count(*) > 0;
    v_healed := FOUND;
    IF NOT v_healed THEN
      RETURN;
    END IF;
  ELSIF v_soon > p_now THEN
    RETURN;
  END IF;
  FOR v_claim IN SELECT c.number, c.id, c.session, c.hold
    FROM {claims} c LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
    WHERE c.key = p_key AND greatest(c.expires_at, s.expires_at) <= p_now ORDER BY c.number LIMIT p_room + 1
  LOOP
    IF removed >= p_room THEN
      dead_left := true;
      EXIT;
    END IF;
    CONTINUE WHEN v_claim.session > 0 AND NOT {v1_dead}(substr(v_claim.id, 1, 6), v_claim.session, p_now);
    PERFORM 1 FROM {claims} c WHERE c.key = p_key AND c.number = v_claim.number FOR UPDATE SKIP LOCKED;
    CONTINUE WHEN NOT FOUND;
    DELETE FROM {claims} c WHERE c.key = p_key AND c.number = v_claim.number;
    removed := removed + 1;
    v_kept := greatest(v_kept, 2 * v_claim.hold, 10000000);
  END LOOP;
  SELECT min(greatest(c.expires_at, s.expires_at)) INTO v_soon
    FROM {claims} c LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
    WHERE c.key = p_key;
  UPDATE {lines} l SET soon = coalesce(v_soon, 9223372036854775807),
    sweep_at = CASE WHEN v_kept > 0 AND l.sweep_at < p_now + v_kept THEN p_now + 2 * v_kept ELSE l.sweep_at END
    WHERE l.key = p_key;
  IF removed > 0 OR v_healed THEN
    SELECT * INTO v_handed FROM {v1_promote}(p_key, p_now, NULL, p_grants);
    granted := v_handed.granted; cut := v_handed.cut; told := v_handed.told;
  END IF;
END $$;

-- The same for several lines. capped: one of them has work left.
CREATE OR REPLACE FUNCTION {v1_open_all}(p_keys bytea[], p_now bigint,
  OUT removed integer, OUT granted integer, OUT capped boolean, OUT dead_left boolean, OUT told bytea[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_key bytea;
  v_open record;
BEGIN
  removed := 0; granted := 0; capped := false; dead_left := false; told := '{}';
  FOREACH v_key IN ARRAY p_keys LOOP
    SELECT * INTO v_open FROM {v1_open}(v_key, p_now, 64 - removed, 32 - granted);
    removed := removed + v_open.removed;
    granted := granted + v_open.granted;
    capped := capped OR v_open.dead_left OR v_open.cut;
    dead_left := dead_left OR v_open.dead_left;
    told := told || v_open.told;
  END LOOP;
END $$;

-- Writes to the clients' sessions what happened to their claims, and notifies those
-- that are not p_self, the client whose step this is. In the order of the inboxes, so
-- that steps do not wait for each other in a circle.
CREATE OR REPLACE FUNCTION {v1_finish}(p_told bytea[], p_self bytea) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_news record;
BEGIN
  IF cardinality(p_told) = 0 THEN
    RETURN;
  END IF;
  FOR v_news IN SELECT substr(t, 2, 6) AS inbox, bool_or(get_byte(t, 0) NOT IN (71, 84)) AS changed, bool_or(get_byte(t, 0) <> 66) AS news
    FROM unnest(p_told) AS t GROUP BY 1 ORDER BY 1
  LOOP
    UPDATE {sessions} s SET changed = s.changed + v_news.changed::integer, news = s.news + v_news.news::integer
      WHERE s.inbox = v_news.inbox AND s.session = 0 AND (v_news.changed OR s.inbox <> p_self);
  END LOOP;
  PERFORM pg_notify('hasp_' || encode(substr(t, 2, 6), 'hex'),
      chr(get_byte(t, 0)) || encode(substr(sha256(substr(t, 2, 16)), 1, 16), 'hex') || encode(substr(t, 18, 8), 'hex'))
    FROM unnest(p_told) AS t WHERE get_byte(t, 0) <> 66 AND substr(t, 2, 6) <> p_self;
END $$;

-- The news for p_self, whose own step has brought it, as text; the others are told.
CREATE OR REPLACE FUNCTION {v1_news}(p_told bytea[], p_self bytea) RETURNS text
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF cardinality(p_told) = 0 THEN
    RETURN '';
  END IF;
  PERFORM {v1_finish}(p_told, p_self);
  RETURN (SELECT coalesce(string_agg(encode(t, 'hex'), ' '), '') FROM unnest(p_told) AS t
    WHERE get_byte(t, 0) <> 66 AND substr(t, 2, 6) = p_self);
END $$;

-- The first holder of one of the keys that is not p_id: its name, and how long it lives.
CREATE OR REPLACE FUNCTION {v1_holder}(p_keys bytea[], p_id bytea, p_now bigint, OUT holder bytea, OUT expires_in bigint)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_key bytea;
BEGIN
  FOREACH v_key IN ARRAY p_keys LOOP
    SELECT c.name, greatest(c.expires_at, s.expires_at) - p_now INTO holder, expires_in
      FROM {lines} l JOIN {claims} c ON c.key = l.key AND c.number <= l.granted
      LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
      WHERE l.key = v_key AND c.id <> p_id AND greatest(c.expires_at, s.expires_at) > p_now ORDER BY c.number LIMIT 1;
    EXIT WHEN FOUND;
  END LOOP;
END $$;

-- How a claim that is there stands: state 1 holding, 2 waiting.
CREATE OR REPLACE FUNCTION {v1_standing}(p_id bytea, p_now bigint,
  OUT state integer, OUT number bigint, OUT life bigint, OUT look_again bigint, OUT behind boolean, OUT ahead bigint,
  OUT holder bytea, OUT expires_in bigint)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_place record;
  v_front record;
  v_ahead bigint;
BEGIN
  behind := false; ahead := 0; look_again := 0;
  FOR v_place IN
    SELECT c.key, c.number, c.weight, c.capacity, l.granted, l.waiting, l.last,
      greatest(c.expires_at - c.grace, s.expires_at - s.grace) - p_now AS life
    FROM {claims} c JOIN {lines} l ON l.key = c.key
    LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
    WHERE c.id = p_id ORDER BY c.key
  LOOP
    number := v_place.number;
    life := greatest(v_place.life, 1);
    IF v_place.number <= v_place.granted THEN
      state := coalesce(state, 1);
      behind := behind OR v_place.waiting;
      CONTINUE;
    END IF;
    state := 2;
    behind := behind OR (v_place.last > v_place.number
      AND EXISTS (SELECT 1 FROM {claims} c WHERE c.key = v_place.key AND c.number > v_place.number));
    SELECT count(*) INTO v_ahead FROM {claims} c WHERE c.key = v_place.key AND c.number < v_place.number;
    CONTINUE WHEN v_ahead = 0;
    ahead := greatest(ahead, v_ahead);
    -- When enough of those ahead could be gone: all of them, where this claim can stand
    -- beside none of them, else any. A row that is locked though it has expired may take
    -- its time.
    SELECT CASE WHEN v_place.weight > least(v_place.capacity, min(f.capacity)) - min(f.weight) THEN max(f.ends) ELSE min(f.ends) END AS ends
      INTO v_front
      FROM (SELECT c.weight, c.capacity,
          CASE WHEN greatest(c.expires_at, s.expires_at) > p_now THEN greatest(c.expires_at, s.expires_at) ELSE p_now + 50000 END AS ends
        FROM {claims} c LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
        WHERE c.key = v_place.key AND c.number < v_place.number ORDER BY c.number LIMIT 256) AS f;
    look_again := greatest(look_again, v_front.ends - p_now);
    IF holder IS NULL THEN
      SELECT h.holder, h.expires_in INTO holder, expires_in FROM {v1_holder}(ARRAY[v_place.key], p_id, p_now) AS h;
    END IF;
  END LOOP;
  IF state = 2 THEN
    look_again := greatest(look_again, 1000);
  END IF;
END $$;

-- What there is of a claim. whole: it stands in all its lines.
CREATE OR REPLACE FUNCTION {v1_find}(p_id bytea, p_now bigint, OUT there boolean, OUT whole boolean, OUT lives boolean,
  OUT revoked boolean, OUT holds boolean, OUT number bigint, OUT keys bytea[])
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  there := EXISTS (SELECT 1 FROM {claims} c WHERE c.id = p_id);
  IF NOT there THEN
    RETURN;
  END IF;
  SELECT count(*) = max(c.keys), max(greatest(c.expires_at, s.expires_at)) > p_now, bool_or(c.revoked),
      bool_and(c.number <= l.granted), min(c.number), array_agg(c.key ORDER BY c.key)
    INTO whole, lives, revoked, holds, number, keys
    FROM {claims} c JOIN {lines} l ON l.key = c.key
    LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
    WHERE c.id = p_id;
END $$;

-- Takes a claim out of all its lines and hands over; the lines are open, and those in
-- p_locked are locked. state: 5 left,
-- 4 gone, 0 nothing was done, since a transaction of the user's guards the claim. That is
-- waited for outside, so that the lines are not kept. remember: a Join of the ID that
-- arrives within that time is refused; 0: none can.
CREATE OR REPLACE FUNCTION {v1_take}(p_id bytea, p_locked bytea[], p_now bigint, p_grants integer, p_remember bigint,
  OUT state integer, OUT number bigint, OUT granted integer, OUT cut boolean, OUT told bytea[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_place record;
  v_handed record;
BEGIN
  state := 0; granted := 0; cut := false; told := '{}';
  SELECT count(*) AS n, max(f.keys) AS keys INTO v_place
    FROM (SELECT c.keys FROM {claims} c WHERE c.id = p_id FOR UPDATE SKIP LOCKED) AS f;
  IF v_place.keys IS DISTINCT FROM v_place.n AND (SELECT count(*) FROM {claims} c WHERE c.id = p_id) > v_place.n THEN
    RETURN;
  END IF;
  state := 4;
  FOR v_place IN
    SELECT c.key, c.hold, c.number, greatest(c.expires_at, s.expires_at) > p_now AS lives
      FROM {claims} c LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
      WHERE c.id = p_id ORDER BY c.key
  LOOP
    IF v_place.key <> ALL (p_locked) THEN
      PERFORM {v1_lock}(ARRAY[v_place.key]);
    END IF;
    DELETE FROM {claims} c WHERE c.key = v_place.key AND c.number = v_place.number AND c.id = p_id;
    IF v_place.lives THEN
      state := 5;
      number := v_place.number;
    END IF;
    UPDATE {lines} l SET sweep_at = p_now + 2 * greatest(2 * v_place.hold, 10000000)
      WHERE l.key = v_place.key AND l.sweep_at < p_now + greatest(2 * v_place.hold, 10000000);
    SELECT * INTO v_handed FROM {v1_promote}(v_place.key, p_now, NULL, p_grants - granted);
    granted := granted + v_handed.granted;
    cut := cut OR v_handed.cut;
    told := told || v_handed.told;
  END LOOP;
  IF p_remember > 0 THEN
    INSERT INTO {lines} AS l (key, last, granted, waiting, waited, soon, sweep_at)
      VALUES (decode('00', 'hex') || p_id, 0, 0, false, 0, p_now + p_remember, p_now + p_remember)
      ON CONFLICT (key) DO UPDATE SET soon = greatest(l.soon, excluded.soon), sweep_at = greatest(l.sweep_at, excluded.sweep_at);
  END IF;
END $$;
