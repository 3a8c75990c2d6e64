Magento: the settings of its connections, EAV, the order's number from a table of sequences, the queue, the locks of cron, indexers with temporary
and with replica tables.
-- session
SET NAMES utf8
--
SET NAMES utf8;
--
SET time_zone = '+00:00'
--
SET SQL_MODE=''
--
SET FOREIGN_KEY_CHECKS=0
--
CREATE TABLE `sales_order` (`entity_id` int UNSIGNED NOT NULL AUTO_INCREMENT, `increment_id` varchar(50), `status` varchar(32), `grand_total` decimal(20,4), `updated_at` timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (`entity_id`), UNIQUE (`increment_id`)) ENGINE=InnoDB DEFAULT CHARSET=utf8
--
CREATE TABLE `sequence_order_1` (`sequence_value` int(10) unsigned NOT NULL AUTO_INCREMENT, PRIMARY KEY (`sequence_value`)) ENGINE=InnoDB
--
CREATE TABLE `cataloginventory_stock_item` (`item_id` int unsigned NOT NULL AUTO_INCREMENT, `product_id` int unsigned NOT NULL, `qty` decimal(12,4), `is_in_stock` smallint unsigned NOT NULL DEFAULT 0, PRIMARY KEY (`item_id`), UNIQUE (`product_id`))
--
CREATE TABLE `queue_message_status` (`id` bigint unsigned NOT NULL AUTO_INCREMENT, `queue_id` int, `message_id` bigint, `status` smallint, `number_of_trials` smallint DEFAULT 0, PRIMARY KEY (`id`))
--
CREATE TABLE `cron_schedule` (`schedule_id` int unsigned NOT NULL AUTO_INCREMENT, `job_code` varchar(255) NOT NULL DEFAULT '0', `status` varchar(7) NOT NULL DEFAULT 'pending', PRIMARY KEY (`schedule_id`))
--
SET FOREIGN_KEY_CHECKS=1
-- session
SET NAMES utf8
--
SET time_zone = '+00:00'
--
SET SQL_MODE=''
--
INSERT INTO `cataloginventory_stock_item` (`product_id`,`qty`,`is_in_stock`) VALUES (1, 10, 1), (2, 5, 1) ON DUPLICATE KEY UPDATE `qty` = VALUES(`qty`), `is_in_stock` = VALUES(`is_in_stock`)
--
INSERT INTO `sequence_order_1` () VALUES ()
--
SELECT LAST_INSERT_ID()
--
START TRANSACTION
--
SELECT `si`.* FROM `cataloginventory_stock_item` AS `si` WHERE (product_id IN(1, 2)) FOR UPDATE
--
UPDATE `cataloginventory_stock_item` SET `qty` = CASE product_id WHEN 1 THEN qty-1 WHEN 2 THEN qty-2 ELSE qty END WHERE (product_id IN (1, 2))
--
INSERT INTO `sales_order` (`increment_id`, `status`, `grand_total`) VALUES ('000000001', 'pending', '12.5000')
--
COMMIT
--
-- pins: session_lock
SELECT GET_LOCK('magento2|CRON_INDEX', 5)
--
-- pins: session_lock
INSERT INTO `cron_schedule` (`job_code`) VALUES ('indexer_reindex_all_invalid')
--
-- pins: session_lock
UPDATE `cron_schedule` AS `current` LEFT JOIN `cron_schedule` AS `existing` ON existing.job_code = current.job_code AND existing.status = 'running' SET `current`.`status` = 'running' WHERE (current.schedule_id = 1) AND (current.status = 'pending') AND (existing.schedule_id IS NULL)
--
-- pins: session_lock
SELECT IS_USED_LOCK('magento2|CRON_INDEX') IS NULL
--
SELECT RELEASE_LOCK('magento2|CRON_INDEX')
--
SELECT IS_FREE_LOCK('magento2|CRON_INDEX')
--
INSERT INTO `queue_message_status` (`queue_id`,`message_id`,`status`) VALUES (1, 1, 2)
--
UPDATE `queue_message_status` SET `status` = 3 WHERE id = 1 AND status = 2
--
-- pins: temporary_table
CREATE TEMPORARY TABLE IF NOT EXISTS `tmp_select_1` (PRIMARY KEY(`product_id`)) ENGINE=INNODB IGNORE (SELECT `si`.`product_id`, `si`.`qty` FROM `cataloginventory_stock_item` AS `si`)
--
-- pins: temporary_table
SELECT * FROM `tmp_select_1`
--
DROP TEMPORARY TABLE IF EXISTS `tmp_select_1`
--
CREATE TABLE `catalog_product_index_price_replica` LIKE `cataloginventory_stock_item`
--
RENAME TABLE `cataloginventory_stock_item` TO `cataloginventory_stock_item_outdated`, `catalog_product_index_price_replica` TO `cataloginventory_stock_item`
--
DESCRIBE `sales_order`
--
SHOW CREATE TABLE `sequence_order_1`
--
SHOW TABLE STATUS LIKE 'sequence_order_1'
--
SHOW INDEX FROM `sales_order`
--
SET @rownum = 0
--
SELECT (@rownum := @rownum + 1) AS position, increment_id FROM sales_order ORDER BY increment_id
--
SET SESSION group_concat_max_len = 10240
--
SELECT GROUP_CONCAT(increment_id) FROM sales_order
