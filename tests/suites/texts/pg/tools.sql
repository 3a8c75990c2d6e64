psql and its \d, pg_dump's beginning, pgAdmin, DBeaver, Metabase, Grafana, postgres_exporter, Zabbix's and Datadog's agents, Debezium's snapshot.
-- session
SELECT pg_catalog.set_config('search_path', '', false)
--
SELECT n.nspname as "Schema",
  c.relname as "Name",
  CASE c.relkind WHEN 'r' THEN 'table' WHEN 'v' THEN 'view' WHEN 'm' THEN 'materialized view' WHEN 'i' THEN 'index' WHEN 'S' THEN 'sequence' WHEN 't' THEN 'TOAST table' WHEN 'f' THEN 'foreign table' WHEN 'p' THEN 'partitioned table' WHEN 'I' THEN 'partitioned index' END as "Type",
  pg_catalog.pg_get_userbyid(c.relowner) as "Owner"
FROM pg_catalog.pg_class c
     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
     LEFT JOIN pg_catalog.pg_am am ON am.oid = c.relam
WHERE c.relkind IN ('r','p','v','m','S','f','')
      AND n.nspname <> 'pg_catalog'
      AND n.nspname !~ '^pg_toast'
      AND n.nspname <> 'information_schema'
  AND pg_catalog.pg_table_is_visible(c.oid)
ORDER BY 1,2;
--
RESET search_path
--
CREATE TABLE meters (id serial PRIMARY KEY, name varchar(40) NOT NULL, at timestamptz, value double precision CHECK (value > 0), ref int REFERENCES meters)
--
SELECT c.oid,
  n.nspname,
  c.relname
FROM pg_catalog.pg_class c
     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.~) '^(meters)$' COLLATE pg_catalog.default
  AND pg_catalog.pg_table_is_visible(c.oid)
ORDER BY 2, 3;
--
SELECT c.relchecks, c.relkind, c.relhasindex, c.relhasrules, c.relhastriggers, c.relrowsecurity, c.relforcerowsecurity, false AS relhasoids, c.relispartition, pg_catalog.array_to_string(c.reloptions || array(select 'toast.' || x from pg_catalog.unnest(tc.reloptions) x), ', ')
, c.reltablespace, CASE WHEN c.reloftype = 0 THEN '' ELSE c.reloftype::pg_catalog.regtype::pg_catalog.text END, c.relpersistence, c.relreplident, am.amname
FROM pg_catalog.pg_class c
 LEFT JOIN pg_catalog.pg_class tc ON (c.reltoastrelid = tc.oid)
LEFT JOIN pg_catalog.pg_am am ON (c.relam = am.oid)
WHERE c.oid = 'meters'::regclass;
--
SELECT a.attname,
  pg_catalog.format_type(a.atttypid, a.atttypmod),
  (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true)
   FROM pg_catalog.pg_attrdef d
   WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef),
  a.attnotnull,
  (SELECT c.collname FROM pg_catalog.pg_collation c, pg_catalog.pg_type t
   WHERE c.oid = a.attcollation AND t.oid = a.atttypid AND a.attcollation <> t.typcollation) AS attcollation,
  a.attidentity,
  a.attgenerated
FROM pg_catalog.pg_attribute a
WHERE a.attrelid = 'meters'::regclass AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attnum;
--
SELECT c2.relname, i.indisprimary, i.indisunique, i.indisclustered, i.indisvalid, pg_catalog.pg_get_indexdef(i.indexrelid, 0, true),
  pg_catalog.pg_get_constraintdef(con.oid, true), contype, condeferrable, condeferred, i.indisreplident, c2.reltablespace
FROM pg_catalog.pg_class c, pg_catalog.pg_class c2, pg_catalog.pg_index i
  LEFT JOIN pg_catalog.pg_constraint con ON (conrelid = i.indrelid AND conindid = i.indexrelid AND contype IN ('p','u','x'))
