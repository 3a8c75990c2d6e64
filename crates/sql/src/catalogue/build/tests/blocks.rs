//! Blocks that are not stored, and texts that define or change code.

use super::*;

#[test]
fn a_block_leaves_what_its_body_says() {
    let c = catalogue(|b| {
        b.function(plpgsql("writes", "begin insert into logs values (1); return 1; end"));
        b.function(plpgsql("sets", "begin set work_mem = '1MB'; end"));
        b.function(plpgsql("audit", "begin perform pg_advisory_lock(1); return new; end"));
        b.trigger_of(b"orders", b"audit");
    });
    leaves_nothing(&c, "do $$ begin end $$");
    leaves_nothing(
        &c,
        "do $$ declare n int; begin insert into t values (1); n := writes(); raise notice '%', n; end $$",
    );
    leaves_nothing(
        &c,
        "DO LANGUAGE plpgsql $x$ begin set local work_mem = '1MB'; perform set_config('app.x', $$a$$, true); end $x$;",
    );
    leaves_nothing(&c, "do $$ begin insert into t values (1); commit; insert into t values (2); end $$");
    is_not_pure(&c, "do $$ begin end $$");
    pins(&c, "do $$ begin perform sets(); end $$", Pin::Setting);
    pins(&c, "do $$ begin set work_mem = '2MB'; end $$", Pin::Setting);
    let sets = read(&c, "do $$ begin set work_mem = '2MB'; end $$");
    assert_eq!(sets.touched().unwrap().sets.iter().collect::<Vec<_>>(), ["work_mem"]);
    pins(&c, "do $$ begin insert into orders values (1); end $$", Pin::SessionLock);
    pins(&c, "do $$ begin create temp table x (a int); end $$", Pin::Code);
    leaves_nothing(&c, "do $$ begin create table x (a int); end $$");
    pins(&c, "do $$ begin execute x; end $$", Pin::Code);
    pins(&c, "do $$ begin perform not_there(1); end $$", Pin::Code);
    pins(&c, "do $$ begin set work_mem = '2MB'; commit; perform 1 / 0; end $$", Pin::Code);
    pins(&c, "do $$ begin perform sets(); commit; perform 1 / 0; end $$", Pin::Code);
    pins(&c, "do language plperl $$ 1 $$", Pin::Code);
    pins(&c, "do 'begin end'", Pin::Code);
    leaves_nothing(&c, "do $$ begin end $$; do $$ begin end $$");
    assert!(read(&c, "do $$ begin create table x (a int); end $$").ddl);
    assert!(!read(&c, "do $$ begin end $$").ddl);
}

