node-postgres, Knex, Sequelize, TypeORM, Prisma, Drizzle, node-pg-migrate, pg-boss, Graphile Worker, n8n, Strapi.
-- session
SELECT VERSION();
--
SHOW SERVER_VERSION
--
SET client_min_messages TO warning;SET TIME ZONE INTERVAL '+00:00' HOUR TO MINUTE;SELECT typname, typtype, oid, typarray FROM pg_type WHERE (typtype = 'b' AND typname IN ('hstore', 'geometry', 'geography')) OR (typtype = 'e')
--
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'Users'
--
CREATE TABLE IF NOT EXISTS "Users" ("id"   SERIAL , "name" VARCHAR(255), "createdAt" TIMESTAMP WITH TIME ZONE NOT NULL, "updatedAt" TIMESTAMP WITH TIME ZONE NOT NULL, PRIMARY KEY ("id"));
--
SELECT i.relname AS name, ix.indisprimary AS primary, ix.indisunique AS unique, ix.indkey AS indkey, array_agg(a.attnum) as column_indexes, array_agg(a.attname) AS column_names, pg_get_indexdef(ix.indexrelid) AS definition FROM pg_class t, pg_class i, pg_index ix, pg_attribute a WHERE t.oid = ix.indrelid AND i.oid = ix.indexrelid AND a.attrelid = t.oid AND t.relkind = 'r' and t.relname = 'Users' GROUP BY i.relname, ix.indexrelid, ix.indisprimary, ix.indisunique, ix.indkey ORDER BY i.relname;
--
-- values: ["ann", "2024-01-01 10:00:00.000 +00:00", "2024-01-01 10:00:00.000 +00:00"]
INSERT INTO "Users" ("id","name","createdAt","updatedAt") VALUES (DEFAULT,$1,$2,$3) RETURNING "id","name","createdAt","updatedAt";
--
START TRANSACTION;
--
SELECT "id", "name" FROM "Users" AS "User" WHERE "User"."id" = 1 FOR UPDATE;
--
COMMIT;
--
START TRANSACTION ISOLATION LEVEL REPEATABLE READ;
--
SELECT count(*) AS "count" FROM "Users" AS "User";
--
ROLLBACK;
-- session
select * from information_schema.tables where table_name = 'knex_migrations' and table_schema = current_schema()
--
create table "knex_migrations" ("id" serial primary key, "name" varchar(255), "batch" integer, "migration_time" timestamptz)
--
create table "knex_migrations_lock" ("index" serial primary key, "is_locked" integer)
--
-- values: [0]
insert into "knex_migrations_lock" ("is_locked") values ($1)
--
BEGIN;
--
-- values: [1, 0]
update "knex_migrations_lock" set "is_locked" = $1 where "is_locked" = $2
--
COMMIT;
--
BEGIN;
--
select max("batch") as "max_batch" from "knex_migrations"
--
savepoint trx5;
--
create table "articles" ("id" uuid default gen_random_uuid(), "document" jsonb, constraint "articles_pkey" primary key ("id"))
--
release trx5;
--
COMMIT;
-- session
SELECT * FROM current_schema()
--
SELECT "n"."nspname", "t"."typname" FROM "pg_type" "t" INNER JOIN "pg_namespace" "n" ON "n"."oid" = "t"."typnamespace" WHERE "n"."nspname" = current_schema() AND "t"."typtype" = 'e' ORDER BY 2
--
CREATE EXTENSION IF NOT EXISTS "pgcrypto"
--
CREATE TABLE "typeorm_migrations" ("id" SERIAL NOT NULL, "timestamp" bigint NOT NULL, "name" character varying NOT NULL, CONSTRAINT "PK_bb2f075707dd300ba86d0208923" PRIMARY KEY ("id"))
--
SELECT * FROM "information_schema"."tables" WHERE ("table_schema" = 'public' AND "table_name" = 'typeorm_migrations')
--
SELECT "table_schema", "table_name", obj_description(('"' || "table_schema" || '"."' || "table_name" || '"')::regclass, 'pg_class') AS table_comment FROM "information_schema"."tables" WHERE ("table_schema" = 'public' AND "table_name" = 'typeorm_migrations')
--
SELECT columns.table_name, columns.column_name, pg_catalog.col_description(('"' || table_catalog || '"."' || table_schema || '"."' || table_name || '"')::regclass::oid, ordinal_position) AS description, ('"' || "udt_schema" || '"."' || "udt_name" || '"')::"regtype"::text AS "regtype", pg_catalog.format_type("col_attr"."atttypid", "col_attr"."atttypmod") AS "format_type" FROM "information_schema"."columns" LEFT JOIN "pg_catalog"."pg_attribute" AS "col_attr" ON "col_attr"."attname" = "columns"."column_name" AND "col_attr"."attrelid" = ( SELECT "cls"."oid" FROM "pg_catalog"."pg_class" AS "cls" LEFT JOIN "pg_catalog"."pg_namespace" AS "ns" ON "ns"."oid" = "cls"."relnamespace" WHERE "cls"."relname" = "columns"."table_name" AND "ns"."nspname" = "columns"."table_schema" ) WHERE ("table_schema" = 'public' AND "table_name" = 'typeorm_migrations') ORDER BY ordinal_position
--
START TRANSACTION
--
-- values: [1, "Initial1"]
INSERT INTO "typeorm_migrations"("timestamp", "name") VALUES ($1, $2)
--
COMMIT
-- session
-- values: ["public"]
SELECT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname = $1), version(), current_setting('server_version_num')::integer as numeric_version
--
-- pins: session_lock
SELECT pg_advisory_lock(72707369)
--
-- pins: session_lock
-- values: ["{public}"]
SELECT tbl.relname AS table_name, namespace.nspname as namespace, (tbl.relhassubclass and tbl.relkind = 'p') as is_partition, (tbl.relhassubclass and tbl.relkind = 'r') as has_subclass, tbl.relrowsecurity as has_row_level_security, reloptions, obj_description(tbl.oid, 'pg_class') as description FROM pg_class AS tbl INNER JOIN pg_namespace AS namespace ON namespace.oid = tbl.relnamespace WHERE tbl.relkind in ('r','p') AND namespace.nspname = ANY ( $1 ) ORDER BY namespace, table_name
--
-- pins: session_lock
CREATE TABLE _prisma_migrations (
    id                      VARCHAR(36) PRIMARY KEY NOT NULL,
    checksum                VARCHAR(64) NOT NULL,
    finished_at             TIMESTAMPTZ,
    migration_name          VARCHAR(255) NOT NULL,
    logs                    TEXT,
    rolled_back_at          TIMESTAMPTZ,
    started_at              TIMESTAMPTZ NOT NULL DEFAULT now(),
    applied_steps_count     INTEGER NOT NULL DEFAULT 0
)
--
SELECT pg_advisory_unlock(72707369)
-- session
SET search_path = "public"
--
-- values: []
BEGIN
--
-- name: s0
-- values: ["ann", "2024-01-01 10:00:00", "2024-01-01 10:00:00"]
INSERT INTO "public"."Users" ("name","createdAt","updatedAt") VALUES ($1,$2,$3) RETURNING "public"."Users"."id"
--
-- name: s1
-- values: [2, 1, 0]
SELECT "public"."Users"."id", "public"."Users"."name" FROM "public"."Users" WHERE ("public"."Users"."id" = $1 AND 1=1) LIMIT $2 OFFSET $3
--
-- values: []
COMMIT
--
-- name: s2
-- values: ["1"]
SELECT COUNT(*) FROM (SELECT "public"."Users"."id" FROM "public"."Users" WHERE 1=1 OFFSET $1) AS "sub"
--
DEALLOCATE ALL
--
-- values: ["ann", "{1,2}"]
SELECT "t1"."id", "t1"."name", COALESCE("agg"."__r", '[]') FROM "public"."Users" AS "t1" LEFT JOIN LATERAL (SELECT JSONB_AGG("__t3"."__prisma_data__") AS "__r" FROM (SELECT JSONB_BUILD_OBJECT('id', "t2"."id") AS "__prisma_data__" FROM "public"."Users" AS "t2" WHERE "t2"."name" = $1) AS "__t3") AS "agg" ON TRUE WHERE "t1"."id" = ANY ($2::int[])
-- session
SELECT pg_try_advisory_xact_lock(7241865325823964)
--
-- pins: session_lock
SELECT pg_try_advisory_lock(7241865325823964) as "lockObtained"
--
-- pins: session_lock
SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_name = 'pgmigrations'
--
-- pins: session_lock
CREATE TABLE "public"."pgmigrations" ( id SERIAL PRIMARY KEY, name varchar(255) NOT NULL, run_on timestamp NOT NULL)
--
select pg_advisory_unlock(7241865325823964) as "lockReleased"
--
BEGIN;
CREATE SCHEMA IF NOT EXISTS pgboss;
CREATE TYPE pgboss.job_state AS ENUM ('created', 'retry', 'active', 'completed', 'cancelled', 'failed');
CREATE TABLE pgboss.version (version int primary key, maintained_on timestamp with time zone);
CREATE TABLE pgboss.job (id uuid not null default gen_random_uuid(), name text not null, priority integer not null default(0), data jsonb, state pgboss.job_state not null default 'created', start_after timestamp with time zone not null default '2024-01-01', primary key (name, id));
INSERT INTO pgboss.version (version) VALUES (21);
COMMIT;
--
BEGIN;
SET LOCAL lock_timeout = '30s';
SELECT pg_advisory_xact_lock(('x' || encode(sha224((current_database() || '.pgboss.pgboss')::bytea), 'hex'))::bit(64)::bigint);
UPDATE pgboss.version SET maintained_on = null;
COMMIT;
--
-- values: ["mail", "{\"to\": \"a\"}"]
INSERT INTO pgboss.job (name, data) SELECT $1, $2::jsonb ON CONFLICT DO NOTHING
--
-- values: ["mail", 2]
WITH next as (
  SELECT id FROM pgboss.job
  WHERE name = $1 AND state < 'active' AND start_after < now()
  ORDER BY priority desc, id
  LIMIT $2
  FOR UPDATE SKIP LOCKED
)
UPDATE pgboss.job j SET state = 'active'
FROM next
WHERE name = $1 AND j.id = next.id
RETURNING j.name, data
--
CREATE FUNCTION pgboss.notify_job() RETURNS trigger AS $$
BEGIN
  PERFORM pg_notify('jobs:insert', '{"r":' || random()::int * 0 || ',"count":1}');
  RETURN NEW;
END;
$$ LANGUAGE plpgsql;
--
CREATE TRIGGER notify AFTER INSERT ON pgboss.job FOR EACH STATEMENT EXECUTE FUNCTION pgboss.notify_job()
--
INSERT INTO pgboss.job (name) VALUES ('later')
--
-- pins: listen
LISTEN "jobs:insert"