WHERE c.oid = 'meters'::regclass AND c.oid = i.indrelid AND i.indexrelid = c2.oid
ORDER BY i.indisprimary DESC, c2.relname;
--
SELECT conname, conrelid::pg_catalog.regclass AS ontable,
  pg_catalog.pg_get_constraintdef(oid, true) AS condef
 FROM pg_catalog.pg_constraint c
 WHERE confrelid IN (SELECT pg_catalog.pg_partition_ancestors('meters'::regclass)
                     UNION ALL VALUES ('meters'::regclass))
       AND contype = 'f' AND conparentid = 0
ORDER BY conname;
--
SELECT c.oid::pg_catalog.regclass
FROM pg_catalog.pg_class c, pg_catalog.pg_inherits i
WHERE c.oid = i.inhparent AND i.inhrelid = 'meters'::regclass
  AND c.relkind != 'p' AND c.relkind != 'I'
ORDER BY inhseqno;
--
SELECT n.nspname as "Schema",
  p.proname as "Name",
  pg_catalog.pg_get_function_result(p.oid) as "Result data type",
  pg_catalog.pg_get_function_arguments(p.oid) as "Argument data types",
 CASE p.prokind
  WHEN 'a' THEN 'agg'
  WHEN 'w' THEN 'window'
  WHEN 'p' THEN 'proc'
  ELSE 'func'
 END as "Type"
FROM pg_catalog.pg_proc p
     LEFT JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE pg_catalog.pg_function_is_visible(p.oid)
      AND n.nspname = 'public' AND p.proname = 'similarity'
ORDER BY 1, 2, 4;
--
SELECT d.datname as "Name",
       pg_catalog.pg_get_userbyid(d.datdba) as "Owner",
       pg_catalog.pg_encoding_to_char(d.encoding) as "Encoding",
       pg_catalog.array_to_string(d.datacl, E'\n') AS "Access privileges"
FROM pg_catalog.pg_database d
WHERE d.datname = 'texts'
ORDER BY 1;
-- session
SET DATESTYLE = ISO
--
SET INTERVALSTYLE = POSTGRES
--
SET extra_float_digits TO 3
--
SET synchronize_seqscans TO off
--
SET statement_timeout = 0
--
SET lock_timeout = 0
--
SET idle_in_transaction_session_timeout = 0
--
SET row_security = off
--
BEGIN
--
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY
--
LOCK TABLE public.meters IN ACCESS SHARE MODE
--
SELECT pg_catalog.pg_is_in_recovery()
--
SELECT label, provider, classoid, objoid, objsubid FROM pg_catalog.pg_seclabels WHERE classoid = 0 ORDER BY classoid, objoid, objsubid
--
PREPARE getColumnACLs(pg_catalog.oid) AS
SELECT at.attname, at.attacl, '{}' AS acldefault, pip.privtype, pip.initprivs FROM pg_catalog.pg_attribute at LEFT JOIN pg_catalog.pg_init_privs pip ON (at.attrelid = pip.objoid AND pip.classoid = 'pg_catalog.pg_class'::pg_catalog.regclass AND at.attnum = pip.objsubid) WHERE at.attrelid = $1 AND NOT at.attisdropped AND (at.attacl IS NOT NULL OR pip.initprivs IS NOT NULL) ORDER BY at.attnum
--
EXECUTE getColumnACLs('0')
--
COPY public.meters (id, name, at, value, ref) TO stdout;
--
SELECT last_value, is_called FROM public.meters_id_seq
--
-- pins: sql_prepare
COMMIT
--
DEALLOCATE getColumnACLs
-- session
SELECT
    db.oid as did, db.datname, db.datallowconn,
    pg_encoding_to_char(db.encoding) AS serverencoding,
    has_database_privilege(db.oid, 'CREATE') as cancreate,
    db.datistemplate
