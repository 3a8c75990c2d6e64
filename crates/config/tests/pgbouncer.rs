//! pgbouncer.ini compared with PgBouncer 1.26.1: every key, its default, how values are read. The facts are
//! from its `SHOW CONFIG`, its manual page and from running it.

use std::collections::BTreeSet;
use std::path::Path;
use weir_config::fate::{DATABASES, DIFFERS, PGBOUNCER, USERS, ZERO_DIFFERS};
use weir_config::registry::by_ini_name;
use weir_config::{Flavour, SETTINGS, Snapshot, Sources, Values, load_text};

/// `SHOW CONFIG`: key and default.
const SHOW_CONFIG: &[(&str, &str)] = &[
    ("admin_users", ""),
    ("application_name_add_host", "0"),
    ("auth_dbname", ""),
    ("auth_file", ""),
    ("auth_hba_file", ""),
    ("auth_ident_file", ""),
    ("auth_ldap_options", ""),
    (
        "auth_query",
        "SELECT rolname, CASE WHEN rolvaliduntil < now() THEN NULL ELSE rolpassword END FROM pg_authid WHERE rolname=$1 AND rolcanlogin",
    ),
    ("auth_type", "md5"),
    ("auth_user", ""),
    ("autodb_idle_timeout", "3600"),
    ("cancel_wait_timeout", "10"),
    ("client_idle_timeout", "0"),
    ("client_login_timeout", "60"),
    ("client_tls13_ciphers", ""),
    ("client_tls_ca_file", ""),
    ("client_tls_cert_file", ""),
    ("client_tls_ciphers", "default"),
    ("client_tls_dheparams", "auto"),
    ("client_tls_ecdhcurve", "auto"),
    ("client_tls_key_file", ""),
    ("client_tls_protocols", "secure"),
    ("client_tls_sslmode", "disable"),
    ("conffile", ""),
    ("default_pool_size", "20"),
    ("disable_pqexec", "0"),
    ("dns_max_ttl", "15"),
    ("dns_nxdomain_ttl", "15"),
    ("dns_zone_check_period", "0"),
    ("idle_transaction_timeout", "0"),
    ("ignore_startup_parameters", ""),
    ("job_name", "pgbouncer"),
    ("listen_addr", ""),
    ("listen_backlog", "128"),
    ("listen_port", "6432"),
    ("log_connections", "1"),
    ("log_disconnections", "1"),
    ("log_pooler_errors", "1"),
    ("log_stats", "1"),
    ("logfile", ""),
    ("login_notify_message", ""),
    ("max_client_conn", "100"),
    ("max_db_client_connections", "0"),
    ("max_db_connections", "0"),
    ("max_packet_size", "2147483647"),
    ("max_prepared_statements", "200"),
    ("max_user_client_connections", "0"),
    ("max_user_connections", "0"),
    ("min_pool_size", "0"),
    ("peer_id", "0"),
    ("pidfile", ""),
    ("pkt_buf", "4096"),
    ("pool_idle_timeout", "0"),
    ("pool_mode", "session"),
    ("query_timeout", "0"),
    ("query_wait_notify", "5"),
    ("query_wait_timeout", "120"),
    ("reserve_pool_size", "0"),
    ("reserve_pool_timeout", "5"),
    ("resolv_conf", ""),
    ("sbuf_loopcnt", "5"),
    ("scram_iterations", "4096"),
    ("server_check_delay", "30"),
    ("server_check_query", "<empty>"),
    ("server_connect_timeout", "15"),
    ("server_fast_close", "0"),
    ("server_idle_timeout", "600"),
    ("server_lifetime", "3600"),
    ("server_login_retry", "15"),
    ("server_reset_query", "DISCARD ALL"),
    ("server_reset_query_always", "0"),
    ("server_round_robin", "0"),
    ("server_tls13_ciphers", ""),
    ("server_tls_ca_file", ""),
    ("server_tls_cert_file", ""),
    ("server_tls_ciphers", "default"),
    ("server_tls_key_file", ""),
    ("server_tls_protocols", "secure"),
    ("server_tls_sslmode", "prefer"),
    ("so_reuseport", "0"),
    ("stats_period", "60"),
    ("stats_users", ""),
    ("syslog", "0"),
    ("syslog_facility", "daemon"),
    ("syslog_ident", "pgbouncer"),
    ("tcp_defer_accept", "1"),
    ("tcp_keepalive", "1"),
    ("tcp_keepcnt", "0"),
    ("tcp_keepidle", "0"),
    ("tcp_keepintvl", "0"),
    ("tcp_socket_buffer", "0"),
    ("tcp_user_timeout", "0"),
    ("track_extra_parameters", ""),
    ("transaction_timeout", "0"),
    ("unix_socket_dir", "/tmp"),
    ("unix_socket_group", ""),
    ("unix_socket_mode", "0777"),
    ("user", ""),
    ("verbose", ""),
];

