Odoo, Zabbix, OpenProject-like advisory locks, Mastodon, Discourse, GitLab, Matrix Synapse, Tryton, Dendrite.
-- session
SET client_encoding TO 'UTF8'
--
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ
--
SELECT datname FROM pg_database WHERE datname = 'texts'
--
CREATE TABLE res_users (id SERIAL NOT NULL, login varchar NOT NULL, create_uid integer, write_date timestamp, PRIMARY KEY(id))
--
COMMENT ON TABLE "res_users" IS 'User'
--
CREATE TABLE ir_cron (id SERIAL PRIMARY KEY, active boolean DEFAULT true, numbercall integer DEFAULT -1, nextcall timestamp, priority integer DEFAULT 5, failure_count integer)
--
CREATE TABLE ir_sequence (id SERIAL PRIMARY KEY, number_next integer DEFAULT 1, code varchar)
--
INSERT INTO ir_sequence (code) VALUES ('sale.order')
--
INSERT INTO ir_cron (nextcall) VALUES ('2020-01-01')
--
CREATE SEQUENCE ir_sequence_001 INCREMENT BY 1 START WITH 1
--
CREATE SEQUENCE base_registry_signaling INCREMENT BY 1 START WITH 1
--
CREATE SEQUENCE base_cache_signaling INCREMENT BY 1 START WITH 1
-- session
BEGIN
--
SELECT base_registry_signaling.last_value, base_cache_signaling.last_value FROM base_registry_signaling, base_cache_signaling
--
COMMIT
--
BEGIN ISOLATION LEVEL REPEATABLE READ
--
SAVEPOINT "6f0e1d3e8c5a11ee"
--
INSERT INTO "res_users" ("create_uid", "login", "write_date") VALUES (1, 'ann', '2024-01-01 10:00:00') RETURNING "id"
--
RELEASE SAVEPOINT "6f0e1d3e8c5a11ee"
--
SELECT "res_users"."id" FROM "res_users" WHERE ((unaccent("res_users"."login"::text) ilike unaccent('%a%'))) ORDER BY "res_users"."id"
--
ROLLBACK
--
BEGIN ISOLATION LEVEL REPEATABLE READ
--
SELECT id FROM "res_users" WHERE id IN (1) FOR NO KEY UPDATE NOWAIT
--
SELECT number_next FROM ir_sequence WHERE id=1 FOR UPDATE NOWAIT
--
UPDATE ir_sequence SET number_next=number_next+1 WHERE id=1
--
SELECT nextval('ir_sequence_001')
--
COMMIT
--
BEGIN
--
SELECT * FROM ir_cron WHERE active = true AND numbercall != 0 AND nextcall <= (now() at time zone 'UTC') ORDER BY failure_count, priority, id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
--
SELECT nextval('base_cache_signaling')
--
COMMIT
--
-- pins: listen
LISTEN cron_trigger
-- session
BEGIN
--
SELECT pg_try_advisory_xact_lock(42)
--
COMMIT
--
select oid from pg_class where relname='dbversion'
--
create table hosts (hostid bigint NOT NULL, host varchar(128) DEFAULT '' NOT NULL, PRIMARY KEY (hostid))
--
create table ids (table_name varchar(64) NOT NULL, field_name varchar(64) NOT NULL, nextid bigint NOT NULL, PRIMARY KEY (table_name,field_name))
--
create table history (itemid bigint NOT NULL, clock integer DEFAULT '0' NOT NULL, value DOUBLE PRECISION DEFAULT '0.0000' NOT NULL, ns integer DEFAULT '0' NOT NULL)
--
create or replace function hosts_name_upper_upper()
returns trigger language plpgsql as $func$
begin
update hosts set host=upper(host)
where hostid=new.hostid and false;
return null;
end $func$;
--
create trigger hosts_name_upper_insert after insert on hosts for each row execute function hosts_name_upper_upper();
--
set standard_conforming_strings to on
--
set bytea_output=escape
--
show server_encoding
--
begin;
--
insert into hosts (hostid,host) values (10084,'zabbix');
--
insert into history (itemid,clock,ns,value) values (23296,1700000000,5,0.1),(23297,1700000001,6,0.2);
--
select nextid from ids where table_name='hosts' and field_name='hostid' for update
--
commit;
--
select itemid,clock from history where itemid in (23296,23297) order by clock desc limit 2
--
set default_transaction_isolation='read committed'
--
DELETE FROM history WHERE itemid=23296 AND clock<1700000001 AND ctid = ANY(ARRAY(SELECT ctid FROM history WHERE itemid=23296 LIMIT 10))
-- session
CREATE OR REPLACE FUNCTION timestamp_id(table_name text)
RETURNS bigint AS
$$
  DECLARE
    time_part bigint;
    sequence_base bigint;
    tail bigint;
  BEGIN
    time_part := (
      -- Get the time in milliseconds
      ((date_part('epoch', '2024-01-01'::timestamp) * 1000))::bigint
      -- And shift it over two bytes
      << 16);
    sequence_base := (
      'x' ||
      -- Take the first two bytes (four hex characters)
      substr(
        -- Of the MD5 hash of the data we documented
        md5(table_name || 'abc' || time_part::text),
        1, 4
      )
    -- And turn it into a bigint
    )::bit(16)::bigint;
    tail := (
      (sequence_base + nextval(table_name || '_id_seq'))
      & 65535);
    RETURN time_part | tail;
  END
