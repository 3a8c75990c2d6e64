Drupal: the settings of its connections, its tables' names in braces replaced, semaphore, cache, key-value, a transaction with savepoints, and a
temporary table of a query.
-- session
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci
--
SET sql_mode = 'ANSI,TRADITIONAL'
--
SET SESSION transaction_isolation='READ-COMMITTED'
--
SELECT VERSION()
--
CREATE TABLE "semaphore" (
"name" VARCHAR(255) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT '' COMMENT 'Primary Key: Unique name.',
"value" VARCHAR(255) CHARACTER SET ascii COLLATE ascii_general_ci NOT NULL DEFAULT '' COMMENT 'A value for the semaphore.',
"expire" DOUBLE NOT NULL COMMENT 'A Unix timestamp with microseconds indicating when the semaphore should expire.',
PRIMARY KEY ("name"),
INDEX "value" ("value"),
INDEX "expire" ("expire")
) ENGINE = InnoDB DEFAULT CHARACTER SET utf8mb4 COMMENT 'Table for holding semaphores, locks, flags, etc. that…'
--
CREATE TABLE "node" ("nid" INT unsigned NOT NULL auto_increment, "vid" INT unsigned DEFAULT NULL, "type" VARCHAR(32) NOT NULL, "uuid" VARCHAR(128) CHARACTER SET ascii NOT NULL, PRIMARY KEY ("nid"), UNIQUE KEY "node_field__uuid__value" ("uuid"))
--
CREATE TABLE "cache_config" ("cid" VARCHAR(255) CHARACTER SET ascii COLLATE ascii_bin NOT NULL DEFAULT '', "data" LONGBLOB DEFAULT NULL, "expire" BIGINT NOT NULL DEFAULT 0, "created" DECIMAL(14, 3) NOT NULL DEFAULT 0, "serialized" SMALLINT NOT NULL DEFAULT 0, "tags" LONGTEXT NULL DEFAULT NULL, "checksum" VARCHAR(255) CHARACTER SET ascii NOT NULL, PRIMARY KEY ("cid"))
--
CREATE TABLE "sequences" ("value" INT unsigned NOT NULL auto_increment, PRIMARY KEY ("value"))
-- session
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci
--
SET sql_mode = 'ANSI,TRADITIONAL'
--
SELECT "expire", "value" FROM "semaphore" WHERE "name" = 'cron'
--
INSERT INTO "semaphore" ("name", "value", "expire") VALUES ('cron', '12345', 1700000000.5)
--
INSERT INTO "semaphore" ("name", "value", "expire") VALUES ('cron', '23456', 1700000000.5)
--
UPDATE "semaphore" SET "expire"=1700000010.5 WHERE ("name" = 'cron') AND ("value" = '12345')
--
DELETE FROM "semaphore" WHERE ("name" = 'cron') AND ("value" = '12345')
--
INSERT INTO "cache_config" ("cid", "created", "expire", "tags", "checksum", "data", "serialized") VALUES ('core.extension', '1700000000.123', '-1', '', '0', 'a:1:{s:1:"x";}', '1') ON DUPLICATE KEY UPDATE "cid" = VALUES("cid"), "data" = VALUES("data")
--
SELECT "cid", "data", "created", "expire", "serialized", "tags", "checksum" FROM "cache_config" WHERE "cid" IN ( 'core.extension', 'system.site' ) ORDER BY "cid"
--
START TRANSACTION
--
INSERT INTO "node" ("vid", "type", "uuid") VALUES (NULL, 'page', 'aa-1')
--
SAVEPOINT savepoint_1
--
UPDATE "node" SET "vid"=1 WHERE "nid" = 1
--
RELEASE SAVEPOINT savepoint_1
--
COMMIT
--
SELECT LAST_INSERT_ID()
--
INSERT INTO "sequences" () VALUES ()
--
DELETE FROM "sequences" WHERE "value" < 1
--
-- pins: temporary_table
CREATE TEMPORARY TABLE "db_temporary_0" Engine=MEMORY SELECT "nid" FROM "node"
--
-- pins: temporary_table
SELECT COUNT(*) FROM "db_temporary_0"
--
DROP TABLE "db_temporary_0"
--
SELECT 1 AS "expression" FROM information_schema.tables WHERE (table_schema = 'texts') AND (table_name = 'node') LIMIT 1 OFFSET 0
--
SHOW COLUMNS FROM "node" LIKE 'vid'
--
SHOW TABLES LIKE 'cache\_%'
--
TRUNCATE "cache_config"
--
SELECT "nid" FROM "node" LIMIT 1 OFFSET 0 FOR UPDATE
--
SET sql_mode = ''
--
SELECT 'a' || 'b'
