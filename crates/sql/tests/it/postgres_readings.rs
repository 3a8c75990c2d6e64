//! PostgreSQL: literals whose text is not plain, and keywords that are names.
use weir_sql::{Class, Clears, Dialect, Transaction, Uses, Verb, classify};
use weir_wire::Pin;

fn class(text: &str) -> Class {
    classify(Dialect::POSTGRES, text.as_bytes())
}

/// The names of a lone SET or RESET that is understood.
fn set(text: &str) -> Option<Vec<String>> {
    let class = class(text);
    let set = class.set().filter(|set| set.complete)?;
    Some(set.assignments.iter().map(|assignment| assignment.name.clone()).collect())
}

#[test]
fn a_dollar_quote_is_no_empty_string() {
    for text in [
        "SELECT set_config($$role$$, 'boss', false)",
        "SELECT set_config($a$role$a$, 'boss', false)",
        "SELECT set_config('ro''le', 'boss', false)",
        "SELECT set_config(E'ro\\154e', 'boss', false)",
        "SELECT set_config(U&'r!006fle' UESCAPE '!', 'boss', false)",
        "SELECT set_config('ro'\n'le', 'boss', false)",
    ] {
        let class = class(text);
        let touched = class.touched().unwrap();
        assert!(touched.sets.is_any() && touched.tells.is_any(), "{text}");
        let may_be_role = class.uses.contains(Uses::ROLE) || text.contains("''");
        assert!(may_be_role && class.pins.contains(Pin::Setting), "{text}");
    }
    let class = class("SELECT current_setting($$app.x$$, true)");
    assert!(class.touched().unwrap().reads.is_any());
}

#[test]
fn a_plain_name_of_a_setting_is_still_one() {
    let class = class("SELECT set_config('app.x', $$a$$, false), current_setting('app.y', true)");
    let touched = class.touched().unwrap();
    assert!(touched.sets.contains("app.x") && !touched.sets.is_any());
    assert!(touched.reads.contains("app.y") && !touched.reads.is_any());
    assert!(!class.uses.contains(Uses::ROLE));
}

#[test]
fn a_search_path_that_may_say_pg_temp_keeps_what_is_made() {
    for text in [
        "SET search_path = $$pg_temp$$; CREATE TABLE t (a int)",
        "SET search_path = 'pg_'\n'temp'; CREATE TABLE t (a int)",
        "SET search_path = E'pg\\x5ftemp'; CREATE TABLE t (a int)",
        "SET search_path = U&'pg!005ftemp' UESCAPE '!'; CREATE TABLE t (a int)",
    ] {
        assert!(class(text).pins.contains(Pin::TemporaryTable), "{text}");
    }
    for text in [
        "SELECT set_config('search_path', $$pg_temp$$, false)",
        "SELECT set_config('search_path', E'pg\\x5ftemp', false)",
    ] {
        assert!(class(text).uses.contains(Uses::TEMPORARY_PATH), "{text}");
    }
    for text in ["SET search_path = public, \"$user\"", "SET search_path TO 'a', 'b'"] {
        assert!(!class(text).pins.contains(Pin::TemporaryTable), "{text}");
    }
}

#[test]
fn forms_of_set_may_begin_the_name_of_a_setting() {
    for name in ["transaction", "role", "schema", "names", "constraints", "characteristics"] {
        let wanted = Some(vec![format!("{name}.tenant")]);
        for text in [
            format!("SET {name}.tenant = 'b'"),
            format!("SET {name} . tenant TO 'b'"),
            format!("SET SESSION {name}.tenant = 'b'"),
            format!("RESET {name}.tenant"),
        ] {
            assert_eq!(set(&text), wanted, "{text}");
            let class = class(&text);
            assert!(class.touched().unwrap().tells.contains(&format!("{name}.tenant")), "{text}");
            assert!(class.transaction.is_none() && class.pins.contains(Pin::Setting), "{text}");
        }
    }
    assert!(!class("SET LOCAL transaction.tenant = 'b'").pins.contains(Pin::Setting));
    // Others are not read, and pin.
    for name in ["session", "local", "time", "xml"] {
        let text = format!("SET {name}.tenant = 'b'");
        assert!(class(&text).pins.contains(Pin::Unrecognised), "{text}");
    }
}

#[test]
fn forms_of_set_are_what_they_were() {
    let of = |text| class(text).transaction;
    assert_eq!(of("SET TRANSACTION READ ONLY"), Some(Transaction::SetTransaction));
    assert_eq!(of("SET LOCAL TRANSACTION ISOLATION LEVEL SERIALIZABLE"), Some(Transaction::SetTransaction));
    assert!(class("SET CONSTRAINTS ALL DEFERRED").pins.is_empty());
    for (text, name) in [
        ("SET ROLE boss", "role"),
        ("SET role = boss", "role"),
        ("SET NAMES 'utf8'", "client_encoding"),
        ("SET SCHEMA 's'", "search_path"),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", "transaction characteristics"),
    ] {
        assert_eq!(set(text), Some(vec![name.to_owned()]), "{text}");
    }
}

