Laravel: the settings of its connections, migrations, jobs taken from a queue, locks and counters in its cache, and what its schema builder asks.
-- session
use `texts`;
--
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci', SESSION sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
--
-- values: ["texts", "migrations"]
select table_name as `name`, (data_length + index_length) as `size`, table_comment as `comment`, engine as `engine`, table_collation as `collation` from information_schema.tables where table_schema = ? and table_name = ? and table_type in ('BASE TABLE', 'SYSTEM VERSIONED') order by table_name
--
create table `migrations` (`id` int unsigned not null auto_increment primary key, `migration` varchar(255) not null, `batch` int not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci'
--
select `migration` from `migrations` order by `batch` asc, `migration` asc
--
create table `jobs` (`id` bigint unsigned not null auto_increment primary key, `queue` varchar(255) not null, `payload` longtext not null, `attempts` tinyint unsigned not null, `reserved_at` int unsigned null, `available_at` int unsigned not null, `created_at` int unsigned not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci'
--
alter table `jobs` add index `jobs_queue_index`(`queue`)
--
create table `cache` (`key` varchar(255) not null, `value` mediumtext not null, `expiration` int not null, primary key (`key`)) default character set utf8mb4 collate 'utf8mb4_unicode_ci'
--
create table `cache_locks` (`key` varchar(255) not null, `owner` varchar(255) not null, `expiration` int not null, primary key (`key`)) default character set utf8mb4 collate 'utf8mb4_unicode_ci'
--
create table `users` (`id` bigint unsigned not null auto_increment primary key, `name` varchar(255) not null, `email` varchar(255) not null, `created_at` timestamp null, `updated_at` timestamp null) default character set utf8mb4 collate 'utf8mb4_unicode_ci'
--
alter table `users` add unique `users_email_unique`(`email`)
--
-- values: ["0001_01_01_000000_create_users_table", 1]
insert into `migrations` (`migration`, `batch`) values (?, ?)
--
select max(`batch`) as aggregate from `migrations`
--
select column_name as `name`, data_type as `type_name`, column_type as `type`, collation_name as `collation`, is_nullable as `nullable`, column_default as `default`, column_comment as `comment`, generation_expression as `expression`, extra as `extra` from information_schema.columns where table_schema = 'texts' and table_name = 'users' order by ordinal_position asc
--
select index_name as `name`, group_concat(column_name order by seq_in_index) as `columns`, index_type as `type`, not non_unique as `unique` from information_schema.statistics where table_schema = 'texts' and table_name = 'users' group by index_name, index_type, non_unique
--
select kc.constraint_name as `name`, group_concat(kc.column_name order by kc.ordinal_position) as `columns`, kc.referenced_table_schema as `foreign_schema`, kc.referenced_table_name as `foreign_table`, group_concat(kc.referenced_column_name order by kc.ordinal_position) as `foreign_columns`, rc.update_rule as `on_update`, rc.delete_rule as `on_delete` from information_schema.key_column_usage kc join information_schema.referential_constraints rc on kc.constraint_schema = rc.constraint_schema and kc.constraint_name = rc.constraint_name where kc.table_schema = 'texts' and kc.table_name = 'users' and kc.referenced_table_name is not null group by kc.constraint_name, kc.referenced_table_schema, kc.referenced_table_name, rc.update_rule, rc.delete_rule
-- session
use `texts`;
--
SET NAMES 'utf8mb4' COLLATE 'utf8mb4_unicode_ci', SESSION sql_mode='ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION';
--
-- values: ["default", "{\"job\":\"a\"}", 0, null, 1700000000, 1700000000]
insert into `jobs` (`queue`, `payload`, `attempts`, `reserved_at`, `available_at`, `created_at`) values (?, ?, ?, ?, ?, ?)
--
START TRANSACTION
--
-- values: ["default", 1700000001, 1699999911]
select * from `jobs` where `queue` = ? and ((`reserved_at` is null and `available_at` <= ?) or (`reserved_at` <= ?)) order by `id` asc limit 1 FOR UPDATE SKIP LOCKED
--
-- values: [1700000001, 1, 1]
update `jobs` set `reserved_at` = ?, `attempts` = ? where `id` = ?
--
COMMIT
--
START TRANSACTION
--
-- values: [1]
select * from `jobs` where `id` = ? limit 1 for update
--
-- values: [1]
delete from `jobs` where `id` = ?
--
COMMIT
--
-- values: ["lock:report", "abc", 1700000060]
insert into `cache_locks` (`key`, `owner`, `expiration`) values (?, ?, ?)
--
-- values: ["lock:report", "def", 1700000060]
insert into `cache_locks` (`key`, `owner`, `expiration`) values (?, ?, ?)
--
-- values: ["def", 1700000060, "lock:report", "def", 1700000000]
update `cache_locks` set `owner` = ?, `expiration` = ? where `key` = ? and (`owner` = ? or `expiration` <= ?)
--
-- values: ["lock:report", "abc"]
delete from `cache_locks` where `key` = ? and `owner` = ?
--
-- values: [1700000500, "hits", "i:1;"]
insert into `cache` (`expiration`, `key`, `value`) values (?, ?, ?) on duplicate key update `expiration` = values(`expiration`), `key` = values(`key`), `value` = values(`value`)
--
-- values: ["hits"]
select * from `cache` where `key` in (?)
--
-- values: ["Ann", "ann@example.org", "2024-01-01 00:00:00", "2024-01-01 00:00:00"]
insert into `users` (`name`, `email`, `updated_at`, `created_at`) values (?, ?, ?, ?)
--
-- values: ["Ann", "ann@example.org", "Bob", "bob@example.org"]
insert ignore into `users` (`name`, `email`) values (?, ?), (?, ?)
--
-- values: ["Ann"]
select count(*) as aggregate from `users` where `name` = ?
--
SAVEPOINT trans2
--
ROLLBACK TO SAVEPOINT trans2
--
SET FOREIGN_KEY_CHECKS=0;
--
truncate table `users`
--
SET FOREIGN_KEY_CHECKS=1;
--
SHOW FULL TABLES WHERE table_type = 'BASE TABLE'
--
-- pins: session_lock
-- values: ["laravel_backup", 3]
SELECT GET_LOCK(?, ?)
--
-- values: ["laravel_backup"]
SELECT RELEASE_LOCK(?)