#[test]
fn a_block_that_changes_the_catalogue_for_good_leaves_what_its_code_does() {
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end"));
        b.function(plpgsql("makes", "begin create view w as select 1; end"));
        b.trigger_of(b"orders", b"locks");
    });
    for body in [
        "create type e as enum ('a'); exception when duplicate_object then null",
        "if not exists (select 1 from pg_type where typname = 'e') then create type e as (a int); end if",
        "alter table t add column if not exists k int default 1",
        "alter table t add constraint c foreign key (a) references u (id)",
        "create table if not exists z (i int primary key, v numeric(10, 2) check (v > 0)); insert into z values (1)",
        "create unlogged table z (i int)",
        "create index if not exists i on t (k); create unique index j on t (lower(k))",
        "drop table if exists z; drop function if exists f(int)",
        "truncate t",
        "grant select on t to public; revoke all on t from public; grant execute on function f(int) to a",
        "comment on table t is 'x'",
        "execute 'create table z (i int)'; execute 'alter table ' || quote_ident('ps') || ' add column k int'",
        "create schema s; create sequence q; alter table t rename to u; alter type e add value 'b'",
    ] {
        let text = format!("do $$ begin {body}; end $$");
        leaves_nothing(&c, &text);
        let class = read(&c, &text);
        assert_eq!(class.ddl, !class.only_reads(), "{text}");
        leaves_nothing(&c, &format!("select 1; {text}; select 2"));
    }
    for body in [
        "alter table orders add column k int",
        "create table z (a int default locks())",
        "create index i on t (locks())",
        "alter table t add check (locks() = 1)",
        "create table z (like orders including all)",
        "create table z partition of orders default",
        "execute 'create index i on t (locks())'",
    ] {
        let pins = read(&c, &format!("do $$ begin {body}; end $$")).pins;
        assert_eq!(pins, Pin::SessionLock.into(), "{body}");
    }
    for body in [
        "create view v as select 1",
        "create function f() returns int language sql as 'select 1'",
        "create trigger x before insert on t execute function f()",
        "alter table t enable trigger all",
        "create rule r as on insert to t do also select f()",
        "create domain d as int check (value > 0)",
        "create extension x",
        "create event trigger x on ddl_command_end execute function f()",
        "create type r as range (subtype = int)",
        "create type b (input = f, output = g)",
        "create table z as select f()",
        "import foreign schema s from server x into public",
        "perform makes()",
        "set search_path = pg_temp; create table z (a int)",
        "set local search_path = 'pg_temp', public; create table z (a int)",
        "perform set_config('search_path', x, true); create table z (a int)",
        "create temp table z (a int)",
        "create table pg_temp.z (a int)",
        "execute 'create temp table z (a int)'",
        "create table z (a int); commit",
        "execute 'create view v as select 1'",
        "create operator ### (leftarg = int, function = f)",
    ] {
        pins(&c, &format!("do $$ begin {body}; end $$"), Pin::Code);
    }
    let c = catalogue(|b| {
        b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); end"));
        b.function(plpgsql("alters", "begin alter table t add column k int; end"));
        b.event_trigger(b"locks");
    });
    pins(&c, "do $$ begin create table z (a int); end $$", Pin::SessionLock);
    pins(&c, "select alters()", Pin::SessionLock);
}

#[test]
fn a_block_beside_other_statements_leaves_what_its_body_says() {
    let c = catalogue(|b| b.function(plpgsql("locks", "begin perform pg_advisory_lock(1); return 1; end")));
    for text in [
        "do $$ begin raise notice 'x'; end $$; select 1",
        "select 1; do $$ begin raise notice 'x'; end $$",
        "begin; do $$ begin perform 1; end $$; commit",
        "do $$ begin end $$; do language plpgsql $x$ begin end $x$;",
        "/* a */ do $$ begin end $$ -- b",
        "select 1; /* a */ do $$ begin end $$ /* b */; select 'do $$ begin end $$'",
    ] {
        leaves_nothing(&c, text);
    }
    pins(&c, "select 1; do $$ begin perform locks(); end $$", Pin::SessionLock);
    pins(&c, "do $$ begin end $$; do $$ begin perform locks(); end $$; select 1", Pin::SessionLock);
    for text in [
        "select 1; do $$ begin execute x; end $$",
        "do $$ begin end $$; do language plperl $$ x $$",
        "do $$ begin end $$; do ' begin end '",
        "call locks(); do $$ begin execute x; end $$",
        "do $$ begin end $$; do $$ begin execute x; end $$",
    ] {
        pins(&c, text, Pin::Code);
    }
}

