use super::*;

fn set(name: &str, reset: bool, local: bool) -> Effects {
    let names = [SetName { name: name.into(), reset, local }];
    Effects { pins: Pin::Setting.into(), names: Some(names.into()), ..Effects::default() }
}

#[test]
fn who_makes_code_and_runs_something_in_one_text_stays() {
    let stays = |text: &str| {
        let effects = Effects::of_text(weir_sql::Dialect::POSTGRES, text.as_bytes(), None).0;
        effects.pins.contains(Pin::Code)
    };
    assert!(stays("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT f()"));
    assert!(stays("CREATE TRIGGER x BEFORE INSERT ON t EXECUTE FUNCTION f(); INSERT INTO t VALUES (1)"));
    assert!(stays("DROP FUNCTION f(int); ALTER FUNCTION g(int) VOLATILE; SELECT g(1)"));
    assert!(stays("CREATE /* drop */ FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT f()"));
    assert!(!stays("DROP FUNCTION f(int); CREATE TABLE d (id int)"));
    assert!(!stays("CREATE TABLE d (id int); DROP VIEW v"));
}

#[test]
fn only_settings_that_stay_behind_pin() {
    let mut t = Traces::default();
    let follows = |name: &str| name == "timezone";
    t.apply(&set("timezone", false, false), Outcome::Settled, follows);
    t.apply(&set("work_mem", false, true), Outcome::Settled, follows);
    t.apply(&set("work_mem", true, false), Outcome::Settled, follows);
    assert!(t.pins().is_empty());
    t.apply(&set("work_mem", false, false), Outcome::Settled, follows);
    assert!(t.pins().contains(Pin::Setting));
    let reset_all = Effects { clears: Clears::RESET_ALL, ..Effects::default() };
    t.apply(&reset_all, Outcome::InTransaction, follows);
    assert!(t.pins().contains(Pin::Setting), "a ROLLBACK would bring the setting back");
    t.apply(&reset_all, Outcome::Settled, follows);
    assert!(t.pins().is_empty());
    let role = |reset| Effects { role: true, ..set("role", reset, false) };
    t.apply(&role(true), Outcome::Settled, follows);
    assert!(t.pins().is_empty(), "there was none");
    t.apply(&role(false), Outcome::Settled, follows);
    t.apply(&role(true), Outcome::Settled, follows);
    t.apply(&reset_all, Outcome::Settled, follows);
    assert!(t.pins().contains(Pin::Setting), "RESET ALL leaves the role");
}

#[test]
fn what_a_transaction_has_dropped_holds_its_server_until_it_has_ended() {
    let mut t = Traces::default();
    for pin in [Pin::TemporaryTable, Pin::Listen, Pin::SqlPrepare] {
        t.apply(&Effects { pins: pin.into(), ..Effects::default() }, Outcome::Settled, |_| false);
        let drops = Effects { releases: pin.into(), ..Effects::default() };
        t.apply(&drops, Outcome::InTransaction, |_| false);
        // DEALLOCATE is not undone.
        assert_eq!(t.pins().contains(pin), pin != Pin::SqlPrepare, "{pin:?}");
        t.apply(&drops, Outcome::Settled, |_| false);
        assert!(!t.pins().contains(pin), "{pin:?}");
    }
}

#[test]
fn a_set_that_was_not_understood_pins() {
    let mut t = Traces::default();
    t.apply(&Effects { pins: Pin::Setting.into(), ..Effects::default() }, Outcome::Settled, |_| true);
    assert!(t.pins().contains(Pin::Setting));
}

#[test]
fn a_change_of_the_catalogue_behind_a_temporary_table_is_one() {
    let known = || Proof {
        catalogue: Arc::default(),
        state: 1,
        current: true,
        unknown_code: weir_sql::catalogue::UnknownCode::Pin,
        changed: false,
    };
    let changes = |text: &str| Effects::of_text(Dialect::POSTGRES, text.as_bytes(), Some(known())).0.ddl;
    assert!(!changes("create temp table t2 (a int)"));
    assert!(!changes("select 1 as a into temp t2"));
    assert!(changes("create temp table t2 (a int default f())"));
    assert!(changes("create temp view v2 as select f()"));
    assert!(changes(
        "create or replace function f() returns int language sql set search_path = pg_temp as ''"
    ));
    assert!(changes("create policy p on pg_temp.t using (f())"));
    assert!(changes("create temp table t2 (a int); drop view v"));
    assert!(changes("create temp table t2 (a int); create rule r as on insert to t do also nothing"));
}

