"""The schemas that a session of MySQL or MariaDB plays in: `S`, and `Sx` beside it. Made once per worker and side, restored before
each play, read at its end. `{base}`: where the ids of this session begin, so that both sides have the same ones."""

CHANGING = """
DROP VIEW IF EXISTS S.vd; DROP TABLE IF EXISTS S.d1, S.d3;
CREATE TABLE S.d1 (id int, c varchar(20)); INSERT INTO S.d1 VALUES (1, 'one'), (2, 'two'); CREATE VIEW S.vd AS SELECT id, c FROM S.d1"""
CHANGING_D2 = """
DROP TABLE IF EXISTS S.d2; CREATE TABLE S.d2 (id int AUTO_INCREMENT PRIMARY KEY, at date); INSERT INTO S.d2 (at) VALUES ('2024-02-29')"""
CHANGING_FO = """
DROP FUNCTION IF EXISTS S.fo; CREATE FUNCTION S.fo(i int) RETURNS varchar(20) DETERMINISTIC NO SQL RETURN concat('first ', i)"""
CHANGING_VC = "DROP VIEW IF EXISTS S.vc, S.vx"
CHANGING_Y = "DROP DATABASE IF EXISTS Sy"
# What DDL made while another schema was the current one.
CHANGING_X = "DROP VIEW IF EXISTS Sx.vd, Sx.vc, Sx.vx; DROP TABLE IF EXISTS Sx.d1, Sx.d2, Sx.d3; DROP FUNCTION IF EXISTS Sx.fo"
ALL_CHANGING = (CHANGING, CHANGING_D2, CHANGING_FO, CHANGING_VC, CHANGING_Y, CHANGING_X)
# The same where only rows have changed.
ROWS_D1 = "DELETE FROM S.d1; INSERT INTO S.d1 VALUES (1, 'one'), (2, 'two')"

TABLES = """
CREATE TABLE S.t (id int AUTO_INCREMENT PRIMARY KEY, v varchar(40), n int);
CREATE TABLE S.w (id int AUTO_INCREMENT PRIMARY KEY, who varchar(40), n int);
CREATE TABLE S.item (x varchar(20));
INSERT INTO S.item VALUES ('first schema');
CREATE TABLE Sx.item (x int, y int);
INSERT INTO Sx.item VALUES (7, 8);
CREATE TABLE Sx.w (id int AUTO_INCREMENT PRIMARY KEY, who varchar(40), n int);
CREATE TABLE S.jobs (id int PRIMARY KEY, state varchar(10), n int);
CREATE TABLE S.shadow (id int PRIMARY KEY, v varchar(20));
CREATE TABLE S.five (a varchar(20));
INSERT INTO S.five VALUES ('1a'), ('2b'), ('3c'), ('4d'), ('5e');
CREATE TABLE S.tset (id int, v varchar(20)); CREATE TABLE S.tlog (id int); CREATE TABLE S.tlock (id int);
CREATE TABLE S.u (id int AUTO_INCREMENT PRIMARY KEY, k int UNIQUE, n int);
CREATE TABLE S.unsettled (a int)""" + "".join(
    f"; CREATE TABLE S.own_{c} (id int AUTO_INCREMENT PRIMARY KEY, n int)" for c in "abcdefgh")

ROUTINES = [
    "CREATE FUNCTION S.f_log(s varchar(40)) RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO S.w (who, n) VALUES (s, 1); RETURN 1; END",
    "CREATE FUNCTION S.f_var(i int) RETURNS int NO SQL BEGIN SET @a = i; RETURN i; END",
    "CREATE FUNCTION S.f_into() RETURNS int READS SQL DATA BEGIN SELECT count(*) INTO @a FROM S.item; RETURN 2; END",
    "CREATE FUNCTION S.f_lock(s varchar(40)) RETURNS int NO SQL RETURN GET_LOCK(s, 0)",
    "CREATE FUNCTION S.f_lid(i int) RETURNS int NO SQL RETURN LAST_INSERT_ID(i)",
    "CREATE FUNCTION S.f_pure(i int) RETURNS int DETERMINISTIC NO SQL RETURN i * 2",
    "CREATE FUNCTION S.f_read(i int) RETURNS int READS SQL DATA RETURN (SELECT count(*) FROM S.t WHERE id <= i)",
    "CREATE FUNCTION S.f_nap() RETURNS int NO SQL RETURN SLEEP(0.03)",
    "CREATE FUNCTION S.f_rows() RETURNS int NO SQL RETURN ROW_COUNT()",
    "CREATE PROCEDURE S.p_log(s varchar(40)) BEGIN INSERT INTO S.w (who, n) VALUES (s, 7); END",
    "CREATE PROCEDURE S.p_rows() BEGIN SELECT 1 AS a UNION SELECT 2; SELECT 'second' AS b; END",
    "CREATE PROCEDURE S.p_mode() BEGIN SET SESSION sql_mode = 'ANSI_QUOTES'; END",
    "CREATE PROCEDURE S.p_zone() BEGIN SET time_zone = '+09:00'; END",
    "CREATE PROCEDURE S.p_var(i int) BEGIN SET @a = i; END",
    "CREATE PROCEDURE S.p_temp() BEGIN CREATE TEMPORARY TABLE S.shadow (id int, v varchar(20)); INSERT INTO S.shadow VALUES (99, 'temporary'); END",
    "CREATE PROCEDURE S.p_fail() BEGIN SET @a = 66; SET time_zone = '+05:00'; SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'after the setting'; END",
    "CREATE PROCEDURE S.p_tempfail() BEGIN CREATE TEMPORARY TABLE S.tt (a int); SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'after the table'; END",
    "CREATE PROCEDURE S.p_lock(s varchar(40)) BEGIN DO GET_LOCK(s, 0); END",
    "CREATE PROCEDURE S.p_count() BEGIN UPDATE S.t SET n = n + 1 WHERE id <= 2; SELECT ROW_COUNT() AS r; END",
    "CREATE PROCEDURE S.p_lid(i int) BEGIN DO LAST_INSERT_ID(i); END",
    "CREATE PROCEDURE S.p_two() BEGIN SELECT id FROM S.t ORDER BY id; UPDATE S.t SET n = n + 1 WHERE id = 1; SELECT ROW_COUNT(), FOUND_ROWS(); END",
    "CREATE PROCEDURE S.p_out(OUT i int) BEGIN SET i = 12; END",
    "CREATE PROCEDURE S.p_begin() BEGIN START TRANSACTION; INSERT INTO S.w (who, n) VALUES ('in p_begin', 1); END",
    "CREATE TRIGGER S.x1 BEFORE INSERT ON S.tset FOR EACH ROW SET @a = NEW.v",
    "CREATE TRIGGER S.x2 AFTER INSERT ON S.tlog FOR EACH ROW INSERT INTO S.w (who, n) VALUES ('trigger', NEW.id)",
    "CREATE TRIGGER S.x3 AFTER INSERT ON S.tlock FOR EACH ROW SET @l = GET_LOCK(concat('S', NEW.id), 0)",
    "CREATE VIEW S.v_t AS SELECT id, v FROM S.t",
    "CREATE VIEW S.v_log AS SELECT S.f_log('view') AS x",
    "CREATE VIEW S.v_var AS SELECT S.f_var(5) AS x",
    "CREATE VIEW S.v_lid AS SELECT LAST_INSERT_ID() AS x",
    "CREATE VIEW S.v_found AS SELECT FOUND_ROWS() AS x",
]
# User functions under names that look harmless; each database has other names of its own built in.
LOOKALIKES = {"mysql": ["median", "nvl", "to_char", "decode_oracle", "zone", "overlaps", "bpchar"],
              "mariadb": ["any_value", "regexp_like", "uuid_to_bin", "zone", "only_", "notnull", "filter"]}
