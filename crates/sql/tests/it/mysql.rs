//! MySQL and MariaDB.
use weir_sql::{Dialect, Encoding, Uses, classify};
use weir_wire::Pin;

use crate::summary::check;

#[test]
fn one_statement_that_leaves_no_trace() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT 1", "select share"),
            ("SELECT 1;", "select share"),
            ("TABLE t", "select share"),
            ("VALUES ROW(1,2)", "values share"),
            ("(SELECT 1) UNION (SELECT 2)", "select share"),
            ("WITH x AS (SELECT 1) SELECT * FROM x", "select share"),
            (
                "WITH RECURSIVE x (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM x) SELECT * FROM x",
                "select share",
            ),
            ("SELECT ?", "select share"),
            ("SELECT 1 FROM 1abc, db.1t, `select`, t.select", "select share"),
            (
                "SELECT * FROM t USE INDEX (i) FORCE INDEX FOR JOIN (j) IGNORE KEY (k) WHERE a = 1",
                "select share",
            ),
            ("SELECT * FROM t WHERE MATCH (a) AGAINST ('x' IN BOOLEAN MODE)", "select share"),
            (
                "SELECT COUNT(*), GROUP_CONCAT(a SEPARATOR ','), SUM(DISTINCT b) OVER (PARTITION BY c) FROM t",
                "select share",
            ),
            (
                "SELECT DATE_ADD(NOW(), INTERVAL 1 DAY), CAST(a AS CHAR(10)), CONVERT(a USING utf8), COUNT (*)",
                "select share",
            ),
            (
                "SELECT REPLACE(a, 'x', 'y'), INSERT(a, 1, 2, 'x'), LEFT(a, 1), IF(a, b, c), VALUES(a) FROM t",
                "select share",
            ),
            (
                "SELECT JSON_EXTRACT(a, '$.x'), a->'$.x', a->>'$.y', DATABASE(), USER(), VERSION()",
                "select share",
            ),
            ("SELECT SQL_NO_CACHE STRAIGHT_JOIN DISTINCT a FROM t", "select share"),
            ("SELECT a FROM t PARTITION (p0, p1) WHERE 1 MEMBER OF ('[1]')", "select share"),
            ("SELECT * FROM t FOR UPDATE", "select share row_lock"),
            ("SELECT * FROM t LOCK IN SHARE MODE", "select share row_lock"),
            ("INSERT INTO t (a,b) VALUES (1,2),(3,4)", "insert share"),
            ("INSERT INTO t SET a=1", "insert share"),
            ("INSERT t (a) VALUES (1)", "insert share"),
            (
                "INSERT LOW_PRIORITY IGNORE INTO db.t (a) VALUES (1) ON DUPLICATE KEY UPDATE a=VALUES(a)",
                "insert share",
            ),
            ("INSERT INTO t (a) VALUES (1) AS new(x) ON DUPLICATE KEY UPDATE a = new.x", "insert share"),
            ("INSERT INTO t PARTITION (p0) (a) VALUES (1)", "insert share"),
            ("INSERT INTO `d`.`t` (`a`) SELECT b FROM u", "insert share"),
            ("REPLACE INTO t (a) VALUES (1)", "replace share"),
            ("REPLACE t VALUES (1)", "replace share"),
            ("UPDATE t SET a = IF(b, 1, 2) WHERE c IN (1,2)", "update share"),
            ("UPDATE LOW_PRIORITY a, b SET a.x = b.x", "update share"),
            ("DELETE FROM t WHERE a = 1 LIMIT 1", "delete share"),
            ("DELETE a, b FROM a INNER JOIN b", "delete share"),
        ],
    );
}

#[test]
fn one_statement_that_must_not_be_shared() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT 1; SELECT 2", "select x2"),
            ("SELECT my_func(1)", "select unknown()"),
            ("SELECT db.lower('x')", "select unknown()"),
            ("SELECT `lower`('x')", "select unknown()"),
            ("SELECT SLEEP(1)", "select sleep"),
            ("SELECT BENCHMARK(1000, MD5('x'))", "select sleep"),
            ("SELECT IS_FREE_LOCK('x'), RELEASE_LOCK('x')", "select"),
            ("SELECT a INTO OUTFILE '/tmp/x' FROM t", "select"),
            ("SELECT * FROM information_schema.processlist", "select processlist"),
            ("SELECT 1)", "select"),
            ("DO 1", "do"),
            ("SHOW TABLES", "show"),
            ("SHOW FULL PROCESSLIST", "show processlist"),
            ("SHOW CREATE TABLE t", "show"),
            ("DESC t", "explain"),
            ("EXPLAIN FORMAT=JSON SELECT 1", "explain"),
            ("EXPLAIN FOR CONNECTION 5", "explain explain_connection"),
            ("CALL p()", "call block unknown()"),
            ("CALL p(1, @out)", "call +user_variable @write block unknown()"),
            ("SELECT a FROM t PROCEDURE ANALYSE()", "select unknown()"),
        ],
    );
}

