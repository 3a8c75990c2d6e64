"""The database a PostgreSQL session plays in: made once per worker, restored between sessions, read at the end of each."""

# Objects that sessions change by DDL; made anew after a session that may have.
CHANGING = """
DROP VIEW IF EXISTS public.vd CASCADE;
DROP TABLE IF EXISTS public.d1, public.d2, public.d3 CASCADE;
DROP FUNCTION IF EXISTS public.fo(int), public.fo(text) CASCADE;
DROP TYPE IF EXISTS public.mood CASCADE;
DROP OPERATOR IF EXISTS public.@@@ (text, text);
DROP SEQUENCE IF EXISTS public.sq CASCADE;
DROP SCHEMA IF EXISTS a, b CASCADE;
CREATE SCHEMA a; CREATE SCHEMA b; GRANT ALL ON SCHEMA a, b TO PUBLIC;
CREATE TABLE a.item (x text, y int); CREATE TABLE b.item (x int);
INSERT INTO a.item VALUES ('a', 1); INSERT INTO b.item VALUES (7); GRANT ALL ON a.item, b.item TO PUBLIC;
CREATE TYPE public.mood AS ENUM ('sad', 'glad');
CREATE TABLE public.d1 (id int, c text);
INSERT INTO public.d1 VALUES (1, 'one'), (2, 'two');
CREATE TABLE public.d2 (id serial, at date, m public.mood);
INSERT INTO public.d2 (at, m) VALUES ('2024-02-29', 'sad');
CREATE FUNCTION public.fo(int) RETURNS text LANGUAGE sql AS $$ SELECT 'first ' || $1 $$;
CREATE VIEW public.vd AS SELECT id, c FROM public.d1;
CREATE SEQUENCE public.sq;
GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC;
ALTER TABLE public.d1 OWNER TO app_trust;
ALTER TABLE public.d2 OWNER TO app_trust;
ALTER VIEW public.vd OWNER TO app_trust;
ALTER TYPE public.mood OWNER TO app_trust;
ALTER FUNCTION public.fo(int) OWNER TO app_trust;
ALTER SEQUENCE public.sq OWNER TO app_trust;
REVOKE ALL ON public.secret FROM PUBLIC;
"""

ROLES = """
CREATE ROLE diff_boss; CREATE ROLE diff_bob;
GRANT diff_boss, diff_bob TO app_trust;
"""

