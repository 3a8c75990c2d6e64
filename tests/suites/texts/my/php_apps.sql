phpBB, Joomla, Nextcloud, Matomo, Moodle, PrestaShop and GLPI: what each sends that the others do not.
-- session
SET NAMES 'utf8'
--
SELECT VERSION() AS version
--
SELECT @@session.sql_mode AS sql_mode
--
SET SESSION sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION,STRICT_ALL_TABLES'
--
CREATE TABLE phpbb_sessions (session_id char(32) NOT NULL, session_user_id int unsigned NOT NULL DEFAULT 0, session_time int unsigned NOT NULL DEFAULT 0, session_page varchar(255) NOT NULL DEFAULT '', PRIMARY KEY (session_id), KEY session_time (session_time))
--
CREATE TABLE phpbb_posts (post_id int unsigned NOT NULL auto_increment, topic_id int unsigned NOT NULL, post_text mediumtext NOT NULL, PRIMARY KEY (post_id))
--
INSERT INTO phpbb_posts (topic_id, post_text) VALUES (1, 'a'), (1, 'b'), (1, 'c')
--
SELECT SQL_CALC_FOUND_ROWS post_id FROM phpbb_posts WHERE topic_id = 1 ORDER BY post_id LIMIT 0, 2
--
SELECT FOUND_ROWS() as total_results
--
INSERT INTO phpbb_sessions  (session_id, session_user_id, session_time, session_page) VALUES ('abc', 2, 1700000000, 'index.php')
--
UPDATE phpbb_sessions SET session_time = 1700000060, session_page = 'viewtopic.php?t=1' WHERE session_id = 'abc'
--
DELETE FROM phpbb_sessions WHERE session_time < 1600000000
-- session
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'
--
SET @@SESSION.sql_mode = ''
--
SET @@SESSION.sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'
--
CREATE TABLE jos_assets (id int unsigned NOT NULL AUTO_INCREMENT, parent_id int NOT NULL DEFAULT 0, lft int NOT NULL DEFAULT 0, rgt int NOT NULL DEFAULT 0, name varchar(50) NOT NULL, PRIMARY KEY (id), UNIQUE KEY idx_asset_name (name))
--
INSERT INTO jos_assets (parent_id, lft, rgt, name) VALUES (0, 0, 3, 'root.1'), (1, 1, 2, 'com_a')
--
-- pins: session_lock
LOCK TABLES `jos_assets` WRITE
--
-- pins: session_lock
UPDATE jos_assets SET rgt = rgt + 2 WHERE rgt > 2
--
-- pins: session_lock
INSERT INTO jos_assets (parent_id, lft, rgt, name) VALUES (1, 3, 4, 'com_b')
--
UNLOCK TABLES
--
SHOW FULL COLUMNS FROM `jos_assets`
--
SELECT node.id, COUNT(parent.id) - 1 AS depth FROM jos_assets AS node, jos_assets AS parent WHERE node.lft BETWEEN parent.lft AND parent.rgt GROUP BY node.id ORDER BY node.id
-- session
SET NAMES utf8mb4
--
SET SESSION AUTOCOMMIT=1
--
SET TRANSACTION_ISOLATION = 'READ-COMMITTED'
--
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SHOW VARIABLES LIKE 'innodb_file_per_table'
--
CREATE TABLE oc_filecache (fileid BIGINT AUTO_INCREMENT NOT NULL, storage BIGINT DEFAULT 0 NOT NULL, path VARCHAR(4000) DEFAULT NULL, path_hash VARCHAR(32) DEFAULT '' NOT NULL, size BIGINT DEFAULT 0 NOT NULL, PRIMARY KEY(fileid), UNIQUE INDEX fs_storage_path_hash (storage, path_hash))
--
CREATE TABLE oc_file_locks (id BIGINT UNSIGNED AUTO_INCREMENT NOT NULL, `lock` INT DEFAULT 0 NOT NULL, `key` VARCHAR(64) NOT NULL, ttl INT DEFAULT -1 NOT NULL, PRIMARY KEY(id), UNIQUE INDEX lock_key_index (`key`))
--
INSERT IGNORE INTO `oc_file_locks` (`key`,`lock`,`ttl`) SELECT 'files/1','1','1700000000' FROM `oc_file_locks` WHERE `key` = 'files/1' HAVING COUNT(*) = 0
--
UPDATE `oc_file_locks` SET `lock` = `lock` + 1, `ttl` = '1700000000' WHERE (`key` = 'files/1') AND (`lock` >= 0)
--
INSERT INTO `oc_filecache` (`storage`,`path`,`path_hash`,`size`) VALUES ('1', 'files', 'abc', '0') 
--
SELECT LAST_INSERT_ID()
--
UPDATE `oc_filecache` SET `size` = GREATEST(`size`, '100') WHERE (`fileid` = '1') AND (`size` <> '100')
-- session
SET NAMES 'utf8mb4'
--
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'
--
SET SESSION group_concat_max_len = 4294967295
--
CREATE TABLE log_visit (idvisit bigint unsigned NOT NULL AUTO_INCREMENT, idsite int unsigned NOT NULL, visit_last_action_time datetime NOT NULL, visit_total_actions int unsigned NOT NULL DEFAULT 0, config_id binary(8) NOT NULL, PRIMARY KEY (idvisit))
--
CREATE TABLE archive_sequence (name varchar(120) NOT NULL, value bigint unsigned NOT NULL, PRIMARY KEY (name))
--
INSERT INTO archive_sequence (name, value) VALUES ('archive_numeric_2024_01', 0)
--
UPDATE `archive_sequence` SET value=LAST_INSERT_ID(value + 1) WHERE name = 'archive_numeric_2024_01'
--
SELECT LAST_INSERT_ID()
--
INSERT INTO log_visit (idsite, visit_last_action_time, config_id) VALUES (1, '2024-01-01 00:00:00', x'0102030405060708')
--
SELECT /* trigger = CronArchive */ count(distinct log_visit.idvisit) AS `1`, sum(log_visit.visit_total_actions) AS `2` FROM log_visit AS log_visit WHERE log_visit.visit_last_action_time >= '2024-01-01 00:00:00' AND log_visit.visit_last_action_time <= '2024-01-01 23:59:59' AND log_visit.idsite IN ('1')
--
-- pins: session_lock
SELECT GET_LOCK('matomo.archive', 2)
--
DO RELEASE_LOCK('matomo.archive')
--
-- pins: temporary_table
CREATE TEMPORARY TABLE logtmpsegment123 (idvisit BIGINT UNSIGNED NOT NULL, PRIMARY KEY (`idvisit`))
--
DROP TEMPORARY TABLE logtmpsegment123
--
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