/// Keys of a connection string in `[databases]`.
const OF_DATABASES: &[&str] = &[
    "dbname",
    "host",
    "port",
    "user",
    "password",
    "auth_user",
    "auth_query",
    "auth_dbname",
    "pool_size",
    "min_pool_size",
    "reserve_pool",
    "reserve_pool_size",
    "connect_query",
    "pool_mode",
    "query_wait_timeout",
    "load_balance_hosts",
    "max_db_connections",
    "max_db_client_connections",
    "server_lifetime",
    "client_encoding",
    "datestyle",
    "timezone",
];

/// Keys of a user in `[users]`.
const OF_USERS: &[&str] = &[
    "pool_size",
    "reserve_pool_size",
    "pool_mode",
    "max_user_connections",
    "query_timeout",
    "query_wait_timeout",
    "idle_transaction_timeout",
    "transaction_timeout",
    "client_idle_timeout",
    "max_user_client_connections",
];

const HEAD: &str =
    "[databases]\na = host=127.0.0.1 user=u\n[pgbouncer]\nauth_type = any\nlisten_addr = 127.0.0.1\n";

fn load(line: &str) -> Result<Snapshot, String> {
    load_text(Path::new("p.ini"), &format!("{HEAD}{line}\n"), &Sources::default())
        .map(|loaded| loaded.snapshot)
        .map_err(|problems| problems.to_string())
}

#[test]
fn every_key_of_pgbouncer_is_supported_or_has_a_fate() {
    for (key, _) in SHOW_CONFIG {
        let known = by_ini_name(key).is_some() || PGBOUNCER.iter().any(|(name, _)| name == key);
        assert!(known || *key == "verbose", "{key}");
    }
    for (keys, line) in [(OF_DATABASES, "[databases]\nb = host=h user=u"), (OF_USERS, "[users]\nu =")] {
        for key in keys {
            let said = load(&format!("{line} {key}=1")).err().unwrap_or_default();
            assert!(!said.contains("unknown key"), "{said}");
        }
    }
}

#[test]
fn no_key_is_known_here_that_pgbouncer_does_not_know() {
    let theirs: BTreeSet<&str> = SHOW_CONFIG.iter().map(|(key, _)| *key).collect();
    // Only on Windows; only in older versions.
    let others = ["service_name", "suspend_timeout"];
    let ours = PGBOUNCER.iter().map(|(key, _)| *key).filter(|key| !others.contains(key));
    for key in ours.chain(SETTINGS.iter().filter_map(|row| row.alias)) {
        assert!(theirs.contains(key), "{key}");
    }
    // Older versions had application_name there.
    for (table, theirs) in [(DATABASES, OF_DATABASES), (USERS, OF_USERS)] {
        for (key, _) in table.iter().filter(|(key, _)| *key != "application_name") {
            assert!(theirs.contains(key), "{key}");
        }
    }
}

#[test]
fn defaults_are_those_of_pgbouncer() {
    let values = Values::new(Flavour::Pgbouncer);
    for (key, default) in SHOW_CONFIG {
        if let Some(row) = by_ini_name(key) {
            assert_eq!(values.show(row.key), *default, "{key}");
        }
    }
}

#[test]
fn what_differs_is_a_setting_of_both() {
    let mut seen = BTreeSet::new();
    for (key, how) in DIFFERS {
        assert!(SHOW_CONFIG.iter().any(|(name, _)| name == key), "{key}");
        assert!(by_ini_name(key).is_some() || *key == "verbose", "{key}");
        assert!(!how.ends_with('.') && seen.insert(key), "{key}");
    }
}

#[test]
fn a_server_lifetime_of_0_means_one_use() {
    assert_eq!(load("server_lifetime = 0").unwrap().timeouts.server_lifetime_ms, Some(0));
    assert_eq!(load("server_lifetime = 0.5").unwrap().timeouts.server_lifetime_ms, Some(500));
    assert_eq!(load("").unwrap().timeouts.server_lifetime_ms, Some(3_600_000));
    let toml = |value: &str| {
        let text =
            format!("[databases.a]\nurl = \"postgres://a:b@h/a\"\n[pool]\nserver_lifetime = {value}\n");
        let sources = Sources::default();
        load_text(Path::new("w.toml"), &text, &sources).unwrap().snapshot.timeouts.server_lifetime_ms
    };
    assert_eq!((toml("0"), toml("5")), (None, Some(5_000)));
}

