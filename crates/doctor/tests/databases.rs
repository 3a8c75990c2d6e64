//! The checks of databases, on recorded answers of servers.

use weir_config::Protocol;
use weir_doctor::database::connection::Facts;
use weir_doctor::database::{Place, judge};
use weir_doctor::{Cure, Finding, Question, State};

fn ask(servers: u64) -> Question {
    Question::serve(10_000, servers)
}

/// What PostgreSQL 15 says with its defaults.
fn postgres(changes: &[(&str, &str)]) -> Facts {
    let mut facts: Facts = [
        ("max_connections", "100"),
        ("superuser_reserved_connections", "3"),
        ("server_version_num", "150018"),
        ("idle_session_timeout", "0"),
        ("idle_in_transaction_session_timeout", "0"),
        ("statement_timeout", "0"),
        ("lock_timeout", "0"),
        ("tcp_keepalives_idle", "7200"),
        ("tcp_keepalives_interval", "75"),
        ("tcp_keepalives_count", "9"),
        ("connections", "10"),
        ("superuser", "0"),
        ("role", "app"),
        ("database", "shop"),
        ("role_limit", "-1"),
        ("database_limit", "-1"),
    ]
    .into_iter()
    .collect();
    changes.iter().for_each(|(name, value)| facts.put(*name, Some((*value).to_owned())));
    facts
}

/// What MySQL 9 says with its defaults.
fn mysql(changes: &[(&str, &str)]) -> Facts {
    let mut facts: Facts = [
        ("version", "9.7.0"),
        ("max_connections", "151"),
        ("max_user_connections", "0"),
        ("thread_handling", "one-thread-per-connection"),
        ("thread_cache_size", "9"),
        ("back_log", "151"),
        ("wait_timeout", "28800"),
        ("interactive_timeout", "28800"),
        ("max_connect_errors", "1000000"),
        ("skip_name_resolve", "OFF"),
        ("open_files_limit", "1048576"),
        ("table_open_cache", "4000"),
        ("max_prepared_stmt_count", "16382"),
        ("max_execution_time", "0"),
        ("account", "app@%"),
        ("status.threads_connected", "11"),
        ("status.max_used_connections", "20"),
        ("status.connection_errors_max_connections", "0"),
        ("status.threads_created", "20"),
        ("status.connections", "5000"),
    ]
    .into_iter()
    .collect();
    changes.iter().for_each(|(name, value)| facts.put(*name, Some((*value).to_owned())));
    facts
}

fn one(protocol: Protocol, facts: &Facts, ask: &Question, id: &str) -> Finding {
    judge(protocol, facts, ask).into_iter().find(|finding| finding.id == id).unwrap()
}

fn pg(changes: &[(&str, &str)], servers: u64, id: &str) -> Finding {
    one(Protocol::Postgres, &postgres(changes), &ask(servers), id)
}

fn my(changes: &[(&str, &str)], servers: u64, id: &str) -> Finding {
    one(Protocol::Mysql, &mysql(changes), &ask(servers), id)
}

fn says(finding: &Finding, words: &str) -> bool {
    finding.breaks.iter().any(|what| what.message.contains(words))
}

#[test]
fn defaults_are_good_for_a_pool_of_twenty() {
    for (protocol, facts) in [(Protocol::Postgres, postgres(&[])), (Protocol::Mysql, mysql(&[]))] {
        for finding in judge(protocol, &facts, &ask(20)) {
            assert_eq!(finding.state, State::Ok, "{finding:?}");
        }
    }
}

#[test]
fn a_server_that_says_nothing_is_no_panic() {
    for protocol in [Protocol::Postgres, Protocol::Mysql] {
        let findings = judge(protocol, &Facts::default(), &ask(20));
        assert!(findings.iter().any(|finding| finding.state == State::Unknown), "{findings:?}");
    }
}

