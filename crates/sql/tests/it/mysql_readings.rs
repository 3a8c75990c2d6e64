//! MySQL and MariaDB: what is text, what is comment, and what may be read in several ways.
use weir_sql::{Dialect, Encoding, Kill, classify};
use weir_wire::Pin;

use crate::summary::check;

#[test]
fn what_stands_in_quotes_and_comments_is_not_seen() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT \"it's; BEGIN\"", "select share"),
            ("SELECT 'it\\'s; BEGIN'", "select share"),
            ("SELECT \"it\\\"s; BEGIN\"", "select share"),
            ("SELECT 'it''s; BEGIN', \"it\"\"s; BEGIN\"", "select share"),
            ("SELECT '\\\\'; BEGIN", "select x2 <begin> transaction"),
            ("SELECT `a;b``c;d\\`; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 1 # ; BEGIN", "select share"),
            ("SELECT 1 #\n; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 1 -- ; BEGIN", "select share"),
            ("SELECT 1 --\t; BEGIN", "select share"),
            ("SELECT 1 --\n; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 1 --", "select share"),
            ("SELECT 1--1; BEGIN", "select x2 <begin> transaction"),
            ("SELECT 1---- x; BEGIN", "select share"),
            ("SELECT 1 --x\n; BEGIN", "select x2 <begin> transaction"),
            ("SELECT /* ; BEGIN /* */ 1", "select share"),
            ("SELECT /* ; BEGIN */ 1 /**/; COMMIT", "select x2 <commit> transaction"),
            ("SELECT /*/ ; BEGIN */ 1", "select share"),
            ("SELECT 4/2*3, 4 */* x */ 2", "select share"),
            ("SELECT /*+ SET_VAR(sort_buffer_size=1) */ 1", "select share"),
            ("SELECT /*+ QB_NAME(`a`) SET_VAR(sql_mode='*') **/ 1", "select share"),
            ("SELECT _utf8mb4'x;', N'y;', n'a\\'b', x'4D', 0xFF, b'01'", "select share"),
            ("SELECT 1 \\N", "select share"),
            (";;;", "empty x0"),
        ],
    );
}

#[test]
fn a_hint_of_what_mysql_does_not_take_back_counts_as_a_set_of_it() {
    let stays = [
        "SELECT /*+ SET_VAR(insert_id=4000) */ 1",
        "SELECT /*+ set_var ( `Timestamp` = 1) */ 1",
        "INSERT /*+ SET_VAR(sql_mode='') SET_VAR(\ninsert_id = 6000) */ INTO w VALUES (1)",
        "EXPLAIN SELECT /*+ BKA(t) SET_VAR(insert_id=4000) */ 1",
        "SELECT 1; SELECT /*+ SET_VAR(timestamp=4000) */ 1",
        "SET sql_mode = (SELECT /*+ SET_VAR(insert_id=4000) */ '')",
        "SET sql_mode = ''; SELECT /*+ SET_VAR(insert_id=4000) */ ''",
        "SELECT /*+ SET_VAR(\u{131}nsert_id=4000) */ 1",
        "SELECT /*+ SET_VAR(one_that_is_not_known=4000) */ 1",
        "SELECT /*+ SET_VAR(sql_auto_is_null=1) */ 1",
    ];
    for text in stays {
        for cut in 0..text.len() {
            let mut scanner = weir_sql::Scanner::new(Dialect::MYSQL);
            scanner.feed(&text.as_bytes()[..cut]);
            scanner.feed(&text.as_bytes()[cut..]);
            let class = scanner.finish();
            assert!(class.lent_stays && class.pins.contains(Pin::Setting), "{text} at {cut}");
            assert!(!class.shareable && !class.doubtful, "{text} at {cut}");
            // It is none of what moves.
            let follows = class.set().is_some_and(|set| set.complete);
            let behind = class.heads().is_empty() || class.pins_behind().contains(Pin::Setting);
            assert!(!follows && behind, "{text} at {cut}");
        }
    }
    let goes = [
        "SELECT /*+ SET_VAR(sql_mode='insert_id') SET_VAR(max_execution_time=1) QB_NAME(timestamp) */ 1",
        "SELECT /* SET_VAR(insert_id=4000) */ '/*+ SET_VAR(insert_id=4000) */'",
    ];
    for text in goes {
        assert!(!classify(Dialect::MYSQL, text.as_bytes()).lent_stays, "{text}");
    }
    let hint = classify(Dialect::MARIADB, b"SELECT /*+ SET_VAR(insert_id=4000) */ 1");
    assert!(hint.shareable && !hint.lent_stays, "a comment to MariaDB");
}

