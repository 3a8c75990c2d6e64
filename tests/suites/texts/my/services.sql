Zabbix, Kea, PowerDNS, FreeRADIUS, Postfix, Dovecot, phpMyAdmin, Adminer and the command line clients.
-- session
set names utf8mb4 collate utf8mb4_bin
--
show variables like 'sql_mode'
--
set @@session.sql_mode='STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO'
--
select @@version
--
create table ids (table_name varchar(64) default '' not null, field_name varchar(64) default '' not null, nextid bigint unsigned not null, primary key (table_name,field_name))
--
create table history_uint (itemid bigint unsigned not null, clock integer default '0' not null, value bigint unsigned default '0' not null, ns integer default '0' not null, primary key (itemid,clock,ns))
--
create table ha_node (ha_nodeid varchar(25) not null, name varchar(255) default '' not null, status integer default '0' not null, lastaccess integer default '0' not null, primary key (ha_nodeid))
--
insert into ids (table_name,field_name,nextid) values ('events','eventid',0)
--
begin;
--
select nextid from ids where table_name='events' and field_name='eventid'
--
update ids set nextid=nextid+10 where table_name='events' and field_name='eventid'
--
select nextid from ids where table_name='events' and field_name='eventid'
--
commit;
--
begin;
--
insert into history_uint (itemid,clock,ns,value) values (23287,1700000000,1,5),(23288,1700000000,2,6);
--
commit;
--
select unix_timestamp(), ha_nodeid,name,status from ha_node order by ha_nodeid for update
--
delete from history_uint where itemid=23287 and clock<1700000001 limit 5000
--
select clock,ns,value from history_uint where itemid=23288 and clock>1600000000 order by clock desc,ns desc limit 1
--
show variables like 'innodb_lock_wait_timeout'
-- session
SET SESSION sql_mode='STRICT_ALL_TABLES'
--
SET SESSION wait_timeout = 2147482, sql_mode='STRICT_ALL_TABLES'
--
CREATE TABLE lease4 (address INT UNSIGNED PRIMARY KEY NOT NULL, hwaddr VARBINARY(20), client_id VARBINARY(255), valid_lifetime INT UNSIGNED, expire TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, subnet_id INT UNSIGNED, hostname VARCHAR(255), state INT UNSIGNED DEFAULT 0)
--
CREATE TABLE audit (id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, address INT UNSIGNED)
--
CREATE TRIGGER lease4_ains AFTER INSERT ON lease4 FOR EACH ROW BEGIN IF @disable_audit IS NULL OR @disable_audit = 0 THEN INSERT INTO audit (address) VALUES (NEW.address); END IF; END
--
START TRANSACTION
--
-- name: insert_lease4
-- values: [167772161, "aabbcc", null, 3600, "2030-01-01 00:00:00", 1, "host", 0]
INSERT INTO lease4(address, hwaddr, client_id, valid_lifetime, expire, subnet_id, hostname, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
--
COMMIT
--
-- name: get_lease4
-- values: [167772161]
SELECT address, hwaddr, client_id, valid_lifetime, subnet_id, hostname, state FROM lease4 WHERE address = ?
--
-- name: get_lease4
-- values: [167772162]
SELECT address, hwaddr, client_id, valid_lifetime, subnet_id, hostname, state FROM lease4 WHERE address = ?
--
SET @disable_audit = 1
--
-- name: insert_lease4
-- values: [167772162, "aabbcd", null, 3600, "2030-01-01 00:00:00", 1, "host", 0]
INSERT INTO lease4(address, hwaddr, client_id, valid_lifetime, expire, subnet_id, hostname, state) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
--
SET @disable_audit = 0
--
SELECT * FROM audit
-- session
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
CREATE TABLE records (id BIGINT AUTO_INCREMENT, domain_id INT DEFAULT NULL, name VARCHAR(255) DEFAULT NULL, type VARCHAR(10) DEFAULT NULL, content VARCHAR(10000) DEFAULT NULL, ttl INT DEFAULT NULL, prio INT DEFAULT NULL, disabled TINYINT(1) DEFAULT 0, ordername VARCHAR(255) BINARY DEFAULT NULL, auth TINYINT(1) DEFAULT 1, PRIMARY KEY (id))
--
INSERT INTO records (domain_id, name, type, content, ttl, prio) VALUES (1, 'example.org', 'SOA', 'ns1 host 1', 3600, 0), (1, 'example.org', 'A', '192.0.2.1', 60, 0)
--
-- name: basic
-- values: ["A", "example.org"]
SELECT content,ttl,prio,type,domain_id,disabled+0,name,auth+0 FROM records WHERE disabled=0 and type=? and name=?
--
-- name: basic
-- values: ["SOA", "example.org"]
SELECT content,ttl,prio,type,domain_id,disabled+0,name,auth+0 FROM records WHERE disabled=0 and type=? and name=?
--
-- name: any
-- values: ["example.org"]
SELECT content,ttl,prio,type,domain_id,disabled+0,name,auth+0 FROM records WHERE disabled=0 and name=?
-- session
CREATE TABLE radacct (radacctid bigint NOT NULL auto_increment, acctsessionid varchar(64) NOT NULL default '', acctuniqueid varchar(32) NOT NULL default '', username varchar(64) NOT NULL default '', acctstarttime datetime NULL default NULL, acctstoptime datetime NULL default NULL, PRIMARY KEY (radacctid), UNIQUE KEY acctuniqueid (acctuniqueid))
--
CREATE TABLE radcheck (id int unsigned NOT NULL auto_increment, username varchar(64) NOT NULL default '', attribute varchar(64) NOT NULL default '', op char(2) NOT NULL DEFAULT '==', value varchar(253) NOT NULL default '', PRIMARY KEY (id))
--
CREATE TABLE radippool (id int unsigned NOT NULL auto_increment, pool_name varchar(30) NOT NULL, framedipaddress varchar(15) NOT NULL default '', pool_key varchar(30) NOT NULL default '', expiry_time datetime NOT NULL default '2000-01-01 00:00:00', PRIMARY KEY (id))
--
SELECT id, username, attribute, value, op FROM radcheck WHERE username = 'ann' ORDER BY id
--
INSERT INTO radacct (acctsessionid, acctuniqueid, username, acctstarttime) VALUES ('s1', 'u1', 'ann', FROM_UNIXTIME(1700000000)) ON DUPLICATE KEY UPDATE acctstarttime = FROM_UNIXTIME(1700000000)
--
UPDATE radacct SET acctstoptime = FROM_UNIXTIME(1700000060) WHERE AcctUniqueId = 'u1'
--
INSERT INTO radippool (pool_name, framedipaddress) VALUES ('main', '10.0.0.1')
--
START TRANSACTION
--
SELECT framedipaddress FROM radippool WHERE pool_name = 'main' AND expiry_time < '2024-01-01 00:00:00' ORDER BY (pool_key <> 'k'), expiry_time LIMIT 1 FOR UPDATE SKIP LOCKED
--
UPDATE radippool SET pool_key = 'k', expiry_time = '2024-01-01 01:00:00' WHERE framedipaddress = '10.0.0.1'
--
COMMIT
--
CREATE TABLE virtual_users (email varchar(100) NOT NULL, password varchar(150) NOT NULL, PRIMARY KEY (email))
--
SELECT email AS user, password FROM virtual_users WHERE email='ann@example.org'
--
-- values: ["ann@example.org"]
SELECT email FROM virtual_users WHERE email = ?
-- session
SELECT @@version, @@version_comment
--
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci'
--
SET collation_connection = 'utf8mb4_unicode_ci'
--
SET lc_messages = 'en_US'
--
SELECT CURRENT_USER()
--
SHOW SESSION VARIABLES LIKE 'FOREIGN_KEY_CHECKS'
--
SELECT `SCHEMA_NAME` FROM `INFORMATION_SCHEMA`.`SCHEMATA`
--
SHOW TABLE STATUS FROM `texts` LIKE 'records%'
--
SELECT `TABLE_NAME` FROM information_schema.TABLES t WHERE `TABLE_SCHEMA` = 'texts' AND `TABLE_NAME` = 'records'
--
SHOW FULL COLUMNS FROM `texts`.`records`
--
SHOW INDEXES FROM `texts`.`records`
--
SELECT COUNT(*) FROM `texts`.`records`
--
SELECT * FROM `records` LIMIT 0, 25
--
SHOW CREATE TABLE `texts`.`records`
--
SET FOREIGN_KEY_CHECKS = OFF;
--
SET FOREIGN_KEY_CHECKS = ON;
--
SHOW PLUGINS
--
SHOW GRANTS
--
SHOW VARIABLES LIKE 'language'
--
SET sql_mode = ''
--
SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'
--
SELECT SQL_CALC_FOUND_ROWS * FROM `records` LIMIT 1
--
SELECT FOUND_ROWS()
--
select @@version_comment limit 1
--
SELECT DATABASE()
--
show databases
--
select USER()
--
SELECT DATABASE(), USER() limit 1
--
select @@character_set_client, @@character_set_connection, @@character_set_server, @@character_set_database limit 1
--
SHOW CHARACTER SET
--
HELP 'select'
