Rails with ActiveRecord: the adapter's start, a migration, the schema's look-ups, requests with savepoints, and what Discourse and Mastodon send.
-- session
SET client_min_messages TO 'warning'
--
SET standard_conforming_strings = on
--
SET SESSION timezone TO 'UTC'
--
SET intervalstyle = iso_8601
--
SHOW max_identifier_length
--
SELECT t.oid, t.typname
FROM pg_type as t
WHERE t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'numeric', 'bool', 'timestamp', 'timestamptz')
--
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype
FROM pg_type as t
LEFT JOIN pg_range as r ON oid = rngtypid
WHERE
  t.typname IN ('int2', 'int4', 'int8', 'oid', 'float4', 'float8', 'text', 'varchar', 'char', 'name', 'bpchar', 'bool', 'bit', 'varbit', 'date', 'money', 'bytea', 'point', 'hstore', 'json', 'jsonb', 'cidr', 'inet', 'uuid', 'xml', 'tsvector', 'macaddr', 'citext', 'ltree', 'line', 'lseg', 'box', 'path', 'polygon', 'circle', 'numeric', 'interval', 'time', 'timestamp', 'timestamptz')
  OR t.typtype IN ('r', 'e', 'd')
  OR t.typinput::varchar = 'array_in'
  OR t.typelem != 0
ORDER BY t.oid
LIMIT 20
--
SELECT current_database()
--
SHOW search_path
--
SELECT 1
--
CREATE TABLE "schema_migrations" ("version" character varying NOT NULL PRIMARY KEY)
--
CREATE TABLE "ar_internal_metadata" ("key" character varying NOT NULL PRIMARY KEY, "value" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL)
--
-- pins: session_lock
SELECT pg_try_advisory_lock(7654321098765432)
--
-- pins: session_lock
SELECT "schema_migrations"."version" FROM "schema_migrations" ORDER BY "schema_migrations"."version" ASC
--
-- pins: session_lock
BEGIN
--
CREATE TABLE "users" ("id" bigserial primary key, "email" character varying DEFAULT '' NOT NULL, "name" character varying, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL)
--
CREATE TABLE "posts" ("id" bigserial primary key, "user_id" bigint NOT NULL, "title" character varying, "body" text, "views" integer DEFAULT 0, "created_at" timestamp(6) NOT NULL, "updated_at" timestamp(6) NOT NULL, CONSTRAINT "fk_rails_5b5ddfd518"
FOREIGN KEY ("user_id")
  REFERENCES "users" ("id")
)
--
CREATE INDEX "index_posts_on_user_id" ON "posts" ("user_id")
--
CREATE UNIQUE INDEX "index_users_on_email" ON "users" ("email")
--
-- values: ["20240101000001"]
INSERT INTO "schema_migrations" ("version") VALUES ($1) RETURNING "version"
--
-- pins: session_lock
COMMIT
--
SELECT pg_advisory_unlock(7654321098765432)
--
SELECT a.attname, format_type(a.atttypid, a.atttypmod),
       pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod,
       c.collname, col_description(a.attrelid, a.attnum) AS comment,
       attidentity AS identity,
       attgenerated as attgenerated
  FROM pg_attribute a
  LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum
  LEFT JOIN pg_type t ON a.atttypid = t.oid
  LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation
 WHERE a.attrelid = '"posts"'::regclass
   AND a.attnum > 0 AND NOT a.attisdropped
 ORDER BY a.attnum
--
SELECT a.attname
  FROM (
         SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx
           FROM pg_index
          WHERE indrelid = '"posts"'::regclass
            AND indisprimary
       ) i
  JOIN pg_attribute a
    ON a.attrelid = i.indrelid
   AND a.attnum = i.indkey[i.idx]
 ORDER BY i.idx
--
SELECT c.relname FROM pg_class c LEFT JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = ANY (current_schemas(false)) AND c.relkind IN ('r','v','m','p','f') ORDER BY 1
--
SELECT distinct i.relname, d.indisunique, d.indkey, pg_get_indexdef(d.indexrelid), t.oid,
                pg_catalog.obj_description(i.oid, 'pg_class') AS comment, d.indisvalid
FROM pg_class t
INNER JOIN pg_index d ON t.oid = d.indrelid
INNER JOIN pg_class i ON d.indexrelid = i.oid
LEFT JOIN pg_namespace n ON n.oid = t.relnamespace
WHERE i.relkind IN ('i', 'I')
  AND d.indisprimary = 'f'
  AND t.relname = 'posts'
  AND n.nspname = ANY (current_schemas(false))
ORDER BY i.relname
--
SELECT t2.oid::regclass::text AS to_table, a1.attname AS column, a2.attname AS primary_key, c.conname AS name, c.confupdtype AS on_update, c.confdeltype AS on_delete, c.convalidated AS valid, c.condeferrable AS deferrable, c.condeferred AS deferred
FROM pg_constraint c
JOIN pg_class t1 ON c.conrelid = t1.oid
JOIN pg_class t2 ON c.confrelid = t2.oid
JOIN pg_attribute a1 ON a1.attnum = c.conkey[1] AND a1.attrelid = t1.oid
JOIN pg_attribute a2 ON a2.attnum = c.confkey[1] AND a2.attrelid = t2.oid
JOIN pg_namespace t3 ON c.connamespace = t3.oid
WHERE c.contype = 'f'
  AND t1.relname = 'posts'
  AND t3.nspname = ANY (current_schemas(false))
