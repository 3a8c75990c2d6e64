pgx, lib/pq, GORM, sqlx, ent, River, golang-migrate, goose; Grafana, Gitea, Mattermost, Terraform's backend.
-- session
-- values: []
-- name: stmtcache_1
select nspname, relname from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where relname = 'users' and relkind = 'r'
--
SELECT CURRENT_DATABASE()
--
SELECT CURRENT_SCHEMA()
--
-- values: ["schema_migrations", "public"]
SELECT COUNT(1) FROM information_schema.tables WHERE table_name = $1 AND table_schema = $2 LIMIT 1
--
-- pins: session_lock
-- values: ["1234567890"]
SELECT pg_advisory_lock($1::bigint)
--
-- pins: session_lock
CREATE TABLE IF NOT EXISTS "public"."schema_migrations" (version bigint not null primary key, dirty boolean not null)
--
-- pins: session_lock
TRUNCATE "public"."schema_migrations"
--
-- pins: session_lock
CREATE TABLE users (id bigserial PRIMARY KEY, name text, age bigint, deleted_at timestamptz); CREATE INDEX idx_users_deleted_at ON users (deleted_at);
--
-- values: ["1234567890"]
SELECT pg_advisory_unlock($1::bigint)
-- session
-- values: ["users"]
SELECT c.column_name, c.is_nullable = 'YES', c.udt_name, c.character_maximum_length, c.numeric_precision, c.numeric_precision_radix, c.numeric_scale, c.datetime_precision, 8 * typlen, c.column_default, pd.description, c.identity_increment FROM information_schema.columns AS c JOIN pg_type AS pgt ON c.udt_name = pgt.typname LEFT JOIN pg_catalog.pg_description as pd ON pd.objsubid = c.ordinal_position AND pd.objoid = (SELECT oid FROM pg_catalog.pg_class WHERE relname = c.table_name AND relnamespace = (SELECT oid FROM pg_catalog.pg_namespace WHERE nspname = c.table_schema)) where table_catalog = current_database() AND table_schema = current_schema() AND table_name = $1 ORDER BY c.ordinal_position
--
begin
--
-- values: ["ann", 30]
INSERT INTO "users" ("name","age") VALUES ($1,$2) RETURNING "id"
--
commit
--
-- name: lrupsc_1_0
-- values: [1]
SELECT * FROM "users" WHERE "users"."id" = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT 1
--
begin isolation level serializable read only deferrable
--
-- name: lrupsc_1_0
-- values: [1]
SELECT * FROM "users" WHERE "users"."id" = $1 AND "users"."deleted_at" IS NULL ORDER BY "users"."id" LIMIT 1
--
rollback
--
-- name: lrupsc_1_1
-- values: ["31", "1"]
UPDATE "users" SET "age"=$1 WHERE "id" = $2
--
INSERT INTO "users" ("id","name") VALUES (1,'ann') ON CONFLICT ("id") DO UPDATE SET "name"="excluded"."name" RETURNING "id"
--
-- data: ["5\tcopied\n"]
copy "users" ( "id", "name" ) from stdin
--
-- ping
--
select 1;
--
-- values: []
;
--
-- pins: last_result
SELECT setval('users_id_seq', (SELECT max(id) FROM users))
--
CREATE SCHEMA IF NOT EXISTS terraform_remote_state
--
CREATE SEQUENCE IF NOT EXISTS public.global_states_id_seq AS bigint
--
-- pins: last_result
CREATE TABLE IF NOT EXISTS terraform_remote_state.states (
            id bigint NOT NULL DEFAULT nextval('public.global_states_id_seq') PRIMARY KEY,
            name text UNIQUE,
            data text
            )
--
SELECT id, pg_try_advisory_lock(id) FROM terraform_remote_state.states WHERE name = 'default'