#[test]
fn what_a_prepared_transaction_did_counts_when_it_is_committed() {
    let of = |text: &str| Effects::of_text(Dialect::POSTGRES, text.as_bytes(), None).0;
    let committed = of("COMMIT PREPARED 'x'");
    assert!(committed.ddl && committed.accounts && !committed.creates);
    assert!(!of("ROLLBACK PREPARED 'x'").ddl && !of("PREPARE TRANSACTION 'x'").ddl);
    assert!(of("EXPLAIN ANALYZE CREATE TABLE t AS SELECT 1").creates);
}

#[test]
fn tables_indexes_and_sequences_without_code_of_users_bring_none() {
    use weir_sql::catalogue::{Builder, Function, Language, Volatility};
    let mut catalogue = Builder::new(Dialect::POSTGRES);
    catalogue.system_function(b"now", false);
    for (name, body) in [
        ("sets", "begin perform set_config('app.tenant', '1', false); return 1; end"),
        ("adds", "begin return 1; end"),
    ] {
        catalogue.system_function(b"set_config", false);
        catalogue.function(Function {
            name: name.as_bytes(),
            language: Language::PlPgSql,
            volatility: Volatility::Volatile,
            extension: b"",
            body: body.as_bytes(),
        });
    }
    let catalogue = Arc::new(catalogue.finish());
    let gives = |current: bool, text: &str| {
        let unknown_code = weir_sql::catalogue::UnknownCode::Pin;
        let proof =
            Proof { catalogue: Arc::clone(&catalogue), state: 0, current, unknown_code, changed: false };
        Effects::of_text(Dialect::POSTGRES, text.as_bytes(), Some(proof)).0.gives_code
    };
    for text in [
        "CREATE TABLE IF NOT EXISTS \"public\".\"m\" (version bigint not null primary key, dirty boolean not null)",
        "-- CreateTable\nCREATE UNLOGGED TABLE p (id serial, at timestamptz DEFAULT now());\nCREATE UNIQUE INDEX i ON p (at)",
        "ALTER TABLE ONLY p ALTER COLUMN a SET DEFAULT 1, ADD CONSTRAINT f FOREIGN KEY (a) REFERENCES q (a)",
        "CREATE INDEX CONCURRENTLY IF NOT EXISTS i ON p (lower(a) text_pattern_ops)",
        "CREATE TABLE p (a int DEFAULT adds())",
        "TRUNCATE p",
        "DROP FUNCTION f()",
    ] {
        assert!(!gives(true, text), "{text}");
    }
    for text in [
        "CREATE TABLE p (a int DEFAULT sets())",
        "ALTER TABLE p ADD CHECK (sets() > a)",
        "CREATE INDEX i ON p (sets())",
        "CREATE /* table */ EXTENSION x",
        "CREATE TABLE p (a int); CREATE EXTENSION x",
        "CREATE /* TABLE */ TYPE t (input = a, output = b)",
        "CREATE VIEW v AS SELECT 1",
        "CREATE TRIGGER t BEFORE INSERT ON p EXECUTE FUNCTION adds()",
        "CREATE FOREIGN TABLE p (a int) SERVER s",
        "IMPORT FOREIGN SCHEMA s FROM SERVER x INTO y",
        "ALTER TYPE t ADD VALUE 'x'",
        "ALTER TABLE p ENABLE ROW LEVEL SECURITY",
    ] {
        assert!(gives(true, text), "{text}");
    }
    assert!(
        gives(false, "CREATE TABLE p (a int DEFAULT f())"),
        "a function of this name may have been made since"
    );
}

#[test]
fn locks_are_gone_when_all_kinds_are_freed() {
    let mut t = Traces::default();
    let take = |takes| Effects { pins: Pin::SessionLock.into(), takes, ..Effects::default() };
    let free = |frees| Effects { frees, ..Effects::default() };
    t.apply(&take(Locks::ADVISORY), Outcome::Settled, |_| true);
    t.apply(&take(Locks::PG_BACKUP), Outcome::Settled, |_| true);
    t.apply(&free(Locks::ADVISORY), Outcome::InTransaction, |_| true);
    assert!(t.pins().contains(Pin::SessionLock));
    t.apply(&free(Locks::PG_BACKUP), Outcome::InTransaction, |_| true);
    assert!(t.pins().is_empty());
}