LOOKALIKE = "CREATE FUNCTION S.{name}(i int) RETURNS int MODIFIES SQL DATA BEGIN INSERT INTO S.w (who, n) VALUES ('{name}', i); RETURN i; END"
MARIADB_ONLY = ["CREATE SEQUENCE S.s1", "CREATE FUNCTION S.f_next() RETURNS int RETURN NEXTVAL(S.s1)"]
CHANGING_S1 = "ALTER SEQUENCE S.s1 RESTART 1"
# The clients' own tables: looked at and restored only after sessions that use them.
OWN_STATE = " UNION ALL ".join(
    f"SELECT 'S.own_{c}', (SELECT group_concat(concat(id, ',', n) ORDER BY id SEPARATOR ' | ') FROM S.own_{c})" for c in "abcdefgh")
OWN_BASE = "BEGIN; " + "; ".join(f"INSERT INTO S.own_{c} (id) VALUES ({{base}}); DELETE FROM S.own_{c}" for c in "abcdefgh") + "; COMMIT"

# What each table holds at the beginning, and how it comes to hold it.
RESTORE = {
    "S.t": "DELETE FROM S.t; INSERT INTO S.t VALUES (1, 'v1', 10), (2, 'v2', 20), (3, 'v3', 30), (4, 'v4', 40), (5, 'v5', 50)",
    "S.u": "DELETE FROM S.u; INSERT INTO S.u VALUES (1, 1, 10), (2, 2, 20)",
    "S.jobs": "DELETE FROM S.jobs; INSERT INTO S.jobs VALUES (1, 'new', 0), (2, 'new', 0), (3, 'new', 0), (4, 'new', 0)",
    "S.shadow": "DELETE FROM S.shadow; INSERT INTO S.shadow VALUES (1, 'permanent'), (2, 'permanent'), (3, 'permanent')",
    "S.w": "DELETE FROM S.w", "Sx.w": "DELETE FROM Sx.w", "S.tset": "DELETE FROM S.tset", "S.tlog": "DELETE FROM S.tlog", "S.tlock": "DELETE FROM S.tlock",
}
# Where the ids of the next play begin. A counter only ever goes up, so each play begins at a new thousand.
BASE = "; ".join(f"INSERT INTO {t} (id) VALUES ({{base}}); DELETE FROM {t} WHERE id = {{base}}" for t in ("S.t", "S.w", "Sx.w", "S.u"))

ANEW = "; ".join([*(f"TRUNCATE S.own_{c}" for c in "abcdefgh"), "TRUNCATE S.t; TRUNCATE S.w; TRUNCATE Sx.w; TRUNCATE S.u", *RESTORE.values()])

TABLE_STATE = [("S.t", "id, v, n"), ("S.w", "id, who, n"), ("Sx.w", "id, who, n"), ("S.jobs", "id, state, n"), ("S.shadow", "id, v"), ("S.tset", "v"),
               ("S.tlog", "id"), ("S.tlock", "id"), ("S.u", "id, k, n")]
CATALOG_STATE = """SELECT table_name, column_name, column_type FROM information_schema.columns WHERE table_schema IN ('S', 'Sx')
AND (table_name LIKE 'd_' OR table_name LIKE 'v_' OR table_name IN ('sq')) ORDER BY table_schema, table_name, ordinal_position"""