WORLD = r"""
GRANT ALL ON SCHEMA public TO PUBLIC;
CREATE SCHEMA a; CREATE SCHEMA b; CREATE SCHEMA keeper;
CREATE TABLE t (id serial PRIMARY KEY, v text, n int);
CREATE TABLE w (id serial PRIMARY KEY, who text, n int);
CREATE TABLE jobs (id int PRIMARY KEY, state text, n int);
CREATE TABLE shadow (id int, v text);
CREATE TABLE item (x text);
CREATE TABLE docs (tenant text, body text);
CREATE TABLE secret (x text);
CREATE TABLE tset (id serial, v text);
CREATE TABLE tlog (id int, v text);
CREATE TABLE tlock (id int);
CREATE TABLE cp (id int, v text);
CREATE SEQUENCE s1;
CREATE TABLE own_a (id serial, n int); CREATE TABLE own_b (id serial, n int); CREATE TABLE own_c (id serial, n int);
CREATE TABLE own_d (id serial, n int); CREATE TABLE own_e (id serial, n int); CREATE TABLE own_f (id serial, n int);
CREATE TABLE own_g (id serial, n int); CREATE TABLE own_h (id serial, n int);
CREATE FUNCTION eff(shadow) RETURNS text LANGUAGE sql AS $$ SELECT set_config('work_mem', '7MB', false) $$;
INSERT INTO item VALUES ('public');
INSERT INTO docs VALUES ('A', 'for A'), ('B', 'for B');
INSERT INTO secret VALUES ('for the boss');
ALTER TABLE docs ENABLE ROW LEVEL SECURITY;
CREATE POLICY mine ON docs USING (tenant = current_setting('app.tenant', true));

CREATE FUNCTION log(text) RETURNS int LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ($1, 1) RETURNING id $$;
CREATE FUNCTION match(text) RETURNS int LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.w (who, n) VALUES ($1, 2); RETURN 2; END $$;
CREATE FUNCTION sign(text) RETURNS int LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ($1, 3) RETURNING id $$;
CREATE FUNCTION index(text, int) RETURNS int LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ($1, $2) RETURNING id $$;
CREATE FUNCTION lower(int) RETURNS int LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ('lower', $1) RETURNING id $$;
CREATE FUNCTION broadcast(text) RETURNS int LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ($1, 5) RETURNING id $$;
CREATE FUNCTION pure(int) RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT $1 * 2 $$;
CREATE FUNCTION stab(int) RETURNS bigint LANGUAGE plpgsql STABLE AS $$ BEGIN RETURN (SELECT count(*) FROM public.t WHERE id <= $1); END $$;
CREATE FUNCTION folded() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN decode('4142', 'hex')::text || quote_ident('abc'); END $$;
CREATE FUNCTION denied(int) RETURNS int LANGUAGE sql AS $$ SELECT $1 + 1 $$;
REVOKE ALL ON FUNCTION denied(int) FROM PUBLIC;
GRANT EXECUTE ON FUNCTION denied(int) TO app_trust, diff_boss;
CREATE FUNCTION uses_denied(int) RETURNS int LANGUAGE plpgsql AS $$ BEGIN RETURN denied($1); END $$;
CREATE FUNCTION set_tenant(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN set_config('app.tenant', $1, false); END $$;
CREATE FUNCTION set_tenant_locally(text) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN set_config('app.tenant', $1, true); END $$;
CREATE FUNCTION set_it(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config($1, $2, false); END $$;
CREATE FUNCTION role_it(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SET ROLE ' || $1; END $$;
CREATE FUNCTION lock_it(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RETURN pg_try_advisory_lock($1); END $$;
CREATE FUNCTION lock_and_fail(int) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_try_advisory_lock($1); RAISE EXCEPTION 'after the lock'; END $$;
CREATE FUNCTION set_and_fail(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('work_mem', $1, false); RAISE EXCEPTION 'after the setting'; END $$;
CREATE FUNCTION temp_it() RETURNS void LANGUAGE plpgsql AS $$ BEGIN CREATE TEMPORARY TABLE shadow AS SELECT 99 AS id, 'temporary'::text AS v; END $$;
CREATE FUNCTION run_add(text, text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE format('INSERT INTO %I (who, n) VALUES (%L, $1)', $1, $2) USING 7; END $$;
CREATE FUNCTION run_set(text) RETURNS text LANGUAGE plpgsql AS $$ DECLARE s text; BEGIN EXECUTE 'SELECT set_config(''work_mem'', ' || quote_literal($1) || ', false)' INTO s; RETURN s; END $$;
CREATE FUNCTION run_count(text, int) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE format('SELECT count(*) FROM public.%I WHERE %I <= $1', $1, 'id') INTO n USING $2; RETURN n; END $$;
CREATE FUNCTION run_it(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE $1; END $$;
CREATE FUNCTION prepare_it() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'PREPARE q1 AS SELECT 4711'; END $$;
CREATE FUNCTION deallocate_it() RETURNS void LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'DEALLOCATE ALL'; END $$;
CREATE FUNCTION listen_it() RETURNS void LANGUAGE plpgsql AS $$ BEGIN LISTEN ch1; END $$;
CREATE FUNCTION notify_it(text) RETURNS void LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_notify('ch1', $1); END $$;
CREATE FUNCTION next_it() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN RETURN nextval('s1'); END $$;
CREATE FUNCTION nap(float) RETURNS int LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep($1); RETURN 1; END $$;
CREATE FUNCTION tset_t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('work_mem', NEW.v, false); RETURN NEW; END $$;
CREATE FUNCTION tlog_t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.w (who, n) VALUES ('trigger', NEW.id); RETURN NEW; END $$;
CREATE FUNCTION tlock_t() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_try_advisory_lock(NEW.id); RETURN NEW; END $$;
CREATE TRIGGER x BEFORE INSERT ON tset FOR EACH ROW EXECUTE FUNCTION tset_t();
CREATE TRIGGER x AFTER INSERT ON tlog FOR EACH ROW EXECUTE FUNCTION tlog_t();
CREATE TRIGGER x AFTER INSERT ON tlock FOR EACH ROW EXECUTE FUNCTION tlock_t();
CREATE FUNCTION op_log(text, text) RETURNS int LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ($1 || $2, 6) RETURNING id $$;
CREATE VIEW v_t AS SELECT id, v FROM t;
CREATE VIEW v_log AS SELECT log('view') AS id;
CREATE VIEW v_set AS SELECT set_config('work_mem', '3MB', false) AS x;
CREATE VIEW v_lock AS SELECT pg_try_advisory_lock(7) AS x;
CREATE PROCEDURE p_log(text) LANGUAGE sql AS $$ INSERT INTO public.w (who, n) VALUES ($1, 7) $$;
CREATE PROCEDURE p_commit(text) LANGUAGE plpgsql AS $$ BEGIN INSERT INTO public.w (who, n) VALUES ($1, 8); COMMIT; INSERT INTO public.w (who, n) VALUES ($1, 9); END $$;
CREATE PROCEDURE p_set(text) LANGUAGE plpgsql AS $$ BEGIN PERFORM set_config('search_path', $1, false); END $$;
GRANT ALL ON ALL TABLES IN SCHEMA public TO PUBLIC;
GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO PUBLIC;
REVOKE ALL ON secret FROM PUBLIC; GRANT SELECT ON secret TO diff_boss;


-- What each table holds at the beginning of a session.
CREATE PROCEDURE keeper.restore(wanted text[]) LANGUAGE plpgsql AS $$
DECLARE one text;
BEGIN
  SET LOCAL session_replication_role = replica;
  FOREACH one IN ARRAY wanted LOOP
    CASE
      WHEN one LIKE 'public.own_%_seq' THEN PERFORM setval(one::regclass, 1, false);
      WHEN one LIKE 'public.own_%' THEN EXECUTE 'DELETE FROM ' || one;
      ELSE CASE one
      WHEN 'public.t' THEN DELETE FROM public.t; INSERT INTO public.t SELECT i, 'v' || i, i * 10 FROM generate_series(1, 5) i;
      WHEN 'public.jobs' THEN DELETE FROM public.jobs; INSERT INTO public.jobs SELECT i, 'new', 0 FROM generate_series(1, 6) i;
      WHEN 'public.shadow' THEN DELETE FROM public.shadow; INSERT INTO public.shadow VALUES (1, 'permanent'), (2, 'permanent'), (3, 'permanent');
      WHEN 'public.d1' THEN DELETE FROM public.d1; INSERT INTO public.d1 VALUES (1, 'one'), (2, 'two');
      WHEN 'public.d2' THEN DELETE FROM public.d2; INSERT INTO public.d2 VALUES (1, '2024-02-29', 'sad');
      WHEN 'public.w' THEN DELETE FROM public.w;
      WHEN 'public.tset' THEN DELETE FROM public.tset;
      WHEN 'public.tlog' THEN DELETE FROM public.tlog;
      WHEN 'public.tlock' THEN DELETE FROM public.tlock;
      WHEN 'public.cp' THEN DELETE FROM public.cp;
      WHEN 'public.t_id_seq' THEN PERFORM setval('public.t_id_seq', 5);
      WHEN 'public.d2_id_seq' THEN PERFORM setval('public.d2_id_seq', 1);
      WHEN 'public.w_id_seq' THEN PERFORM setval('public.w_id_seq', 1, false);
      WHEN 'public.tset_id_seq' THEN PERFORM setval('public.tset_id_seq', 1, false);
      WHEN 'public.s1' THEN PERFORM setval('public.s1', 1, false);
      WHEN 'public.sq' THEN PERFORM setval('public.sq', 1, false);
    END CASE; END CASE;
  END LOOP;
END $$;

-- All that is in the tables, whatever tables there are.
CREATE FUNCTION keeper.state() RETURNS text LANGUAGE plpgsql AS $$
DECLARE r record; one text; everything text := '';
BEGIN
  FOR r IN SELECT c.oid, n.nspname, c.relname, c.relkind, pg_get_userbyid(c.relowner) AS owner
      FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE n.nspname IN ('public', 'a', 'b') AND c.relkind IN ('r', 'S', 'v') ORDER BY 2, 3 LOOP
    IF r.relkind = 'r' THEN
      EXECUTE format('SELECT string_agg(x::text, '' '' ORDER BY x::text) FROM %I.%I x', r.nspname, r.relname) INTO one;
    ELSIF r.relkind = 'S' THEN
      EXECUTE format('SELECT last_value || '' '' || is_called FROM %I.%I', r.nspname, r.relname) INTO one;
    ELSE
      one := 'view';
    END IF;
    everything := everything || r.nspname || '.' || r.relname || ' ' || r.owner || ': ' || coalesce(one, 'empty') || chr(10);
  END LOOP;
  SELECT string_agg(oid::regprocedure::text, ' ' ORDER BY oid::regprocedure::text) INTO one FROM pg_proc
    WHERE pronamespace IN ('public'::regnamespace, 'a'::regnamespace, 'b'::regnamespace);
  everything := everything || 'functions: ' || md5(one);
  SELECT string_agg(attrelid::regclass || '.' || attname || ' ' || format_type(atttypid, atttypmod), ' ' ORDER BY attrelid::regclass::text, attnum) INTO one
    FROM pg_attribute JOIN pg_class c ON c.oid = attrelid WHERE relnamespace IN ('public'::regnamespace, 'a'::regnamespace, 'b'::regnamespace)
    AND relname ~ '^(d[0-9]|vd|t|sq)$' AND attnum > 0 AND NOT attisdropped;
  RETURN everything || chr(10) || 'columns: ' || one;
END $$;

-- Changes with each object that is made, changed or dropped, but not with the rows of tables.
CREATE FUNCTION keeper.catalog() RETURNS text STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN (
WITH s AS (SELECT oid FROM pg_namespace WHERE nspname NOT LIKE 'pg\_%' AND nspname NOT IN ('information_schema', 'keeper'))
SELECT md5(string_agg(x, ' ' ORDER BY x)) FROM (
  SELECT 'r' || c.oid || ' ' || c.xmin || ' ' || relfilenode AS x FROM pg_class c WHERE relnamespace IN (SELECT oid FROM s)
  UNION ALL SELECT 'a' || max(a.xmin::text::bigint) || ' ' || count(*) FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid WHERE relnamespace IN (SELECT oid FROM s)
  UNION ALL SELECT 'n' || oid || ' ' || xmin FROM pg_namespace WHERE oid IN (SELECT oid FROM s)
  UNION ALL SELECT 'p' || oid || ' ' || xmin FROM pg_proc WHERE pronamespace IN (SELECT oid FROM s)
  UNION ALL SELECT 't' || oid || ' ' || xmin FROM pg_type WHERE typnamespace IN (SELECT oid FROM s)
  UNION ALL SELECT 'o' || oid || ' ' || xmin FROM pg_operator WHERE oprnamespace IN (SELECT oid FROM s)
  UNION ALL SELECT 'v' || oid || ' ' || xmin FROM pg_rewrite WHERE oid >= 16384
  UNION ALL SELECT 'g' || oid || ' ' || xmin FROM pg_trigger
  UNION ALL SELECT 'l' || oid || ' ' || xmin FROM pg_policy
  UNION ALL SELECT 'd' || oid || ' ' || xmin FROM pg_attrdef
  UNION ALL SELECT 'e' || oid || ' ' || xmin FROM pg_enum
  UNION ALL SELECT 'c' || objoid || ' ' || xmin FROM pg_description WHERE objoid >= 16384) y); END $$;
"""

