Go's driver, GORM, golang-migrate, sqlx, Grafana and Gitea: their start, migrations under locks, upserts, and what GORM's migrator asks.
-- session
SET NAMES utf8mb4
--
SET NAMES utf8mb4 COLLATE utf8mb4_general_ci
--
SET time_zone = '+00:00'
--
SET sql_mode=(SELECT CONCAT(@@sql_mode,',PIPES_AS_CONCAT,NO_ENGINE_SUBSTITUTION')),time_zone='+00:00',NAMES utf8mb4
--
SET sql_mode=(SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT,NO_ENGINE_SUBSTITUTION')),time_zone='+00:00'
--
SELECT 'a' || 'b'
--
SET transaction_isolation = 'READ-COMMITTED'
--
SET tx_isolation = 'READ-COMMITTED'
--
SELECT @@max_allowed_packet
--
SELECT VERSION()
--
SELECT DATABASE()
--
-- pins: session_lock
-- values: ["1066231811"]
SELECT GET_LOCK(?, 10)
--
-- pins: session_lock
SHOW TABLES LIKE 'schema_migrations'
--
-- pins: session_lock
CREATE TABLE `schema_migrations` (version bigint not null primary key, dirty boolean not null)
--
-- pins: session_lock
SELECT version, dirty FROM `schema_migrations` LIMIT 1
--
START TRANSACTION
--
DELETE FROM `schema_migrations` LIMIT 1
--
-- values: [1, 0]
INSERT INTO `schema_migrations` (version, dirty) VALUES (?, ?)
--
-- pins: session_lock
COMMIT
--
-- values: ["1066231811"]
SELECT RELEASE_LOCK(?)
-- session
SET NAMES utf8mb4
--
SELECT SCHEMA_NAME from Information_schema.SCHEMATA where SCHEMA_NAME LIKE 'texts%' ORDER BY SCHEMA_NAME='texts' DESC,SCHEMA_NAME limit 1
--
-- values: ["texts", "users", "BASE TABLE"]
SELECT count(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ? AND table_type = ?
--
CREATE TABLE `users` (`id` bigint unsigned AUTO_INCREMENT,`created_at` datetime(3) NULL,`deleted_at` datetime(3) NULL,`name` varchar(191),PRIMARY KEY (`id`),INDEX `idx_users_deleted_at` (`deleted_at`),UNIQUE INDEX `idx_name` (`name`))
--
SELECT * FROM `users` LIMIT 1
--
SELECT column_name, column_default, is_nullable = 'YES', data_type, character_maximum_length, column_type, column_key, extra, column_comment, numeric_precision, numeric_scale , datetime_precision FROM information_schema.columns WHERE table_schema = 'texts' AND table_name = 'users' ORDER BY ORDINAL_POSITION
--
START TRANSACTION
--
-- values: ["2024-01-01 00:00:00.000", null, "ann"]
INSERT INTO `users` (`created_at`,`deleted_at`,`name`) VALUES (?,?,?)
--
SAVEPOINT sp0x1
--
ROLLBACK TO SAVEPOINT sp0x1
--
COMMIT
--
-- values: ["2024-01-01 00:00:00.000", null, "ann"]
INSERT INTO `users` (`created_at`,`deleted_at`,`name`) VALUES (?,?,?) ON DUPLICATE KEY UPDATE `name`=VALUES(`name`)
--
-- values: ["ann", 1]
SELECT * FROM `users` WHERE name = ? AND `users`.`deleted_at` IS NULL ORDER BY `users`.`id` LIMIT ?
--
-- values: ["2024-01-01 00:00:00.000", 1]
UPDATE `users` SET `deleted_at`=? WHERE `users`.`id` = ? AND `users`.`deleted_at` IS NULL
--
ALTER TABLE `users` ADD `email` longtext
--
START TRANSACTION READ ONLY
--
SELECT COUNT(*) FROM `users`
--
COMMIT
--
-- pins: setting
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
--
START TRANSACTION
--
SELECT COUNT(*) FROM `users`
--
COMMIT
-- session
SET NAMES utf8mb4
--
CREATE TABLE `migration_log` (`id` BIGINT(20) PRIMARY KEY AUTO_INCREMENT NOT NULL, `migration_id` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci NOT NULL, `success` TINYINT(1) NOT NULL)
--
-- pins: session_lock
SELECT GET_LOCK('grafana_migrations', 0)
--
-- pins: session_lock
INSERT INTO `migration_log` (`migration_id`,`success`) VALUES ('create user table',1)
--
SELECT RELEASE_LOCK('grafana_migrations')
--
CREATE TABLE `server_lock` (`id` BIGINT PRIMARY KEY AUTO_INCREMENT NOT NULL, `operation_uid` VARCHAR(100) NOT NULL, `version` BIGINT NOT NULL, `last_execution` BIGINT NOT NULL, UNIQUE (`operation_uid`))
--
UPDATE server_lock SET version = 2, last_execution = 1700000000 WHERE operation_uid = 'a' AND version = 1
--
SELECT `INDEX_NAME`, `NON_UNIQUE`, `COLUMN_NAME` FROM `INFORMATION_SCHEMA`.`STATISTICS` WHERE `TABLE_SCHEMA` = 'texts' AND `TABLE_NAME` = 'server_lock' ORDER BY `SEQ_IN_INDEX`
--
SELECT @@storage_engine
--
SHOW STATUS LIKE 'wsrep_cluster_size'
--
SHOW GLOBAL VARIABLES LIKE 'version%'