#[test]
fn questions_about_the_session() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT CONNECTION_ID()", "select connection_id bare connection_id[CONNECTION_ID()]"),
            ("SELECT connection_id();", "select connection_id bare connection_id[connection_id()]"),
            ("SELECT CONNECTION_ID() AS id", "select connection_id connection_id[CONNECTION_ID()]"),
            ("SELECT CONNECTION_ID() id", "select connection_id connection_id[CONNECTION_ID()]"),
            (
                "SELECT DISTINCT connection_id ( ), 1",
                "select connection_id bare connection_id[connection_id ( )]",
            ),
            ("SELECT 1, CONNECTION_ID(), 2", "select connection_id bare connection_id[CONNECTION_ID()]"),
            (
                "SELECT 1, CONNECTION_ID() FROM DUAL",
                "select connection_id bare connection_id[CONNECTION_ID()]",
            ),
            (
                "SELECT CONNECTION_ID() UNION SELECT CONNECTION_ID()",
                "select connection_id bare connection_id[CONNECTION_ID()] bare connection_id[CONNECTION_ID()]",
            ),
            ("SELECT CONNECTION_ID() LIMIT 1", "select connection_id bare connection_id[CONNECTION_ID()]"),
            ("SELECT CONNECTION_ID()+1", "select connection_id connection_id[CONNECTION_ID()]"),
            // What a definition asks is not asked now.
            ("CREATE VIEW v AS SELECT CONNECTION_ID()", "create ddl connection_id"),
            ("ALTER TABLE t ADD c INT DEFAULT (CONNECTION_ID())", "alter ddl connection_id"),
            ("CREATE TABLE t (c INT DEFAULT (CONNECTION_ID()))", "create ddl connection_id"),
            (
                "CREATE TABLE t (c INT DEFAULT (CONNECTION_ID())) SELECT connection_id()",
                "create ddl connection_id connection_id[connection_id()]",
            ),
            (
                "SELECT CONNECTION_ID(); CREATE VIEW v AS SELECT CONNECTION_ID(); SELECT CONNECTION_ID()+1",
                "select x3 ddl connection_id bare connection_id[CONNECTION_ID()] connection_id[CONNECTION_ID()]",
            ),
            ("CREATE FUNCTION f() RETURNS INT RETURN @@pseudo_thread_id", "create ddl connection_id @@"),
            ("SELECT 1+CONNECTION_ID()", "select connection_id connection_id[CONNECTION_ID()]"),
            ("SELECT (CONNECTION_ID())", "select connection_id connection_id[CONNECTION_ID()]"),
            ("SELECT (SELECT CONNECTION_ID())", "select connection_id connection_id[CONNECTION_ID()]"),
            (
                "SELECT * FROM t WHERE id = CONNECTION_ID()",
                "select connection_id connection_id[CONNECTION_ID()]",
            ),
            (
                "SELECT * FROM t ORDER BY 1, CONNECTION_ID()",
                "select connection_id connection_id[CONNECTION_ID()]",
            ),
            ("SELECT `connection_id`()", "select connection_id bare connection_id[`connection_id`()]"),
            ("SELECT db.connection_id()", "select connection_id unknown()"),
            ("SELECT CONNECTION_ID", "select share"),
            ("SELECT /* CONNECTION_ID() */ 'CONNECTION_ID()', \"CONNECTION_ID()\"", "select share"),
            (
                "INSERT INTO t (a, b) VALUES (CONNECTION_ID(), LAST_INSERT_ID())",
                "insert connection_id last_insert_id connection_id[CONNECTION_ID()] last_insert_id[LAST_INSERT_ID()]",
            ),
            ("SELECT LAST_INSERT_ID()", "select last_insert_id bare last_insert_id[LAST_INSERT_ID()]"),
            (
                "SELECT LAST_INSERT_ID() AS id, ROW_COUNT()",
                "select last_insert_id row_count last_insert_id[LAST_INSERT_ID()] bare row_count[ROW_COUNT()]",
            ),
            ("SELECT LAST_INSERT_ID(5)", "select +last_result last_insert_id_set"),
            ("UPDATE seq SET id = LAST_INSERT_ID(id + 1)", "update last_insert_id_set"),
            (
                "INSERT INTO t (a) VALUES (1) ON DUPLICATE KEY UPDATE id = LAST_INSERT_ID(id)",
                "insert last_insert_id_set",
            ),
            (
                "SELECT FOUND_ROWS(), ROW_COUNT()",
                "select found_rows row_count bare found_rows[FOUND_ROWS()] bare row_count[ROW_COUNT()]",
            ),
            ("SELECT SQL_CALC_FOUND_ROWS * FROM t LIMIT 10", "select +last_result calc_found_rows"),
            ("SELECT @@autocommit", "select @@"),
            ("SELECT @@session.autocommit, @@global.max_connections", "select @@"),
            (
                "SELECT @@pseudo_thread_id",
                "select connection_id @@ bare pseudo_thread_id[@@pseudo_thread_id]",
            ),
            (
                "SELECT @@session.pseudo_thread_id, @@`pseudo_thread_id`, @@pseudo_thread_id x",
                "select connection_id @@ bare pseudo_thread_id[@@session.pseudo_thread_id] bare pseudo_thread_id[@@`pseudo_thread_id`] pseudo_thread_id[@@pseudo_thread_id]",
            ),
            (
                "SELECT @@identity, @@last_insert_id, @@warning_count, @@local.error_count",
                "select last_insert_id warnings @@ bare identity[@@identity] bare identity[@@last_insert_id]",
            ),
            ("SHOW WARNINGS", "show warnings"),
            ("SHOW COUNT(*) WARNINGS", "show warnings"),
            ("SHOW ERRORS LIMIT 1", "show warnings"),
            ("GET DIAGNOSTICS CONDITION 1 @p1 = RETURNED_SQLSTATE", "get +user_variable diagnostics @write"),
        ],
    );
}