#[test]
fn statements_that_only_define_are_known() {
    let c = catalogue(|_| {});
    for text in [
        "BEGIN;ALTER TABLE \"t\" DISABLE TRIGGER USER;COMMIT",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY; CREATE POLICY p ON t USING (true)",
        "ALTER TABLE IF EXISTS ONLY s.\"T\" * FORCE ROW LEVEL SECURITY, OWNER TO a; ALTER TABLE t RENAME TO u",
        "CREATE VIEW v AS SELECT f(1) FROM t; GRANT SELECT ON v TO PUBLIC",
        "CREATE OR REPLACE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; COMMENT ON FUNCTION f() IS 'x'",
        "BEGIN; CREATE TRIGGER x BEFORE INSERT ON t FOR EACH ROW EXECUTE FUNCTION f(); COMMIT",
        "SET lock_timeout = '1s'; DROP VIEW v; CREATE VIEW v AS SELECT 1; RESET lock_timeout",
        "DROP POLICY p ON t; CREATE CONSTRAINT TRIGGER x AFTER INSERT ON t EXECUTE FUNCTION f()",
        "DROP FUNCTION f(); /* x */ CREATE TYPE mood AS ENUM ('glad', 'bad'); CREATE DOMAIN d AS int CHECK (f(value))",
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; CREATE UNLOGGED TABLE IF NOT EXISTS t \
         (a numeric(3, 2) DEFAULT f(), b int GENERATED ALWAYS AS (a + 1) STORED, CHECK (f(a))) WITH (fillfactor = 10)",
    ] {
        assert!(read(&c, text).only_defines, "{text}");
    }
    for text in [
        "CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1'; SELECT f()",
        "BEGIN; CREATE OR REPLACE FUNCTION f() RETURNS trigger LANGUAGE sql AS 'SELECT 1'; COMMIT",
        "CREATE TRIGGER x BEFORE INSERT ON t EXECUTE FUNCTION f(); INSERT INTO t VALUES (1)",
        "ALTER TABLE t DISABLE TRIGGER ALL, ADD COLUMN a int; CREATE VIEW v AS SELECT 1",
        "ALTER TABLE t VALIDATE CONSTRAINT c; CREATE VIEW v AS SELECT 1",
        "ALTER TABLE t; CREATE VIEW v AS SELECT 1",
        "CREATE VIEW v AS SELECT 1; SET CONSTRAINTS ALL IMMEDIATE",
        "CREATE MATERIALIZED VIEW v AS SELECT f(); DROP VIEW w",
        "CREATE EVENT TRIGGER x ON ddl_command_end EXECUTE FUNCTION f(); CREATE VIEW v AS SELECT 1",
        "ALTER EVENT TRIGGER x ENABLE; CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t AS SELECT f(); CREATE VIEW v AS SELECT 1",
        "CREATE TEMP TABLE t (a) AS SELECT f(); CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t PARTITION OF u FOR VALUES FROM (f(1)) TO (9); CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t (LIKE u INCLUDING ALL); CREATE VIEW v AS SELECT 1",
        "CREATE TABLE t (a int, EXCLUDE USING gist (f(1) WITH =)); CREATE VIEW v AS SELECT 1",
        "CREATE FOREIGN TABLE t (a int) SERVER s; CREATE VIEW v AS SELECT 1",
        "CREATE INDEX i ON t (f(a)); CREATE VIEW v AS SELECT 1",
        "CREATE VIEW v AS SELECT 1; DO $$ BEGIN END $$",
        "CREATE VIEW v AS SELECT 1; CALL p()",
        "CREATE VIEW v AS SELECT 1; SELECT 1",
        "CREATE EXTENSION x; CREATE VIEW v AS SELECT 1",
        "CREATE OPERATOR ### (leftarg = int, function = f); CREATE VIEW v AS SELECT 1",
        "IMPORT FOREIGN SCHEMA s FROM SERVER x INTO y; CREATE VIEW v AS SELECT 1",
    ] {
        assert!(!read(&c, text).only_defines, "{text}");
    }
    let c = catalogue(|b| {
        b.function(plpgsql("nothing", "begin end"));
        b.event_trigger(b"nothing");
    });
    assert!(!read(&c, "CREATE VIEW v AS SELECT 1; DROP VIEW v").only_defines);
}

#[test]
fn a_role_in_dollar_quotes_is_set_by_a_block() {
    let text = "do $f$ begin perform set_config($$role$$, 'boss', false); end $f$";
    let class = by(Dialect::POSTGRES, text, &catalogue(|_| {}));
    assert!(class.uses.contains(Uses::ROLE) && class.touched().unwrap().sets.is_any());
}
