//! PostgreSQL: which names in front of a parenthesis are calls.
use weir_sql::{Dialect, Uses, classify};

fn calls(text: &str) -> bool {
    classify(Dialect::POSTGRES, text.as_bytes()).uses.contains(Uses::UNKNOWN_FUNCTION)
}

#[test]
fn an_alias_of_a_relation_calls_nothing() {
    for text in [
        "SELECT * FROM (VALUES (1)) v(a)",
        "SELECT * FROM (SELECT 1) s(a) WHERE a = 1",
        "SELECT * FROM unnest(ARRAY[1]) cols(a)",
        "SELECT x.a FROM t x(a, b)",
        "SELECT x.a FROM s.t x(a, b), \"S\".\"T\" \"Y\"(c)",
        "SELECT * FROM ONLY (t) x(a)",
        "SELECT * FROM ONLY t x(a), LATERAL (SELECT x.a) y(b)",
        "SELECT * FROM t * x(a)",
        "SELECT * FROM generate_series(1, 2) WITH ORDINALITY t(a, b)",
        "SELECT * FROM generate_series(1, 2) WITH ORDINALITY AS value(a, b)",
        "SELECT * FROM json_to_recordset('[]') x(a int, b numeric(10, 2))",
        "SELECT * FROM json_to_recordset('[]') AS id(a int, b text)",
        "SELECT * FROM json_to_record('{}') AS (a int)",
        "SELECT * FROM a JOIN (VALUES (1)) v(i) ON a.i = v.i AND (v.i > 1) LEFT JOIN b w(j) USING (i)",
        "SELECT * FROM a CROSS JOIN b y(i) NATURAL JOIN c z(k), d q(l)",
        "SELECT * FROM (a JOIN b x(i) ON true) y(j)",
        "SELECT * FROM ROWS FROM (generate_series(1, 2), unnest(ARRAY[1])) r(a, b)",
        "SELECT (SELECT count(*) FROM (VALUES (1)) v(a)), EXISTS (SELECT FROM t x(a))",
        "WITH q AS (SELECT * FROM (VALUES (1)) v(a)) SELECT * FROM q w(b)",
        "UPDATE t SET v = s.v FROM (VALUES (1, 2)) s(id, v) WHERE t.id = s.id",
        "DELETE FROM t USING (VALUES (1)) d(id) WHERE t.id = d.id",
        "MERGE INTO t USING (VALUES (1, 2)) s(id, v) ON t.id = s.id WHEN MATCHED THEN UPDATE SET v = s.v",
        "INSERT INTO t SELECT * FROM (VALUES (1, 2)) z(id, v) ON CONFLICT (id) DO NOTHING",
        "EXPLAIN SELECT * FROM (VALUES (1)) v(a)",
        "SELECT * FROM (VALUES (1)) nextval(a)",
    ] {
        assert!(!calls(text), "{text}");
        let class = classify(Dialect::POSTGRES, text.as_bytes());
        assert!(class.pins.is_empty() && !class.uses.contains(Uses::NEXTVAL), "{text}");
    }
}