#[test]
fn an_xpath_may_name_user_variables() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT EXTRACTVALUE(a, '/a/b[2]'), UPDATEXML(a, '/a', '$@i') FROM t", "select share"),
            ("SELECT EXTRACTVALUE(a, '/a/b[$@i]') FROM t", "select @read"),
            ("SELECT `updatexml`(a, '/a/b[$@i]', 'x')", "select @read"),
            ("SELECT EXTRACTVALUE(CONCAT(a, b), ?)", "select @read"),
            ("SELECT EXTRACTVALUE(a, x'2F2440')", "select @read"),
            ("SELECT EXTRACTVALUE(a, '/a' '[$@i]')", "select @read"),
            ("SELECT EXTRACTVALUE(EXTRACTVALUE(a, '/a'), '/b')", "select @read"),
            ("INSERT INTO t VALUES (EXTRACTVALUE('<a/>', '$@i'))", "insert @read"),
            ("SELECT own.extractvalue(a, '/a')", "select unknown()"),
        ],
    );
    for text in ["SELECT EXTRACTVALUE(a, '/a[$@i]')", "SELECT UPDATEXML(a, ?, 'x')"] {
        assert!(classify(Dialect::MYSQL, text.as_bytes()).user_variables().unwrap().is_any(), "{text}");
    }
}

#[test]
fn what_oracle_s_words_ask_for() {
    check(
        Dialect::MARIADB,
        &[
            ("SELECT SQL%ROWCOUNT, a", "select row_count bare row_count[SQL%ROWCOUNT]"),
            ("INSERT INTO t VALUES (sql % rowcount)", "insert row_count row_count[sql % rowcount]"),
            ("SELECT sqlcode, t.sqlerrm, c%rowcount, rowcount FROM t", "select share"),
        ],
    );
    let warns = |text: &str| classify(Dialect::MARIADB, text.as_bytes()).uses.contains(Uses::WARNINGS);
    for text in [
        "BEGIN SELECT SQLCODE; END",
        "DECLARE c INT; BEGIN c := `sqlerrm`; END",
        "<<l>> BEGIN SELECT SQLERRM; END",
    ] {
        assert!(warns(text), "{text}");
    }
    assert!(!warns("BEGIN SELECT t.SQLCODE FROM t; END"));
}

#[test]
fn a_keyword_in_quotes_is_a_function_that_somebody_has_made() {
    check(Dialect::MYSQL, &[("SELECT `row_count`()", "select unknown()")]);
    check(Dialect::MARIADB, &[("SELECT `row_count`()", "select row_count bare row_count[`row_count`()]")]);
}

#[test]
fn names_of_user_variables() {
    for (text, names, any) in [
        ("SELECT @a, @B", &["a", "b"][..], false),
        ("SET @x = @y, z = 1", &["x", "y"], false),
        ("SELECT 1 INTO @a", &["a"], false),
        ("SELECT @`a.b$c`", &["a.b$c"], false),
        ("SELECT @`a b`", &[], true),
        ("SELECT @\u{e4}", &[], true),
        ("SET @`a``b` = 1", &[], true),
        ("LOAD DATA INFILE 'f' INTO TABLE t (a, @b) SET c = @d", &["b", "d"], false),
        ("SELECT * FROM performance_schema.user_variables_by_thread", &[], true),
        ("CREATE PROCEDURE p() SET @a = 1", &[], false),
        ("SELECT @@x", &[], false),
    ] {
        let class = classify(Dialect::MYSQL, text.as_bytes());
        let found: Vec<&str> = class.user_variables().into_iter().flat_map(|found| found.iter()).collect();
        assert_eq!(found, names, "{text}");
        assert_eq!(class.user_variables().is_some_and(weir_sql::SettingNames::is_any), any, "{text}");
    }
}

#[test]
fn user_variables() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT @a", "select @read"),
            ("SELECT @`weird name`, @'x', @\"y\", @a.b, @$c, @", "select @read"),
            ("SELECT @a := 1", "select +user_variable @read @write"),
            ("SELECT @a:=@b+1 FROM t", "select +user_variable @read @write"),
            ("SELECT 1 INTO @a", "select +user_variable @write"),
            ("SELECT a, b INTO @a, @b FROM t", "select +user_variable @write"),
            ("SELECT a FROM t INTO @a", "select +user_variable @write"),
            ("SELECT 1 INTO @'a'", "select +user_variable @write"),
            ("SET @a = 1", "set +user_variable @write {@a}"),
            ("SET @a = 1, @b := 2", "set +user_variable @write {@a, @b}"),
            ("SET @`A b` = 1, @'C' = (SELECT 1)", "set +user_variable @write {@a b, @c}"),
            (
                "SET @a = 1, time_zone = '+00:00'",
                "set +setting +user_variable @write {time_zone='+00:00', @a}",
            ),
            ("SET @a = GET_LOCK('x', 1)", "set +session_lock +user_variable takes named @write {@a}"),
            ("UPDATE t SET a = (@n := @n + 1)", "update +user_variable @read @write"),
            ("EXPLAIN FORMAT=JSON INTO @x SELECT 1", "explain +user_variable @write"),
            ("GRANT ALL ON *.* TO 'u'@'h'", "catalogue ddl"),
            ("CREATE USER 'u'@'h' IDENTIFIED BY 'x'", "create ddl"),
            ("CREATE DEFINER=a@b VIEW v AS SELECT 1", "create ddl"),
            // Behind an operator that is a word stands no host.
            ("CREATE TABLE d SELECT 'abc' LIKE @a AS k", "create ddl @read"),
            ("CREATE TABLE d SELECT 7 DIV@a", "create ddl @read"),
            ("SET sql_safe_updates = NOT @a", "set +setting @read {sql_safe_updates=~NOT @a}"),
            (
                "SET sql_select_limit = 10 DIV @a, div_precision_increment = 8 DIV @a",
                "set +setting @read {sql_select_limit=~10 DIV @a, div_precision_increment=~8 DIV @a}",
            ),
        ],
    );
}

