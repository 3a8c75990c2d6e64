SQLAlchemy with Alembic, Peewee and Tortoise: their start, a version table, transactions, upserts, and reflection.
-- session
SET NAMES utf8mb4
--
SELECT VERSION()
--
SELECT DATABASE()
--
SELECT @@transaction_isolation
--
SELECT @@tx_isolation
--
SELECT @@sql_mode
--
SELECT @@lower_case_table_names
--
SELECT 1 AS anon_1
--
SELECT CAST('test plain returns' AS CHAR(60)) AS anon_1
--
SELECT CAST('test collated returns' AS CHAR CHARACTER SET utf8mb4) COLLATE utf8mb4_bin AS anon_1
--
SHOW VARIABLES LIKE 'sql_mode'
--
SHOW VARIABLES LIKE 'lower_case_table_names'
--
SET autocommit = 0
--
DESCRIBE `texts`.`alembic_version`
--
ROLLBACK
--
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
)
--
CREATE TABLE users (
	id INTEGER NOT NULL AUTO_INCREMENT, 
	name VARCHAR(50), 
	tags JSON, 
	PRIMARY KEY (id), 
	UNIQUE (name)
)
--
INSERT INTO alembic_version (version_num) VALUES ('1975ea83b712')
--
COMMIT
--
INSERT INTO users (name, tags) VALUES ('ann', '["a"]')
--
SAVEPOINT sa_savepoint_1
--
UPDATE users SET name='bob' WHERE users.id = 1
--
ROLLBACK TO SAVEPOINT sa_savepoint_1
--
RELEASE SAVEPOINT sa_savepoint_1
--
COMMIT
--
SELECT users.id, users.name, users.tags FROM users WHERE users.id = 1 FOR UPDATE
--
ROLLBACK
--
INSERT INTO users (name, tags) VALUES ('ann', NULL) ON DUPLICATE KEY UPDATE tags = VALUES(tags)
--
COMMIT
--
SHOW CREATE TABLE `users`
--
SHOW FULL TABLES FROM `texts`
--
SELECT EXISTS (SELECT 1 FROM users WHERE users.name = 'ann') AS anon_1
--
ROLLBACK
-- session
SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED
--
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ
--
SET autocommit = 0
--
SET autocommit = 1
--
-- only: mysql
INSERT INTO users (name) VALUES ('cat') AS new ON DUPLICATE KEY UPDATE name = new.name
--
-- only: mariadb
INSERT INTO users (name) VALUES ('cat') RETURNING id
--
INSERT INTO `users` (`name`) VALUES ('dog') ON DUPLICATE KEY UPDATE `id` = LAST_INSERT_ID(`id`), `name` = 'dog'
--
INSERT INTO `users` (`name`) VALUES ('dog') ON DUPLICATE KEY UPDATE `id` = LAST_INSERT_ID(`id`), `name` = 'dog'
--
SELECT LAST_INSERT_ID()
--
-- values: ["ann"]
SELECT id FROM users WHERE name = ?
--
BEGIN
--
SELECT `id` FROM `users` WHERE `name` = 'ann' LOCK IN SHARE MODE
--
COMMIT
--
SELECT * FROM users WHERE id IN (1, 2) ORDER BY id LIMIT 10 OFFSET 0