#[test]
fn in_front_of_a_relation_and_elsewhere_a_name_is_called() {
    for text in [
        "SELECT * FROM f(1)",
        "SELECT * FROM f(1) x(a)",
        "SELECT * FROM a, f(1)",
        "SELECT * FROM (VALUES (1)) v(a), f(1)",
        "SELECT * FROM t x(a) JOIN f(1) ON true",
        "SELECT * FROM t x(a), LATERAL f(x.a)",
        "SELECT * FROM s.f(1) y(b)",
        "SELECT * FROM ROWS FROM (f(1), unnest(ARRAY[1])) x(a, b)",
        "SELECT * FROM ROWS FROM (unnest(ARRAY[1]), f(1)) x(a, b)",
        "SELECT * FROM (SELECT f(1)) s(a)",
        "SELECT * FROM (VALUES (f(1))) s(a)",
        "SELECT * FROM (VALUES (1), (f(1))) s(a)",
        "SELECT * FROM (VALUES (1, f(1))) s(a)",
        "SELECT * FROM (f(1) JOIN b ON true) s(a)",
        "SELECT * FROM (b JOIN f(1) ON true) s(a)",
        "SELECT * FROM x WHERE f(1)",
        "SELECT * FROM (SELECT 1) WHERE f(1)",
        "SELECT * FROM x y WHERE f(1)",
        "SELECT * FROM x JOIN y ON f(1)",
        "SELECT * FROM x JOIN y ON (a) AND f(1)",
        "SELECT * FROM x JOIN y USING (a) WHERE f(1)",
        "SELECT * FROM x GROUP BY f(1)",
        "SELECT * FROM x ORDER BY f(1)",
        "SELECT * FROM x ORDER BY (a), f(1)",
        "SELECT * FROM x HAVING f(1)",
        "SELECT * FROM x LIMIT f(1)",
        "SELECT * FROM x WINDOW w AS (ORDER BY f(1))",
        "SELECT * FROM x UNION SELECT f(1)",
        "SELECT a, CASE WHEN (a) THEN f(1) END FROM x",
        "SELECT CASE WHEN a IS DISTINCT FROM b THEN f(1) ELSE 1 END",
        "SELECT a IS DISTINCT FROM f(1)",
        "SELECT a IS DISTINCT FROM b AND f(1)",
        "SELECT a IS DISTINCT FROM (b) AND f(1)",
        "SELECT a IS DISTINCT FROM b, f(1)",
        "SELECT a IS DISTINCT FROM (b), f(1)",
        "SELECT a IS DISTINCT FROM NOT f(1)",
        "SELECT a IS DISTINCT FROM OPERATOR(pg_catalog.-) f(1)",
        "SELECT a IS DISTINCT FROM b OPERATOR(pg_catalog.-) f(1)",
        "SELECT extract(year FROM f(1))",
        "SELECT trim(both FROM f(1))",
        "SELECT substring(a FROM b FOR f(1))",
        "SELECT substring(a FROM (b) FOR f(1))",
        "SELECT overlay(a PLACING b FROM f(1) FOR 2)",
        "SELECT extract(year FROM a AT TIME ZONE f(1))",
        "UPDATE t SET a = 1 FROM b WHERE f(1)",
        "UPDATE t SET a = 1 FROM b x(c) WHERE true RETURNING f(1)",
        "DELETE FROM t WHERE f(1)",
        "DELETE FROM t USING b x(c) WHERE (a) = f(1)",
        "DELETE FROM t RETURNING f(1)",
        "MERGE INTO t USING b x(c) ON true WHEN MATCHED AND f(1) THEN DELETE",
        "INSERT INTO t SELECT * FROM (VALUES (1)) z(id) ON CONFLICT (id) DO UPDATE SET a = f(1)",
        "SELECT * FROM x WHERE a BETWEEN 1 AND f(1)",
        "SELECT * FROM x ORDER BY a USING <, f(1)",
        "SELECT f(1)",
        "SELECT (a), f(1)",
    ] {
        assert!(calls(text), "{text}");
    }
    // Deeper than lists are followed.
    let (open, close) = ("(".repeat(40), ")".repeat(40));
    assert!(calls(&format!("SELECT {open}SELECT 1 FROM (VALUES (1)) v(a){close}")));
}

#[test]
fn an_operator_with_its_schema_calls_nothing_by_its_word() {
    for text in [
        "SELECT a OPERATOR(pg_catalog.~) 'x' FROM t",
        "SELECT relname OPERATOR(pg_catalog.~) '^(x)$' COLLATE pg_catalog.default FROM pg_catalog.pg_class",
        "SELECT a operator ( \"pg_catalog\" . <= ) 1",
        "SELECT OPERATOR(pg_catalog.-) 1",
        "SELECT 1 OPERATOR(*) 2, 3 OPERATOR(pg_catalog.=) 4",
    ] {
        assert!(!calls(text), "{text}");
    }
    for text in [
        "SELECT operator(1)",
        "SELECT operator()",
        "SELECT operator(a)",
        "SELECT operator(pg_catalog.a)",
        "SELECT operator(- 1)",
        "SELECT operator(a.b, c)",
        "SELECT s.operator(1)",
        "SELECT \"operator\"(1)",
        "SELECT a OPERATOR(s.~) 'x'",
        "SELECT a OPERATOR(\"PG_CATALOG\".~) 'x'",
        "SELECT a OPERATOR(x.pg_catalog.~) 'x'",
        "SELECT a OPERATOR(pg_catalog.~) f(1)",
        "SELECT OPERATOR(pg_catalog.-) f(1)",
    ] {
        assert!(calls(text), "{text}");
    }
}