#[test]
fn transactions() {
    check(
        Dialect::MYSQL,
        &[
            ("BEGIN", "begin <begin> transaction"),
            ("BEGIN WORK", "begin <begin> transaction"),
            ("BEGIN;", "begin <begin> transaction"),
            ("BEGIN TRANSACTION", "unrecognised +unrecognised transaction block"),
            ("START TRANSACTION", "begin <begin> transaction"),
            ("START TRANSACTION WITH CONSISTENT SNAPSHOT", "begin <begin options snapshot> transaction"),
            ("START TRANSACTION READ ONLY", "begin <begin options> transaction"),
            (
                "START TRANSACTION READ WRITE, WITH CONSISTENT SNAPSHOT",
                "begin <begin options snapshot> transaction",
            ),
            ("START SLAVE", "server"),
            ("START REPLICA FOR CHANNEL 'x'", "server"),
            ("START", "unrecognised +unrecognised"),
            ("COMMIT", "commit <commit> transaction"),
            ("COMMIT WORK AND CHAIN NO RELEASE", "commit <commit chain> transaction"),
            ("COMMIT AND NO CHAIN RELEASE", "commit <commit release> transaction"),
            ("COMMIT RELEASE", "commit <commit release> transaction"),
            ("ROLLBACK", "rollback <rollback> transaction"),
            ("ROLLBACK AND CHAIN", "rollback <rollback chain> transaction"),
            ("ROLLBACK AND NO CHAIN RELEASE", "rollback <rollback release> transaction"),
            ("ROLLBACK TO s1", "rollbackto <rollback_to> transaction 's1'"),
            ("ROLLBACK WORK TO SAVEPOINT `s1`", "rollbackto <rollback_to> transaction 's1'"),
            ("ROLLBACK TO SAVEPOINT S1", "rollbackto <rollback_to> transaction 'S1'"),
            ("SAVEPOINT s1", "savepoint <savepoint> transaction 's1'"),
            ("RELEASE SAVEPOINT s1", "release <release> transaction 's1'"),
            ("END", "unrecognised +unrecognised"),
            ("ABORT", "unrecognised +unrecognised"),
            (
                "SET TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "set <set_transaction> +setting transaction {...}",
            ),
            ("SET TRANSACTION READ ONLY", "set <set_transaction> +setting transaction {...}"),
            (
                "SET @@tx_isolation = 'SERIALIZABLE'",
                "set <set_transaction> +setting transaction {tx_isolation='SERIALIZABLE', ...}",
            ),
            ("XA START 'x'", "xa <xa> +session_lock takes xa transaction"),
            ("XA BEGIN 'x'", "xa <xa> +session_lock takes xa transaction"),
            ("XA END 'x'", "xa <xa> +session_lock takes xa transaction"),
            ("XA PREPARE 'x'", "xa <xa> +session_lock takes xa transaction"),
            ("XA COMMIT 'x' ONE PHASE", "xa <xa> frees xa transaction"),
            ("XA ROLLBACK 'x'", "xa <xa> frees xa transaction"),
            ("XA RECOVER", "xa"),
            ("XA", "unrecognised <xa> +unrecognised transaction"),
            ("SELECT 1; COMMIT; SELECT 2", "select x3 <commit> transaction"),
            ("SET autocommit=0; INSERT INTO t VALUES (1)", "set x2 +setting"),
        ],
    );
}

