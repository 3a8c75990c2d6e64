WordPress and WooCommerce: the start of each request, options, posts with a count of all that match, orders, stock held, and Action Scheduler's
queue.
-- session
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'
--
SELECT @@SESSION.sql_mode
--
SET SESSION sql_mode='ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'
--
CREATE TABLE wp_options (
  option_id bigint(20) unsigned NOT NULL auto_increment,
  option_name varchar(191) NOT NULL default '',
  option_value longtext NOT NULL,
  autoload varchar(20) NOT NULL default 'yes',
  PRIMARY KEY  (option_id),
  UNIQUE KEY option_name (option_name),
  KEY autoload (autoload)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci
--
CREATE TABLE wp_posts (
  ID bigint(20) unsigned NOT NULL auto_increment,
  post_author bigint(20) unsigned NOT NULL default '0',
  post_date datetime NOT NULL default '0000-00-00 00:00:00',
  post_content longtext NOT NULL,
  post_title text NOT NULL,
  post_status varchar(20) NOT NULL default 'publish',
  post_name varchar(200) NOT NULL default '',
  post_type varchar(20) NOT NULL default 'post',
  PRIMARY KEY  (ID),
  KEY post_name (post_name(191)),
  KEY type_status_date (post_type,post_status,post_date,ID)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci
--
CREATE TABLE wp_postmeta (meta_id bigint(20) unsigned NOT NULL auto_increment, post_id bigint(20) unsigned NOT NULL default '0', meta_key varchar(255) default NULL, meta_value longtext, PRIMARY KEY (meta_id), KEY post_id (post_id), KEY meta_key (meta_key(191))) DEFAULT CHARACTER SET utf8mb4
--
CREATE TABLE wp_wc_reserved_stock (`order_id` bigint(20) NOT NULL, `product_id` bigint(20) NOT NULL, `stock_quantity` double NOT NULL DEFAULT 0, `timestamp` datetime NOT NULL DEFAULT '0000-00-00 00:00:00', `expires` datetime NOT NULL DEFAULT '0000-00-00 00:00:00', PRIMARY KEY (`order_id`, `product_id`))
--
CREATE TABLE wp_actionscheduler_actions (action_id bigint(20) unsigned NOT NULL auto_increment, hook varchar(191) NOT NULL, status varchar(20) NOT NULL, scheduled_date_gmt datetime NULL default '0000-00-00 00:00:00', priority tinyint unsigned NOT NULL default '10', args varchar(191), group_id bigint(20) unsigned NOT NULL default '0', attempts int(11) NOT NULL default '0', last_attempt_gmt datetime NULL default '0000-00-00 00:00:00', claim_id bigint(20) unsigned NOT NULL default '0', PRIMARY KEY (action_id), KEY claim_id_status_scheduled_date_gmt (claim_id, status, scheduled_date_gmt))
--
CREATE TABLE wp_actionscheduler_claims (claim_id bigint(20) unsigned NOT NULL auto_increment, date_created_gmt datetime NULL default '0000-00-00 00:00:00', PRIMARY KEY (claim_id))
-- session
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_520_ci'
--
SELECT @@SESSION.sql_mode
--
SET SESSION sql_mode='ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'
--
INSERT INTO `wp_options` (`option_name`, `option_value`, `autoload`) VALUES ('siteurl', 'http://example.org', 'yes') ON DUPLICATE KEY UPDATE `option_name` = VALUES(`option_name`), `option_value` = VALUES(`option_value`), `autoload` = VALUES(`autoload`)
--
INSERT IGNORE INTO `wp_options` ( `option_name`, `option_value`, `autoload` ) VALUES ('cron.lock', '1700000000', 'no') /* LOCK */
--
SELECT option_name, option_value FROM wp_options WHERE autoload IN ( 'yes', 'on', 'auto-on', 'auto' )
--
SELECT option_value FROM wp_options WHERE option_name = 'cron' LIMIT 1
--
INSERT INTO `wp_posts` (`post_author`, `post_date`, `post_content`, `post_title`, `post_name`) VALUES (1, '2024-01-01 10:00:00', 'Welcome.\n\n<p>It\'s here</p>', 'Hello', 'hello'), (1, '2024-01-02 10:00:00', 'two', 'Two', 'two'), (1, '2024-01-03 10:00:00', 'three', 'Three', 'three')
--
SELECT SQL_CALC_FOUND_ROWS  wp_posts.ID
					FROM wp_posts 
					WHERE 1=1  AND ((wp_posts.post_type = 'post' AND (wp_posts.post_status = 'publish')))
					ORDER BY wp_posts.post_date DESC
					LIMIT 0, 2
--
SELECT FOUND_ROWS()
--
SELECT wp_posts.* FROM wp_posts WHERE ID IN (1,2,3)
--
SELECT post_id, meta_key, meta_value FROM wp_postmeta WHERE post_id IN (1,2,3) ORDER BY meta_id ASC
--
SHOW FULL COLUMNS FROM `wp_posts`
--
INSERT INTO `wp_postmeta` (`post_id`, `meta_key`, `meta_value`) VALUES (1, '_stock', '5')
--
SELECT LAST_INSERT_ID()
--
UPDATE wp_postmeta SET meta_value = meta_value - 2 WHERE post_id = 1 AND meta_key='_stock'
--
START TRANSACTION
--
SELECT meta_value FROM wp_postmeta WHERE post_id = 1 AND meta_key = '_stock' FOR UPDATE
--
INSERT INTO wp_wc_reserved_stock ( `order_id`, `product_id`, `stock_quantity`, `timestamp`, `expires` )
				SELECT 100, 1, 1, '2024-01-01 10:00:00', ( '2024-01-01 10:00:00' + INTERVAL 60 MINUTE ) FROM DUAL
				WHERE ( SELECT COALESCE( MAX( meta_value ), 0 ) FROM wp_postmeta as meta_table WHERE meta_table.meta_key = '_stock' AND meta_table.post_id = 1 FOR UPDATE ) - ( SELECT COALESCE( SUM( stock_table.`stock_quantity` ), 0 ) FROM wp_wc_reserved_stock stock_table WHERE stock_table.`product_id` = 1 ) >= 1
				ON DUPLICATE KEY UPDATE `expires` = VALUES( `expires` ), `stock_quantity` = VALUES( `stock_quantity` )
--
COMMIT
--
INSERT INTO wp_actionscheduler_actions ( `hook`, `status`, `scheduled_date_gmt`, `group_id` ) SELECT 'action_scheduler/migration_hook', 'pending', '2024-01-01 00:00:00', 1 FROM DUAL WHERE ( SELECT NULL FROM DUAL ) IS NULL
--
INSERT INTO `wp_actionscheduler_claims` (`date_created_gmt`) VALUES ('2024-01-01 00:00:00')
--
UPDATE wp_actionscheduler_actions t1 JOIN ( SELECT action_id from wp_actionscheduler_actions WHERE claim_id = 0 AND scheduled_date_gmt <= '2024-01-02 00:00:00' AND status='pending' ORDER BY priority ASC, attempts ASC, scheduled_date_gmt ASC, action_id ASC LIMIT 25 FOR UPDATE SKIP LOCKED ) t2 ON t1.action_id = t2.action_id SET claim_id=1, last_attempt_gmt='2024-01-01 00:00:00'
--
UPDATE wp_options SET option_value = '1700000100' WHERE option_name = 'cron.lock' AND option_value = '1700000000'
--
SHOW TABLES LIKE 'wp\_posts'
--
DESCRIBE wp_options
--
SHOW INDEX FROM wp_posts
--
SHOW CREATE TABLE wp_options
--
SHOW VARIABLES LIKE 'max_allowed_packet'
--
SELECT VERSION()
--
DELETE a, b FROM wp_options a, wp_options b WHERE a.option_name LIKE '\_transient\_%' AND a.option_name NOT LIKE '\_transient\_timeout\_%' AND b.option_name = CONCAT( '_transient_timeout_', SUBSTRING( a.option_name, 12 ) ) AND b.option_value < 1700000000
--
-- pins: session_lock
SELECT GET_LOCK('wc_session_1', 5)
--
SELECT RELEASE_LOCK('wc_session_1')
--
ALTER TABLE wp_options ADD COLUMN extra int
--
SHOW TABLE STATUS LIKE 'wp_options'