#[test]
fn set_statement_of_what_it_leaves_counts_as_a_set_of_it() {
    for (text, stays) in [
        ("SET STATEMENT optimizer_trace='enabled=on' FOR SELECT 1", true),
        ("SET STATEMENT time_zone='x', `Profiling`=1 FOR SELECT 1", true),
        ("SET STATEMENT sql_auto_is_null=1 FOR SELECT 1", true),
        ("SET STATEMENT \u{131}dentity=1 FOR SELECT 1", true),
        ("SET STATEMENT time_zone='optimizer_trace' FOR SELECT 'optimizer_trace'", false),
    ] {
        let class = classify(Dialect::MARIADB, text.as_bytes());
        assert_eq!((class.lent_stays, class.pins.contains(Pin::Setting)), (stays, stays), "{text}");
        assert!(class.lends_settings && class.verb == weir_sql::Verb::Select, "{text}");
    }
}

#[test]
fn a_number_may_end_where_a_word_begins() {
    for text in [
        "SELECT .5INTO @f",
        "SELECT 1e1INTO @g",
        "SELECT 1.5e-3into @h",
        "SELECT 1e1FOR UPDATE",
        "SELECT 1.INTO @f",
    ] {
        assert!(classify(Dialect::MYSQL, text.as_bytes()).doubtful, "{text}");
    }
    for text in ["SELECT 2fa_codes, 1e1, 0x1F, 1e1x FROM 2fa", "SELECT 1.5e3, .5, 1e-3"] {
        assert!(!classify(Dialect::MYSQL, text.as_bytes()).doubtful, "{text}");
    }
}

#[test]
fn what_a_select_locks_writes_and_takes_is_seen_wherever_it_stands() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT 1 merge INTO OUTFILE '/tmp/x'", "select"),
            ("WITH x AS (SELECT a FROM t FOR UPDATE) SELECT * FROM x", "select share row_lock"),
            ("WITH x AS (SELECT a FROM t LOCK IN SHARE MODE) SELECT * FROM x", "select share row_lock"),
            ("WITH x AS (SELECT NEXT VALUE FOR s) SELECT * FROM x", "select share"),
        ],
    );
    let class = classify(Dialect::MYSQL, b"SELECT 1; KILL 5;");
    assert_eq!((class.kill(), class.kill_start()), (Some(Kill::Id { id: 5, query_only: false }), 10));
    let kill = Some(Kill::Id { id: 5, query_only: false });
    for text in ["KILL 5; SELECT 1", "SELECT 1; KILL 5; SELECT 2"] {
        assert_eq!(classify(Dialect::MYSQL, text.as_bytes()).kill(), kill, "{text}");
    }
    for text in ["KILL 5; KILL 6", "SELECT 1; KILL 5; KILL 6"] {
        assert_eq!(classify(Dialect::MYSQL, text.as_bytes()).kill(), kill, "{text}: the first");
    }
}

#[test]
fn ansi_quotes() {
    check(
        Dialect::MySql {
            ansi_quotes: true,
            no_backslash_escapes: false,
            mariadb: false,
            encoding: Encoding::Utf8,
        },
        &[
            ("SELECT \"it's; BEGIN\"", "select share"),
            ("SELECT \"it\\\"; BEGIN; -- \"", "select x2 <begin> transaction"),
            ("SELECT \"a\"\"b; BEGIN\"", "select share"),
            ("SELECT 'it\\'s; BEGIN'", "select share"),
            ("SELECT @\"a;b\", @'a\\'b'", "select @read"),
            ("SELECT \"get_lock\"('x', 1)", "select +session_lock takes named"),
            ("USE \"a\"\"b\"", "use +setting"),
        ],
    );
}

#[test]
fn no_backslash_escapes() {
    check(
        Dialect::MySql {
            ansi_quotes: false,
            no_backslash_escapes: true,
            mariadb: false,
            encoding: Encoding::Utf8,
        },
        &[
            ("SELECT 'it\\'; BEGIN; -- '", "select x2 <begin> transaction"),
            ("SELECT \"it\\\"; BEGIN; -- \"", "select x2 <begin> transaction"),
            ("SELECT 'it''s; BEGIN'", "select share"),
        ],
    );
}

#[test]
fn encodings_in_which_bytes_above_127_may_be_blanks() {
    check(
        Dialect::MySql {
            ansi_quotes: false,
            no_backslash_escapes: false,
            mariadb: false,
            encoding: Encoding::HighBytes,
        },
        &[
            ("SELECT 'é\\'; BEGIN'", "select share"),
            ("SELECT `é` /* é */ -- é", "select share"),
            ("SELECT é", "select doubtful +unrecognised"),
            ("SELECT 1é", "select doubtful +unrecognised"),
            ("SELECT @é", "select doubtful +unrecognised @read"),
            ("SELECT 1--é", "select doubtful +unrecognised"),
        ],
    );
}