#[test]
fn settings() {
    check(
        Dialect::MYSQL,
        &[
            ("SET autocommit=0", "set +setting {autocommit=0(off)}"),
            ("SET AUTOCOMMIT = 1", "set +setting {autocommit=1(on)}"),
            ("SET autocommit=ON", "set +setting {autocommit=ON(on)}"),
            ("SET autocommit='off'", "set +setting {autocommit='off'(off)}"),
            ("SET autocommit=1-1", "set +setting {autocommit=1-1}"),
            ("SET autocommit=DEFAULT", "set +setting {autocommit=DEFAULT}"),
            ("SET @@autocommit=0", "set +setting {autocommit=0(off)}"),
            ("SET @@session.autocommit = off", "set +setting {autocommit=off(off)}"),
            ("SET @@SESSION.`autocommit` = false", "set +setting {autocommit=false(off)}"),
            ("SET SESSION autocommit = 1", "set +setting {autocommit=1(on)}"),
            ("SET GLOBAL autocommit = 1", "set {global autocommit=1(on)}"),
            ("SET autocommit=0, sql_mode='ANSI'", "set +setting {autocommit=0(off), sql_mode='ANSI'}"),
            ("SET NAMES utf8mb4", "set +setting {names=utf8mb4}"),
            ("SET NAMES 'utf8mb4' COLLATE utf8mb4_bin", "set +setting {names='utf8mb4' COLLATE utf8mb4_bin}"),
            ("SET NAMES DEFAULT", "set +setting {names=DEFAULT}"),
            ("SET NAMES utf8, autocommit=0", "set +setting {names=utf8, autocommit=0(off)}"),
            ("SET CHARACTER SET utf8", "set +setting {character set=utf8}"),
            ("SET CHARSET utf8", "set +setting {character set=utf8}"),
            ("SET CHARACTER utf8", "set +unrecognised role {...}"),
            ("SET NAMES", "set +setting +unrecognised role {names=, ...}"),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
                "set +setting {transaction characteristics=ISOLATION LEVEL READ COMMITTED}",
            ),
            (
                "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY",
                "set +setting {transaction characteristics=ISOLATION LEVEL READ COMMITTED, READ ONLY}",
            ),
            ("SET GLOBAL TRANSACTION READ ONLY", "set {global transaction characteristics=READ ONLY}"),
            ("SET LOCAL sql_mode = ''", "set +setting {sql_mode=''}"),
            (
                "SET sql_mode=(SELECT CONCAT(@@sql_mode, ',ANSI'))",
                "set +setting @@ {sql_mode=~(SELECT CONCAT(@@sql_mode, ',ANSI'))}",
            ),
            (
                "SET sql_mode = CONCAT(@@sql_mode, ',ANSI')",
                "set +setting @@ {sql_mode=~CONCAT(@@sql_mode, ',ANSI')}",
            ),
            ("SET GLOBAL x = 1, SESSION y = 2, z = 3", "set +setting {global x=1(on), y=2, z=3}"),
            ("SET @@global.x = 1, y = 2", "set +setting {global x=1(on), y=2}"),
            ("SET PERSIST x = 1", "set {global x=1(on)}"),
            ("SET @@persist_only.x = 1", "set {global x=1(on)}"),
            ("SET sql_log_bin = 0", "set +setting {sql_log_bin=0(off)}"),
            ("SET gtid_next = 'AUTOMATIC'", "set +setting {gtid_next='AUTOMATIC'}"),
            ("SET PASSWORD = 'x'", "set ddl {...}"),
            ("SET PASSWORD FOR 'u'@'h' = 'x'", "set ddl {...}"),
            ("SET ROLE admin", "set +setting role {role=admin}"),
            ("SET ROLE ALL EXCEPT 'x'", "set +setting role {role=ALL EXCEPT 'x'}"),
            ("SET DEFAULT ROLE ALL TO 'u'@'h'", "set ddl {...}"),
            ("SET RESOURCE GROUP rg", "set +unrecognised role {...}"),
            ("SET last_insert_id = 5", "set +setting {last_insert_id=5}"),
            ("SET `sql_mode` = ''", "set +setting {sql_mode=''}"),
            ("SET hot.key_buffer_size = 1", "set +setting {hot.key_buffer_size=1(on)}"),
            ("SET x = y = 1", "set +setting {x=y = 1}"),
            ("SET a := 1", "set +setting {a=1(on)}"),
            ("SET a = IF(1, 2, 3), b = (1, 2), c = 3", "set +setting {a=~IF(1, 2, 3), b=~(1, 2), c=3}"),
            ("SET character_set_results = NULL", "set +setting {character_set_results=NULL}"),
            ("SET sql_select_limit=DEFAULT", "set +setting {sql_select_limit=DEFAULT}"),
            ("SET statement = 1", "set +setting {statement=1(on)}"),
            ("SET", "set +unrecognised role {...}"),
            ("SET a", "set +setting +unrecognised role {a=, ...}"),
            ("SET a =", "set +setting +unrecognised role {a=, ...}"),
            ("SET a = 1,", "set +setting +unrecognised role {a=1(on), ...}"),
            ("SET a = 1 b = 2", "set +setting {a=1 b = 2}"),
            (
                "SET optimizer_switch='a=on,b=off', x=GET_LOCK('a', 1)",
                "set +setting +session_lock takes named {optimizer_switch='a=on,b=off', x=~GET_LOCK('a', 1)}",
            ),
            ("SET a = 1; SET b = 2", "set x2 +setting"),
            ("USE db", "use +setting 'db'"),
            ("USE `my db`", "use +setting 'my db'"),
            ("USE `a``b`", "use +setting 'a`b'"),
            ("USE a.b", "unrecognised +setting +unrecognised 'a'"),
            ("USE", "use +setting"),
            ("USE db; SELECT 1", "use x2 +setting"),
            ("RESET QUERY CACHE", "server"),
        ],
    );
}

#[test]
fn settings_at_the_head_of_several_statements() {
    let mysql = Dialect::MySql {
        ansi_quotes: false,
        no_backslash_escapes: false,
        mariadb: false,
        encoding: Encoding::Utf8,
    };
    let my = |text: &str| classify(mysql, text.as_bytes());
    let class = my("SET autocommit = 1; SET a = 2, b = 3; INSERT INTO t VALUES (1)");
    let names: Vec<_> =
        class.heads().iter().flat_map(|set| &set.assignments).map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["autocommit", "a", "b"]);
    assert!(class.set().is_none() && class.pins.contains(Pin::Setting) && class.pins_behind().is_empty());
    let behind = |text: &str| my(text).pins_behind();
    assert_eq!(behind("SET a = 1; SELECT 1; SET b = 1"), Pin::Setting.into());
    assert!(behind("SET a = 1; SET @b = 1").is_empty() && my("SET a = 1; SET @b = 1").heads().len() == 2);
    assert_eq!(behind("SET a = 1; SELECT @b := 1"), Pin::UserVariable.into());
    for text in ["SELECT 1; SET a = 1", "SET PASSWORD = 'x'; SET a = 1", "SET a = 1", "SET a = 1;"] {
        assert!(my(text).heads().is_empty(), "{text}");
    }
    let used = my("USE a; SET b = 1; SELECT 1");
    assert!(used.heads().len() == 2 && used.pins_behind().is_empty() && used.pins.contains(Pin::Setting));
    let alone = my("USE a;");
    assert!(alone.heads().is_empty() && alone.set().is_none() && alone.pins.contains(Pin::Setting));
    let variables = my("SET @b = 1, c = 2; SELECT 1");
    assert_eq!(variables.heads()[0].user_variables, ["b"]);
    assert!(variables.pins.contains(Pin::UserVariable) && variables.pins_behind().is_empty());
    assert!(my("SET a = 1; ;").set().is_some() && my(";SET a = 1; SELECT 1").heads().len() == 1);
}

