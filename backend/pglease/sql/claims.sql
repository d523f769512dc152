-- The verbs of hasp on PostgreSQL, layout 1, and the steps they are made of. lines.sql says
-- what makes them atomic, and what the arguments have in common.

-- Takes claims out of their session that no renewal names any more, though the session is
-- renewed for others: each keeps an expiry of its own, what its last renewal gave it.
CREATE OR REPLACE FUNCTION {v1_part}(p_ids bytea[], p_untils bigint[], p_keys bytea[]) RETURNS void
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
  v_claim record;
BEGIN
  PERFORM {v1_lock}(p_keys);
  FOR v_claim IN SELECT c.key, c.number, greatest(c.expires_at, u.until) AS ends, s.grace
    FROM unnest(p_ids, p_untils) AS u (id, until) JOIN {claims} c ON c.id = u.id
    JOIN {sessions} s ON s.inbox = substr(c.id, 1, 6) AND s.session = c.session
    WHERE c.session > 0 FOR NO KEY UPDATE OF c SKIP LOCKED
  LOOP
    UPDATE {claims} c SET session = 0, expires_at = v_claim.ends, grace = v_claim.grace
      WHERE c.key = v_claim.key AND c.number = v_claim.number;
    UPDATE {lines} l SET soon = least(l.soon, v_claim.ends) WHERE l.key = v_claim.key;
  END LOOP;
END $$;

-- Makes sure that a client has its session 0.
CREATE OR REPLACE FUNCTION {v1_greet}(p_inbox bytea, p_now bigint) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  PERFORM 1 FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = 0 AND s.expires_at > p_now + 1800000000;
  IF NOT FOUND THEN
    INSERT INTO {sessions} AS s (inbox, session, expires_at, grace, changed, news)
      VALUES (p_inbox, 0, p_now + 3600000000, 0, p_now, p_now)
      ON CONFLICT (inbox, session) DO UPDATE SET expires_at = excluded.expires_at;
  END IF;
END $$;

