//! Prints what the scanner costs, in nanoseconds a byte and a statement.
//! `cargo run --release -p weir-sql --example ns_per_byte`

use std::hint::black_box;
use std::time::Instant;

use weir_sql::{Dialect, Scanner, classify};

fn measure(name: &str, dialect: Dialect, text: &[u8]) {
    let rounds = 200_000_000 / (text.len() + 50);
    let started = Instant::now();
    for _ in 0..rounds {
        black_box(classify(dialect, black_box(text)));
    }
    let plain_ns = started.elapsed().as_nanos() as f64 / rounds as f64;
    let started = Instant::now();
    for _ in 0..rounds {
        let mut scanner = Scanner::with_fingerprint(dialect);
        scanner.feed(black_box(text));
        black_box(scanner.finish());
    }
    let hashed_ns = started.elapsed().as_nanos() as f64 / rounds as f64;
    let len = text.len();
    println!(
        "{name:24} {len:8} bytes {plain_ns:12.1} ns {:6.2} ns/byte   with fingerprint {:6.2} ns/byte",
        plain_ns / len as f64,
        hashed_ns / len as f64
    );
}

fn main() {
    println!("scanner {} bytes, class {} bytes", size_of::<Scanner>(), size_of::<weir_sql::Class>());
    let point = b"SELECT abalance FROM pgbench_accounts WHERE aid = 1234567;";
    let report = b"SELECT o.id, o.created_at, c.name, sum(l.quantity * l.price) AS total FROM orders o JOIN customers c ON \
        c.id = o.customer_id LEFT JOIN order_lines l ON l.order_id = o.id WHERE o.status IN ('open', 'paid', 'sent') AND \
        o.created_at BETWEEN '2024-01-01' AND '2024-12-31' AND coalesce(c.region, 'none') <> 'none' GROUP BY o.id, \
        o.created_at, c.name HAVING count(*) > 3 ORDER BY total DESC LIMIT 100 OFFSET 200";
    let mut bulk = b"INSERT INTO measurements (device, at, value, note) VALUES ".to_vec();
    for i in 0..2000 {
        bulk.extend_from_slice(
            format!("({i}, '2024-05-05 12:00:{:02}', 0.{i}, 'all is well with this one'),", i % 60)
                .as_bytes(),
        );
    }
    bulk.extend_from_slice(b"(1, now(), 2, 'x')");
    let mut blob = b"INSERT INTO files (body) VALUES ('".to_vec();
    blob.resize(1_000_000, b'x');
    blob.extend_from_slice(b"')");
    let mut words = b"SELECT ".to_vec();
    for i in 0..5000 {
        words.extend_from_slice(format!("some_column_{i} AS renamed, ").as_bytes());
    }
    words.extend_from_slice(b"1 FROM t");
    for (name, dialect) in [("postgres", Dialect::POSTGRES), ("mysql", Dialect::MYSQL)] {
        println!("{name}");
        measure("begin", dialect, b"BEGIN");
        measure("point select", dialect, point);
        measure("report", dialect, report);
        measure("bulk insert", dialect, &bulk);
        measure("many names", dialect, &words);
        measure("one long string", dialect, &blob);
    }
}
