Connector/J and MariaDB Connector/J at their start, and what Hibernate, Flyway, Liquibase, Spring and Keycloak send through them.
-- session
/* mysql-connector-j-9.1.0 (Revision: abc) */SELECT  @@session.auto_increment_increment AS auto_increment_increment, @@character_set_client AS character_set_client, @@character_set_connection AS character_set_connection, @@character_set_results AS character_set_results, @@character_set_server AS character_set_server, @@collation_server AS collation_server, @@collation_connection AS collation_connection, @@init_connect AS init_connect, @@interactive_timeout AS interactive_timeout, @@license AS license, @@lower_case_table_names AS lower_case_table_names, @@max_allowed_packet AS max_allowed_packet, @@net_write_timeout AS net_write_timeout, @@performance_schema AS performance_schema, @@sql_mode AS sql_mode, @@system_time_zone AS system_time_zone, @@time_zone AS time_zone, @@transaction_isolation AS transaction_isolation, @@wait_timeout AS wait_timeout
--
SET character_set_results = NULL
--
SET sql_mode='STRICT_TRANS_TABLES'
--
SET autocommit=1
--
SELECT @@session.transaction_read_only
--
SELECT @@session.tx_read_only
--
set session transaction read only
--
select @@session.tx_isolation
--
set session transaction read write
--
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SET SQL_SELECT_LIMIT=10
--
SELECT 1
--
SET SQL_SELECT_LIMIT=DEFAULT
--
/* ping */ SELECT 1
--
SHOW FULL TABLES FROM `texts` LIKE '%'
--
SHOW WARNINGS
-- session
-- only: mysql
set session_track_system_variables = CONCAT(@@global.session_track_system_variables,',transaction_isolation'),autocommit=1
--
-- only: mariadb
set session_track_system_variables = CONCAT(@@global.session_track_system_variables,',tx_isolation'),autocommit=1
--
set autocommit=1, session_track_schema=1
--
set autocommit=1, sql_mode = concat(@@sql_mode,',STRICT_TRANS_TABLES'), session_track_schema=1
--
SELECT @@max_allowed_packet, @@wait_timeout
--
SELECT @@max_allowed_packet,@@system_time_zone,@@time_zone,@@auto_increment_increment
--
SET NAMES utf8mb4
--
select 1
-- session
SET character_set_results = NULL
--
SELECT DATABASE()
--
SELECT @@version_comment LIKE '%x%'
--
SELECT VERSION()
--
SELECT @@GLOBAL.sql_require_primary_key
--
SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'texts' AND table_name = 'flyway_schema_history'
--
SELECT @@SESSION.foreign_key_checks, @@SESSION.sql_safe_updates
--
SELECT variable_name FROM performance_schema.user_variables_by_thread WHERE variable_value IS NOT NULL
--
-- pins: session_lock
SELECT GET_LOCK('Flyway-1899999999',10)
--
-- pins: session_lock
CREATE TABLE `texts`.`flyway_schema_history` (
    `installed_rank` INT NOT NULL,
    `version` VARCHAR(50),
    `description` VARCHAR(200) NOT NULL,
    `type` VARCHAR(20) NOT NULL,
    `script` VARCHAR(1000) NOT NULL,
    `checksum` INT,
    `installed_by` VARCHAR(100) NOT NULL,
    `installed_on` TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    `execution_time` INT NOT NULL,
    `success` BOOL NOT NULL,
    CONSTRAINT `flyway_schema_history_pk` PRIMARY KEY (`installed_rank`)
) ENGINE=InnoDB
--
-- pins: session_lock
CREATE INDEX `flyway_schema_history_s_idx` ON `texts`.`flyway_schema_history` (`success`)
--
-- pins: session_lock
-- values: [1, "1", "init", "SQL", "V1__init.sql", 12345, "app", 10, 1]
INSERT INTO `texts`.`flyway_schema_history` (`installed_rank`, `version`, `description`, `type`, `script`, `checksum`, `installed_by`, `execution_time`, `success`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
--
-- pins: session_lock
-- values: [0]
SELECT `installed_rank`,`version`,`description`,`type`,`script`,`checksum`,`installed_by`,`execution_time`,`success` FROM `texts`.`flyway_schema_history` WHERE `installed_rank` > ? ORDER BY `installed_rank`
--
SELECT RELEASE_LOCK('Flyway-1899999999')
--
SET foreign_key_checks=1, sql_safe_updates=0
-- session
SET autocommit=0
--
CREATE TABLE DATABASECHANGELOGLOCK (ID INT NOT NULL, `LOCKED` TINYINT NOT NULL, LOCKGRANTED datetime NULL, LOCKEDBY VARCHAR(255) NULL, CONSTRAINT PK_DATABASECHANGELOGLOCK PRIMARY KEY (ID))
--
DELETE FROM DATABASECHANGELOGLOCK
--
INSERT INTO DATABASECHANGELOGLOCK (ID, `LOCKED`) VALUES (1, 0)
--
COMMIT
--
SELECT `LOCKED` FROM DATABASECHANGELOGLOCK WHERE ID=1 FOR UPDATE
--
UPDATE DATABASECHANGELOGLOCK SET `LOCKED` = 1, LOCKEDBY = 'host (10.0.0.1)', LOCKGRANTED = '2024-01-01 00:00:00' WHERE ID = 1 AND `LOCKED` = 0
--
COMMIT
--
SELECT MD5SUM FROM DATABASECHANGELOG WHERE MD5SUM IS NOT NULL LIMIT 1
--
CREATE TABLE DATABASECHANGELOG (ID VARCHAR(255) NOT NULL, AUTHOR VARCHAR(255) NOT NULL, FILENAME VARCHAR(255) NOT NULL, DATEEXECUTED datetime NOT NULL, ORDEREXECUTED INT NOT NULL, EXECTYPE VARCHAR(10) NOT NULL, MD5SUM VARCHAR(35) NULL)
--
SELECT MAX(ORDEREXECUTED) FROM DATABASECHANGELOG
--
UPDATE DATABASECHANGELOGLOCK SET `LOCKED` = 0, LOCKEDBY = NULL, LOCKGRANTED = NULL WHERE ID = 1
--
COMMIT
--
SET autocommit=1
-- session
SET autocommit=0
--
create table hibernate_sequence (next_val bigint) engine=InnoDB
--
insert into hibernate_sequence values ( 1 )
--
select next_val as id_val from hibernate_sequence for update
--
-- name: s1
-- values: [51, 1]
update hibernate_sequence set next_val= ? where next_val=?
--
commit
--
CREATE TABLE USER_ENTITY (ID VARCHAR(36) NOT NULL, EMAIL VARCHAR(255), REALM_ID VARCHAR(255), USERNAME VARCHAR(255), PRIMARY KEY (ID))
--
-- name: s2
-- values: ["a-1", "ann@example.org", "master", "ann"]
insert into USER_ENTITY (ID, EMAIL, REALM_ID, USERNAME) values (?, ?, ?, ?)
--
-- name: s3
-- values: ["ann", "master"]
select ue1_0.ID,ue1_0.EMAIL from USER_ENTITY ue1_0 where ue1_0.USERNAME=? and ue1_0.REALM_ID=?
--
-- name: s3
-- values: ["bob", "master"]
select ue1_0.ID,ue1_0.EMAIL from USER_ENTITY ue1_0 where ue1_0.USERNAME=? and ue1_0.REALM_ID=?
--
rollback
--
-- name: s3
-- values: ["ann", "master"]
select ue1_0.ID,ue1_0.EMAIL from USER_ENTITY ue1_0 where ue1_0.USERNAME=? and ue1_0.REALM_ID=?
--
commit
--
CREATE TABLE shedlock(name VARCHAR(64) NOT NULL, lock_until TIMESTAMP(3) NOT NULL, locked_at TIMESTAMP(3) NOT NULL, locked_by VARCHAR(255) NOT NULL, PRIMARY KEY (name))
--
INSERT IGNORE INTO shedlock(name, lock_until, locked_at, locked_by) VALUES('job', '2024-01-01 00:10:00', '2024-01-01 00:00:00', 'host')
--
UPDATE shedlock SET lock_until = TIMESTAMPADD(MICROSECOND, 600000000, UTC_TIMESTAMP(3)), locked_at = UTC_TIMESTAMP(3), locked_by = 'host' WHERE name = 'job' AND lock_until <= UTC_TIMESTAMP(3)
--
commit
--
set session transaction isolation level repeatable read