-- Renews a session of p_inbox for p_life, grace included, unless it has expired. Result:
-- whether it lives, and until when; the client's counter; -1: there is none.
CREATE OR REPLACE FUNCTION {v1_touch}(p_inbox bytea, p_session bigint, p_life bigint,
  OUT alive boolean, OUT until bigint, OUT changed bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
  v_now bigint;
BEGIN
  PERFORM 1 FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = p_session FOR UPDATE;
  v_now := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint;
  UPDATE {sessions} s SET expires_at = greatest(s.expires_at, v_now + p_life)
    WHERE s.inbox = p_inbox AND s.session = p_session AND s.expires_at > v_now RETURNING s.expires_at INTO until;
  alive := FOUND;
  changed := coalesce((SELECT s.changed FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = 0), -1);
END $$;

-- Renews a claim that is there, alive and not revoked: mode 1 extend, 2 fix. A waiting
-- claim is let hold where it can. A claim that holds, and does not keep an expiry of its
-- own, lives with session p_session from now on, 0: none is open. A claim whose row is
-- locked by a guard is left as it is; its session is renewed.
CREATE OR REPLACE FUNCTION {v1_extend}(p_id bytea, p_now bigint, p_mode integer, p_life bigint[], p_own boolean, p_session integer,
  p_grants integer, OUT granted integer, OUT cut boolean, OUT told bytea[], OUT joined boolean)
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_claim record;
  v_key bytea;
  v_handed record;
  v_fits boolean := true;
  v_ends bigint;
  v_grace bigint;
BEGIN
  granted := 0; cut := false; told := '{}'; joined := false;
  SELECT min(c.number) AS number, array_agg(c.key ORDER BY c.key) AS keys, bool_and(c.number <= l.granted) AS holds,
      min(c.session) AS session, bool_or(c.fixed) AS fixed, max(greatest(c.expires_at, s.expires_at)) AS ends,
      max(CASE WHEN s.expires_at > c.expires_at THEN s.grace ELSE c.grace END) AS grace
    INTO v_claim
    FROM {claims} c JOIN {lines} l ON l.key = c.key
    LEFT JOIN {sessions} s ON c.session > 0 AND s.inbox = substr(c.id, 1, 6) AND s.session = c.session
    WHERE c.id = p_id;
  IF NOT v_claim.holds THEN
    FOREACH v_key IN ARRAY v_claim.keys LOOP
      SELECT * INTO v_handed FROM {v1_promote}(v_key, p_now, p_id, p_grants - granted);
      granted := granted + v_handed.granted;
      cut := cut OR v_handed.cut;
      told := told || v_handed.told;
      v_fits := v_fits AND v_handed.fits;
    END LOOP;
    v_claim.holds := v_fits;
    IF v_fits AND cardinality(v_claim.keys) > 1 THEN
      granted := granted + 1;
      FOREACH v_key IN ARRAY v_claim.keys LOOP
        IF NOT EXISTS (SELECT 1 FROM {claims} c WHERE c.key = v_key AND c.number > v_claim.number) THEN
          told := told || {v1_holders}(v_key, v_claim.number);
        END IF;
        UPDATE {lines} l SET granted = v_claim.number,
          waiting = EXISTS (SELECT 1 FROM {claims} c WHERE c.key = v_key AND c.number > v_claim.number)
          WHERE l.key = v_key;
      END LOOP;
    END IF;
  END IF;
  IF v_claim.fixed THEN
    RETURN;
  END IF;
  IF v_claim.holds AND p_mode = 1 AND NOT p_own AND p_session > 0 AND v_claim.session = p_session THEN
    joined := true;
    RETURN;
  END IF;
  PERFORM 1 FROM {claims} c WHERE c.id = p_id FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN;
  END IF;
  IF v_claim.holds AND p_mode = 2 THEN
    UPDATE {claims} c SET expires_at = p_now + p_life[1], grace = 0, hold = p_life[1], session = 0, fixed = true WHERE c.id = p_id;
    UPDATE {lines} l SET soon = least(l.soon, p_now + p_life[1]) WHERE l.key = ANY (v_claim.keys);
    told := told || (decode('42', 'hex') || p_id);
    RETURN;
  END IF;
  v_ends := p_now + CASE WHEN v_claim.holds THEN p_life[1] + p_life[2] ELSE p_life[3] END;
  v_grace := CASE WHEN v_claim.holds THEN p_life[2] ELSE 0 END;
  joined := v_claim.holds AND NOT p_own AND p_session > 0;
  IF joined OR v_ends < v_claim.ends THEN
    v_ends := v_claim.ends;
    v_grace := v_claim.grace;
  END IF;
  IF v_claim.session > 0 THEN
    told := told || (decode('42', 'hex') || p_id);
  END IF;
  UPDATE {claims} c SET expires_at = v_ends, grace = v_grace, hold = p_life[1],
    session = CASE WHEN joined THEN p_session ELSE 0 END WHERE c.id = p_id;
END $$;

-- Gives the place of the living holder p_old to p_id. state: 1, or 4 where there is none.
CREATE OR REPLACE FUNCTION {v1_resume}(p_old bytea, p_number bigint, p_id bytea, p_keys bytea[], p_now bigint, p_life bigint[],
  p_index bigint, p_name bytea, OUT state integer, OUT told bytea[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_claim record;
BEGIN
  state := 4; told := '{}';
  SELECT * INTO v_claim FROM {v1_find}(p_old, p_now);
  IF NOT v_claim.there OR NOT v_claim.whole OR NOT v_claim.lives OR v_claim.revoked OR NOT v_claim.holds
    OR v_claim.number <> p_number OR v_claim.keys <> p_keys THEN
    RETURN;
  END IF;
  PERFORM {v1_guarded}(0) WHERE EXISTS (SELECT 1 FROM {claims} c WHERE c.id = p_old AND c.key NOT IN (
    SELECT f.key FROM (SELECT d.key FROM {claims} d WHERE d.id = p_old FOR UPDATE SKIP LOCKED) AS f));
  UPDATE {claims} c SET id = p_id, name = p_name, local_index = p_index, session = 0, fixed = false, hold = p_life[1],
    grace = p_life[2], expires_at = p_now + p_life[1] + p_life[2] WHERE c.id = p_old;
  UPDATE {lines} l SET soon = least(l.soon, p_now + p_life[1] + p_life[2]) WHERE l.key = ANY (p_keys);
  state := 1;
  told := ARRAY[decode('42', 'hex') || p_old];
END $$;

-- Puts a new claim behind everybody, or refuses it. state: 1 it holds, 2 it waits, 3 refused.
CREATE OR REPLACE FUNCTION {v1_enter}(p_id bytea, p_keys bytea[], p_now bigint, p_claim bigint[], p_life bigint[], p_try boolean,
  p_name bytea, p_dead_left boolean, OUT state integer, OUT number bigint, OUT ahead bigint, OUT told bytea[])
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  v_key bytea;
  v_line record;
  v_crowd record;
  v_holds boolean := NOT p_dead_left;
  v_full boolean := false;
  v_ends bigint;
  v_until bigint;
  v_swept bigint;
BEGIN
  number := p_now; ahead := 0; told := '{}';
  FOREACH v_key IN ARRAY p_keys LOOP
    SELECT l.last, l.granted, l.waiting INTO v_line FROM {lines} l WHERE l.key = v_key;
    -- Also where there is no line: somebody may have deleted its row alone.
    SELECT count(*) AS n, count(*) FILTER (WHERE c.number > coalesce(v_line.granted, 0)) AS waiting, coalesce(sum(c.weight), 0) AS weight,
      min(c.capacity) AS capacity, max(c.number) AS last INTO v_crowd FROM {claims} c WHERE c.key = v_key;
    number := greatest(number, v_line.last + 1, v_crowd.last + 1);
    ahead := greatest(ahead, v_crowd.n);
    v_holds := v_holds AND v_crowd.waiting = 0 AND p_claim[1] <= least(p_claim[2], v_crowd.capacity) - v_crowd.weight;
    v_full := v_full OR (p_claim[4] > 0 AND v_crowd.waiting >= p_claim[4]);
  END LOOP;
  IF NOT v_holds AND (p_try OR v_full) THEN
    state := 3;
    RETURN;
  END IF;
  state := CASE WHEN v_holds THEN 1 ELSE 2 END;
  v_ends := p_now + CASE WHEN v_holds THEN p_life[1] + p_life[2] ELSE p_life[3] END;
  v_until := v_ends + p_life[1] + greatest(2 * p_life[1], 10000000);
  v_swept := v_until + greatest(p_life[1] / 2, 5000000); -- so that not every Join moves the line in the index
  FOREACH v_key IN ARRAY p_keys LOOP
    INSERT INTO {claims} (key, number, id, keys, weight, capacity, expires_at, joined_at, hold, grace, session, local_index, fixed, revoked, name)
      VALUES (v_key, number, p_id, cardinality(p_keys), p_claim[1], p_claim[2], v_ends, p_now, p_life[1],
        CASE WHEN v_holds THEN p_life[2] ELSE 0 END, 0, p_claim[3], false, false, p_name);
    IF cardinality(p_keys) > 1 THEN -- else it is known
      SELECT l.last, l.granted, l.waiting INTO v_line FROM {lines} l WHERE l.key = v_key;
    END IF;
    IF v_line.last IS NULL THEN
      INSERT INTO {lines} (key, last, granted, waiting, waited, soon, sweep_at) VALUES (v_key, number,
        CASE WHEN v_holds THEN number ELSE 0 END, NOT v_holds, CASE WHEN v_holds THEN 0 ELSE number END,
        CASE WHEN v_holds THEN v_ends ELSE 0 END, v_swept);
    ELSIF v_holds THEN
      UPDATE {lines} l SET last = number, granted = number, soon = least(l.soon, v_ends),
        sweep_at = CASE WHEN l.sweep_at < v_until THEN v_swept ELSE l.sweep_at END WHERE l.key = v_key;
    ELSE
      UPDATE {lines} l SET last = number, waiting = true, waited = number, soon = least(l.soon, v_ends),
        sweep_at = CASE WHEN l.sweep_at < v_until THEN v_swept ELSE l.sweep_at END WHERE l.key = v_key;
      IF NOT v_line.waiting THEN
        told := told || {v1_holders}(v_key, v_line.granted);
      END IF;
    END IF;
  END LOOP;
END $$;

-- One Join. p_claim: weight, capacity, local index, MaxLine. p_life: hold, grace, wait.
-- p_resume, p_leave: an ID, or empty. Result: how the claim stands (1 holding, 2 waiting,
-- 3 refused, 4 gone), and news for p_self as text.
CREATE OR REPLACE FUNCTION {v1_join}(p_self bytea, p_id bytea, p_keys bytea[], p_claim bigint[], p_life bigint[], p_own boolean,
  p_try boolean, p_name bytea, p_resume bytea, p_resume_number bigint, p_leave bytea, p_leave_keys bytea[], p_remember bigint,
  OUT state integer, OUT number bigint, OUT life bigint, OUT look_again bigint, OUT more boolean, OUT behind boolean,
  OUT revoked boolean, OUT ahead bigint, OUT holder text, OUT expires_in bigint, OUT news text)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := {v1_lock}(p_keys || p_leave_keys);
  v_told bytea[] := '{}';
  v_open record;
  v_step record;
  v_claim record;
  v_grants integer := 32;
BEGIN
  IF p_leave <> '' THEN
    SELECT * INTO v_open FROM {v1_open_all}(p_leave_keys, v_now);
    SELECT * INTO v_step FROM {v1_take}(p_leave, p_leave_keys, v_now, 32 - v_open.granted, p_remember);
    PERFORM {v1_guarded}(v_step.state);
    v_told := v_told || v_open.told || v_step.told;
  END IF;
  SELECT * INTO v_open FROM {v1_open_all}(p_keys, v_now);
  v_told := v_told || v_open.told;
  v_grants := v_grants - v_open.granted;
  more := v_open.capped;
  revoked := false; behind := false;
  SELECT * INTO v_claim FROM {v1_find}(p_id, v_now);
  IF v_claim.there AND NOT v_claim.whole THEN
    SELECT * INTO v_step FROM {v1_take}(p_id, p_keys, v_now, v_grants, 0);
    PERFORM {v1_guarded}(v_step.state);
    v_told := v_told || v_step.told;
    v_claim.there := false;
  END IF;
  IF v_claim.there AND v_claim.lives AND NOT v_claim.revoked THEN
    SELECT * INTO v_step FROM {v1_extend}(p_id, v_now, 1, p_life, p_own, 0, v_grants);
    v_told := v_told || v_step.told;
    more := more OR v_step.cut;
    state := 1;
  ELSIF v_claim.there THEN
    state := 4;
    revoked := v_claim.revoked;
  ELSIF EXISTS (SELECT 1 FROM {lines} l WHERE l.key = decode('00', 'hex') || p_id AND l.soon > v_now) THEN
    state := 4;
  ELSE
    PERFORM {v1_greet}(substr(p_id, 1, 6), v_now);
    IF p_resume <> '' THEN
      SELECT * INTO v_step FROM {v1_resume}(p_resume, p_resume_number, p_id, p_keys, v_now, p_life, p_claim[3], p_name);
    ELSE
      SELECT * INTO v_step FROM {v1_enter}(p_id, p_keys, v_now, p_claim, p_life, p_try, p_name, v_open.dead_left);
      ahead := v_step.ahead;
      IF v_step.state = 1 THEN -- nobody else is in its lines but who holds beside it
        number := v_step.number;
        life := p_life[1];
        ahead := 0;
      END IF;
    END IF;
    state := v_step.state;
    v_told := v_told || v_step.told;
  END IF;
  IF number IS NOT NULL THEN
    look_again := 0;
  ELSIF state IN (1, 2) THEN
    SELECT f.state, f.number, f.life, f.look_again, f.behind, f.ahead, encode(f.holder, 'hex'), f.expires_in
      INTO state, number, life, look_again, behind, ahead, holder, expires_in FROM {v1_standing}(p_id, v_now) AS f;
  ELSE
    SELECT encode(f.holder, 'hex'), f.expires_in INTO holder, expires_in FROM {v1_holder}(p_keys, p_id, v_now) AS f;
  END IF;
  news := {v1_news}(v_told, p_self);
END $$;

-- Undoes a step that could not take a claim out, as if it had waited for a lock in vain.
CREATE OR REPLACE FUNCTION {v1_guarded}(p_state integer) RETURNS void
LANGUAGE plpgsql VOLATILE AS $$
BEGIN
  IF p_state = 0 THEN
    RAISE EXCEPTION 'hasp: a transaction guards the claim' USING ERRCODE = '55P03';
  END IF;
END $$;

-- One Leave. p_remember as in v1_take. state: 5 left, 4 gone.
CREATE OR REPLACE FUNCTION {v1_leave}(p_self bytea, p_id bytea, p_keys bytea[], p_remember bigint,
  OUT state integer, OUT number bigint, OUT more boolean, OUT holder text, OUT expires_in bigint, OUT news text)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := {v1_lock}(p_keys);
  v_open record;
  v_step record;
BEGIN
  SELECT * INTO v_open FROM {v1_open_all}(p_keys, v_now);
  SELECT * INTO v_step FROM {v1_take}(p_id, p_keys, v_now, 32 - v_open.granted, p_remember);
  PERFORM {v1_guarded}(v_step.state);
  state := v_step.state;
  number := v_step.number;
  more := v_open.capped OR v_step.cut;
  IF state = 4 THEN
    SELECT encode(f.holder, 'hex'), f.expires_in INTO holder, expires_in FROM {v1_holder}(p_keys, p_id, v_now) AS f;
  END IF;
  news := {v1_news}(v_open.told || v_step.told, p_self);
END $$;

-- Renewals, each a step of its own, in one transaction: it takes the locks of all their
-- lines first. Of each ID nine numbers in p_items: number (0: any), mode (1 extend, 2 fix,
-- 3 drop), hold, grace, wait, own, session (below 0: a new one, which is opened), remember,
-- how many of p_keys. Result: a row for each by its place, from 1; joined: it lives with
-- the session. The row 0 has the client's counter as it was before, news, and the clock.
CREATE OR REPLACE FUNCTION {v1_renew}(p_self bytea, p_inbox bytea, p_ids bytea[], p_items bigint[], p_keys bytea[])
RETURNS TABLE (item integer, state integer, number bigint, life bigint, look_again bigint, more boolean, behind boolean,
  revoked boolean, ahead bigint, holder text, expires_in bigint, joined boolean, changed bigint, news text, at bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := {v1_lock}(p_keys);
  v_told bytea[] := '{}';
  v_open_sessions integer[] := '{}';
  v_unused integer[] := '{}';
  v_session record;
  v_at integer := 0;
  v_i bigint[];
  v_key_at integer := 1;
  v_keys bytea[];
  v_open record;
  v_claim record;
  v_step record;
  v_before bigint;
BEGIN
  PERFORM {v1_greet}(p_inbox, v_now);
  FOR v_session IN SELECT abs(p_items[9 * n - 2])::integer AS session, bool_or(p_items[9 * n - 2] < 0) AS fresh,
      max(p_items[9 * n - 6] + p_items[9 * n - 5]) AS life, max(p_items[9 * n - 5]) AS grace
    FROM generate_series(1, cardinality(p_ids)) AS n WHERE p_items[9 * n - 2] <> 0 GROUP BY 1 ORDER BY 1
  LOOP
    IF v_session.fresh THEN
      INSERT INTO {sessions} (inbox, session, expires_at, grace, changed, news)
        VALUES (p_inbox, v_session.session, v_now + v_session.life, v_session.grace, 0, 0);
      v_open_sessions := v_open_sessions || v_session.session;
      v_unused := v_unused || v_session.session;
    ELSIF (SELECT alive FROM {v1_touch}(p_inbox, v_session.session, v_session.life)) THEN
      v_open_sessions := v_open_sessions || v_session.session;
    END IF;
  END LOOP;
  v_before := (SELECT s.changed FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = 0);
  v_now := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint; -- the steps begin here
  WHILE v_at < cardinality(p_ids) LOOP
    v_i := p_items[9 * v_at + 1 : 9 * v_at + 9];
    v_keys := p_keys[v_key_at : v_key_at + v_i[9]::integer - 1];
    v_key_at := v_key_at + v_i[9]::integer;
    v_at := v_at + 1;
    item := v_at; life := 0; look_again := 0; behind := false; revoked := false; ahead := 0; holder := NULL; expires_in := 0;
    joined := false; number := 0;
    SELECT * INTO v_open FROM {v1_open_all}(v_keys, v_now);
    more := v_open.capped;
    v_told := v_told || v_open.told;
    state := 4;
    IF v_i[2] = 3 THEN
      SELECT * INTO v_step FROM {v1_take}(p_ids[v_at], v_keys, v_now, 32 - v_open.granted, v_i[8]);
      state := v_step.state; number := v_step.number; more := more OR v_step.cut;
      v_told := v_told || v_step.told;
    ELSE
      SELECT * INTO v_claim FROM {v1_find}(p_ids[v_at], v_now);
      revoked := coalesce(v_claim.revoked, false) AND v_claim.lives AND v_i[1] IN (0, v_claim.number);
      IF v_claim.there AND v_claim.whole AND v_claim.lives AND NOT v_claim.revoked AND v_i[1] IN (0, v_claim.number) THEN
        SELECT * INTO v_step FROM {v1_extend}(p_ids[v_at], v_now, v_i[2]::integer, v_i[3:5], v_i[6] = 1,
          CASE WHEN abs(v_i[7])::integer = ANY (v_open_sessions) THEN abs(v_i[7])::integer ELSE 0 END, 32 - v_open.granted);
        joined := v_step.joined;
        IF joined THEN
          v_unused := array_remove(v_unused, abs(v_i[7])::integer);
        END IF;
        more := more OR v_step.cut;
        v_told := v_told || v_step.told;
        SELECT f.state, f.number, f.life, f.look_again, f.behind, f.ahead, encode(f.holder, 'hex'), f.expires_in
          INTO state, number, life, look_again, behind, ahead, holder, expires_in FROM {v1_standing}(p_ids[v_at], v_now) AS f;
      END IF;
    END IF;
    IF state = 4 THEN
      SELECT encode(f.holder, 'hex'), f.expires_in INTO holder, expires_in FROM {v1_holder}(v_keys, p_ids[v_at], v_now) AS f;
    END IF;
    RETURN NEXT;
  END LOOP;
  IF cardinality(v_unused) > 0 THEN
    DELETE FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = ANY (v_unused);
  END IF;
  item := 0; state := 0; changed := v_before; news := {v1_news}(v_told, p_self); at := v_now;
  RETURN NEXT;
END $$;

-- What the first renewal of a holding claim comes to, for many at once: they live with
-- session p_session (below 0: a new one, which is opened) from now on. p_life: hold, grace.
-- It takes the locks of those lines that nobody has, and waits for none; a claim of
-- several keys, or one that there is anything else to do for, is left as it is. Result: a
-- row for each that lives with the session, by its place, from 1; the row 0 has until
-- when the session lives, and the client's counter as it was before.
CREATE OR REPLACE FUNCTION {v1_enrol}(p_inbox bytea, p_session bigint, p_life bigint[], p_ids bytea[], p_numbers bigint[], p_keys bytea[])
RETURNS TABLE (item bigint, behind boolean, until bigint, changed bigint)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := {v1_lock}('{}');
  v_session integer := abs(p_session)::integer;
  v_got boolean[];
  v_until bigint;
BEGIN
  PERFORM {v1_greet}(p_inbox, v_now);
  IF p_session < 0 THEN
    v_until := v_now + p_life[1] + p_life[2];
    INSERT INTO {sessions} (inbox, session, expires_at, grace, changed, news) VALUES (p_inbox, v_session, v_until, p_life[2], 0, 0);
  ELSE
    SELECT t.until INTO v_until FROM {v1_touch}(p_inbox, v_session, p_life[1] + p_life[2]) AS t;
  END IF;
  item := 0; behind := false; until := coalesce(v_until, 0);
  changed := (SELECT s.changed FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = 0);
  RETURN NEXT;
  IF v_until IS NULL THEN
    RETURN;
  END IF;
  v_got := ARRAY(SELECT pg_try_advisory_xact_lock(hashtextextended(encode(k.key, 'hex'), 1751217008))
    FROM unnest(p_keys) WITH ORDINALITY AS k (key, place) ORDER BY k.place);
  v_now := (extract(epoch FROM clock_timestamp()) * 1000000)::bigint; -- the steps begin here
  RETURN QUERY WITH found AS (
      SELECT u.place, c.key, c.number, l.waiting
        FROM unnest(p_ids, p_numbers, p_keys, v_got) WITH ORDINALITY AS u (id, number, key, got, place)
        JOIN {claims} c ON c.key = u.key AND c.number = u.number AND c.id = u.id JOIN {lines} l ON l.key = c.key
        WHERE u.got AND c.keys = 1 AND c.session = 0 AND NOT c.fixed AND NOT c.revoked AND c.number <= l.granted
          AND l.soon > v_now AND c.expires_at > v_now AND c.expires_at <= v_until
        FOR NO KEY UPDATE OF c SKIP LOCKED)
    UPDATE {claims} c SET session = v_session, hold = p_life[1] FROM found f
      WHERE c.key = f.key AND c.number = f.number RETURNING f.place, f.waiting, v_until, 0::bigint;
  IF NOT FOUND AND p_session < 0 THEN
    DELETE FROM {sessions} s WHERE s.inbox = p_inbox AND s.session = v_session;
  END IF;
END $$;

-- Revokes, or with force removes, the claims of a key with these numbers. Result: those
-- it found.
CREATE OR REPLACE FUNCTION {v1_end}(p_self bytea, p_key bytea, p_numbers bigint[], p_force boolean, OUT ended text, OUT news text)
LANGUAGE plpgsql VOLATILE SET enable_seqscan = off AS $$
DECLARE
  v_now bigint := {v1_lock}(ARRAY[p_key] || coalesce((SELECT array_agg(DISTINCT o.key) FROM {claims} c JOIN {claims} o ON o.id = c.id
    WHERE c.key = p_key AND c.number = ANY (p_numbers)), '{}'));
  v_told bytea[];
  v_open record;
  v_place record;
  v_claim record;
  v_step record;
  v_grants integer;
BEGIN
  SELECT * INTO v_open FROM {v1_open}(p_key, v_now, 64, 32);
  v_told := v_open.told;
  v_grants := 32 - v_open.granted;
  ended := '';
  FOR v_place IN SELECT DISTINCT c.id, c.number FROM {claims} c WHERE c.key = p_key AND c.number = ANY (p_numbers) ORDER BY c.number LOOP
    SELECT * INTO v_claim FROM {v1_find}(v_place.id, v_now);
    CONTINUE WHEN NOT v_claim.lives;
    ended := ended || ' ' || v_place.number;
    IF p_force OR NOT v_claim.holds THEN
      SELECT * INTO v_step FROM {v1_take}(v_place.id, v_claim.keys, v_now, v_grants, 0);
      PERFORM {v1_guarded}(v_step.state);
      v_grants := v_grants - v_step.granted;
      v_told := v_told || v_step.told || (decode('45', 'hex') || v_place.id || int8send(v_place.number));
    ELSE
      UPDATE {claims} c SET revoked = true, session = 0, expires_at = greatest(c.expires_at,
          (SELECT s.expires_at FROM {sessions} s WHERE s.inbox = substr(c.id, 1, 6) AND s.session = c.session AND c.session > 0))
        WHERE c.id = v_place.id;
      v_told := v_told || (decode('52', 'hex') || v_place.id || int8send(v_place.number));
    END IF;
  END LOOP;
  news := {v1_news}(v_told, p_self);
END $$;
