//! The whole text of a scrape, compared with `tests/exposition.txt`. After a deliberate change:
//! `WEIR_UPDATE=1 cargo test -p weir-metrics`.

use weir_metrics::{Metrics, PoolLabels, PoolNow, expose};
use weir_wire::{ErrorCode, FaultKind, Pin};

#[test]
fn golden() {
    let metrics = Metrics::new(2, &["postgres", "mysql"]);
    let one = metrics.worker(0, "postgres");
    one.wing.client_connections.add(2);
    one.wing.client_accepts.add(5);
    one.wing.logins_ok.add(3);
    one.wing.logins_failed.inc();
    one.wing.client_received_bytes.add(1234);
    one.wing.faults(FaultKind::QueryWaitTimeout).inc();
    one.request_duration.record_ns(250_000);
    one.request_duration.record_ns(2_000_000_000);
    one.wait_duration.record_ns(500);
    metrics.worker(1, "postgres").wing.client_connections.inc();
    let turns = metrics.turns(1);
    turns.workers.set(1);
    [0, 1, 3, 2000].into_iter().for_each(|events| turns.events.record(events));
    let pool = metrics.pool(1, "postgres", "a\"pp\\\n", "ann");
    pool.requests.add(7);
    pool.servers_active.inc();
    pool.pins(Pin::TemporaryTable).inc();
    metrics.pool(0, "mysql", "shop", "bob").servers_idle.inc();

    // Kinds and reasons are lists of their own in `wire`; a new one is no change of this text.
    let is_unused_kind = |line: &&str| {
        (line.starts_with("weir_faults_total") || line.starts_with("weir_pins_total")) && line.ends_with(" 0")
    };
    one.transaction_duration.record_ns(3_000_000);
    one.login_duration.record_ns(40_000);
    one.errors.note(ErrorCode::of_sqlstate(b"22P02").expect("a code"));
    let labels = PoolLabels { protocol: "mysql", database: "shop".to_owned(), user: "bob".to_owned() };
    let now = PoolNow {
        labels,
        up: Some(false),
        longest_wait_ns: 1_500_000_000,
        requests_ns: 250_000,
        waits_ns: 7_000,
    };
    let text = expose(&metrics, "1.2.3", vec![now]);
    let text: String =
        text.lines().filter(|line| !is_unused_kind(line)).flat_map(|line| [line, "\n"]).collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/exposition.txt");
    if std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap();
    for (line, (found, wanted)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(found, wanted, "line {} of the scrape", line + 1);
    }
    assert_eq!(text.len(), expected.len());
}

#[test]
fn every_family_is_named_once_and_described() {
    let metrics = Metrics::new(1, &["postgres"]);
    metrics.pool(0, "postgres", "app", "ann");
    let text = expose(&metrics, "0", Vec::new());
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")) {
        let name = line.split(' ').next().unwrap();
        assert!(name.starts_with("weir_"), "{name}");
        assert!(seen.insert(name.to_owned()), "{name} twice");
        assert!(text.contains(&format!("# HELP {name} ")), "{name} has no help");
    }
    assert!(text.ends_with("# EOF\n"));
    assert!(text.contains("weir_faults_total{protocol=\"postgres\",kind=\"client_gone\"} 0"));
}

/// The manual's list says what the table says.
#[test]
fn reference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/src/metrics.md");
    let text = weir_metrics::reference::markdown();
    if std::env::var_os("WEIR_UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == text,
        "docs/src/metrics.md is stale; WEIR_UPDATE=1 renews it"
    );
}
