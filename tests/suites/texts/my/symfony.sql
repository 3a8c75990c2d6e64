Symfony and Doctrine: migrations, the message queue, sessions kept in a table with a named lock, and what DBAL asks of the schema.
-- session
SET NAMES utf8mb4
--
SELECT VERSION()
--
SELECT DATABASE()
--
CREATE TABLE doctrine_migration_versions (version VARCHAR(191) NOT NULL, executed_at DATETIME DEFAULT NULL, execution_time INT DEFAULT NULL, PRIMARY KEY(version)) DEFAULT CHARACTER SET utf8mb4 COLLATE `utf8mb4_unicode_ci`
--
CREATE TABLE messenger_messages (id BIGINT AUTO_INCREMENT NOT NULL, body LONGTEXT NOT NULL, headers LONGTEXT NOT NULL, queue_name VARCHAR(190) NOT NULL, created_at DATETIME NOT NULL COMMENT '(DC2Type:datetime_immutable)', available_at DATETIME NOT NULL, delivered_at DATETIME DEFAULT NULL, INDEX IDX_75EA56E0FB7336F0E3BD61CE16BA31DBBF396750 (queue_name, available_at, delivered_at, id), PRIMARY KEY(id)) DEFAULT CHARACTER SET utf8mb4 COLLATE `utf8mb4_unicode_ci` ENGINE = InnoDB
--
CREATE TABLE sessions (sess_id VARBINARY(128) NOT NULL PRIMARY KEY, sess_data MEDIUMBLOB NOT NULL, sess_lifetime INTEGER UNSIGNED NOT NULL, sess_time INTEGER UNSIGNED NOT NULL, INDEX expiry (sess_lifetime)) COLLATE utf8mb4_bin, ENGINE = InnoDB
--
CREATE TABLE lock_keys (key_id VARCHAR(64) NOT NULL PRIMARY KEY, key_token VARCHAR(44) NOT NULL, key_expiration INTEGER UNSIGNED NOT NULL)
--
CREATE TABLE product (id INT AUTO_INCREMENT NOT NULL, name VARCHAR(255) NOT NULL, price NUMERIC(10, 2) NOT NULL, category_id INT DEFAULT NULL, PRIMARY KEY(id)) DEFAULT CHARACTER SET utf8mb4
--
SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'texts' AND TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_NAME
--
SELECT c.TABLE_NAME, c.COLUMN_NAME AS field, c.COLUMN_TYPE AS type, c.IS_NULLABLE AS `null`, c.COLUMN_KEY AS `key`, c.COLUMN_DEFAULT AS `default`, c.EXTRA, c.COLUMN_COMMENT AS comment, c.CHARACTER_SET_NAME AS characterset, c.COLLATION_NAME AS collation FROM information_schema.COLUMNS c INNER JOIN information_schema.TABLES t ON t.TABLE_NAME = c.TABLE_NAME WHERE c.TABLE_SCHEMA = 'texts' AND t.TABLE_SCHEMA = 'texts' AND t.TABLE_TYPE = 'BASE TABLE' ORDER BY c.TABLE_NAME, c.ORDINAL_POSITION
--
SELECT NON_UNIQUE AS Non_Unique, INDEX_NAME AS Key_name, COLUMN_NAME AS Column_Name, SUB_PART AS Sub_Part, INDEX_TYPE AS Index_Type FROM information_schema.STATISTICS WHERE TABLE_SCHEMA = 'texts' AND TABLE_NAME = 'messenger_messages' ORDER BY SEQ_IN_INDEX, COLUMN_NAME
--
SELECT DISTINCT k.CONSTRAINT_NAME, k.COLUMN_NAME, k.REFERENCED_TABLE_NAME, k.REFERENCED_COLUMN_NAME, k.ORDINAL_POSITION /*!50116 , c.UPDATE_RULE, c.DELETE_RULE */ FROM information_schema.key_column_usage k /*!50116 INNER JOIN information_schema.referential_constraints c ON c.CONSTRAINT_NAME = k.CONSTRAINT_NAME AND c.TABLE_NAME = k.TABLE_NAME */ WHERE k.TABLE_NAME = 'product' AND k.TABLE_SCHEMA = 'texts' /*!50116 AND c.CONSTRAINT_SCHEMA = 'texts' */ ORDER BY k.ORDINAL_POSITION
--
START TRANSACTION
--
-- values: ["DoctrineMigrations\\Version1", "2024-01-01 00:00:00", 12]
INSERT INTO doctrine_migration_versions (version, executed_at, execution_time) VALUES (?, ?, ?)
--
COMMIT
-- session
SET NAMES utf8mb4
--
-- values: ["{}", "[]", "default", "2024-01-01 00:00:00", "2024-01-01 00:00:00"]
INSERT INTO messenger_messages (body, headers, queue_name, created_at, available_at) VALUES(?, ?, ?, ?, ?)
--
START TRANSACTION
--
-- values: ["default", "2023-12-31 23:00:00", "2024-01-01 00:00:01"]
SELECT m.* FROM messenger_messages m WHERE (m.queue_name = ?) AND (m.delivered_at is null OR m.delivered_at < ?) AND (m.available_at <= ?) ORDER BY available_at ASC LIMIT 1 FOR UPDATE SKIP LOCKED
--
-- values: ["2024-01-01 00:00:01", 1]
UPDATE messenger_messages SET delivered_at = ? WHERE id = ?
--
COMMIT
--
-- values: ["1"]
DELETE FROM messenger_messages WHERE id = ?
--
-- pins: session_lock
SELECT GET_LOCK('session_id', 50)
--
-- pins: session_lock
-- values: ["abc"]
SELECT sess_data, sess_lifetime, sess_time FROM sessions WHERE sess_id = ?
--
-- pins: session_lock
-- values: ["abc", "data", 1700001440, 1700000000]
INSERT INTO sessions (sess_id, sess_data, sess_lifetime, sess_time) VALUES (?, ?, ?, ?) ON DUPLICATE KEY UPDATE sess_data = VALUES(sess_data), sess_lifetime = VALUES(sess_lifetime), sess_time = VALUES(sess_time)
--
DO RELEASE_LOCK('session_id')
--
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
START TRANSACTION
--
-- values: ["abc"]
SELECT sess_data, sess_lifetime, sess_time FROM sessions WHERE sess_id = ? FOR UPDATE
--
UPDATE sessions SET sess_time = 1700000005 WHERE sess_id = 'abc'
--
COMMIT
--
-- values: ["k", "t", 300]
INSERT INTO lock_keys (key_id, key_token, key_expiration) VALUES (?, ?, UNIX_TIMESTAMP() + ?)
--
START TRANSACTION
--
-- values: ["Lamp", "12.50", null]
INSERT INTO product (name, price, category_id) VALUES (?, ?, ?)
--
SAVEPOINT DOCTRINE_2
--
-- values: ["Chair", "abc", null]
INSERT INTO product (name, price, category_id) VALUES (?, ?, ?)
--
ROLLBACK TO SAVEPOINT DOCTRINE_2
--
COMMIT
--
-- values: [1]
SELECT t0.id AS id_1, t0.name AS name_2, t0.price AS price_3 FROM product t0 WHERE t0.id = ?
--
ALTER TABLE product ADD description LONGTEXT DEFAULT NULL
--
SELECT @@character_set_database, @@collation_database
-- session
-- pins: session_lock
-- values: ["session_2", 50]
SELECT GET_LOCK(?, ?)
--
-- pins: session_lock
SELECT sess_data FROM sessions WHERE sess_id = 'b'
--
-- values: ["session_2"]
DO RELEASE_LOCK(?)
