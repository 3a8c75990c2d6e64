pgjdbc with Hibernate, Spring, HikariCP: start, metadata, sequences, locks; Flyway, Liquibase, Keycloak.
-- session
-- values: []
SET extra_float_digits = 3
--
-- values: []
SET application_name = 'PostgreSQL JDBC Driver'
--
-- values: []
SELECT 1
--
-- values: []
SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY
--
-- values: []
SET SESSION CHARACTERISTICS AS TRANSACTION READ WRITE
--
-- values: []
SHOW TRANSACTION ISOLATION LEVEL
--
-- values: []
select current_schema()
--
-- values: []
select string_agg(word, ',') from pg_catalog.pg_get_keywords() where word <> ALL ('{a,abs,absolute}'::text[]) and word like 'ab%'
--
-- values: []
SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, c.relname AS TABLE_NAME,  CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema'  WHEN true THEN CASE  WHEN n.nspname = 'pg_catalog' OR n.nspname = 'information_schema' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TABLE'   WHEN 'v' THEN 'SYSTEM VIEW'   WHEN 'i' THEN 'SYSTEM INDEX'   ELSE NULL   END  WHEN n.nspname = 'pg_toast' THEN CASE c.relkind   WHEN 'r' THEN 'SYSTEM TOAST TABLE'   WHEN 'i' THEN 'SYSTEM TOAST INDEX'   ELSE NULL   END  ELSE CASE c.relkind   WHEN 'r' THEN 'TEMPORARY TABLE'   WHEN 'p' THEN 'TEMPORARY TABLE'   WHEN 'i' THEN 'TEMPORARY INDEX'   WHEN 'S' THEN 'TEMPORARY SEQUENCE'   WHEN 'v' THEN 'TEMPORARY VIEW'   ELSE NULL   END  END  WHEN false THEN CASE c.relkind  WHEN 'r' THEN 'TABLE'  WHEN 'p' THEN 'PARTITIONED TABLE'  WHEN 'i' THEN 'INDEX'  WHEN 'P' then 'PARTITIONED INDEX'  WHEN 'S' THEN 'SEQUENCE'  WHEN 'v' THEN 'VIEW'  WHEN 'c' THEN 'TYPE'  WHEN 'f' THEN 'FOREIGN TABLE'  WHEN 'm' THEN 'MATERIALIZED VIEW'  ELSE NULL  END  ELSE NULL  END  AS TABLE_TYPE, d.description AS REMARKS,  '' as TYPE_CAT, '' as TYPE_SCHEM, '' as TYPE_NAME, '' AS SELF_REFERENCING_COL_NAME, '' AS REF_GENERATION  FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c  LEFT JOIN pg_catalog.pg_description d ON (c.oid = d.objoid AND d.objsubid = 0  and d.classoid = 'pg_class'::regclass)  WHERE c.relnamespace = n.oid  AND n.nspname LIKE 'public' AND (false  OR ( c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema' ) )  ORDER BY TABLE_TYPE,TABLE_SCHEM,TABLE_NAME
--
-- values: []
select tc.table_name, kcu.column_name from information_schema.table_constraints tc join information_schema.key_column_usage kcu using (constraint_name) where tc.table_schema = 'public' order by 1, 2
--
-- values: []
SELECT typinput='pg_catalog.array_in'::regproc as is_array, typtype, typname, pg_type.oid   FROM pg_catalog.pg_type   LEFT JOIN (select ns.oid as nspoid, ns.nspname, r.r           from pg_namespace as ns           join ( select s.r, (current_schemas(false))[s.r] as nspname                    from generate_series(1, array_upper(current_schemas(false), 1)) as s(r) ) as r          using ( nspname )        ) as sp     ON sp.nspoid = typnamespace  WHERE pg_type.oid = 23  ORDER BY sp.r, pg_type.oid DESC
--
create sequence customer_seq start with 1 increment by 50
--
create table customer (id bigint not null, version integer, name varchar(255), primary key (id))
--
alter table if exists customer add constraint uk_customer_name unique (name)
-- session
-- values: []
BEGIN
--
-- values: []
select nextval('customer_seq')
--
-- values: [0, "ann", 1]
insert into customer (version,name,id) values ($1,$2,$3)
--
-- values: []
COMMIT
--
-- name: S_1
-- values: [1]
select c1_0.id,c1_0.name,c1_0.version from customer c1_0 where c1_0.id=$1
--
-- values: []
BEGIN
--
-- name: S_1
-- values: [1]
select c1_0.id,c1_0.name,c1_0.version from customer c1_0 where c1_0.id=$1
--
-- name: S_2
-- values: ["bob", 1, 1, 0]
update customer set name=$1,version=$2 where id=$3 and version=$4
--
-- values: []
COMMIT
--
-- values: [1]
select c1_0.id,c1_0.name,c1_0.version from customer c1_0 where c1_0.id=$1 for no key update
--
-- values: []
-- pins: last_result
select nextval('customer_seq')
--
-- values: []
BEGIN ISOLATION LEVEL SERIALIZABLE READ WRITE
--
-- name: C_3
-- values: []
select c1_0.id from customer c1_0 order by c1_0.id fetch first 10 rows only
--
-- values: []
ROLLBACK
--
-- values: []
SAVEPOINT PGJDBC_AUTOSAVE
--
-- values: []
BEGIN
--
-- values: []
SAVEPOINT PGJDBC_AUTOSAVE
--
-- values: [1]
delete from customer where id=$1
--
-- values: []
ROLLBACK TO SAVEPOINT PGJDBC_AUTOSAVE
--
-- values: []
RELEASE SAVEPOINT PGJDBC_AUTOSAVE
--
-- values: []
COMMIT
--
-- data: ["5\t0\tcopied\n"]
COPY customer (id, version, name) FROM STDIN
--
-- values: []
DISCARD ALL
-- session
-- values: []
SELECT COUNT(*) FROM pg_namespace WHERE nspname='public'
--
-- values: []
SELECT current_user
--
-- values: []
SELECT COUNT(1) FROM pg_settings WHERE name = 'lc_messages'
--
-- values: []
SELECT EXISTS (  SELECT 1  FROM   pg_catalog.pg_class c  JOIN   pg_catalog.pg_namespace n ON n.oid = c.relnamespace  WHERE  n.nspname = 'public'  AND    c.relkind IN ('r', 'v', 'S', 't'))
--
-- values: []
-- pins: session_lock
SELECT pg_try_advisory_lock(-4234553489712345)
--
-- values: []
-- pins: session_lock
BEGIN
--
CREATE TABLE "public"."flyway_schema_history" (
    "installed_rank" INT NOT NULL,
    "version" VARCHAR(50),
    "description" VARCHAR(200) NOT NULL,
    "type" VARCHAR(20) NOT NULL,
    "script" VARCHAR(1000) NOT NULL,
    "checksum" INTEGER,
    "installed_by" VARCHAR(100) NOT NULL,
    "installed_on" TIMESTAMP NOT NULL DEFAULT now(),
    "execution_time" INTEGER NOT NULL,
    "success" BOOLEAN NOT NULL
) ;
ALTER TABLE "public"."flyway_schema_history" ADD CONSTRAINT "flyway_schema_history_pk" PRIMARY KEY ("installed_rank");
CREATE INDEX "flyway_schema_history_s_idx" ON "public"."flyway_schema_history" ("success");
--
SET LOCAL search_path TO "public"
--
-- values: []
-- pins: session_lock
COMMIT
--
-- values: []
SELECT pg_advisory_unlock(-4234553489712345)
--
-- values: ["public"]
SELECT set_config('search_path', $1, false)
--
-- values: []
SELECT "installed_rank","version" FROM "public"."flyway_schema_history" WHERE "installed_rank" > -1 ORDER BY "installed_rank"
--
-- values: []
BEGIN
--
-- values: []
SELECT * FROM "public"."flyway_schema_history" FOR UPDATE
--
LOCK TABLE "public"."flyway_schema_history" IN SHARE UPDATE EXCLUSIVE MODE
--
-- values: []
COMMIT
--
-- values: []
DO $$ BEGIN IF NOT EXISTS (SELECT 1 FROM pg_roles WHERE rolname = 'nobody_here') THEN RAISE NOTICE 'none'; END IF; END $$
-- session
-- values: []
CREATE TABLE databasechangeloglock (ID INTEGER NOT NULL, LOCKED BOOLEAN NOT NULL, LOCKGRANTED TIMESTAMP WITHOUT TIME ZONE, LOCKEDBY VARCHAR(255), CONSTRAINT databasechangeloglock_pkey PRIMARY KEY (ID))
--
-- values: []
DELETE FROM databasechangeloglock
--
-- values: []
INSERT INTO databasechangeloglock (ID, LOCKED) VALUES (1, FALSE)
--
-- values: []
SELECT LOCKED FROM databasechangeloglock WHERE ID=1
--
-- values: []
BEGIN
--
-- values: []
UPDATE databasechangeloglock SET LOCKED = TRUE, LOCKEDBY = 'host', LOCKGRANTED = '2024-01-01 10:00:00' WHERE ID = 1 AND LOCKED = FALSE
--
-- values: []
COMMIT
--
-- values: []
SET SEARCH_PATH TO public, "$user","public"
--
-- values: []
SHOW SEARCH_PATH
--
-- values: []
SELECT COUNT(*) FROM databasechangeloglock
--
-- values: []
CREATE TABLE REALM (ID VARCHAR(36) NOT NULL, NAME VARCHAR(255), ENABLED BOOLEAN DEFAULT FALSE NOT NULL, CONSTRAINT CONSTRAINT_4A PRIMARY KEY (ID))
--
-- values: ["1", "master"]
insert into REALM (NAME,ID) values ($2,$1)
--
-- values: [true, "1"]
update REALM set ENABLED=$1 where ID=$2