#[test]
fn mariadb() {
    check(
        Dialect::MARIADB,
        &[
            ("SET STATEMENT max_statement_time=1 FOR SELECT 1", "select"),
            (
                "SET STATEMENT max_statement_time=1, sql_mode='' FOR SET autocommit=0",
                "set +unrecognised role {...}",
            ),
            ("SET STATEMENT max_statement_time=(SELECT 1 FOR UPDATE) FOR BEGIN", "begin <begin> transaction"),
            (
                "SET STATEMENT max_statement_time=1 FOR SET ROLE x",
                "set +setting +unrecognised role {role=x, ...}",
            ),
            ("SET STATEMENT max_statement_time=1 FOR", "unrecognised +unrecognised"),
            ("SET STATEMENT a = 1", "set +unrecognised role {...}"),
            ("BEGIN NOT ATOMIC SELECT 1; END", "unrecognised x2 +unrecognised transaction block"),
            ("IF 1 THEN SELECT 1; END IF", "unrecognised x2 +unrecognised"),
            ("FOR i IN 1..10 DO SELECT i; END FOR", "unrecognised x2 +unrecognised"),
            ("EXECUTE IMMEDIATE 'SELECT 1'", "execute +unrecognised prepare"),
            ("BACKUP STAGE START", "backup +session_lock takes backup"),
            ("BACKUP STAGE BLOCK_COMMIT", "backup +session_lock takes backup"),
            ("BACKUP STAGE END", "backup frees backup"),
            // Neither frees what the other does.
            ("BACKUP LOCK t", "backup +session_lock takes backup_lock"),
            ("BACKUP UNLOCK", "backup frees backup_lock"),
            ("FLUSH USER_VARIABLES", "flush +user_variable @read @write"),
            ("SELECT NEXT VALUE FOR s", "select +sequence nextval"),
            ("SET @a = NEXT VALUE FOR s", "set +user_variable +sequence nextval @write {@a}"),
            ("SELECT s.nextval, s.currval", "select +sequence lastval nextval"),
            ("CREATE PROCEDURE p() SELECT NEXTVAL(s)", "create ddl"),
            ("SELECT PREVIOUS VALUE FOR s", "select lastval"),
            ("SELECT NEXTVAL(s), LASTVAL(s), SETVAL(s, 1)", "select +sequence lastval nextval setval"),
            ("WITH x AS (SELECT NEXT VALUE FOR s) SELECT * FROM x", "select +sequence nextval"),
            ("KILL HARD QUERY 5", "kill kill 5 query"),
            ("KILL SOFT CONNECTION 5", "kill kill 5"),
            ("KILL SOFT 5", "kill kill 5"),
            ("KILL QUERY ID 5", "kill kill query id"),
            ("KILL SOFT QUERY ID 5", "kill kill query id"),
            ("KILL QUERY ID 5 6", "kill kill ?"),
            ("KILL USER bob", "kill kill ?"),
            ("ANALYZE FORMAT=JSON SELECT GET_LOCK('x', 1)", "maintain +session_lock takes named"),
            ("INSERT INTO t (a) VALUES (1) RETURNING id", "insert share"),
            ("CREATE OR REPLACE TEMPORARY TABLE t (a int)", "create ddl +temporary_table"),
            ("CREATE PACKAGE BODY p AS x INT; END", "create x2 ddl doubtful +unrecognised"),
        ],
    );
}

#[test]
fn locks() {
    check(
        Dialect::MYSQL,
        &[
            ("LOCK TABLES t READ, u WRITE", "lock +session_lock takes tables transaction"),
            ("LOCK TABLE t WRITE", "lock +session_lock takes tables transaction"),
            ("LOCK FOO", "unrecognised +unrecognised"),
            ("UNLOCK TABLES", "unlock frees tables transaction"),
            ("UNLOCK FOO", "unrecognised +unrecognised"),
            ("LOCK INSTANCE FOR BACKUP", "lock +session_lock takes instance"),
            ("UNLOCK INSTANCE", "unlock frees instance"),
            ("FLUSH TABLES WITH READ LOCK", "flush +session_lock takes tables"),
            ("FLUSH TABLES t FOR EXPORT", "flush +session_lock takes tables"),
            ("FLUSH TABLES", "flush"),
            ("FLUSH LOCAL TABLES t WITH READ LOCK", "flush +session_lock takes tables"),
            ("FLUSH PRIVILEGES", "flush"),
            ("BACKUP STAGE START", "unrecognised +unrecognised"),
            ("SELECT GET_LOCK('x', 10)", "select +session_lock takes named"),
            ("SELECT get_lock ('x', 10)", "select +session_lock takes named"),
            ("SELECT `get_lock`('x', 1)", "select +session_lock takes named"),
            ("SELECT 1 FROM t WHERE a = GET_LOCK/**/('x', 1)", "select +session_lock takes named"),
            ("INSERT INTO t VALUES (GET_LOCK('x', 1))", "insert +session_lock takes named"),
            ("SELECT RELEASE_ALL_LOCKS()", "select frees named"),
            ("DO RELEASE_ALL_LOCKS()", "do frees named"),
            ("SELECT RELEASE_ALL_LOCKS(), GET_LOCK('x', 1)", "select +session_lock takes named"),
            ("DO GET_LOCK('x', 1)", "do +session_lock takes named"),
            ("EXPLAIN ANALYZE SELECT GET_LOCK('x',1)", "explain +session_lock takes named"),
            ("HANDLER t OPEN", "handler +cursor cursor"),
            ("HANDLER t OPEN AS x", "handler +cursor cursor"),
            ("HANDLER t READ FIRST", "handler cursor"),
            ("HANDLER t CLOSE", "handler cursor"),
        ],
    );
}

