Queues in the database: Que, GoodJob, Solid Queue, Delayed Job, Procrastinate, Graphile Worker, River, Celery's results, pgmq-like functions.
-- session
CREATE TABLE good_jobs (id uuid primary key default gen_random_uuid(), queue_name text, priority int default 0, active_job_id uuid, concurrency_key text, scheduled_at timestamp, finished_at timestamp)
--
CREATE TABLE que_jobs (id bigserial primary key, priority smallint not null default 100, run_at timestamptz not null default '2024-01-01', job_class text not null, error_count integer not null default 0, queue text not null default 'default', finished_at timestamptz)
--
CREATE TABLE solid_queue_ready_executions (id bigserial primary key, job_id bigint not null, queue_name varchar not null, priority integer default 0 not null)
--
CREATE TABLE procrastinate_jobs (id bigserial primary key, queue_name varchar(128) not null, status text not null default 'todo', attempts integer default 0 not null)
--
CREATE FUNCTION procrastinate_fetch_job(target_queue_names character varying[])
    RETURNS procrastinate_jobs
    LANGUAGE plpgsql
AS $$
DECLARE
    found_jobs procrastinate_jobs;
BEGIN
    WITH candidate AS (
        SELECT jobs.*
            FROM procrastinate_jobs AS jobs
            WHERE
                status = 'todo'
                AND (target_queue_names IS NULL OR queue_name = ANY( target_queue_names ))
            ORDER BY jobs.id ASC LIMIT 1
            FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE procrastinate_jobs
        SET status = 'doing'
        FROM candidate
        WHERE procrastinate_jobs.id = candidate.id
        RETURNING procrastinate_jobs.* INTO found_jobs;

    RETURN found_jobs;
END;
$$
--
CREATE FUNCTION procrastinate_notify_queue() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_notify('procrastinate_queue#' || NEW.queue_name, NEW.id::text);
	PERFORM pg_notify('procrastinate_any_queue', NEW.id::text);
	RETURN NEW;
END;
$$
--
CREATE TRIGGER procrastinate_jobs_notify_queue AFTER INSERT ON procrastinate_jobs FOR EACH ROW WHEN ((new.status = 'todo')) EXECUTE PROCEDURE procrastinate_notify_queue()
--
CREATE SCHEMA pgmq
--
CREATE TABLE pgmq.q_mail (msg_id bigint primary key generated always as identity, read_ct int default 0 not null, vt timestamptz not null default '2024-01-01', message jsonb)
--
CREATE FUNCTION pgmq.send(queue_name TEXT, msg JSONB) RETURNS SETOF BIGINT AS $$
DECLARE
    sql TEXT;
    qtable TEXT := 'q_' || lower(queue_name);
BEGIN
    sql := FORMAT(
        $QUERY$
        INSERT INTO pgmq.%I (message)
        VALUES ($1)
        RETURNING msg_id;
        $QUERY$,
        qtable
    );
    RETURN QUERY EXECUTE sql USING msg;
END;
$$ LANGUAGE plpgsql
--
CREATE FUNCTION pgmq.read(queue_name TEXT, vt INTEGER, qty INTEGER) RETURNS SETOF pgmq.q_mail AS $$
DECLARE
    sql TEXT;
    qtable TEXT := 'q_' || lower(queue_name);
BEGIN
    sql := FORMAT(
        $QUERY$
        WITH cte AS
        (
            SELECT msg_id
            FROM pgmq.%I
            WHERE vt <= clock_timestamp()
            ORDER BY msg_id ASC
            LIMIT $1
            FOR UPDATE SKIP LOCKED
        )
        UPDATE pgmq.%I m
        SET read_ct = read_ct + 1
        FROM cte
        WHERE m.msg_id = cte.msg_id
        RETURNING m.*;
        $QUERY$,
        qtable, qtable
    );
    RETURN QUERY EXECUTE sql USING qty;
END;
$$ LANGUAGE plpgsql
-- session
INSERT INTO good_jobs (id, queue_name) VALUES ('00000000-0000-0000-0000-000000000001', 'default')
--
-- pins: session_lock
SELECT "good_jobs".* FROM "good_jobs" WHERE "good_jobs"."id" IN (WITH "rows" AS MATERIALIZED ( SELECT "good_jobs"."id", "good_jobs"."id" AS job FROM "good_jobs" WHERE "good_jobs"."finished_at" IS NULL ORDER BY priority ASC NULLS LAST LIMIT 1 ) SELECT "rows"."id" FROM "rows" WHERE pg_try_advisory_lock(('x' || substr(md5('good_jobs' || '-' || "rows"."id"::text), 1, 16))::bit(64)::bigint) LIMIT 1) ORDER BY priority ASC NULLS LAST
--
-- pins: session_lock
SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM pg_locks WHERE pg_locks.locktype = 'advisory' AND pg_locks.objsubid = 1 AND pg_locks.pid = pg_backend_pid())
--
-- pins: session_lock
UPDATE "good_jobs" SET "finished_at" = '2024-01-01' WHERE "good_jobs"."id" = '00000000-0000-0000-0000-000000000001'
--
SELECT pg_advisory_unlock(('x'||substr(md5('good_jobs-00000000-0000-0000-0000-000000000001'::text), 1, 16))::bit(64)::bigint) AS unlocked
--
SELECT pg_try_advisory_xact_lock(('x' || substr(md5('cron'), 1, 16))::bit(64)::bigint)
--
-- pins: listen
LISTEN good_job
--
UNLISTEN good_job
-- session
INSERT INTO que_jobs (job_class) VALUES ('Mail')
--
-- pins: session_lock
-- name: que_poll_jobs
-- values: ["default", 5, "{}"]
WITH RECURSIVE jobs AS (
  SELECT (j).*, pg_try_advisory_lock((j).id) AS locked
  FROM (
    SELECT j
    FROM public.que_jobs AS j
    WHERE queue = $1::text AND NOT id = ANY($3::bigint[]) AND finished_at IS NULL
    ORDER BY priority, run_at, id
    LIMIT 1
  ) AS t1
  UNION ALL (
    SELECT (j).*, pg_try_advisory_lock((j).id) AS locked
    FROM (
      SELECT (
        SELECT j
        FROM public.que_jobs AS j
        WHERE queue = $1::text AND (priority, run_at, id) > (jobs.priority, jobs.run_at, jobs.id) AND finished_at IS NULL
        ORDER BY priority, run_at, id
        LIMIT 1
      ) AS j
      FROM jobs
      WHERE jobs.id IS NOT NULL
      LIMIT 1
    ) AS t1
  )
)
SELECT queue, priority, id FROM jobs WHERE locked LIMIT $2::integer
--
-- pins: session_lock
DELETE FROM que_jobs WHERE id = 1
--
SELECT pg_advisory_unlock(v.i) FROM (VALUES (1)) v (i)
-- session
BEGIN
--
INSERT INTO "solid_queue_ready_executions" ("job_id", "queue_name") VALUES (1, 'default') RETURNING "id"
--
COMMIT
--
BEGIN
--
SELECT "solid_queue_ready_executions"."job_id" FROM "solid_queue_ready_executions" ORDER BY "solid_queue_ready_executions"."priority" ASC, "solid_queue_ready_executions"."job_id" ASC LIMIT 3 FOR UPDATE SKIP LOCKED
--
DELETE FROM "solid_queue_ready_executions" WHERE "solid_queue_ready_executions"."job_id" IN (1)
--
COMMIT
--
INSERT INTO procrastinate_jobs (queue_name) VALUES ('a') RETURNING id
--
-- values: ["{a}"]
SELECT id, status, queue_name FROM procrastinate_fetch_job($1)
--
-- values: ["mail", "{\"a\": 1}"]
SELECT * FROM pgmq.send($1, $2::jsonb)
--
-- values: ["mail", "30", "1"]
SELECT msg_id, read_ct, message FROM pgmq.read($1, $2::int, $3::int)
--
DELETE FROM pgmq.q_mail WHERE msg_id = ANY(ARRAY[1]) RETURNING msg_id
--
UPDATE procrastinate_jobs SET status = 'todo' WHERE id IN (SELECT id FROM procrastinate_jobs WHERE status = 'doing' ORDER BY id LIMIT 1 FOR UPDATE NOWAIT)
-- session
CREATE FUNCTION rows_of(t text) RETURNS bigint LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN EXECUTE 'SELECT count(*) FROM public.' || quote_ident(t) || ' WHERE id > ' || quote_literal('0') INTO n; RETURN n; END $$
--
SELECT rows_of('que_jobs')
