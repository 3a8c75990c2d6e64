Django by mysqlclient and PyMySQL: the settings at the start, introspection, migrations, transactions with savepoints, and what its tests do.
-- session
SET NAMES utf8mb4
--
SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null, @@lower_case_table_names, CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL
--
SET SQL_AUTO_IS_NULL = 0
--
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SET autocommit=0
--
SET autocommit=1
--
SHOW FULL TABLES
--
SELECT table_name, table_type, table_comment FROM information_schema.tables WHERE table_schema = DATABASE()
--
CREATE TABLE `django_migrations` (`id` bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, `app` varchar(255) NOT NULL, `name` varchar(255) NOT NULL, `applied` datetime(6) NOT NULL)
--
CREATE TABLE `auth_user` (`id` integer AUTO_INCREMENT NOT NULL PRIMARY KEY, `password` varchar(128) NOT NULL, `last_login` datetime(6) NULL, `is_superuser` bool NOT NULL, `username` varchar(150) NOT NULL UNIQUE, `date_joined` datetime(6) NOT NULL)
--
CREATE TABLE `django_session` (`session_key` varchar(40) NOT NULL PRIMARY KEY, `session_data` longtext NOT NULL, `expire_date` datetime(6) NOT NULL)
--
CREATE INDEX `django_session_expire_date_a5c62663` ON `django_session` (`expire_date`)
--
CREATE TABLE `shop_item` (`id` bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, `owner_id` integer NOT NULL, `data` json NOT NULL, `n` integer NOT NULL)
--
ALTER TABLE `shop_item` ADD CONSTRAINT `shop_item_owner_id_fk` FOREIGN KEY (`owner_id`) REFERENCES `auth_user` (`id`)
--
SELECT `django_migrations`.`id`, `django_migrations`.`app`, `django_migrations`.`name`, `django_migrations`.`applied` FROM `django_migrations`
--
INSERT INTO `django_migrations` (`app`, `name`, `applied`) VALUES ('auth', '0001_initial', '2024-01-01 00:00:00.000000')
-- session
SET NAMES utf8mb4
--
SET SQL_AUTO_IS_NULL = 0
--
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SET autocommit=0
--
SET autocommit=1
--
INSERT INTO `auth_user` (`password`, `last_login`, `is_superuser`, `username`, `date_joined`) VALUES ('pbkdf2_sha256$1$x', NULL, 0, 'ann', '2024-01-01 00:00:00')
--
-- only: mariadb
INSERT INTO `shop_item` (`owner_id`, `data`, `n`) VALUES (1, '{"a": 1}', 1) RETURNING `shop_item`.`id`
--
-- only: mysql
INSERT INTO `shop_item` (`owner_id`, `data`, `n`) VALUES (1, '{"a": 1}', 1)
--
SET autocommit=0
--
SELECT `auth_user`.`id` FROM `auth_user` WHERE `auth_user`.`username` = 'ann' LIMIT 21 FOR UPDATE
--
SAVEPOINT `s140_x1`
--
INSERT INTO `auth_user` (`password`, `last_login`, `is_superuser`, `username`, `date_joined`) VALUES ('x', NULL, 0, 'ann', '2024-01-01 00:00:00')
--
ROLLBACK TO SAVEPOINT `s140_x1`
--
UPDATE `auth_user` SET `last_login` = '2024-01-02 00:00:00' WHERE `auth_user`.`id` = 1
--
COMMIT
--
SET autocommit=1
--
SELECT `shop_item`.`id`, JSON_EXTRACT(`shop_item`.`data`, '$.a') AS `a` FROM `shop_item` WHERE JSON_EXTRACT(`shop_item`.`data`, '$.a') = JSON_EXTRACT('1', '$')
--
SELECT (1) AS `a` FROM `auth_user` WHERE `auth_user`.`username` = 'ann' LIMIT 1
--
SELECT COUNT(*) AS `__count` FROM `shop_item`
--
INSERT IGNORE INTO `auth_user` (`id`, `password`, `last_login`, `is_superuser`, `username`, `date_joined`) VALUES (1, 'x', NULL, 0, 'ann', '2024-01-01 00:00:00')
--
SHOW WARNINGS
--
SELECT kc.`constraint_name`, kc.`column_name`, kc.`referenced_table_name`, kc.`referenced_column_name`, c.`constraint_type` FROM information_schema.key_column_usage AS kc, information_schema.table_constraints AS c WHERE kc.table_schema = DATABASE() AND c.table_schema = kc.table_schema AND c.constraint_name = kc.constraint_name AND c.constraint_type != 'CHECK' AND kc.table_name = 'shop_item' ORDER BY kc.`ordinal_position`
--
SHOW INDEX FROM `shop_item`
--
SELECT column_name, data_type, character_maximum_length, numeric_precision, numeric_scale, extra, column_default, collation_name, CASE WHEN column_type LIKE '%% unsigned' THEN 1 ELSE 0 END AS is_unsigned, column_comment FROM information_schema.columns WHERE table_name = 'auth_user' AND table_schema = DATABASE()
--
SET foreign_key_checks=0
--
DELETE FROM `shop_item`
--
TRUNCATE `shop_item`
--
SET foreign_key_checks=1
--
-- values: ["shop.import", 10]
-- pins: session_lock
SELECT GET_LOCK(?, ?)
--
SELECT RELEASE_ALL_LOCKS()
--
SELECT DATABASE()
