PDO with Laravel and Doctrine, Nextcloud, Drupal, Moodle, Matomo-like reports, TYPO3.
-- session
set names 'utf8'
--
set time zone 'UTC'
--
set search_path to "public"
--
-- values: ["public"]
select nspname as name, nspname = $1 as "default" from pg_catalog.pg_namespace where nspname = 'public' order by 1
--
select c.relname as name, n.nspname as schema, obj_description(c.oid, 'pg_class') as comment from pg_class c, pg_namespace n where c.relkind in ('r', 'p') and n.oid = c.relnamespace and n.nspname = 'public' order by c.relname
--
create table "migrations" ("id" serial not null primary key, "migration" varchar(255) not null, "batch" integer not null)
--
create table "jobs" ("id" bigserial not null primary key, "queue" varchar(255) not null, "payload" text not null, "attempts" smallint not null, "reserved_at" integer null, "available_at" integer not null, "created_at" integer not null)
--
create index "jobs_queue_index" on "jobs" ("queue")
--
create table "cache_locks" ("key" varchar(255) not null, "owner" varchar(255) not null, "expiration" integer not null)
--
alter table "cache_locks" add primary key ("key")
--
select a.attname as name, t.typname as type_name, format_type(a.atttypid, a.atttypmod) as type, (select tc.collcollate from pg_catalog.pg_collation tc where tc.oid = a.attcollation) as collation, not a.attnotnull as nullable, (select pg_get_expr(adbin, adrelid) from pg_attrdef where c.oid = pg_attrdef.adrelid and pg_attrdef.adnum = a.attnum) as default, a.attgenerated as generated, col_description(c.oid, a.attnum) as comment from pg_attribute a, pg_class c, pg_type t, pg_namespace n where c.relname = 'jobs' and n.nspname = current_schema() and a.attnum > 0 and a.attrelid = c.oid and a.atttypid = t.oid and n.oid = c.relnamespace order by a.attnum
-- session
-- name: pdo_stmt_00000001
-- values: ["default", "{}", 0, 1700000000, 1700000000]
insert into "jobs" ("queue", "payload", "attempts", "available_at", "created_at") values ($1, $2, $3, $4, $5) returning "id"
--
DEALLOCATE pdo_stmt_00000001
--
BEGIN
--
-- name: pdo_stmt_00000002
-- values: ["default", 1700000001, 1700000001]
select * from "jobs" where "queue" = $1 and (("reserved_at" is null and "available_at" <= $2) or ("reserved_at" <= $3)) order by "id" asc limit 1 FOR UPDATE SKIP LOCKED
--
DEALLOCATE pdo_stmt_00000002
--
-- name: pdo_stmt_00000003
-- values: [1700000002, 1, 1]
update "jobs" set "reserved_at" = $1, "attempts" = $2 where "id" = $3
--
DEALLOCATE pdo_stmt_00000003
--
COMMIT
--
insert into "cache_locks" ("key", "owner", "expiration") values ('l', 'me', 1) on conflict do nothing
--
SAVEPOINT trans2
--
insert into "cache_locks" ("key", "owner", "expiration") values ('l', 'me', 2) on conflict ("key") do update set "expiration" = "excluded"."expiration"
--
select * from "jobs" where "payload"::jsonb @> '{}' limit 1
--
truncate "jobs" restart identity cascade
--
select pg_get_serial_sequence('jobs', 'id')
--
BEGIN
--
insert into "jobs" ("queue", "payload", "attempts", "available_at", "created_at") values ('q', '', 0, 1, 1)
--
SELECT CURRVAL('jobs_id_seq')
--
COMMIT
-- session
SHOW SERVER_VERSION
--
SELECT quote_ident(table_name) AS table_name, table_schema AS schema_name FROM information_schema.tables WHERE table_schema NOT LIKE 'pg\_%' AND table_schema != 'information_schema' AND table_name != 'geometry_columns' AND table_name != 'spatial_ref_sys' AND table_type != 'VIEW' ORDER BY 1
--
SELECT a.attnum, quote_ident(a.attname) AS field, t.typname AS type, format_type(a.atttypid, a.atttypmod) AS complete_type, (SELECT tc.collcollate FROM pg_catalog.pg_collation tc WHERE tc.oid = a.attcollation) AS collation, (SELECT t1.typname FROM pg_catalog.pg_type t1 WHERE t1.oid = t.typbasetype) AS domain_type, a.attnotnull AS isnotnull, a.attidentity, (SELECT 't' FROM pg_index WHERE c.oid = pg_index.indrelid AND pg_index.indkey[0] = a.attnum AND pg_index.indisprimary = 't') AS pri, (SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE c.oid = pg_attrdef.adrelid AND pg_attrdef.adnum=a.attnum) AS default FROM pg_attribute a, pg_class c, pg_type t, pg_namespace n WHERE a.attnum > 0 AND a.attrelid = c.oid AND a.atttypid = t.oid AND n.oid = c.relnamespace AND n.nspname = ANY(current_schemas(false)) AND c.relname = 'jobs' ORDER BY a.attnum
--
CREATE SEQUENCE oc_filecache_seq INCREMENT BY 1 MINVALUE 1 START 1
--
CREATE TABLE oc_filecache (fileid BIGINT DEFAULT nextval('oc_filecache_seq') NOT NULL, storage BIGINT DEFAULT 0 NOT NULL, path VARCHAR(4000), path_hash VARCHAR(32) DEFAULT '' NOT NULL, etag VARCHAR(40), mtime BIGINT DEFAULT 0 NOT NULL, PRIMARY KEY(fileid))
--
CREATE UNIQUE INDEX fs_storage_path_hash ON oc_filecache (storage, path_hash)
--
SET TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED
--
-- values: ["files/a", "abc", 1, "abc", 1]
INSERT INTO "oc_filecache" ("path","path_hash","storage") SELECT $1,$2,$3 FROM "oc_filecache" WHERE "path_hash" = $4 AND "storage" = $5 HAVING COUNT(*) = 0
--
BEGIN
--
INSERT INTO "oc_filecache" ("path","path_hash","storage") VALUES('files/b', 'def', 1) ON CONFLICT DO NOTHING
--
UPDATE "oc_filecache" SET "mtime" = GREATEST("mtime", 17), "etag" = 'x' WHERE ("storage" = 1) AND ("path_hash" IN ('abc','def'))
--
SELECT lastval()
--
COMMIT
--
SELECT "file"."fileid" FROM "oc_filecache" "file" WHERE ("path" COLLATE "C" LIKE 'files/%') ORDER BY "mtime" desc, "fileid" asc LIMIT 25
-- session
SET NAMES 'UTF8'; SET bytea_output='escape'
--
SELECT proname FROM pg_proc WHERE proname = 'rand'
--
CREATE OR REPLACE FUNCTION "greatest"(numeric, numeric) RETURNS numeric AS 'SELECT CASE WHEN (($1 > $2) OR ($2 IS NULL)) THEN $1 ELSE $2 END;' LANGUAGE 'sql'
--
CREATE OR REPLACE FUNCTION "concat"(anynonarray, text) RETURNS text AS 'SELECT CAST($1 AS text) || $2;' LANGUAGE 'sql'
--
CREATE TABLE cache_config (cid varchar(255) NOT NULL, data bytea, expire int NOT NULL default 0, tags text, PRIMARY KEY (cid))
--
BEGIN
--
SAVEPOINT mimic_implicit_commit
--
UPDATE cache_config SET data = '\x00', expire = -1 WHERE (cid = 'core')
--
RELEASE SAVEPOINT mimic_implicit_commit
--
SAVEPOINT mimic_implicit_commit
--
INSERT INTO cache_config (cid, data, expire, tags) VALUES ('core', 'x', -1, 'a b')
--
RELEASE SAVEPOINT mimic_implicit_commit
--
COMMIT
--
SELECT "cid", "expire" FROM "cache_config" WHERE "cid" IN ('core', 'module') ORDER BY "cid"
--
SELECT COUNT(*) FROM (SELECT 1 AS "expression" FROM "cache_config" "b") "subquery"
--
-- pins: temporary_table
CREATE TEMPORARY TABLE mdl_temp_table (id BIGINT NOT NULL, name VARCHAR(255))
--
-- pins: temporary_table
INSERT INTO mdl_temp_table (id, name) VALUES (1, 'a')
--
DROP TABLE mdl_temp_table
--
-- pins: session_lock
SELECT pg_try_advisory_lock(12, 34)
--
SELECT pg_advisory_unlock(12, 34)