$$ LANGUAGE plpgsql VOLATILE;
--
CREATE SEQUENCE statuses_id_seq
--
-- pins: last_result
CREATE TABLE statuses (id bigint DEFAULT timestamp_id('statuses'::text) NOT NULL PRIMARY KEY, text text NOT NULL DEFAULT '')
--
INSERT INTO "statuses" ("text") VALUES ('toot') RETURNING "id"
--
CREATE TABLE topics (id serial primary key, title text, search tsvector, tags jsonb default '[]')
--
-- values: ["A title", "some words here"]
INSERT INTO topics (title, search) VALUES ($1, setweight(to_tsvector('english', coalesce($1,'')), 'A') || to_tsvector('english', $2)) RETURNING id
--
SELECT id, ts_rank_cd(search, TO_TSQUERY('english', '''word'':*')) > 0 FROM topics WHERE search @@ TO_TSQUERY('english', '''word'':*A' || '') OR search @@ plainto_tsquery('words')
--
SELECT id, similarity(title, 'titel') > 0.1 FROM topics WHERE title ILIKE '%tit%' ORDER BY similarity(title, 'titel') DESC
--
SELECT title || ' ' || id, tags || '["a"]'::jsonb, ARRAY[1] || 2 FROM topics
--
SET SESSION statement_timeout TO 600000
--
WITH RECURSIVE "base_and_descendants" AS ((SELECT id, NULL::int AS parent FROM topics) UNION (SELECT t.id, b.id FROM topics t, base_and_descendants b WHERE false)) SELECT id FROM base_and_descendants
--
DELETE FROM topics USING (SELECT id FROM topics WHERE id > 100) AS sub WHERE topics.id = sub.id
-- session
SET bytea_output TO escape
--
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL REPEATABLE READ
--
SET synchronous_commit TO OFF
--
SELECT current_setting('server_version_num')
--
CREATE TABLE worker_locks (lock_name text not null, lock_key text not null, token text not null, last_renewed_ts bigint not null)
--
CREATE UNIQUE INDEX worker_locks_key ON worker_locks (lock_name, lock_key)
--
-- values: []
BEGIN
--
INSERT INTO worker_locks (lock_name, lock_key, token, last_renewed_ts) VALUES ('a', 'b', 't', 1) ON CONFLICT (lock_name, lock_key) DO UPDATE SET token = EXCLUDED.token WHERE worker_locks.last_renewed_ts < 0
--
COMMIT
--
INSERT INTO worker_locks (lock_name, lock_key, token, last_renewed_ts) SELECT * FROM unnest(ARRAY['x','y'], ARRAY['1','2'], ARRAY['t','t'], ARRAY[1,2]::bigint[])
--
SELECT lock_name FROM worker_locks WHERE lock_key = ANY(ARRAY['1','2']) ORDER BY 1
