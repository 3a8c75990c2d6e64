Postgrex and Ecto, with Oban: the types' query, migrations, requests, the queue, LISTEN, leadership.
-- session
-- name: ecto_0
-- values: []
SELECT t.oid, t.typname, t.typsend, t.typreceive, t.typoutput, t.typinput,
       t.typelem, coalesce(r.rngsubtype, 0), ARRAY (
  SELECT a.atttypid
  FROM pg_attribute AS a
  WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped
  ORDER BY a.attnum
)
FROM pg_type AS t
LEFT JOIN pg_range AS r ON r.rngtypid = t.oid OR r.rngmultitypid = t.oid
WHERE (t.typrelid = 0)
AND (t.typelem = 0 OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_type s WHERE s.typrelid != 0 AND s.oid = t.typelem))
AND t.typname LIKE 'int%'
ORDER BY t.oid
--
CREATE TABLE IF NOT EXISTS "schema_migrations" ("version" bigint, "inserted_at" timestamp(0), PRIMARY KEY ("version"))
--
begin
--
LOCK TABLE "schema_migrations" IN SHARE UPDATE EXCLUSIVE MODE
--
-- values: []
SELECT s0."version"::bigint FROM "schema_migrations" AS s0
--
CREATE TABLE "users" ("id" bigserial, "email" citext NOT NULL, "inserted_at" timestamp(0) NOT NULL DEFAULT '2024-01-01', PRIMARY KEY ("id"))
--
CREATE TYPE public.oban_job_state AS ENUM ('available', 'scheduled', 'executing', 'retryable', 'completed', 'discarded')
--
CREATE TABLE public.oban_jobs (id bigserial primary key, state public.oban_job_state NOT NULL DEFAULT 'available', queue text NOT NULL DEFAULT 'default', worker text NOT NULL, args jsonb NOT NULL DEFAULT '{}', attempt integer NOT NULL DEFAULT 0, attempted_by text[], priority integer NOT NULL DEFAULT 0)
--
CREATE OR REPLACE FUNCTION public.oban_jobs_notify() RETURNS trigger AS $$
DECLARE
  channel text;
  notice json;
BEGIN
  IF NEW.state = 'available' THEN
    channel = 'public.oban_insert';
    notice = json_build_object('queue', NEW.queue);

    PERFORM pg_notify(channel, notice::text);
  END IF;

  RETURN NULL;
END;
$$ LANGUAGE plpgsql
--
CREATE TRIGGER oban_notify AFTER INSERT ON public.oban_jobs FOR EACH ROW EXECUTE PROCEDURE public.oban_jobs_notify()
--
CREATE UNLOGGED TABLE public.oban_peers (name text NOT NULL PRIMARY KEY, node text NOT NULL, started_at timestamp NOT NULL, expires_at timestamp NOT NULL)
--
COMMENT ON TABLE public.oban_jobs IS '12'
--
commit
-- session
-- name: ecto_1
-- values: ["ann@example.com"]
INSERT INTO "users" ("email") VALUES ($1) RETURNING "id"
--
begin
--
savepoint postgrex_query
--
-- name: ecto_2
-- values: ["ANN@example.com"]
SELECT u0."id", u0."email" FROM "users" AS u0 WHERE (u0."email" = $1)
--
release savepoint postgrex_query
--
-- values: ["{}", "Mailer"]
INSERT INTO "public"."oban_jobs" ("args","worker") VALUES ($1::jsonb,$2) RETURNING "id"
--
commit
--
-- values: ["default", 5, "node-1"]
WITH "subset" AS MATERIALIZED (SELECT so0."id" AS "id" FROM "public"."oban_jobs" AS so0 WHERE (so0."state" = 'available') AND (so0."queue" = $1) ORDER BY so0."priority", so0."id" LIMIT $2 FOR UPDATE SKIP LOCKED) UPDATE "public"."oban_jobs" AS o0 SET "state" = 'executing', "attempted_by" = ARRAY[$3::text], "attempt" = o0."attempt" + 1 FROM "subset" AS f1 WHERE (o0."id" = f1."id") RETURNING o0."id", o0."worker"
--
-- values: ["2024-01-01", "2024-01-01"]
DELETE FROM "public"."oban_peers" AS o0 WHERE (o0."name" = 'Oban') AND (o0."expires_at" < $1::timestamp) AND $2::text > ''
--
INSERT INTO "public"."oban_peers" AS o0 ("name","node","started_at","expires_at") VALUES ('Oban','n1','2024-01-01','2024-01-02') ON CONFLICT ("name") DO UPDATE SET "expires_at" = '2024-01-03'
--
-- values: []
SELECT pg_try_advisory_xact_lock(4242, 101)
--
-- values: ["public.oban_gossip", "{\"a\":1}"]
SELECT pg_notify($1, payload) FROM json_array_elements_text(json_build_array($2::text)) AS payload
--
-- pins: listen
LISTEN "public.oban_insert"
--
-- pins: listen
LISTEN "public.oban_signal"