#[test]
fn a_0_means_what_it_means_there_or_is_refused() {
    let off = load(
        "query_timeout = 0\nquery_wait_timeout = 0\ntransaction_timeout = 0\nidle_transaction_timeout = 0\n\
         client_idle_timeout = 0\nclient_login_timeout = 0\nserver_idle_timeout = 0\nserver_connect_timeout = 0\n\
         max_db_connections = 0\nmax_user_connections = 0\nmin_pool_size = 0\nserver_check_delay = 0.0",
    );
    let t = off.unwrap().timeouts;
    let none = [
        t.query_timeout_ms,
        t.query_wait_timeout_ms,
        t.transaction_timeout_ms,
        t.idle_transaction_timeout_ms,
    ];
    assert_eq!(none, [0; 4]);
    let none = [
        t.client_idle_timeout_ms,
        t.client_login_timeout_ms,
        t.server_idle_timeout_ms,
        t.server_connect_timeout_ms,
    ];
    assert_eq!(none, [0; 4]);
    assert_eq!(t.server_check_delay_ms, 0);
    for key in ["default_pool_size", "max_client_conn", "listen_port", "listen_backlog"] {
        let said = load(&format!("{key} = 0")).unwrap_err();
        assert!(said.starts_with(&format!("p.ini:6:{}: {key} must be a number", key.len() + 4)), "{said}");
    }
}

#[test]
fn a_0_that_means_something_else_here_is_told() {
    let warnings = |line: &str| {
        let loaded = load_text(Path::new("p.ini"), &format!("{HEAD}{line}\n"), &Sources::default()).unwrap();
        loaded.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    for (key, how) in ZERO_DIFFERS {
        assert!(DIFFERS.iter().any(|(name, _)| name == key), "{key} is in the table of the manual");
        assert_eq!(warnings(&format!("{key} = 0")), [format!("p.ini:6:1: {key} = 0: {how}")]);
        assert_eq!(warnings(&format!("{key} = 7")), [""; 0], "{key}");
    }
    assert_eq!(warnings("server_lifetime = 0\nquery_timeout = 0\nmin_pool_size = 0"), [""; 0]);
}

#[test]
fn values_are_read_as_there_or_refused() {
    for (line, key, value) in [
        ("pool_mode = Transaction", "pool_mode", "transaction"),
        ("client_tls_sslmode = DISABLE", "client_tls_sslmode", "disable"),
        ("log_connections = 1", "log_connections", "1"),
        ("query_timeout = 0.5", "query_timeout", "0.5"),
        ("unix_socket_mode = 0600", "unix_socket_mode", "0600"),
        ("max_prepared_statements = 0", "max_prepared_statements", "0"),
    ] {
        let values = load(line).unwrap().values;
        assert_eq!(values.show(by_ini_name(key).unwrap().key), value, "{line}");
    }
    for (line, wanted) in [
        (
            "unix_socket_mode = 777",
            "p.ini:6:20: unix_socket_mode must begin with 0, as in 0777: PgBouncer reads `777` as a decimal number",
        ),
        (
            "default_pool_size = 010",
            "p.ini:6:21: default_pool_size must not begin with 0: PgBouncer reads `010` as an octal number",
        ),
        (
            "listen_port = 06432",
            "p.ini:6:15: listen_port must not begin with 0: PgBouncer reads `06432` as an octal number",
        ),
        (
            "disable_pqexec = 1",
            "p.ini:6:18: disable_pqexec = 1: Weir cannot forbid simple queries; set it to 0 if the application may send \
             several statements at once",
        ),
        (
            "client_tls_protocols = tlsv1.1\nclient_tls_sslmode = prefer",
            "p.ini:6:1: client_tls_protocols: has tlsv1.1, which is no longer safe: Weir has tlsv1.2 and tlsv1.3",
        ),
        (
            "client_tls_ecdhcurve = none\nclient_tls_sslmode = prefer",
            "p.ini:6:1: client_tls_ecdhcurve: has `none`; Weir has X25519, prime256v1, secp384r1 and X25519MLKEM768, or \
             `auto`",
        ),
    ] {
        assert_eq!(load(line).err().as_deref(), Some(wanted), "{line}");
    }
    let said = load("auth_type = LDAP").unwrap_err();
    assert!(said.contains("auth_type = ldap needs auth_ldap_options"), "{said}");
}