#[test]
fn definitions() {
    check(
        Dialect::MYSQL,
        &[
            ("CREATE TABLE t (a int)", "create ddl"),
            ("CREATE TEMPORARY TABLE t (a int)", "create ddl +temporary_table"),
            ("CREATE /* x */ TEMPORARY /* y */ TABLE t SELECT 1", "create ddl +temporary_table"),
            ("DROP TEMPORARY TABLE t", "drop ddl"),
            ("CREATE TABLE event (a int); SET autocommit=0", "create x2 ddl +setting"),
            ("CREATE TABLE temporary (a int)", "create ddl"),
            ("CREATE PROCEDURE p() BEGIN SELECT 1; SET autocommit=0; END", "create ddl"),
            ("CREATE PROCEDURE p() BEGIN SELECT 1; END; SET autocommit=0", "create x2 ddl +setting"),
            (
                "CREATE PROCEDURE p() BEGIN BEGIN END; BEGIN SELECT 1; END; END; BEGIN",
                "create x2 ddl <begin> transaction",
            ),
            (
                "CREATE DEFINER=root@localhost PROCEDURE p(IN a INT) BEGIN DECLARE CONTINUE HANDLER FOR NOT FOUND BEGIN SET x=1; END; IF a THEN SELECT CASE a WHEN 1 THEN 2 END; ELSE l: LOOP SELECT 1; END LOOP l; END IF; WHILE a DO SET a = IF(a, 1, 2); END WHILE; REPEAT SET a=1; UNTIL a END REPEAT; CASE a WHEN 1 THEN SELECT 1; END CASE; END; SELECT 1",
                "create x2 ddl",
            ),
            ("CREATE DEFINER=`root`@`%` FUNCTION f() RETURNS INT RETURN 1", "create ddl"),
            (
                "CREATE TRIGGER t BEFORE INSERT ON x FOR EACH ROW BEGIN IF NEW.a THEN SET NEW.b = 1; END IF; END",
                "create ddl",
            ),
            ("CREATE EVENT e ON SCHEDULE EVERY 1 DAY DO BEGIN DELETE FROM t; END", "create ddl"),
            (
                "CREATE DEFINER=CURRENT_USER() SQL SECURITY INVOKER PROCEDURE p() BEGIN SELECT GET_LOCK('x', 1); END",
                "create ddl",
            ),
            ("ALTER EVENT e DO BEGIN SELECT 1; END", "alter ddl"),
            // The schedule is evaluated at once; what its body asks and does is stored.
            (
                "CREATE EVENT e ON SCHEDULE AT '2031-01-01' + INTERVAL @a DAY DO SELECT @b, CONNECTION_ID()",
                "create ddl @read",
            ),
            (
                "CREATE EVENT e ON SCHEDULE AT NOW() + INTERVAL (@a := 5) DAY DO SELECT 1",
                "create ddl +user_variable @read @write",
            ),
            (
                "ALTER EVENT e ON SCHEDULE AT NOW() + INTERVAL (GET_LOCK('a', 0) + 1) DAY",
                "alter ddl +session_lock takes named",
            ),
            (
                "CREATE EVENT IF NOT EXISTS e ON SCHEDULE EVERY FOUND_ROWS() DAY DO SELECT ROW_COUNT(); SELECT 1",
                "create x2 ddl found_rows found_rows[FOUND_ROWS()]",
            ),
            ("CREATE FUNCTION f RETURNS STRING SONAME 'x.so'", "create ddl"),
            (
                "CREATE ALGORITHM=UNDEFINED DEFINER=`a`@`b` SQL SECURITY DEFINER VIEW v AS SELECT 1",
                "create ddl",
            ),
            // a body without BEGIN, and one that may be none
            ("CREATE PROCEDURE p() SELECT 1; SELECT 2", "create x2 ddl"),
            (
                "CREATE TRIGGER IF NOT EXISTS t BEFORE INSERT ON x FOR EACH ROW SET @a = 1; SELECT 2",
                "create x2 ddl",
            ),
            (
                "CREATE PROCEDURE p() IF 1 THEN SELECT 1; END IF; SELECT 2",
                "create x3 ddl doubtful +unrecognised",
            ),
            (
                "CREATE PROCEDURE p() l: LOOP LEAVE l; END LOOP; SELECT 2",
                "create x3 ddl doubtful +unrecognised",
            ),
            (
                "CREATE PROCEDURE p() AS a INT; BEGIN SELECT 1; END",
                "create x3 ddl doubtful +unrecognised transaction block",
            ),
            ("CREATE PROCEDURE begin() SELECT 1; SET autocommit=0", "create ddl doubtful +unrecognised"),
            ("CREATE PROCEDURE p() BEGIN SELECT 1;", "create ddl doubtful +unrecognised"),
            ("CREATE PROCEDURE p() BEGIN SELECT end FROM t; END", "create x2 ddl +unrecognised"),
            ("ALTER TABLE t ADD a INT", "alter ddl"),
            ("TRUNCATE t", "truncate ddl"),
            ("RENAME TABLE a TO b", "catalogue ddl"),
            ("GRANT SELECT ON t TO u", "catalogue ddl"),
            ("ANALYZE TABLE t", "maintain"),
            ("CHECK TABLE t", "maintain"),
            ("OPTIMIZE TABLE t", "maintain"),
            ("PURGE BINARY LOGS TO 'x'", "maintain"),
        ],
    );
}

