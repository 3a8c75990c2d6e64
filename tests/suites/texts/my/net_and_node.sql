EF Core (Pomelo, MySql.EntityFrameworkCore), Prisma, TypeORM, Sequelize and Knex: migrations under named locks, several statements in one text, and
what each asks at its start.
-- session
SELECT TIMEDIFF(NOW(), UTC_TIMESTAMP()) IS NULL
--
SET NAMES utf8mb4
--
SET character_set_results=NULL
--
SHOW COLLATION
--
SELECT 1 FROM INFORMATION_SCHEMA.SCHEMATA WHERE SCHEMA_NAME = 'texts'
--
SELECT 1 FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA='texts' AND TABLE_NAME='__EFMigrationsHistory';
--
SELECT CASE WHEN COUNT(*) = 0 THEN FALSE ELSE TRUE END
FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND table_schema = 'texts'
--
-- pins: session_lock
SELECT GET_LOCK('__texts_EFMigrationsLock',259200)
--
-- pins: session_lock
CREATE TABLE IF NOT EXISTS `__EFMigrationsHistory` (
    `MigrationId` varchar(150) CHARACTER SET utf8mb4 NOT NULL,
    `ProductVersion` varchar(32) CHARACTER SET utf8mb4 NOT NULL,
    CONSTRAINT `PK___EFMigrationsHistory` PRIMARY KEY (`MigrationId`)
) CHARACTER SET=utf8mb4;
--
-- pins: session_lock
SELECT `MigrationId`, `ProductVersion`
FROM `__EFMigrationsHistory`
ORDER BY `MigrationId`;
--
START TRANSACTION
--
-- pins: session_lock
ALTER DATABASE CHARACTER SET utf8mb4;
--
-- pins: session_lock
CREATE TABLE `Blogs` (
    `BlogId` int NOT NULL AUTO_INCREMENT,
    `Url` longtext CHARACTER SET utf8mb4 NULL,
    CONSTRAINT `PK_Blogs` PRIMARY KEY (`BlogId`)
) CHARACTER SET=utf8mb4;
--
-- pins: session_lock
INSERT INTO `__EFMigrationsHistory` (`MigrationId`, `ProductVersion`)
VALUES ('20240101000000_Init', '8.0.2');
--
-- pins: session_lock
COMMIT
--
SELECT RELEASE_LOCK('__texts_EFMigrationsLock')
--
START TRANSACTION
--
SET AUTOCOMMIT = 1;
INSERT INTO `Blogs` (`Url`)
VALUES ('http://example.org');
SELECT `BlogId`
FROM `Blogs`
WHERE ROW_COUNT() = 1 AND `BlogId` = LAST_INSERT_ID();
--
INSERT INTO `Blogs` (`Url`)
VALUES ('http://example.com');
SELECT LAST_INSERT_ID();
--
UPDATE `Blogs` SET `Url` = 'x'
WHERE `BlogId` = 1;
SELECT ROW_COUNT();
--
INSERT INTO `Blogs` (`Url`) VALUES ('b'), ('c');
SELECT ROW_COUNT();

DELETE FROM `Blogs`
WHERE `BlogId` = 99;
SELECT ROW_COUNT();
--
-- values: ["http://example.org"]
INSERT INTO `Blogs` (`Url`) VALUES (?)
-- session
SET NAMES utf8mb4
--
SELECT @@sql_mode, @@version, @@lower_case_table_names
--
SELECT schema_name FROM information_schema.schemata WHERE schema_name = 'texts'
--
-- pins: session_lock
SELECT GET_LOCK('prisma_migrate', 10)
--
-- pins: session_lock
CREATE TABLE _prisma_migrations (
                id                      VARCHAR(36) PRIMARY KEY NOT NULL,
                checksum                VARCHAR(64) NOT NULL,
                finished_at             DATETIME(3),
                migration_name          VARCHAR(255) NOT NULL,
                logs                    TEXT,
                rolled_back_at          DATETIME(3),
                started_at              DATETIME(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3),
                applied_steps_count     INTEGER UNSIGNED NOT NULL DEFAULT 0
            ) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
--
-- pins: session_lock
CREATE TABLE `User` (
    `id` INTEGER NOT NULL AUTO_INCREMENT,
    `email` VARCHAR(191) NOT NULL,

    UNIQUE INDEX `User_email_key`(`email`),
    PRIMARY KEY (`id`)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_ci;
CREATE TABLE `Post` (`id` INTEGER NOT NULL AUTO_INCREMENT, `authorId` INTEGER, PRIMARY KEY (`id`));
ALTER TABLE `Post` ADD CONSTRAINT `Post_authorId_fkey` FOREIGN KEY (`authorId`) REFERENCES `User`(`id`) ON DELETE SET NULL ON UPDATE CASCADE;
--
-- pins: session_lock
SELECT "ok"
--
SELECT RELEASE_ALL_LOCKS()
--
BEGIN
--
-- values: ["ann@example.org"]
INSERT INTO `texts`.`User` (`email`) VALUES (?)
--
-- values: [1, 1, 0]
SELECT `texts`.`User`.`id`, `texts`.`User`.`email` FROM `texts`.`User` WHERE (`texts`.`User`.`id` = ? AND 1=1) LIMIT ? OFFSET ?
--
COMMIT
--
set session transaction isolation level read committed;start transaction;
--
SELECT COUNT(*) FROM User
--
ROLLBACK
-- session
SELECT VERSION() AS `version`
--
SELECT * FROM `INFORMATION_SCHEMA`.`COLUMNS` WHERE `TABLE_SCHEMA` = 'texts' AND `TABLE_NAME` = 'typeorm_metadata'
--
START TRANSACTION
--
SELECT DATABASE() AS `db_name`
--
CREATE TABLE `migrations` (`id` int NOT NULL AUTO_INCREMENT, `timestamp` bigint NOT NULL, `name` varchar(255) NOT NULL, PRIMARY KEY (`id`)) ENGINE=InnoDB
--
COMMIT
--
SELECT `T`.`TABLE_SCHEMA`, `T`.`TABLE_NAME` FROM `INFORMATION_SCHEMA`.`TABLES` `T` WHERE `T`.`TABLE_SCHEMA` = 'texts' AND `T`.`TABLE_NAME` = 'migrations'
--
INSERT INTO `migrations`(`timestamp`, `name`) VALUES (1700000000000, 'Init1700000000000')
--
SELECT IF((SELECT COUNT(*) FROM `migrations`) > 0, 1, 0)
--
SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ;
--
SELECT 1+1 AS result
--
SHOW FULL COLUMNS FROM `migrations`;
--
SHOW INDEX FROM `migrations` FROM `texts`
--
START TRANSACTION;
--
SET autocommit = 1;
--
COMMIT;
--
CREATE TABLE knex_migrations_lock (`index` int unsigned not null auto_increment primary key, is_locked int)
--
INSERT INTO knex_migrations_lock (is_locked) VALUES (0)
--
BEGIN;
--
update `knex_migrations_lock` set `is_locked` = 1 where `is_locked` = 0
--
COMMIT;
--
-- values: ["%x%"]
select * from `knex_migrations_lock` where `is_locked` like ?
