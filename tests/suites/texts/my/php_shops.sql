Moodle, PrestaShop and GLPI: what each sends that others do not.
-- session
SET NAMES utf8mb4
--
SHOW VARIABLES WHERE variable_name = 'sql_mode'
--
SET SESSION sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'
--
CREATE TABLE mdl_sessions (id BIGINT(10) NOT NULL auto_increment, sid VARCHAR(128) NOT NULL, userid BIGINT(10) NOT NULL, timemodified BIGINT(10) NOT NULL, CONSTRAINT PRIMARY KEY (id))
--
CREATE TABLE mdl_config (id BIGINT(10) NOT NULL auto_increment, name VARCHAR(255) NOT NULL DEFAULT '', value LONGTEXT NOT NULL, CONSTRAINT PRIMARY KEY (id), UNIQUE KEY (name))
--
-- pins: session_lock
SELECT GET_LOCK('texts-mdl_-session-1', 120)
--
-- pins: session_lock
UPDATE mdl_sessions SET timemodified = '1700000000' WHERE id = '1'
--
SELECT RELEASE_LOCK('texts-mdl_-session-1')
--
-- pins: session_lock
SELECT GET_LOCK('texts-mdl_-cron', 0) AS locked
--
SELECT RELEASE_LOCK('texts-mdl_-cron') AS unlocked
--
START TRANSACTION
--
INSERT INTO mdl_config (name, value) VALUES('version', '2024')
--
COMMIT
--
SELECT COUNT('x') FROM mdl_config WHERE name = 'version'
--
SHOW TABLES
--
SHOW INDEXES FROM mdl_config
--
SELECT column_name, data_type, character_maximum_length, numeric_precision, numeric_scale, is_nullable, column_type, column_default, column_key, extra FROM information_schema.columns WHERE table_name = 'mdl_config' AND table_schema = 'texts' ORDER BY ordinal_position
--
-- pins: temporary_table
CREATE TEMPORARY TABLE mdl_tmp_u (id BIGINT NOT NULL auto_increment, userid BIGINT, CONSTRAINT PRIMARY KEY (id)) CHARACTER SET utf8mb4
--
-- pins: temporary_table
INSERT INTO mdl_tmp_u (userid) SELECT userid FROM mdl_sessions
--
DROP TEMPORARY TABLE mdl_tmp_u
-- session
SET NAMES 'utf8mb4'
--
SET SESSION sql_mode = ''
--
SET @@session.sql_mode = ''
--
CREATE TABLE `ps_cart` (`id_cart` int(10) unsigned NOT NULL auto_increment, `id_customer` int(10) unsigned NOT NULL, PRIMARY KEY (`id_cart`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
--
CREATE TABLE `ps_connections` (`id_connections` int unsigned NOT NULL AUTO_INCREMENT, `id_guest` int unsigned NOT NULL, PRIMARY KEY (`id_connections`))
--
INSERT INTO `ps_cart` (`id_customer`) VALUES ('1')
--
SELECT SQL_NO_CACHE `id_cart` FROM `ps_cart` WHERE `id_cart` = 1 LIMIT 1
--
SET @i := 0
--
UPDATE `ps_cart` SET `id_customer` = (@i := @i + 1) ORDER BY `id_cart`
--
SELECT @i
--
SELECT SQL_CALC_FOUND_ROWS a.* FROM ps_cart a LIMIT 0, 50
--
SELECT FOUND_ROWS() AS `ps_cart`
--
SHOW TABLES LIKE 'ps_%'
-- session
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci';
--
SET SESSION sql_mode = 'STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ZERO_DATE,NO_ZERO_IN_DATE,ONLY_FULL_GROUP_BY,NO_AUTO_CREATE_USER'
--
SET SESSION time_zone = '+00:00'
--
CREATE TABLE `glpi_crontasks` (`id` int unsigned NOT NULL AUTO_INCREMENT, `itemtype` varchar(100) NOT NULL, `state` int NOT NULL DEFAULT 1, `lastrun` timestamp NULL DEFAULT NULL, PRIMARY KEY (`id`))
--
-- pins: session_lock
SELECT GET_LOCK('texts.glpicron.1', 0)
--
-- pins: session_lock
SELECT *, CONVERT(unix_timestamp(`lastrun`), UNSIGNED) AS `lastrun_ts` FROM `glpi_crontasks` WHERE `state` = '1' ORDER BY `lastrun` ASC
--
SELECT RELEASE_LOCK('texts.glpicron.1')
--
SELECT IS_FREE_LOCK('texts.glpicron.1')
--
SHOW FULL TABLES FROM `texts` WHERE `Table_type` = 'BASE TABLE'
--
SELECT * FROM `information_schema`.`columns` WHERE `table_schema` = 'texts' AND `table_name` = 'glpi_crontasks' AND `column_name` = 'state'