#[test]
fn prepared_statements_files_and_kills() {
    check(
        Dialect::MYSQL,
        &[
            ("PREPARE s FROM 'SELECT 1'", "prepare +sql_prepare prepare 's'"),
            ("PREPARE s FROM @x", "prepare +sql_prepare @read prepare 's'"),
            ("EXECUTE s", "execute +unrecognised prepare 's'"),
            ("EXECUTE s USING @a", "execute +unrecognised @read prepare 's'"),
            ("DEALLOCATE PREPARE s", "deallocate prepare 's'"),
            ("DROP PREPARE s", "deallocate prepare 's'"),
            ("LOAD DATA INFILE 'x' INTO TABLE t", "load"),
            ("LOAD DATA LOCAL INFILE 'x' INTO TABLE t", "load load_local"),
            ("load data local infile 'x' into table t", "load load_local"),
            ("LOAD DATA LOW_PRIORITY LOCAL INFILE 'x' INTO TABLE t", "load load_local"),
            (
                "LOAD DATA /* x */ CONCURRENT LOCAL INFILE 'x' INTO TABLE t (a, @b) SET c = @b",
                "load +user_variable @write load_local",
            ),
            ("LOAD DATA INFILE 'x' INTO TABLE local", "load"),
            ("LOAD XML LOCAL INFILE 'x' INTO TABLE t", "load load_local"),
            ("LOAD INDEX INTO CACHE t", "load"),
            ("LOAD FOO", "unrecognised +unrecognised"),
            ("KILL 5", "kill kill 5"),
            ("KILL CONNECTION 5", "kill kill 5"),
            ("KILL QUERY 5", "kill kill 5 query"),
            ("kill query 4294967295;", "kill kill 4294967295 query"),
            ("KILL HARD QUERY 5", "kill kill ?"),
            ("KILL CONNECTION_ID()", "kill connection_id connection_id[CONNECTION_ID()] kill ?"),
            ("KILL 5 6", "kill kill ?"),
            ("KILL -5", "kill kill ?"),
            ("KILL '5'", "kill kill ?"),
            ("KILL @a", "kill @read kill ?"),
            ("KILL ?", "kill kill parameter"),
            ("KILL QUERY ?", "kill kill parameter query"),
            ("KILL", "kill kill ?"),
            ("KILL 99999999999999999999999", "kill kill ?"),
            ("KILL 5; KILL 6", "kill x2 kill 5"),
        ],
    );
}

#[test]
fn what_is_not_recognised_is_pinned() {
    check(
        Dialect::MYSQL,
        &[
            ("FOO", "unrecognised +unrecognised"),
            ("BINLOG 'xx'", "unrecognised +unrecognised"),
            ("COPY t FROM STDIN", "unrecognised +unrecognised"),
            ("LISTEN x", "unrecognised +unrecognised"),
            ("VACUUM", "unrecognised +unrecognised"),
            ("`SELECT` 1", "unrecognised +unrecognised"),
            ("@a", "unrecognised +unrecognised @read"),
            ("?", "unrecognised +unrecognised"),
            ("{", "unrecognised +unrecognised"),
            ("SELECT 1; FOO", "select x2 +unrecognised"),
            ("CHANGE MASTER TO MASTER_HOST='x'", "server"),
            ("SHUTDOWN", "server"),
        ],
    );
}

#[test]
fn a_verb_before_a_parenthesis_is_no_function() {
    use weir_sql::Uses;
    let calls =
        |dialect, text: &str| classify(dialect, text.as_bytes()).uses.contains(Uses::UNKNOWN_FUNCTION);
    for text in
        ["DO (SELECT 1)", "SELECT HIGH_PRIORITY (1)", "SELECT SQL_SMALL_RESULT (1)", "EXPLAIN (SELECT 1)"]
    {
        assert!(!calls(Dialect::MARIADB, text), "{text}");
    }
    assert!(!calls(Dialect::POSTGRES, "EXPLAIN (ANALYZE, BUFFERS) SELECT 1"));
    for text in ["DO f(1)", "DO (f(1))", "EXPLAIN (SELECT f(1))", "SELECT `do`(1)", "SELECT 1, explain(1)"] {
        assert!(calls(Dialect::MARIADB, text), "{text}");
    }
    assert!(calls(Dialect::POSTGRES, "EXPLAIN (ANALYZE) SELECT explain(1)"));
}

#[test]
fn a_schema_may_be_called_savepoint_and_a_query_merge() {
    let class = |text: &str| classify(Dialect::MYSQL, text.as_bytes());
    assert_eq!(class("USE savepoint").use_schema(), Some("savepoint"));
    assert_eq!(class("RELEASE SAVEPOINT savepoint").name(), Some("savepoint"));
    assert_eq!(class("ROLLBACK TO SAVEPOINT s").name(), Some("s"));
    assert!(class("WITH merge AS (SELECT 1) SELECT * FROM merge").only_reads());
    assert!(!class("WITH x AS (SELECT 1) UPDATE t, x SET t.a = 1").only_reads());
    // Parts of a string are one, and no value by themselves.
    let set = class("SET autocommit = '0' ''");
    assert_eq!(set.set().and_then(weir_sql::SetTarget::autocommit), None);
}