ORDER BY c.conname
--
SELECT type.typname AS name, type.oid AS oid, n.nspname AS schema, string_agg(enum.enumlabel, ',' ORDER BY enum.enumsortorder) AS value
FROM pg_enum AS enum
JOIN pg_type AS type ON (type.oid = enum.enumtypid)
JOIN pg_namespace n ON type.typnamespace = n.oid
WHERE n.nspname = ANY (current_schemas(false))
GROUP BY type.OID, n.nspname, type.typname
--
SELECT extname, extversion FROM pg_extension ORDER BY 1
-- session
BEGIN
--
-- name: a1
-- values: ["ann@example.com", "Ann", "2024-01-01 10:00:00", "2024-01-01 10:00:00"]
INSERT INTO "users" ("email", "name", "created_at", "updated_at") VALUES ($1, $2, $3, $4) RETURNING "id"
--
COMMIT
--
-- name: a2
-- values: ["ann@example.com", 1]
SELECT "users".* FROM "users" WHERE "users"."email" = $1 LIMIT $2
--
BEGIN
--
SAVEPOINT active_record_1
--
-- name: a1
-- values: ["ann@example.com", "Again", "2024-01-01 10:00:00", "2024-01-01 10:00:00"]
INSERT INTO "users" ("email", "name", "created_at", "updated_at") VALUES ($1, $2, $3, $4) RETURNING "id"
--
ROLLBACK TO SAVEPOINT active_record_1
--
-- name: a3
-- values: [1, "First", "Text", "2024-01-02 10:00:00", "2024-01-02 10:00:00"]
INSERT INTO "posts" ("user_id", "title", "body", "created_at", "updated_at") VALUES ($1, $2, $3, $4, $5) RETURNING "id"
--
RELEASE SAVEPOINT active_record_1
--
COMMIT
--
-- name: a4
-- values: [1, 1]
SELECT 1 AS one FROM "posts" WHERE "posts"."user_id" = $1 LIMIT $2
--
INSERT INTO "posts" ("user_id","title","body","created_at","updated_at") VALUES (1, 'bulk', 'x', '2024-01-02 10:00:00', '2024-01-02 10:00:00'), (1, 'bulk 2', 'y', '2024-01-02 10:00:00', '2024-01-02 10:00:00') ON CONFLICT  DO NOTHING RETURNING "id"
--
INSERT INTO "users" ("email","name","created_at","updated_at") VALUES ('ann@example.com', 'Anna', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP) ON CONFLICT ("email") DO UPDATE SET updated_at=(CASE WHEN ("users"."name" IS NOT DISTINCT FROM excluded."name") THEN "users".updated_at ELSE CURRENT_TIMESTAMP END),"name"=excluded."name" RETURNING "id"
--
BEGIN
--
SELECT "users"."id", "users"."email" FROM "users" WHERE "users"."id" = 1 LIMIT 1 FOR UPDATE
--
-- values: ["3", "2"]
UPDATE "posts" SET "views" = COALESCE("posts"."views", 0) + $1 WHERE "posts"."id" = $2
--
COMMIT
--
SELECT COUNT(*) FROM "posts" WHERE "posts"."created_at" BETWEEN '2024-01-01' AND '2024-12-31'
--
BEGIN ISOLATION LEVEL REPEATABLE READ
--
SELECT COUNT(*) AS "count_all", "posts"."user_id" AS "posts_user_id" FROM "posts" GROUP BY "posts"."user_id"
--
COMMIT
--
-- pins: session_lock
SELECT pg_try_advisory_lock(hashtext('rails_cache_lock')::bigint) AS locked
--
SELECT pg_advisory_unlock(hashtext('rails_cache_lock')::bigint)
--
BEGIN
--
SELECT pg_advisory_xact_lock(1234567890)
--
DELETE FROM "posts" WHERE "posts"."title" = 'bulk 2'
--
COMMIT
--
EXPLAIN (COSTS OFF) SELECT "users".* FROM "users" WHERE "users"."email" = 'x'
-- session
SET statement_timeout = '60s'
--
SET lock_timeout TO '5s'
--
SELECT 1
--
ALTER TABLE "posts" ADD "slug" character varying
--
CREATE INDEX CONCURRENTLY "index_posts_on_slug" ON "posts" ("slug")
--
ALTER TABLE posts DISABLE TRIGGER ALL
--
ALTER TABLE posts ENABLE TRIGGER ALL
--
RESET statement_timeout
--
SET lock_timeout TO DEFAULT
--
WITH "recent" AS (SELECT * FROM posts ORDER BY id DESC LIMIT 10) SELECT title FROM recent ORDER BY id
--
-- pins: last_result
SELECT setval(pg_get_serial_sequence('"posts"', 'id'), 100)
--
SELECT MAX("id") FROM "posts"
--
DISCARD ALL
--
DEALLOCATE ALL
