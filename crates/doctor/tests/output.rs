//! The output: text that fits a terminal with the worst first, JSON with stable names, explanations.

mod fake;

use fake::Fake;
use weir_doctor::text::{self, Style};
use weir_doctor::{Question, Report, State, explain};

const PLAIN: Style = Style { colour: false, all: false };

fn poor() -> Report {
    let fake = Fake::healthy().without_private_tables();
    fake.open_files(1024, 4096);
    fake.put("/proc/sys/net/core/somaxconn", "128");
    fake.put("/sys/kernel/mm/transparent_hugepage/enabled", "");
    std::fs::remove_file(fake.path().join("proc/loadavg")).unwrap();
    let ask = Question { workers: 2, ..Question::serve(10_000, 20) };
    Report::make(&fake.root(), ask, &[])
}

#[test]
fn the_worst_comes_first_and_lines_fit() {
    let report = poor();
    assert_eq!(
        (report.worst(), report.count(State::Blocker), report.count(State::Warn)),
        (State::Blocker, 1, 1)
    );
    let text = text::report(&report, PLAIN);
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} is not in\n{text}"));
    assert!(
        text.starts_with(
            "10,000 clients and 20 servers, weir serve\n1 blocker, 1 warning, 2 unknown, 26 ok\n"
        ),
        "{text}"
    );
    assert!(at("BLOCKER   open_files") < at("WARN      accept_backlog"));
    assert!(at("WARN      accept_backlog") < at("unknown   pid_max: /proc/loadavg: no such file"));
    assert!(at("unknown   pid_max") < at("ok        local_ports"));
    assert!(at("# sysctl.d: /etc/sysctl.d/90-weir.conf") < at("\nnet.core.somaxconn = 32768\n"));
    assert!(at("# systemd: ") < at("\n[Service]\nLimitNOFILE=1048576\n"));
    let copied = at("CURES");
    for line in text[..copied].lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(!text.contains('\x1b'));
    assert!(text::report(&report, Style { colour: true, all: false }).contains("\x1b[1;31mBLOCKER"));
    let all = text::report(&report, Style { colour: false, all: true });
    assert!(all.contains("  read    /proc/sys/fs/nr_open = 1048576"), "{all}");
}

#[test]
fn json_has_stable_names() {
    let report = poor();
    let json: serde_json::Value = serde_json::from_str(&report.to_json()).unwrap();
    assert_eq!(json["version"], 1);
    assert_eq!(json["state"], "blocker");
    assert_eq!(json["asked"]["clients"], 10_000);
    assert_eq!(
        (&json["asked"]["program"], &json["asked"]["unit"]),
        (&"serve".into(), &"weir.service".into())
    );
    assert_eq!(json["summary"], serde_json::json!({ "blocker": 1, "warn": 1, "unknown": 2, "ok": 26 }));
    let finding = &json["findings"][0];
    assert_eq!((&finding["id"], &finding["state"]), (&"open_files".into(), &"blocker".into()));
    assert_eq!(finding["read"][0]["source"], "/proc/self/limits");
    assert_eq!(finding["read"][0]["value"], "Max open files: soft 1024, hard 4096");
    assert_eq!(finding["breaks"][0]["connections"], 4028);
    assert_eq!(finding["breaks"][0]["message"], "cannot accept: Too many open files (os error 24)");
    let places: Vec<_> =
        finding["cures"].as_array().unwrap().iter().map(|cure| cure["place"].as_str().unwrap()).collect();
    assert_eq!(places, ["limits.d", "systemd", "docker", "kubernetes"]);
    assert!(finding["database"].is_null() && finding["summary"].is_string());
    let places: Vec<_> =
        json["sheets"].as_array().unwrap().iter().map(|sheet| sheet["place"].as_str().unwrap()).collect();
    assert_eq!(places, ["sysctl.d", "limits.d", "systemd", "docker", "kubernetes", "weir.toml"]);
    // Ids are names for other programs: once each.
    let ids: std::collections::BTreeSet<_> =
        json["findings"].as_array().unwrap().iter().map(|f| f["id"].to_string()).collect();
    assert_eq!(ids.len(), 30);
}

