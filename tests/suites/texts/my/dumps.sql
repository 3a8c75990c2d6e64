mysqldump, mariadb-dump and the text that they write, mydumper, Debezium's snapshot, gh-ost, pt-online-schema-change.
-- session
CREATE TABLE `t1` (`id` int NOT NULL AUTO_INCREMENT, `a` varchar(20) DEFAULT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4
--
INSERT INTO t1 (a) VALUES ('x'), ('y')
-- session
/*!40100 SET @@SQL_MODE='' */
--
/*!40103 SET TIME_ZONE='+00:00' */
--
SET SESSION NET_READ_TIMEOUT= 86400, SESSION NET_WRITE_TIMEOUT= 86400
--
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
--
START TRANSACTION /*!40100 WITH CONSISTENT SNAPSHOT */
--
SHOW VARIABLES LIKE 'gtid\_mode'
--
SELECT LOGFILE_GROUP_NAME, FILE_NAME, TOTAL_EXTENTS, INITIAL_SIZE, ENGINE, EXTRA FROM INFORMATION_SCHEMA.FILES WHERE FILE_TYPE = 'UNDO LOG' AND FILE_NAME IS NOT NULL AND LOGFILE_GROUP_NAME IS NOT NULL GROUP BY LOGFILE_GROUP_NAME, FILE_NAME, ENGINE, TOTAL_EXTENTS, INITIAL_SIZE, EXTRA ORDER BY LOGFILE_GROUP_NAME
--
SHOW VARIABLES LIKE 'ndbinfo\_version'
--
SHOW CREATE DATABASE IF NOT EXISTS `texts`
--
SAVEPOINT sp
--
show tables
--
show table status like 't1'
--
SET SQL_QUOTE_SHOW_CREATE=1
--
SET SESSION character_set_results = 'binary'
--
show create table `t1`
--
SET SESSION character_set_results = 'utf8mb4'
--
show fields from `t1`
--
SELECT /*!40001 SQL_NO_CACHE */ * FROM `t1`
--
SET SESSION character_set_results = 'binary'
--
use `texts`
--
select @@collation_database
--
SHOW TRIGGERS LIKE 't1'
--
SET SESSION character_set_results = 'utf8mb4'
--
ROLLBACK TO SAVEPOINT sp
--
RELEASE SAVEPOINT sp
--
ROLLBACK
-- session
/*!40101 SET @OLD_CHARACTER_SET_CLIENT=@@CHARACTER_SET_CLIENT */
--
/*!40101 SET @OLD_CHARACTER_SET_RESULTS=@@CHARACTER_SET_RESULTS */
--
/*!40101 SET @OLD_COLLATION_CONNECTION=@@COLLATION_CONNECTION */
--
/*!50503 SET NAMES utf8mb4 */
--
/*!40103 SET @OLD_TIME_ZONE=@@TIME_ZONE */
--
/*!40103 SET TIME_ZONE='+00:00' */
--
/*!40014 SET @OLD_UNIQUE_CHECKS=@@UNIQUE_CHECKS, UNIQUE_CHECKS=0 */
--
/*!40014 SET @OLD_FOREIGN_KEY_CHECKS=@@FOREIGN_KEY_CHECKS, FOREIGN_KEY_CHECKS=0 */
--
/*!40101 SET @OLD_SQL_MODE=@@SQL_MODE, SQL_MODE='NO_AUTO_VALUE_ON_ZERO' */
--
/*!40111 SET @OLD_SQL_NOTES=@@SQL_NOTES, SQL_NOTES=0 */
--
DROP TABLE IF EXISTS `t2`
--
/*!40101 SET @saved_cs_client     = @@character_set_client */
--
/*!50503 SET character_set_client = utf8mb4 */
--
CREATE TABLE `t2` (
  `id` int NOT NULL AUTO_INCREMENT,
  `a` varchar(20) DEFAULT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB AUTO_INCREMENT=3 DEFAULT CHARSET=utf8mb4
--
/*!40101 SET character_set_client = @saved_cs_client */
--
-- pins: session_lock
LOCK TABLES `t2` WRITE
--
-- pins: session_lock
/*!40000 ALTER TABLE `t2` DISABLE KEYS */
--
-- pins: session_lock
INSERT INTO `t2` VALUES (1,'x'),(2,'y')
--
-- pins: session_lock
/*!40000 ALTER TABLE `t2` ENABLE KEYS */
--
UNLOCK TABLES
--
/*!50003 SET @saved_cs_client      = @@character_set_client */
--
/*!50003 SET sql_mode              = 'STRICT_TRANS_TABLES' */
--
/*!50003 CREATE*/ /*!50003 TRIGGER `t2_bi` BEFORE INSERT ON `t2` FOR EACH ROW SET NEW.a = UPPER(NEW.a) */
--
/*!50003 SET sql_mode              = @saved_sql_mode */
--
/*!40103 SET TIME_ZONE=@OLD_TIME_ZONE */
--
/*!40101 SET SQL_MODE=@OLD_SQL_MODE */
--
/*!40014 SET FOREIGN_KEY_CHECKS=@OLD_FOREIGN_KEY_CHECKS */
--
/*!40014 SET UNIQUE_CHECKS=@OLD_UNIQUE_CHECKS */
--
/*!40101 SET CHARACTER_SET_CLIENT=@OLD_CHARACTER_SET_CLIENT */
--
/*!40101 SET CHARACTER_SET_RESULTS=@OLD_CHARACTER_SET_RESULTS */
--
/*!40101 SET COLLATION_CONNECTION=@OLD_COLLATION_CONNECTION */
--
/*!40111 SET SQL_NOTES=@OLD_SQL_NOTES */
-- session
SHOW VARIABLES LIKE 'log_bin'
--
SET SESSION lock_wait_timeout=10
--
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
--
-- pins: session_lock
FLUSH TABLES WITH READ LOCK
--
START TRANSACTION WITH CONSISTENT SNAPSHOT
--
SHOW FULL TABLES IN `texts` where Table_Type = 'BASE TABLE'
--
SHOW CREATE TABLE `texts`.`t1`
--
UNLOCK TABLES
--
SELECT * FROM `texts`.`t1`
--
COMMIT
-- session
SET autocommit=1, session wait_timeout=3600
--
select hex(@@version) <> '' and @@port > 0
--
show /* gh-ost */ grants for current_user()
--
select @@global.log_bin, @@global.binlog_format
--
show /* gh-ost */ table status from `texts` like 't1'
--
create /* gh-ost */ table `texts`.`_t1_ghc` (id bigint unsigned auto_increment, last_update timestamp not null DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, hint varchar(64) charset ascii not null, value varchar(4096) charset ascii not null, primary key(id), unique key hint_uidx(hint)) auto_increment=256 comment='gh-ost/x'
--
create /* gh-ost */ table `texts`.`_t1_gho` like `texts`.`t1`
--
alter /* gh-ost */ table `texts`.`_t1_gho` add column b int
--
insert /* gh-ost */ into `texts`.`_t1_ghc` (id, hint, value) values (NULLIF(0, 0), 'heartbeat', '2024') on duplicate key update last_update=NOW(), value=VALUES(value)
--
START TRANSACTION
--
SET SESSION time_zone = '+00:00', sql_mode = CONCAT(@@session.sql_mode, ',STRICT_ALL_TABLES')
--
insert /* gh-ost `texts`.`t1` */ ignore into `texts`.`_t1_gho` (`id`, `a`) (select `id`, `a` from `texts`.`t1` force index (`PRIMARY`) where (((`id` > 0)) and ((`id` < 2) or ((`id` = 2)))) lock in share mode)
--
COMMIT
--
-- pins: session_lock
select get_lock('gh-ost.123.lock', 0)
--
-- pins: session_lock
set session lock_wait_timeout:=6
--
-- pins: session_lock
create /* gh-ost */ table `texts`.`_t1_del` (id int auto_increment primary key) engine=InnoDB comment='ghost-cut-over-sentry'
--
-- pins: session_lock
lock /* gh-ost */ tables `texts`.`t1` write, `texts`.`_t1_del` write
--
-- pins: session_lock
drop /* gh-ost */ table if exists `texts`.`_t1_del`
--
-- pins: session_lock
unlock tables
--
-- pins: session_lock
rename /* gh-ost */ table `texts`.`t1` to `texts`.`_t1_del`, `texts`.`_t1_gho` to `texts`.`t1`
--
select release_lock('gh-ost.123.lock')
-- session
SHOW VARIABLES LIKE 'innodb\_lock_wait_timeout'
--
SET SESSION innodb_lock_wait_timeout=1
--
SHOW VARIABLES LIKE 'lock\_wait_timeout'
--
SET SESSION lock_wait_timeout=60
--
SHOW VARIABLES LIKE 'wait\_timeout'
--
SET SESSION wait_timeout=10000
--
SELECT @@SQL_MODE
--
SET @@SQL_QUOTE_SHOW_CREATE = 1/*!40101, @@SQL_MODE='NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES'*/
--
SELECT @@server_id > 0 /*!50038 , @@hostname <> ''*/
--
SHOW GLOBAL STATUS LIKE 'Threads_running'
--
EXPLAIN SELECT * FROM `texts`.`t2` WHERE 1=1
--
CREATE TRIGGER `pt_osc_texts_t2_del` AFTER DELETE ON `texts`.`t2` FOR EACH ROW DELETE IGNORE FROM `texts`.`_t2_new` WHERE `texts`.`_t2_new`.`id` <=> OLD.`id`
--
CREATE TABLE `texts`.`_t2_new` LIKE `texts`.`t2`
--
INSERT LOW_PRIORITY IGNORE INTO `texts`.`_t2_new` (`id`, `a`) SELECT `id`, `a` FROM `texts`.`t2` LOCK IN SHARE MODE /*pt-online-schema-change 1 copy table*/
--
SHOW WARNINGS
--
DELETE FROM t2 WHERE id = 1
--
RENAME TABLE `texts`.`t2` TO `texts`.`_t2_old`, `texts`.`_t2_new` TO `texts`.`t2`
--
DROP TABLE IF EXISTS `texts`.`_t2_old`