FROM pg_catalog.pg_database db
WHERE db.datname = current_database()
--
SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser, CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role FROM pg_catalog.pg_roles as roles WHERE rolname = current_user
--
SELECT set_config('bytea_output','hex',false) FROM pg_show_all_settings() WHERE name = 'bytea_output'
--
SET client_encoding='utf-8'; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) FROM pg_settings WHERE name = 'bytea_output'; SET DateStyle=ISO;
--
SELECT n.oid, n.nspname FROM pg_catalog.pg_namespace n WHERE n.nspname = 'public' ORDER BY nspname
--
SELECT rel.relname, (SELECT count(*) FROM pg_trigger WHERE tgrelid=rel.oid AND tgisinternal = FALSE) AS triggercount, (CASE WHEN rel.relkind = 'p' THEN true ELSE false END) AS is_partitioned FROM pg_class rel WHERE rel.relkind IN ('r','s','t','p') AND rel.relnamespace = 'public'::regnamespace ORDER BY rel.relname
--
SELECT 'session_stats' AS chart_name, pg_catalog.row_to_json(t) IS NOT NULL AS chart_data FROM (SELECT (SELECT count(*) FROM pg_catalog.pg_stat_activity WHERE datname = 'nothing') AS "Total") t
--
BEGIN; SELECT 1; ROLLBACK
--
SHOW search_path
--
SELECT current_schema(), session_user
--
SET application_name = 'DBeaver 24 - Main'
--
SELECT typcategory FROM pg_catalog.pg_type WHERE 1<>1 LIMIT 1
--
SELECT c.relname, a.* FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid) WHERE c.oid='meters'::regclass AND a.attnum = 1
--
SELECT * FROM pg_prepared_statements
-- session
-- values: []
SET SESSION TIMEZONE TO 'UTC'
--
-- values: []
-- Metabase
SELECT "source"."at" AS "at", COUNT(*) AS "count" FROM (SELECT DATE_TRUNC('month', "public"."meters"."at") AS "at" FROM "public"."meters") AS "source" GROUP BY "source"."at" ORDER BY "source"."at" ASC
--
-- values: []
with table_privileges as (select NULL as role, t.schemaname as schema, t.objectname as table, pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update from (select schemaname, tablename as objectname from pg_catalog.pg_tables) t where t.schemaname = 'public') select * from table_privileges order by 3
--
SELECT floor(extract(epoch from "at")/60)*60 AS "time", avg("value") AS "value" FROM meters WHERE "at" BETWEEN '2024-01-01T00:00:00Z' AND '2024-01-01T01:00:00Z' GROUP BY 1 ORDER BY 1
--
SELECT pg_database.datname FROM pg_database WHERE pg_database.datallowconn AND datname = 'texts'
--
SELECT datname, numbackends >= 0, xact_commit >= 0, blks_hit >= 0, stats_reset IS NULL FROM pg_stat_database WHERE datname = 'texts'
--
SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE extract(epoch from now() - now()) END
--
SELECT pg_size_pretty(pg_relation_size('meters')), pg_total_relation_size('meters')
--
SELECT json_object_agg(state, 0) FROM (SELECT DISTINCT state FROM pg_stat_activity WHERE state = 'nothing') t
--
SELECT name, setting FROM pg_settings WHERE name IN ('max_connections', 'wal_level') ORDER BY 1
--
EXPLAIN (FORMAT JSON, COSTS OFF) SELECT 1
--
BEGIN
--
SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY, DEFERRABLE
--
SELECT count(*) FROM public.meters
--
ROLLBACK
--
VACUUM (ANALYZE) meters
--
ANALYZE meters
--
REINDEX TABLE meters
--
CLUSTER meters USING meters_pkey
--
REFRESH MATERIALIZED VIEW nothing
-- session
-- pins: sql_prepare
PREPARE by_id(int) AS SELECT $1 + 1 AS n
--
-- pins: sql_prepare
EXECUTE by_id(2)
--
-- pins: sql_prepare
BEGIN
--
EXECUTE by_id(3)
--
DEALLOCATE by_id
--
ROLLBACK
--
EXECUTE by_id(4)
--
PREPARE by_id AS SELECT 1; EXECUTE by_id; DEALLOCATE by_id
--
SELECT name, statement, from_sql FROM pg_prepared_statements ORDER BY name
