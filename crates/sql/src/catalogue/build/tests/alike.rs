//! What one answer may serve several clients for.

use super::*;

#[test]
fn only_what_is_the_same_for_all_is_alike() {
    let function = |name: &'static str, language, volatility, body: &'static str| Function {
        name: name.as_bytes(),
        language,
        volatility,
        extension: b"",
        body: body.as_bytes(),
    };
    let c = catalogue(|b| {
        b.function(function("twice", Language::Sql, Volatility::Immutable, "select $1 * 2"));
        b.function(function("computes", Language::Compiled, Volatility::Immutable, "computes"));
        b.view(b"plain", Language::Sql, b"SELECT t.a, lower(t.b) AS b FROM t;");
        b.view(b"dice", Language::Sql, b"SELECT random() AS r;");
        b.view(b"over_dice", Language::Sql, b"SELECT dice.r FROM dice;");
        b.view(b"today", Language::Sql, b"SELECT CURRENT_DATE AS d;");
        b.text_of(b"guarded", On::Read, Language::Expression, b"(who = CURRENT_USER)");
        b.foreign(b"far");
        b.reads(b"parts", b"far");
        b.varying(b"made");
    });
    for text in [
        "select c from t where id = 1",
        "select count(*), lower(b) from t group by 2 having count(*) > 1 order by 1 limit 3",
        "select * from plain join u using (a) where computes(a) = 1",
        "select 1 as now, uuid from t where random = 'now()' -- random()",
        "values (1, 'x'), (2, 'y')",
        "with x as (select a from t) select * from x",
    ] {
        assert!(read(&c, text).is_alike(), "{text}: {:?}", read(&c, text));
    }
    for text in [
        "select random()",
        "select pg_catalog.random() from t",
        "select \"random\"() from t",
        "select now()",
        "select current_timestamp from t",
        "select localtime",
        "select gen_random_uuid()",
        "select * from t where u = current_user",
        "select user",
        "select * from t tablesample system (1)",
        "select * from pg_class",
        "select * from \"pg_locks\"",
        "select * from information_schema.tables",
        "select twice(1)",
        "select r from dice",
        "select r from over_dice",
        "select d from today",
        "select * from guarded",
        "select * from far",
        "select * from parts",
        "select * from made",
        "select a from t for update",
        "select current_setting('x.y')",
        "select nextval('s')",
        "select txid_current()",
        "select pg_backend_pid()",
        "select unheard_of()",
        "insert into t values (1)",
        "select 1; select 2",
        "show timezone",
        "begin",
    ] {
        assert!(!read(&c, text).is_alike(), "{text}");
    }
    // Without a catalogue nothing is known.
    assert!(!crate::classify(Dialect::POSTGRES, b"select c from t where id = 1").is_alike());
}

#[test]
fn the_same_of_mysql() {
    for mariadb in [false, true] {
        let dialect = Dialect::MySql {
            ansi_quotes: false,
            no_backslash_escapes: false,
            mariadb,
            encoding: crate::Encoding::Utf8,
        };
        let mut builder = Builder::new(dialect);
        builder.view(b"plain", Language::Routine, b"select `t`.`a` AS `a` from `db`.`t`");
        builder.view(b"dice", Language::Routine, b"select rand() AS `r`");
        builder.view(b"lists", Language::Routine, b"select `id` from `information_schema`.`processlist`");
        builder.varying(b"made");
        let c = Arc::new(builder.finish());
        let alike = |text: &str| by(dialect, text, &c).is_alike();
        for text in [
            "select c from t where id = 1",
            "select uuid, user from `t`",
            "select concat(a, lower(b)) from plain",
        ] {
            assert!(alike(text), "{text}: {:?}", by(dialect, text, &c));
        }
        for text in [
            "select rand()",
            "select uuid() from t",
            "select now(6)",
            "select current_timestamp",
            "select utc_date from t",
            "select default(a) from t",
            "select user()",
            "select database()",
            "select @@version",
            "select @a",
            "select last_insert_id()",
            "select connection_id()",
            "select found_rows()",
            "select sql_calc_found_rows a from t",
            "select * from information_schema.tables",
            "select * from `performance_schema`.x",
            "select * from mysql.user",
            "select /*! a */ from t",
            "select sleep(1) from t",
            "select a from t for update",
            "select a from t lock in share mode",
            "select a into outfile 'x' from t",
            "select db.f(1)",
            "select r from dice",
            "select * from `lists`",
            "select * from made",
            "select a from t; select b from t",
        ] {
            assert!(!alike(text), "{text}");
        }
    }
}