#[test]
fn encodings_whose_characters_hide_backslashes() {
    check(
        Dialect::MySql {
            ansi_quotes: false,
            no_backslash_escapes: false,
            mariadb: false,
            encoding: Encoding::AsciiUnsafe,
        },
        &[
            ("SELECT 'é'", "select share"),
            ("SELECT 'é\\'; BEGIN'", "select doubtful +unrecognised"),
            ("SELECT `é`; BEGIN", "select x2 doubtful <begin> +unrecognised transaction"),
            ("SELECT é", "select doubtful +unrecognised"),
        ],
    );
}

#[test]
fn comments_that_are_code() {
    check(
        Dialect::MYSQL,
        &[
            ("/*!40101 SET NAMES utf8 */", "set +setting /*! {names=utf8}"),
            ("/*!40101 SET @OLD_X=@@X */;", "set +user_variable @write @@ /*! {@old_x}"),
            ("/*! SET autocommit=0 */", "set +setting /*! {autocommit=0(off)}"),
            ("SELECT 1 /*!40101 + 1 */", "select /*!"),
            ("SELECT 1 /*!40101, 2 */; BEGIN", "select x2 <begin> transaction /*!"),
            ("SELECT 1 /*!*//*!40101*/", "select /*!"),
            (
                "/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`%`*/ /*!50003 TRIGGER x BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1 */",
                "create ddl /*!",
            ),
            ("CREATE TABLE t (a int) /*!50100 PARTITION BY HASH(a) */", "create ddl /*!"),
            ("SELECT /*!40001 SQL_NO_CACHE */ * FROM t", "select /*!"),
            ("/*!40101 SELECT '*/', 1 */", "select /*!"),
            ("SELECT 1 */ 2", "select share"),
            // what may or may not be code
            ("/*!50700 SELECT 1 */", "select doubtful +unrecognised /*!"),
            ("/*!80000 SELECT 1 */", "select doubtful +unrecognised /*!"),
            ("/*!99999 SELECT 1 */ SET autocommit=0", "select doubtful +unrecognised /*!"),
            ("/*!99999 ' */ SET autocommit=0; -- '", "unrecognised doubtful +unrecognised /*!"),
            ("/*!4010 SELECT 1 */", "select doubtful +unrecognised /*!"),
            ("/*!401011 SELECT 1 */", "select doubtful +unrecognised /*!"),
            ("/*!40101 SELECT 1 /*!40101 + 1 */ */", "select doubtful +unrecognised /*!"),
            ("/*!40101 SELECT 1", "select doubtful +unrecognised /*!"),
            ("/*!", "unrecognised doubtful +unrecognised /*!"),
            ("/*M! SET autocommit=0 */", "empty x0"),
            ("/*M!100100 SET autocommit=0 */", "empty x0"),
            ("SELECT /*+ SET_VAR(sql_mode='*/') */ 1", "select doubtful +unrecognised"),
        ],
    );
}

#[test]
fn comments_that_are_code_for_mariadb() {
    check(
        Dialect::MARIADB,
        &[
            ("/*M! SET autocommit=0 */", "set +setting /*! {autocommit=0(off)}"),
            ("/*M!100100 SET autocommit=0 */", "set +setting /*! {autocommit=0(off)}"),
            ("/*M!101100 SET autocommit=0 */", "set doubtful +setting +unrecognised /*!"),
            ("/*M SET autocommit=0 */", "empty x0"),
            ("/*M*/ SET autocommit=0", "set +setting {autocommit=0(off)}"),
            ("/*!100100 SET autocommit=0 */", "set +setting /*! {autocommit=0(off)}"),
        ],
    );
}

#[test]
fn texts_that_end_too_early_are_doubtful() {
    check(
        Dialect::MYSQL,
        &[
            ("SELECT 'abc", "select doubtful +unrecognised"),
            ("SELECT 'abc\\'", "select doubtful +unrecognised"),
            ("SELECT \"abc", "select doubtful +unrecognised"),
            ("SELECT `abc", "select doubtful +unrecognised"),
            ("SELECT /* abc", "select doubtful +unrecognised"),
            ("SELECT /*", "select doubtful +unrecognised"),
            ("SELECT /*+ abc", "select doubtful +unrecognised"),
            ("BEGIN; SELECT 'abc", "begin x2 doubtful <begin> +unrecognised transaction"),
            ("SELECT 1 -- \0", "select doubtful +unrecognised"),
            ("SELECT 1 # \0; BEGIN", "select x2 doubtful <begin> +unrecognised transaction"),
            ("SELECT $a", "select doubtful +unrecognised"),
            ("SELECT 1.FROM t", "select doubtful +unrecognised"),
        ],
    );
}
