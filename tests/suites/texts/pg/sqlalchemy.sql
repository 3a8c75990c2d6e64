SQLAlchemy (psycopg and asyncpg), Alembic, Airflow, Superset: start, reflection, requests, the scheduler's locks.
-- session
select pg_catalog.version()
--
select current_schema()
--
show standard_conforming_strings
--
SHOW TRANSACTION ISOLATION LEVEL
--
BEGIN
--
SELECT t.typname AS name, t.oid AS oid, t.typarray AS array_oid, t.oid::regtype::text AS regtype, t.typdelim AS delimiter
FROM pg_type t
WHERE t.oid = to_regtype('hstore')
ORDER BY t.oid
--
ROLLBACK
--
BEGIN
--
SELECT pg_catalog.pg_class.relname FROM pg_catalog.pg_class JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace WHERE pg_catalog.pg_class.relname = 'alembic_version' AND pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog'
--
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
--
CREATE TYPE colour AS ENUM ('red', 'green')
--
CREATE TABLE item (
    id SERIAL NOT NULL,
    name VARCHAR(50),
    colour colour,
    made TIMESTAMP WITH TIME ZONE DEFAULT now() NOT NULL,
    PRIMARY KEY (id)
)
--
CREATE UNIQUE INDEX ix_item_name ON item (name)
--
INSERT INTO alembic_version (version_num) VALUES ('1975ea83b712') RETURNING alembic_version.version_num
--
COMMIT
--
BEGIN
--
UPDATE alembic_version SET version_num='2975ea83b712' WHERE alembic_version.version_num = '1975ea83b712'
--
COMMIT
--
SELECT pg_catalog.pg_attribute.attname AS name, pg_catalog.format_type(pg_catalog.pg_attribute.atttypid, pg_catalog.pg_attribute.atttypmod) AS format_type, (SELECT pg_catalog.pg_get_expr(pg_catalog.pg_attrdef.adbin, pg_catalog.pg_attrdef.adrelid) AS pg_get_expr_1
FROM pg_catalog.pg_attrdef
WHERE pg_catalog.pg_attrdef.adrelid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attrdef.adnum = pg_catalog.pg_attribute.attnum AND pg_catalog.pg_attribute.atthasdef) AS "default", pg_catalog.pg_attribute.attnotnull AS not_null, pg_catalog.pg_class.relname AS table_name, pg_catalog.pg_description.description AS comment, pg_catalog.pg_attribute.attgenerated AS generated, (SELECT json_build_object('always', pg_catalog.pg_attribute.attidentity = 'a', 'start', pg_catalog.pg_sequence.seqstart, 'increment', pg_catalog.pg_sequence.seqincrement, 'minvalue', pg_catalog.pg_sequence.seqmin, 'maxvalue', pg_catalog.pg_sequence.seqmax, 'cache', pg_catalog.pg_sequence.seqcache, 'cycle', pg_catalog.pg_sequence.seqcycle) AS json_build_object_1
FROM pg_catalog.pg_sequence
WHERE pg_catalog.pg_attribute.attidentity != '' AND pg_catalog.pg_sequence.seqrelid = CAST(CAST(pg_catalog.pg_get_serial_sequence(CAST(CAST(pg_catalog.pg_attribute.attrelid AS REGCLASS) AS TEXT), pg_catalog.pg_attribute.attname) AS REGCLASS) AS OID)) AS identity_options
FROM pg_catalog.pg_class LEFT OUTER JOIN pg_catalog.pg_attribute ON pg_catalog.pg_class.oid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_attribute.attnum > 0 AND NOT pg_catalog.pg_attribute.attisdropped LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_attribute.attrelid AND pg_catalog.pg_description.objsubid = pg_catalog.pg_attribute.attnum JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_class.relnamespace
WHERE pg_catalog.pg_class.relkind = ANY (ARRAY['r', 'p', 'f', 'v', 'm']) AND pg_catalog.pg_table_is_visible(pg_catalog.pg_class.oid) AND pg_catalog.pg_namespace.nspname != 'pg_catalog' AND pg_catalog.pg_class.relname IN ('item') ORDER BY pg_catalog.pg_class.relname, pg_catalog.pg_attribute.attnum
--
SELECT attr.conrelid, array_agg(CAST(attr.attname AS TEXT) ORDER BY attr.ord) AS cols, attr.conname, min(attr.description) AS description
FROM (SELECT con.conrelid AS conrelid, con.conname AS conname, con.conindid AS conindid, con.description AS description, con.ord AS ord, pg_catalog.pg_attribute.attname AS attname
FROM pg_catalog.pg_attribute JOIN (SELECT pg_catalog.pg_constraint.conrelid AS conrelid, pg_catalog.pg_constraint.conname AS conname, pg_catalog.pg_constraint.conindid AS conindid, unnest(pg_catalog.pg_constraint.conkey) AS attnum, generate_subscripts(pg_catalog.pg_constraint.conkey, 1) AS ord, pg_catalog.pg_description.description AS description
FROM pg_catalog.pg_constraint LEFT OUTER JOIN pg_catalog.pg_description ON pg_catalog.pg_description.objoid = pg_catalog.pg_constraint.oid
WHERE pg_catalog.pg_constraint.contype = 'p' AND pg_catalog.pg_constraint.conrelid IN ('item'::regclass)) AS con ON pg_catalog.pg_attribute.attnum = con.attnum AND pg_catalog.pg_attribute.attrelid = con.conrelid) AS attr GROUP BY attr.conrelid, attr.conname ORDER BY attr.conrelid, attr.conname
--
SELECT pg_catalog.pg_type.typname AS name, pg_catalog.pg_type_is_visible(pg_catalog.pg_type.oid) AS visible, pg_catalog.pg_namespace.nspname AS schema, lbl_agg.labels AS labels
FROM pg_catalog.pg_type JOIN pg_catalog.pg_namespace ON pg_catalog.pg_namespace.oid = pg_catalog.pg_type.typnamespace LEFT OUTER JOIN (SELECT pg_catalog.pg_enum.enumtypid AS enumtypid, array_agg(CAST(pg_catalog.pg_enum.enumlabel AS TEXT) ORDER BY pg_catalog.pg_enum.enumsortorder) AS labels
FROM pg_catalog.pg_enum GROUP BY pg_catalog.pg_enum.enumtypid) AS lbl_agg ON pg_catalog.pg_type.oid = lbl_agg.enumtypid
WHERE pg_catalog.pg_type.typtype = 'e' ORDER BY pg_catalog.pg_namespace.nspname, pg_catalog.pg_type.typname
-- session
BEGIN
--
-- values: ["anvil", "red"]
INSERT INTO item (name, colour) VALUES ($1, $2::colour) RETURNING item.id
--
COMMIT
--
-- values: ["a%"]
SELECT item.id, item.name, item.colour FROM item WHERE item.name LIKE $1
--
BEGIN
--
INSERT INTO item (name) SELECT p0::VARCHAR FROM (VALUES ('x', 0), ('y', 1)) AS imp_sen(p0, sen_counter) ORDER BY sen_counter RETURNING item.id, item.id AS id__1
--
SAVEPOINT sa_savepoint_1
--
INSERT INTO item (name) VALUES ('x') RETURNING item.id
--
ROLLBACK TO SAVEPOINT sa_savepoint_1
--
COMMIT
--
INSERT INTO item (name) VALUES ('x') ON CONFLICT (name) DO UPDATE SET colour = excluded.colour WHERE item.colour IS DISTINCT FROM excluded.colour
--
BEGIN
--
-- values: []
SELECT id FROM item WHERE colour IS NULL ORDER BY id LIMIT 1 FOR UPDATE OF item SKIP LOCKED
--
COMMIT
--
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL SERIALIZABLE
--
BEGIN
--
SELECT count(*) FROM item
--
COMMIT
--
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SELECT pg_catalog.set_config('search_path', '"public"', false)
--
SET lock_timeout to '60s'
--
-- pins: session_lock
SELECT pg_try_advisory_lock(1, 2)
--
SELECT pg_advisory_unlock(1, 2)
--
BEGIN
--
SELECT pg_try_advisory_xact_lock(1)
--
COMMIT
--
BEGIN
--
DECLARE "c_7f0e8c_1" CURSOR WITHOUT HOLD FOR SELECT id FROM item ORDER BY id
--
FETCH FORWARD 50 FROM "c_7f0e8c_1"
--
ROLLBACK
--
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY
--
COPY (SELECT id, name FROM item ORDER BY id) TO STDOUT WITH (FORMAT csv, HEADER)
--
COMMIT
-- session
SELECT
    t.oid,
    t.typelem     AS elemtype,
    t.typtype     AS kind
FROM
    pg_catalog.pg_type AS t
WHERE
    t.oid = any('{23,25}'::oid[])
--
SET jit = off
--
SELECT set_config('jit', 'off', false)
--
SELECT pg_advisory_unlock_all();
CLOSE ALL;
UNLISTEN *;
RESET ALL;
--
SELECT 1
--
-- data: ["copied\tgreen\n", "copied too\t\\N\n"]
COPY "item"("name", "colour") FROM STDIN
--
SELECT name, colour FROM item WHERE name LIKE 'copied%' ORDER BY name
