Ruby on Rails by mysql2 and trilogy: the settings in one SET, migrations under a named lock, Solid Queue, and what Active Record asks of the
schema.
-- session
SET @@SESSION.sql_mode = CONCAT(@@sql_mode, ',STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO'), @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483
--
SET  @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483, @@SESSION.sql_mode = 'STRICT_ALL_TABLES'
--
SET NAMES utf8mb4 COLLATE utf8mb4_unicode_ci,  @@SESSION.sql_mode = 'STRICT_ALL_TABLES', @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483
--
SELECT VERSION()
--
SELECT DATABASE()
--
-- pins: session_lock
SELECT GET_LOCK('3412345678901234567', 0)
--
-- pins: session_lock
SELECT table_name FROM (SELECT table_name, table_type FROM information_schema.tables WHERE table_schema = database()) _subquery WHERE _subquery.table_name = 'schema_migrations' AND _subquery.table_type = 'BASE TABLE'
--
-- pins: session_lock
CREATE TABLE `schema_migrations` (`version` varchar(255) NOT NULL PRIMARY KEY)
--
-- pins: session_lock
CREATE TABLE `ar_internal_metadata` (`key` varchar(255) NOT NULL PRIMARY KEY, `value` varchar(255), `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL)
--
-- pins: session_lock
SELECT `schema_migrations`.`version` FROM `schema_migrations` ORDER BY `schema_migrations`.`version` ASC
--
-- pins: session_lock
CREATE TABLE `articles` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `title` varchar(255), `views` int DEFAULT 0 NOT NULL, `lock_version` int DEFAULT 0, `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL)
--
-- pins: session_lock
CREATE TABLE `comments` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `article_id` bigint NOT NULL, `body` text, CONSTRAINT `fk_rails_3bf61a60d3` FOREIGN KEY (`article_id`) REFERENCES `articles` (`id`))
--
-- pins: session_lock
CREATE UNIQUE INDEX `index_articles_on_title` ON `articles` (`title`)
--
BEGIN
--
INSERT INTO `schema_migrations` (`version`) VALUES ('20240101000000')
--
-- pins: session_lock
COMMIT
--
SELECT RELEASE_LOCK('3412345678901234567')
--
CREATE TABLE `solid_queue_ready_executions` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `job_id` bigint NOT NULL, `queue_name` varchar(255) NOT NULL, `priority` int DEFAULT 0 NOT NULL)
--
CREATE TABLE `solid_queue_claimed_executions` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `job_id` bigint NOT NULL, `process_id` bigint, UNIQUE (`job_id`))
-- session
SET NAMES utf8mb4,  @@SESSION.sql_mode = CONCAT(CONCAT(@@sql_mode, ',STRICT_ALL_TABLES'), ',NO_AUTO_VALUE_ON_ZERO'),  @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483
--
SHOW FULL FIELDS FROM `articles`
--
SHOW KEYS FROM `articles`
--
SHOW VARIABLES LIKE 'sql_mode'
--
SHOW CREATE TABLE `comments`
--
SELECT fk.referenced_table_name AS 'to_table', fk.referenced_column_name AS 'primary_key', fk.column_name AS 'column', fk.constraint_name AS 'name', fk.ordinal_position AS 'position', rc.update_rule AS 'on_update', rc.delete_rule AS 'on_delete' FROM information_schema.referential_constraints rc JOIN information_schema.key_column_usage fk USING (constraint_schema, constraint_name) WHERE fk.referenced_column_name IS NOT NULL AND fk.table_schema = database() AND fk.table_name = 'comments' AND rc.constraint_schema = database() AND rc.table_name = 'comments'
--
SELECT column_name FROM information_schema.statistics WHERE index_name = 'PRIMARY' AND table_schema = database() AND table_name = 'articles' ORDER BY seq_in_index
--
SELECT TABLE_COMMENT FROM information_schema.tables WHERE table_schema = database() AND table_name = 'articles'
--
BEGIN
--
INSERT INTO `articles` (`title`, `views`, `lock_version`, `created_at`, `updated_at`) VALUES ('Hello', 0, 0, '2024-01-01 00:00:00', '2024-01-01 00:00:00')
--
INSERT INTO `comments` (`article_id`, `body`) VALUES (1, 'first')
--
COMMIT
--
SELECT `articles`.* FROM `articles` WHERE `articles`.`id` = 1 LIMIT 1
--
UPDATE `articles` SET `articles`.`views` = 1, `articles`.`lock_version` = 1 WHERE `articles`.`id` = 1 AND `articles`.`lock_version` = 0
--
UPDATE `articles` SET `views` = COALESCE(`views`, 0) + 1 WHERE `articles`.`id` = 1
--
INSERT INTO `articles` (`title`,`created_at`,`updated_at`) VALUES ('Hello', '2024-01-01 00:00:00', '2024-01-01 00:00:00') AS `articles_values` ON DUPLICATE KEY UPDATE `articles`.`updated_at`=(CASE WHEN (`articles`.`title`<=>`articles_values`.`title`) THEN `articles`.`updated_at` ELSE CURRENT_TIMESTAMP(6) END)
--
BEGIN
--
SELECT `solid_queue_ready_executions`.`job_id` FROM `solid_queue_ready_executions` ORDER BY `priority` ASC, `job_id` ASC LIMIT 3 FOR UPDATE SKIP LOCKED
--
SAVEPOINT active_record_1
--
INSERT INTO `solid_queue_claimed_executions` (`job_id`, `process_id`) VALUES (1, 1)
--
RELEASE SAVEPOINT active_record_1
--
COMMIT
--
SELECT 1 AS one FROM `articles` WHERE `articles`.`title` = 'Hello' LIMIT 1
--
DELETE FROM `articles` WHERE `articles`.`id` = 1
--
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
-- pins: setting
SET TRANSACTION ISOLATION LEVEL SERIALIZABLE
--
BEGIN
--
SELECT COUNT(*) FROM `articles`
--
ROLLBACK
--
EXPLAIN SELECT `articles`.* FROM `articles`
--
SELECT 1
