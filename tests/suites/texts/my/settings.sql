Settings that programs, frameworks and managed services send beyond those of the other lists, and SETs that fail in part: a time zone that the
server does not have, a variable of another version.
-- session
SET SESSION time_zone = '+00:00', SESSION group_concat_max_len = 2048, SESSION transaction_isolation_of_mars = 'READ-COMMITTED'
--
SET SESSION wait_timeout = 600, time_zone = 'Mars/Phobos'
--
SELECT @@session.time_zone, @@session.group_concat_max_len, @@session.character_set_client
--
SET autocommit = 0, wait_timeout = 600, nonsense = 1
--
SET autocommit = 1
-- session
SET SESSION long_query_time = 5
--
SELECT @@long_query_time
--
-- only: mysql
SET SESSION sql_require_primary_key = 0
--
-- only: mysql
SET SESSION show_create_table_verbosity = 1
--
-- only: mysql
SELECT @@sql_require_primary_key, @@show_create_table_verbosity
--
-- only: mysql
SET SESSION use_secondary_engine = OFF
--
-- only: mysql
SET SESSION range_optimizer_max_mem_size = 0
--
-- only: mariadb
SET SESSION check_constraint_checks = 0
--
-- only: mariadb
SET @@session.optimizer_use_condition_selectivity = 1, @@session.join_cache_level = 8
--
-- only: mariadb
SELECT @@check_constraint_checks, @@optimizer_use_condition_selectivity, @@join_cache_level
--
SET SESSION long_query_time = DEFAULT
-- session
SET SESSION net_read_timeout = 3600, SESSION net_write_timeout = 3600, SESSION wait_timeout = 28800
--
SET SESSION max_heap_table_size = 16777216, SESSION tmp_table_size = 16777216
--
SET SESSION optimizer_switch = 'index_merge=off'
--
SET @@session.optimizer_switch = 'index_merge=on'
--
SET SESSION sort_buffer_size = 1048576
--
SET SESSION lock_wait_timeout = 5
--
SET SESSION sql_warnings = 0
--
SET LOCAL sql_safe_updates = 1
--
SET LOCAL sql_safe_updates = 0
--
SET SESSION auto_increment_increment = 1, auto_increment_offset = 1
--
SET lc_time_names = 'de_DE'
--
SELECT DATE_FORMAT('2024-01-01', '%W')
--
-- only: mysql
SET SESSION max_execution_time = 1000
--
-- only: mariadb
SET SESSION max_statement_time = 10
--
-- only: mysql
SELECT /*+ SET_VAR(sort_buffer_size = 262144) */ 1
--
-- only: mariadb
SET STATEMENT max_statement_time = 5 FOR SELECT 1
--
START TRANSACTION
--
SHOW VARIABLES LIKE 'gtid%'
--
ROLLBACK