#[test]
fn messages_of_the_field_are_explained() {
    for (text, id) in [
        ("errno 11", "no_thread"),
        ("psql: error: FATAL:  LDAP authentication failed for user \"ann\"", "ldap_pam"),
        ("Can't create a new thread (errno 11)", "no_thread"),
        ("2004 (24)", "open_files"),
        ("EMFILE", "open_files"),
        ("24", "open_files"),
        ("2003 (99)", "local_ports"),
        ("ERROR 2003 (HY000): Can't connect to MySQL server on 'db-1.example.com:3306' (99)", "local_ports"),
        ("2003 (110)", "backlog_full"),
        ("2003 (111)", "refused"),
        ("ERROR 2003 (HY000): Can't connect to MySQL server on '127.0.0.1:3306' (111)", "refused"),
        ("errno = 12", "map_count"),
        ("pthread_create() for thread #32352 failed. errno = 12", "map_count"),
        ("too many connections", "my_too_many_connections"),
        ("1040", "my_too_many_connections"),
        ("08004", "my_too_many_connections"),
        ("SQLSTATE[08004] [1040] Too many connections", "my_too_many_connections"),
        ("FATAL: sorry, too many clients already", "pg_too_many_clients"),
        (
            "psycopg2.OperationalError: connection to server failed: FATAL:  sorry, too many clients already",
            "pg_too_many_clients",
        ),
        ("remaining connection slots", "pg_too_many_clients"),
        ("53300", "pg_too_many_clients"),
        (
            "FATAL:  remaining connection slots are reserved for non-replication superuser connections",
            "pg_too_many_clients",
        ),
        ("too many connections for role \"app\"", "pg_connection_limit"),
        ("no more connections allowed (max_client_conn)", "max_client_conn"),
        ("query_wait_timeout", "query_wait_timeout"),
        ("1203", "my_user_connections"),
        (
            "ERROR 4031 (HY000): The client was disconnected by the server because of inactivity.",
            "my_gone_away",
        ),
        ("(2006, 'MySQL server has gone away')", "my_gone_away"),
        ("nf_conntrack: table full, dropping packet.", "conntrack_full"),
        ("kernel: TCP: out of memory -- consider tuning tcp_mem", "tcp_memory"),
        ("57P05", "pg_idle_timeouts"),
        ("bind: Address already in use", "address_in_use"),
        (
            "java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available, request timed out after 30001ms.",
            "application_pool",
        ),
    ] {
        let found = explain::find(text);
        assert_eq!(found.first().map(|entry| entry.id), Some(id), "{text}");
    }
}

#[test]
fn a_longer_sign_leaves_no_room_for_its_part() {
    let found = explain::find("FATAL: 53300 too many connections for role \"app\"");
    let ids: Vec<_> = found.iter().map(|entry| entry.id).collect();
    assert_eq!(ids, ["pg_connection_limit"]);
}

#[test]
fn what_is_no_message_is_not_explained() {
    for text in [
        "",
        "   ",
        "hello",
        "everything is fine",
        "query took 1040 ms and returned 24 rows",
        "listening on port 2003",
        "thread 11 of 12 started",
    ] {
        assert!(
            explain::find(text).is_empty(),
            "{text}: {:?}",
            explain::find(text).first().map(|entry| entry.id)
        );
    }
}

#[test]
fn weirs_own_refusals_are_explained() {
    use weir_wire::FaultKind as K;
    for (kind, id) in [
        (K::TooManyClients, "max_client_conn"),
        (K::QueryWaitTimeout, "query_wait_timeout"),
        (K::ServerLoginFailed, "server_login_retry"),
        (K::LoginTimeout, "client_login_timeout"),
    ] {
        let message = weir_postgres::error::words_of(kind).message;
        assert_eq!(explain::best(message).map(|entry| entry.id), Some(id), "{message}");
    }
    let (code, _, message) = weir_mysql::error::of(K::QueryWaitTimeout);
    assert_eq!(
        explain::best(&format!("ERROR {code} (08004): {message}")).map(|entry| entry.id),
        Some("query_wait_timeout")
    );
}

#[test]
fn a_log_is_read_line_by_line() {
    let log = "2026-01-01 LOG all is well\n\
               2026-01-01 FATAL:  sorry, too many clients already\n\
               2026-01-02 kernel: nf_conntrack: nf_conntrack: table full, dropping packet\n\
               2026-01-03 FATAL:  sorry, too many clients already\n";
    let found = explain::find_in_log(log.lines());
    let seen: Vec<_> = found.iter().map(|(entry, times, _)| (entry.id, *times)).collect();
    assert_eq!(seen, [("pg_too_many_clients", 2), ("conntrack_full", 1)]);
    let text = text::explanation(found[0].0, Some(&found[0].2));
    assert!(text.contains("  symptom ") && text.contains("  cure    a pooler in transaction mode"), "{text}");
    for line in text.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

#[test]
fn the_manual_names_every_check() {
    let manual = include_str!("../../../docs/src/doctor.md");
    for (id, _, _) in weir_doctor::checks::CHECKS {
        assert!(manual.contains(&format!("`{id}`")), "{id}");
    }
    for protocol in weir_config::Protocol::ALL {
        for finding in weir_doctor::database::judge(protocol, &Default::default(), &Question::serve(1, 1)) {
            assert!(manual.contains(&format!("`{}`", finding.id)), "{}", finding.id);
        }
    }
}
