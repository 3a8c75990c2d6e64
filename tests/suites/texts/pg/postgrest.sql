PostgREST, Supabase, Hasura, PostGraphile: roles and claims for one transaction, the schema's cache, row security, LISTEN.
-- session
CREATE SCHEMA auth
--
CREATE FUNCTION auth.uid() RETURNS text LANGUAGE sql STABLE AS $$ select coalesce(nullif(current_setting('request.jwt.claim.sub', true), ''), (nullif(current_setting('request.jwt.claims', true), '')::jsonb ->> 'sub')) $$
--
CREATE TABLE todos (id bigint generated always as identity primary key, owner text not null default auth.uid(), task text, done boolean not null default false)
--
ALTER TABLE todos ENABLE ROW LEVEL SECURITY
--
ALTER TABLE todos FORCE ROW LEVEL SECURITY
--
CREATE POLICY mine ON todos USING (owner = auth.uid()) WITH CHECK (owner = auth.uid())
--
CREATE FUNCTION pgrst_watch() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN NOTIFY pgrst, 'reload schema'; END; $$
--
NOTIFY pgrst, 'reload schema'
-- session
SELECT current_setting('server_version_num')::integer, current_setting('server_version'), version()
--
-- values: ["{public}"]
SELECT n.nspname, c.relname, d.description, c.relkind IN ('r', 'p') FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_description as d on d.objoid = c.oid and d.objsubid = 0 and d.classoid = 'pg_class'::regclass WHERE c.relkind IN ('v','r','m','f','p') AND n.nspname = any($1::text[]) AND not c.relispartition ORDER BY 1, 2
--
-- values: ["authenticator"]
with role_setting as (select setdatabase as database, unnest(setconfig) as setting from pg_catalog.pg_db_role_setting where setrole = to_regrole($1)::oid) select split_part(setting, '=', 1) as k, setting from role_setting
--
-- pins: listen
LISTEN "pgrst"
-- session
-- values: []
BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE
--
-- values: ["\"public\"", "app_scram", "{\"sub\":\"ann\"}", "POST", "/todos", "{}", "{}"]
select set_config('search_path', $1, true), set_config('role', $2, true), set_config('request.jwt.claims', $3, true), set_config('request.method', $4, true), set_config('request.path', $5, true), set_config('request.headers', $6, true), set_config('request.cookies', $7, true)
--
-- values: ["{\"task\":\"buy\"}"]
WITH pgrst_source AS (INSERT INTO "public"."todos"("task") SELECT "pgrst_body"."task" FROM (SELECT $1::json AS json_data) pgrst_payload, LATERAL (SELECT "task" FROM json_to_record(pgrst_payload.json_data) AS _("task" text) ) pgrst_body RETURNING "public"."todos".*) SELECT '' AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, array[]::text[] AS header, coalesce(json_agg(_postgrest_t), '[]') AS body, nullif(current_setting('response.headers', true), '') AS response_headers, nullif(current_setting('response.status', true), '') AS response_status FROM (SELECT "todos"."task" FROM "pgrst_source" AS "todos") _postgrest_t
--
-- values: []
COMMIT
--
-- values: []
BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY
--
-- values: ["\"public\"", "app_scram", "{\"sub\":\"bob\"}", "GET", "/todos", "{}", "{}"]
select set_config('search_path', $1, true), set_config('role', $2, true), set_config('request.jwt.claims', $3, true), set_config('request.method', $4, true), set_config('request.path', $5, true), set_config('request.headers', $6, true), set_config('request.cookies', $7, true)
--
-- values: []
WITH pgrst_source AS ( SELECT "public"."todos".* FROM "public"."todos" )  SELECT null::bigint AS total_result_set, pg_catalog.count(_postgrest_t) AS page_total, coalesce(json_agg(_postgrest_t), '[]') AS body, nullif(current_setting('response.headers', true), '') AS response_headers, nullif(current_setting('response.status', true), '') AS response_status FROM ( SELECT * FROM pgrst_source ) _postgrest_t
--
-- values: []
COMMIT
-- session
begin
--
-- values: ["app_scram", "{\"sub\":\"ann\"}"]
select set_config('role', $1, true), set_config('jwt.claims.user_id', $2, true)
--
select count(*) from todos
--
rollback
--
BEGIN ISOLATION LEVEL REPEATABLE READ READ WRITE
--
SET LOCAL "hasura.user" = '{"x-hasura-role":"user"}'
--
SELECT coalesce(json_agg("root"), '[]') AS "root" FROM (SELECT row_to_json((SELECT "_e" FROM (SELECT "_root.base"."id" AS "id") AS "_e")) AS "root" FROM (SELECT * FROM "public"."todos" WHERE ('true')) AS "_root.base") AS "_root"
--
COMMIT
--
-- pins: setting
-- values: ["pg_catalog", "app.user_id", "7"]
select set_config('search_path', $1, true), set_config($2, $3, true)