#[test]
fn a_prepared_statement_may_be_called_transaction_or_prepare() {
    for text in [
        "PREPARE transaction AS SELECT 1",
        "PREPARE transaction (int, f) AS SELECT $1",
        "prepare TRANSACTION as select 1",
    ] {
        let class = class(text);
        assert!(class.verb == Verb::Prepare && class.pins.contains(Pin::SqlPrepare), "{text}");
        assert!(class.statement_names && class.transaction.is_none(), "{text}");
        assert_eq!(class.name(), Some("transaction"), "{text}");
        assert!(!class.uses.contains(Uses::UNKNOWN_FUNCTION), "{text}");
    }
    for text in ["PREPARE TRANSACTION 'x'", "PREPARE TRANSACTION $$x$$", "PREPARE TRANSACTION E'x'"] {
        let class = class(text);
        assert_eq!(class.transaction, Some(Transaction::PrepareTwoPhase), "{text}");
        assert!(class.pins.is_empty() && class.name().is_none(), "{text}");
    }
    for text in ["DEALLOCATE prepare", "DEALLOCATE PREPARE prepare", "DEALLOCATE PREPARE;"] {
        assert_eq!(class(text).name(), Some("prepare"), "{text}");
    }
    assert_eq!(class("DEALLOCATE PREPARE s").name(), Some("s"));
    assert!(class("DEALLOCATE PREPARE ALL").clears.contains(Clears::DEALLOCATE_ALL));
    assert_eq!(class("LISTEN savepoint").name(), Some("savepoint"));
}

#[test]
fn a_query_behind_with_may_be_called_values() {
    let reads = |text: &str| class(text).only_reads();
    for text in [
        "WITH values AS (DELETE FROM t RETURNING a) SELECT a FROM \"values\"",
        "WITH x AS (SELECT 1), values AS (DELETE FROM t RETURNING a) SELECT a FROM x",
        "WITH RECURSIVE values AS (INSERT INTO t VALUES (1) RETURNING a) TABLE \"values\"",
    ] {
        assert!(!reads(text) && class(text).uses.contains(Uses::WITH_WRITES), "{text}");
    }
    for text in [
        "WITH update AS (SELECT 1) SELECT * FROM \"update\"",
        "WITH delete(a) AS (SELECT 1), merge AS (SELECT 2) SELECT * FROM delete",
        "WITH x AS (SELECT 1) VALUES (1)",
        "WITH RECURSIVE x AS (SELECT 1) SEARCH DEPTH FIRST BY a SET o SELECT * FROM x",
    ] {
        assert!(reads(text), "{text}");
    }
    assert_eq!(class("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x").verb, Verb::Insert);
}

#[test]
fn what_was_prepared_in_two_phases_may_change_the_catalogue() {
    assert!(class("COMMIT PREPARED 'x'").ddl);
    assert!(!class("ROLLBACK PREPARED 'x'").ddl && !class("PREPARE TRANSACTION 'x'").ddl);
}

#[test]
fn an_explained_creation_changes_the_catalogue() {
    for text in [
        "EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1",
        "EXPLAIN (ANALYZE, COSTS OFF) CREATE MATERIALIZED VIEW v AS SELECT 1",
        "EXPLAIN ANALYZE SELECT 1 AS a INTO t",
    ] {
        assert!(class(text).ddl, "{text}");
    }
    for text in ["EXPLAIN ANALYZE INSERT INTO t VALUES (1)", "EXPLAIN MERGE INTO t USING s ON true"] {
        assert!(!class(text).ddl, "{text}");
    }
}

#[test]
fn temporary_tables_may_keep_code() {
    let keeps = |text: &str| !class(text).makes_no_code;
    for text in [
        "CREATE TEMP TABLE t (a int, b text DEFAULT f('x'))",
        "CREATE TEMP TABLE t (a int DEFAULT 1 + f())",
        "CREATE TEMP TABLE t (a int CHECK (f(a)))",
        "CREATE TEMP TABLE t (a int, b int GENERATED ALWAYS AS (f(a)) STORED)",
        "CREATE TEMP TABLE t (LIKE s INCLUDING ALL)",
        "CREATE TEMP TABLE t () INHERITS (s)",
        "CREATE TABLE pg_temp.t (a int DEFAULT f())",
        "CREATE TEMP TABLE t PARTITION OF s FOR VALUES IN (1)",
        "CREATE TEMP VIEW v AS SELECT f()",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql SET search_path = public, pg_temp AS 'SELECT 1'",
        "CREATE TRIGGER x BEFORE INSERT ON pg_temp.t EXECUTE FUNCTION f()",
        "ALTER TABLE pg_temp.t ALTER a SET DEFAULT f()",
    ] {
        assert!(keeps(text), "{text}");
    }
    for text in [
        "CREATE TEMP TABLE t (a int, b numeric(10, 2) NOT NULL)",
        "CREATE TEMP TABLE t (a int DEFAULT 0, b text DEFAULT 'x' NOT NULL, c bool DEFAULT false)",
        "CREATE TEMP TABLE t AS SELECT a FROM s WHERE a LIKE 'x' -- default",
        "CREATE TEMP TABLE t (a, b) ON COMMIT DROP AS VALUES (1, 2)",
        "CREATE TABLE pg_temp.t (a int)",
        "CREATE TEMP SEQUENCE s",
        "SELECT 1 AS a INTO TEMP t",
    ] {
        assert!(!keeps(text), "{text}");
    }
}