#[test]
fn postgres_slots_are_less_than_max_connections() {
    const ID: &str = "pg_max_connections";
    assert_eq!(pg(&[], 87, ID).state, State::Ok);
    assert_eq!(pg(&[], 88, ID).state, State::Warn, "others have ten");
    let found = pg(&[], 98, ID);
    assert_eq!((found.state, found.breaks[0].connections), (State::Blocker, Some(97)));
    assert!(says(
        &found,
        "remaining connection slots are reserved for non-replication superuser connections (53300)"
    ));
    assert!(says(&found, "sorry, too many clients already"));
    assert_eq!(pg(&[("superuser", "1")], 98, ID).state, State::Warn);
    let found = pg(&[("server_version_num", "160002"), ("reserved_connections", "7")], 91, ID);
    assert_eq!((found.state, found.breaks[0].connections), (State::Blocker, Some(90)));
    assert!(says(&found, "roles with the SUPERUSER attribute"));
}

#[test]
fn postgres_limits_of_roles_and_databases() {
    const ID: &str = "pg_connection_limits";
    let found =
        pg(&[("role_limit", "50"), ("database_limit", "30"), ("connections_of_database", "9")], 31, ID);
    assert_eq!(found.state, State::Blocker);
    assert!(says(&found, "too many connections for database \"shop\""));
    assert_eq!(found.cures, [Cure::advice("ALTER DATABASE shop CONNECTION LIMIT 31;")]);
    assert_eq!(pg(&[("role_limit", "50"), ("connections_of_role", "40")], 20, ID).state, State::Warn);
    assert_eq!(pg(&[("role_limit", "0"), ("superuser", "1")], 20, ID).state, State::Ok);
}

#[test]
fn postgres_timeouts_that_cut_pooled_connections() {
    let found = pg(&[("idle_session_timeout", "60000")], 20, "pg_idle_session_timeout");
    assert_eq!(found.state, State::Warn);
    assert!(says(&found, "57P05"));
    assert!(
        found.cures.contains(&Cure::weir("pool.server_idle_timeout = 30   # Weir closes first")),
        "{found:?}"
    );
    assert_eq!(pg(&[("idle_session_timeout", "3600000")], 20, "pg_idle_session_timeout").state, State::Ok);
    let found = pg(&[("statement_timeout", "5000"), ("source.statement_timeout", "user")], 20, "pg_timeouts");
    assert_eq!((found.state, found.summary.as_str()), (State::Ok, "statement_timeout 5 s"));
    assert!(says(&found, "57014") && found.read[1].value.contains("for the user"), "{found:?}");
}

#[test]
fn several_urls_share_the_servers() {
    let mut ask = ask(300);
    ask.targets = ["10.0.0.1:1", "10.0.0.2:1", "10.0.0.3:1", "10.0.0.4:1"]
        .map(|address| weir_net::Target::Tcp(address.parse().unwrap()))
        .to_vec();
    assert_eq!(one(Protocol::Postgres, &postgres(&[]), &ask, "pg_max_connections").state, State::Ok);
}

#[test]
fn mysql_connections() {
    const ID: &str = "my_max_connections";
    assert_eq!(my(&[], 141, ID).state, State::Ok);
    assert_eq!(my(&[], 142, ID).state, State::Warn, "others have ten");
    let found = my(&[], 152, ID);
    assert_eq!((found.state, found.breaks[0].connections), (State::Blocker, Some(151)));
    assert!(says(&found, "ERROR 1040 (HY000): Too many connections"));
    assert_eq!(my(&[("status.connection_errors_max_connections", "7")], 20, ID).state, State::Warn);
}

#[test]
fn mysql_limits_of_users() {
    const ID: &str = "my_user_limits";
    let found = my(&[("max_user_connections", "10")], 20, ID);
    assert_eq!(found.state, State::Blocker);
    assert!(says(&found, "ERROR 1203 (42000): User app already has more than 'max_user_connections'"));
    let found = my(&[("max_user_connections", "10"), ("account.max_user_connections", "30")], 20, ID);
    assert_eq!(found.state, State::Ok, "the account's own limit replaces the general one");
    assert!(says(&found, "ERROR 1226 (42000): User 'app'"));
    assert_eq!(my(&[("account.max_connections", "100")], 20, ID).state, State::Warn);
}