# What CHANGING makes anew.
REMADE = ("public.d1", "public.d2", "public.d2_id_seq", "public.sq", "public.d3", "public.vd")
# Rows and counters of a session's beginning, as `keeper.state` tells them: one look instead of many, as long as the catalogue is as it was.
# `wanted`: what the catalogue was, or empty where nothing can have changed it.
LOOK = """CREATE OR REPLACE FUNCTION keeper.{name}(wanted text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  IF wanted <> '' AND keeper.catalog() <> wanted THEN RETURN NULL; END IF;
  RETURN (SELECT string_agg(name || ': ' || coalesce(told, 'empty'), chr(10) ORDER BY n) FROM ({parts}) x (n, name, told));
END $$"""

# What sessions hold in the server beyond their statements: locks that others could run into. (SIReadLock blocks nobody, and stays behind a committed
# transaction until all that overlap it are over.)
HELD = """PREPARE held AS SELECT coalesce(string_agg(k, ', ' ORDER BY k), '') FROM (SELECT locktype || ' ' || mode || ' ' || count(*) AS k FROM pg_locks
WHERE pid <> pg_backend_pid() AND pid NOT IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND objid = 987654321) AND (locktype IN ('advisory', 'transactionid') OR locktype = 'relation' AND mode NOT IN ('AccessShareLock', 'SIReadLock'))
AND (database IS NULL OR database = (SELECT oid FROM pg_database WHERE datname = current_database()))
AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend') GROUP BY locktype, mode) x"""