#[test]
fn discard_all_leaves_nothing() {
    let mut t = Traces::default();
    for &pin in Pin::ALL {
        t.pin(pin);
    }
    let discard = Effects { clears: Clears::DISCARD_ALL, ..Effects::default() };
    t.apply(&discard, Outcome::Doubtful, |_| true);
    assert!(!t.pins().is_empty());
    t.apply(&discard, Outcome::Settled, |_| true);
    assert!(t.pins().is_empty());
}

#[test]
fn what_functions_are_compiled_by_keeps_the_server_until_its_client_leaves() {
    let of = |text: &[u8]| Effects::of_text(Dialect::POSTGRES, text, None).0;
    for text in [
        "set plpgsql.variable_conflict = use_column",
        "select set_config('PLpgSQL.print_strict_params', 'on', false)",
    ] {
        let mut traces = Traces::default();
        traces.apply(&of(text.as_bytes()), Outcome::Settled, |_| true);
        assert!(traces.is_lasting() && traces.pins().contains(Pin::Setting), "{text}");
    }
    let mut traces = Traces::default();
    traces.apply(&of(b"set plpgsqlx.y = 1"), Outcome::Settled, |_| true);
    assert!(!traces.is_lasting());
}

#[test]
fn what_outlives_discard_all_closes_its_server() {
    use weir_sql::catalogue::{Builder, Function, Language, Volatility};
    let with = |name: &'static str, extension: &'static str, volatility| {
        let mut catalogue = Builder::new(Dialect::POSTGRES);
        let (name, extension, body) = (name.as_bytes(), extension.as_bytes(), &b""[..]);
        catalogue.function(Function { name, language: Language::Compiled, volatility, extension, body });
        let (name, body) = (&b"runs_any"[..], &b"begin execute $1; end"[..]);
        let (language, volatility) = (Language::PlPgSql, Volatility::Volatile);
        catalogue.function(Function { name, language, volatility, extension: b"", body });
        Arc::new(catalogue.finish())
    };
    let lasts = |catalogue: &Arc<weir_sql::catalogue::Catalogue>, text: &str| {
        let unknown_code = weir_sql::catalogue::UnknownCode::Pin;
        let catalogue = Arc::clone(catalogue);
        let proof = Proof { catalogue, state: 0, current: true, unknown_code, changed: false };
        let effects = Effects::of_text(Dialect::POSTGRES, text.as_bytes(), Some(proof)).0;
        let mut traces = Traces::default();
        traces.apply(&effects, Outcome::Settled, |_| true);
        // It takes it away, as far as the database says.
        let discard = Effects { clears: Clears::DISCARD_ALL, ..Effects::default() };
        traces.apply(&discard, Outcome::Settled, |_| true);
        traces.is_lasting() && !traces.pins().is_empty()
    };
    let quiet = with("soundex", "fuzzystrmatch", Volatility::Volatile);
    for text in [
        "SELECT dblink_connect('c', 'host=x')",
        "SELECT pg_replication_origin_session_setup('o')",
        "SELECT pg_backup_start('b')",
        "SELECT pg_create_logical_replication_slot('s', 'pgoutput', true)",
    ] {
        assert!(lasts(&quiet, text), "{text}");
    }
    // Where nothing is compiled but what leaves nothing, code can only do what DISCARD ALL takes away.
    assert!(!lasts(&quiet, "SELECT runs_any('x')") && !lasts(&quiet, "SELECT soundex('x')"));
    let unread = with("remembers", "of_a_stranger", Volatility::Volatile);
    assert!(lasts(&unread, "SELECT remembers(1)") && lasts(&unread, "SELECT runs_any('x')"));
    assert!(!lasts(&unread, "SELECT pg_advisory_lock(1)"));
    let weak = with("isn_weak", "isn", Volatility::Immutable);
    assert!(lasts(&weak, "SELECT isn_weak(true)"));
}