#[test]
fn mysql_timeouts_and_caches() {
    let found = my(&[("wait_timeout", "60")], 20, "my_wait_timeout");
    assert_eq!(found.state, State::Warn);
    assert!(says(&found, "ERROR 4031 (HY000)"));
    let found = my(&[("wait_timeout", "60"), ("version", "10.11.19-MariaDB")], 20, "my_wait_timeout");
    assert!(says(&found, "2006"));
    assert_eq!(my(&[("interactive_timeout", "60")], 20, "my_interactive_timeout").state, State::Warn);
    let found = my(&[("max_execution_time", "2000"), ("max_statement_time", "0.000000")], 20, "my_timeouts");
    assert_eq!(found.summary, "max_execution_time 2 s");
    assert_eq!(my(&[("max_connect_errors", "100")], 20, "my_host_errors").state, State::Warn);
    let found = my(&[("max_connect_errors", "100"), ("skip_name_resolve", "ON")], 20, "my_host_errors");
    assert_eq!(found.state, State::Ok);
    assert_eq!(my(&[("status.threads_created", "4000")], 20, "my_thread_cache").state, State::Warn);
    let found = my(
        &[("status.threads_created", "4000"), ("thread_handling", "pool-of-threads")],
        20,
        "my_thread_cache",
    );
    assert_eq!(found.state, State::Ok);
}

#[test]
fn mysql_bounds_of_the_whole_server() {
    assert_eq!(my(&[("open_files_limit", "5000")], 20, "my_open_files").state, State::Warn);
    assert_eq!(my(&[("open_files_limit", "100")], 20, "my_open_files").state, State::Blocker);
    assert_eq!(my(&[], 81, "my_prepared_statements").state, State::Ok);
    let found = my(&[], 82, "my_prepared_statements");
    assert_eq!((found.state, found.breaks[0].connections), (State::Warn, Some(81)));
    assert!(says(&found, "ERROR 1461 (42000)"));
    let found = my(&[], 152, "my_back_log");
    assert_eq!(found.state, State::Warn);
}

#[test]
fn cures_for_weir_name_settings_that_exist() {
    let short = [("idle_session_timeout", "1000")];
    let mut findings = judge(Protocol::Postgres, &postgres(&short), &ask(500));
    findings.extend(judge(Protocol::Mysql, &mysql(&[("wait_timeout", "60")]), &ask(500)));
    let mut seen = 0;
    for cure in findings.iter().flat_map(|finding| &finding.cures) {
        if let Cure::Line { place: weir_doctor::Place::Weir, text } = cure {
            let key = text.split(" = ").next().unwrap();
            assert!(weir_config::registry::by_full_name(key).is_some(), "{key}");
            seen += 1;
        }
    }
    assert!(seen >= 5, "{seen}");
}

#[test]
fn a_database_that_cannot_be_reached_is_a_blocker_that_is_explained() {
    // Nobody listens on port 1.
    let place = Place::parse("postgres://app:hunter2@127.0.0.1:1/app").unwrap();
    let findings = weir_doctor::database::check(&place, &ask(20));
    assert_eq!((findings.len(), findings[0].id, findings[0].state), (1, "database_login", State::Blocker));
    assert!(says(&findings[0], "server is down, listens on another address"), "{findings:?}");
    assert!(!format!("{findings:?}").contains("hunter2"));
    assert_eq!(findings[0].subject.as_deref(), Some("postgres://app@127.0.0.1:1/app"));
}

#[test]
fn urls_are_shown_without_their_password() {
    for url in [
        "postgres://app:hunter2@127.0.0.1/app",
        "mysql://app:hunter2@[::1]:1/app",
        "postgres://u:hunter2@/d?host=/tmp",
    ] {
        let place = Place::parse(url).unwrap();
        assert!(!place.shown.contains("hunter2") && !format!("{place:?}").contains("hunter2"), "{place:?}");
    }
    let error = Place::parse("postgres://app:hunter2@no such host:1/app").unwrap_err();
    assert!(!error.contains("hunter2"), "{error}");
}
