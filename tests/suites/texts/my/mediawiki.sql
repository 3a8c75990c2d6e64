MediaWiki: the settings of its connections, a page and its revision in one transaction, named locks of the updater and the job queue, and
temporary tables.
-- session
SET NAMES 'utf8mb4'
--
SET  `group_concat_max_len` = 262144, `sql_mode` = ''
--
SET SESSION sql_mode = '', SESSION wait_timeout = 300
--
CREATE TABLE `page` (page_id INT UNSIGNED AUTO_INCREMENT NOT NULL, page_namespace INT NOT NULL, page_title VARBINARY(255) NOT NULL, page_is_redirect TINYINT UNSIGNED DEFAULT 0 NOT NULL, page_random DOUBLE PRECISION NOT NULL, page_touched BINARY(14) NOT NULL, page_latest INT UNSIGNED NOT NULL, page_len INT UNSIGNED NOT NULL, UNIQUE INDEX page_name_title (page_namespace, page_title), PRIMARY KEY(page_id)) ENGINE=InnoDB, DEFAULT CHARSET=binary
--
CREATE TABLE `revision` (rev_id BIGINT UNSIGNED AUTO_INCREMENT NOT NULL, rev_page INT UNSIGNED NOT NULL, rev_timestamp BINARY(14) NOT NULL, rev_len INT UNSIGNED DEFAULT NULL, PRIMARY KEY(rev_id)) ENGINE=InnoDB, DEFAULT CHARSET=binary
--
CREATE TABLE `job` (job_id INT UNSIGNED AUTO_INCREMENT NOT NULL, job_cmd VARBINARY(60) DEFAULT '' NOT NULL, job_random INT UNSIGNED DEFAULT 0 NOT NULL, job_attempts INT UNSIGNED DEFAULT 0 NOT NULL, job_token VARBINARY(32) DEFAULT '' NOT NULL, job_token_timestamp BINARY(14) DEFAULT NULL, job_sha1 VARBINARY(32) DEFAULT '' NOT NULL, PRIMARY KEY(job_id)) ENGINE=InnoDB, DEFAULT CHARSET=binary
--
CREATE TABLE `objectcache` (keyname VARBINARY(255) DEFAULT '' NOT NULL, value MEDIUMBLOB, exptime BINARY(14) NOT NULL, PRIMARY KEY(keyname))
--
CREATE TABLE `site_stats` (ss_row_id INT UNSIGNED NOT NULL, ss_total_edits BIGINT UNSIGNED DEFAULT NULL, PRIMARY KEY(ss_row_id))
-- session
SET NAMES 'utf8mb4'
--
SET `sql_mode` = ''
--
BEGIN /* Wikimedia\Rdbms\Database::begin (WikiPage::doUserEditContent) Admin */
--
SELECT /* WikiPage::pageData */ page_id,page_namespace,page_title,page_is_redirect,page_touched,page_latest,page_len FROM `page` WHERE page_namespace = 0 AND page_title = 'Main_Page' LIMIT 1 FOR UPDATE
--
INSERT /* WikiPage::insertOn Admin */ IGNORE INTO `page` (page_namespace,page_title,page_is_redirect,page_random,page_touched,page_latest,page_len) VALUES (0,'Main_Page',0,0.5,'20240101000000',0,0)
--
INSERT /* RevisionStore::insertRevisionRowOn Admin */ INTO `revision` (rev_page,rev_timestamp,rev_len) VALUES (1,'20240101000000',42)
--
UPDATE /* WikiPage::updateRevisionOn Admin */ `page` SET page_latest = 1,page_touched = '20240101000000',page_len = 42 WHERE page_id = 1 AND page_latest = 0
--
SAVEPOINT `wikimedia_rdbms_atomic1`
--
UPDATE /* SiteStatsUpdate */ `site_stats` SET ss_total_edits=ss_total_edits+1 WHERE ss_row_id = 1
--
RELEASE SAVEPOINT `wikimedia_rdbms_atomic1`
--
COMMIT /* Wikimedia\Rdbms\Database::commit */
--
SELECT /* LinkCache::fetchPageRow */ page_id,page_len FROM `page` WHERE page_namespace = 0 AND page_title = 'Main_Page' LIMIT 1
--
-- pins: session_lock
SELECT GET_LOCK('texts:jobqueue', 0) AS acquired
--
-- pins: session_lock
UPDATE /* JobQueueDB::claimRandom */ `job` SET job_token = 'abc',job_token_timestamp = '20240101000000',job_attempts = job_attempts+1 WHERE job_cmd = 'refreshLinks' AND job_token = '' AND job_random >= 0 ORDER BY job_random ASC LIMIT 1
--
SELECT RELEASE_LOCK('texts:jobqueue') AS released
--
INSERT /* JobQueueDB::doBatchPush */ INTO `job` (job_cmd,job_random,job_sha1) VALUES ('refreshLinks',7,'x'),('refreshLinks',8,'y')
--
DELETE /* JobQueueDB::doAck */ FROM `job` WHERE job_cmd = 'refreshLinks' AND job_id = 1
--
INSERT /* SqlBagOStuff */ INTO `objectcache` (value,exptime,keyname) VALUES ('x','20990101000000','k1') ON DUPLICATE KEY UPDATE value=VALUES(value),exptime=VALUES(exptime)
--
REPLACE /* SqlBagOStuff */ INTO `objectcache` (value,exptime,keyname) VALUES ('y','20990101000000','k1')
--
-- pins: temporary_table
CREATE TEMPORARY TABLE `tmp_page` (LIKE `page`)
--
-- pins: temporary_table
INSERT INTO `tmp_page` SELECT * FROM `page`
--
DROP TEMPORARY TABLE `tmp_page`
--
SHOW TABLES LIKE 'page'
--
SHOW COLUMNS FROM `page`
--
SELECT @@gtid_mode
--
SHOW GLOBAL STATUS LIKE 'gtid_%'
--
SELECT /* Wikimedia\Rdbms\DatabaseMySQL::estimateRowCount */ 1 FROM `page` LIMIT 1
--
EXPLAIN SELECT * FROM `page`
