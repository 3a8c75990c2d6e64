//! From a draft to a snapshot: the combined effect of settings.

use crate::draft::Draft;
use crate::ident::group_number;
use crate::listen::{UnixFile, check_socket_path, listeners, tcp, tcp_on};
use crate::problem::{Problems, Warning, WarningKind, relative_to};
use crate::realms::{check_realms, empty_realm, realms};
use crate::registry::Key;
use crate::url::postgres_socket;
use crate::values::{AUTO, Flavour};
use crate::{Auth, Limits, ListenAt, Listener, Log, Protocol, Realm, Snapshot, Tcp, Timeouts, Values};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use weir_session::AuthMethod;

/// A snapshot, and what the operator should know about it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the proxy runs by.
    pub snapshot: Snapshot,
    /// In the order of the files.
    pub warnings: Vec<Warning>,
}

/// Puts a draft together.
pub(crate) fn build(mut draft: Draft) -> Result<Loaded, Problems> {
    let mut realms = realms(&mut draft);
    check_realms(&mut draft, &realms);
    let listeners = all_listeners(&mut draft, &realms);
    let client_tls = crate::tls::client_tls(&mut draft, &listeners);
    let http = http(&mut draft);
    let http_token = crate::token::token(&mut draft);
    check_log_level(&mut draft);
    if !draft.findings.problems.is_empty() {
        return Err(Problems(draft.findings.problems));
    }
    let values = draft.values;
    let workers = match values.size(Key::Workers) {
        0 => std::thread::available_parallelism().map_or(1, usize::from).min(weir_wire::limits::WORKERS),
        n => n,
    };
    let path = |key: Key| Some(values.text(key)).filter(|p| !p.is_empty());
    let snapshot = Snapshot {
        workers,
        listeners,
        http_required: values.is_given(Key::HttpListen),
        http,
        http_token,
        mysql: realms
            .remove(&Protocol::Mysql)
            .unwrap_or_else(|| empty_realm(Auth::Method(AuthMethod::LikeServer))),
        postgres: realms
            .remove(&Protocol::Postgres)
            .unwrap_or_else(|| empty_realm(Auth::Method(AuthMethod::ScramSha256))),
        limits: limits(&values),
        timeouts: timeouts(&values),
        pins: crate::pins::in_general(&values),
        client_tls,
        tcp: tcp_options(&values),
        log: log(&values, draft.folder.as_deref()),
        pidfile: path(Key::Pidfile).map(|p| relative_to(draft.folder.as_deref(), p)),
        values,
    };
    Ok(Loaded { snapshot, warnings: draft.findings.warnings })
}

fn all_listeners(draft: &mut Draft, realms: &BTreeMap<Protocol, Realm>) -> Vec<Listener> {
    let mut all = Vec::new();
    let problems_before = draft.findings.problems.len();
    for (protocol, key) in [(Protocol::Postgres, Key::PostgresListen), (Protocol::Mysql, Key::MysqlListen)] {
        let has_databases = realms.get(&protocol).is_some_and(|realm| !realm.is_empty());
        let given = draft.values.is_given(key);
        let pgbouncer = draft.values.flavour() == Flavour::Pgbouncer;
        if protocol == Protocol::Postgres && pgbouncer && !given {
            all.extend(pgbouncer_listeners(draft));
        } else if has_databases {
            all.extend(listed(draft, protocol, key));
        } else if given && draft.findings.problems.is_empty() {
            let text = format!("{}.listen has no effect: there is no {0} database", protocol.name());
            draft.findings.warn(WarningKind::Doubtful, draft.places.get(&key).cloned(), text);
        }
    }
    let in_use = realms.values().any(|realm| !realm.is_empty());
    if all.is_empty() && in_use && draft.findings.problems.len() == problems_before {
        let settings = match draft.values.flavour() {
            Flavour::Weir => "postgres.listen or mysql.listen",
            Flavour::Pgbouncer => "listen_addr or unix_socket_dir",
        };
        draft.findings.problem(None, format!("no address to listen on: set {settings}"));
    }
    all
}

fn listed(draft: &mut Draft, protocol: Protocol, key: Key) -> Vec<Listener> {
    let unix = unix_file(draft);
    let mut all: Vec<Listener> = Vec::new();
    for item in draft.values.list(key).to_vec() {
        match listeners(protocol, &item, unix) {
            Ok(found) => all.extend(found.into_iter().filter(|l| !all.contains(l)).collect::<Vec<_>>()),
            Err(text) => {
                let place = draft.places.get(&key).cloned();
                draft.findings.problem(place, format!("listen: `{item}` {text}"));
            }
        }
    }
    all
}

fn pgbouncer_listeners(draft: &mut Draft) -> Vec<Listener> {
    let port = u16::try_from(draft.values.count(Key::ListenPort)).unwrap_or(6432);
    let mut all: Vec<Listener> = Vec::new();
    for host in draft.values.list(Key::ListenAddr).to_vec() {
        match tcp_on(&host, port) {
            Ok(found) => all.extend(found.into_iter().map(|(at, optional)| Listener {
                protocol: Protocol::Postgres,
                at: ListenAt::Tcp(at),
                optional,
            })),
            Err(text) => {
                let place = draft.places.get(&Key::ListenAddr).cloned();
                draft.findings.problem(place, format!("listen_addr: `{host}` {text}"));
            }
        }
    }
    let directory = draft.values.text(Key::UnixSocketDir);
    if !directory.is_empty() {
        let path = postgres_socket(directory, port);
        let unix = unix_file(draft);
        match check_socket_path(&path) {
            Ok(()) => all.push(Listener { protocol: Protocol::Postgres, at: unix.at(path), optional: false }),
            Err(text) => {
                let place = draft.places.get(&Key::UnixSocketDir).cloned();
                draft.findings.problem(place, format!("unix_socket_dir {text}"));
            }
        }
    }
    all
}

fn unix_file(draft: &mut Draft) -> UnixFile {
    let mode = u32::try_from(draft.values.count(Key::UnixSocketMode)).unwrap_or(0o777);
    let name = draft.values.text(Key::UnixSocketGroup).to_owned();
    let group = if name.is_empty() { Ok(None) } else { group_number(&name) };
    let problem = match group {
        Ok(None) if !name.is_empty() => format!("unix_socket_group: this machine has no group `{name}`"),
        Err(error) => format!("unix_socket_group: cannot look up group `{name}`: {error}"),
        Ok(_) => String::new(),
    };
    if !problem.is_empty() {
        draft.findings.problem(draft.places.get(&Key::UnixSocketGroup).cloned(), problem);
    }
    let group = group.ok().flatten();
    UnixFile { mode, group }
}

/// A word alone that is no level would be taken for the name of a program's part, and nothing else would be
/// logged.
fn check_log_level(draft: &mut Draft) {
    let level = draft.values.text(Key::LogLevel).to_owned();
    let is_directive = |word: &str| {
        matches!(word, "off" | "error" | "warn" | "info" | "debug" | "trace")
            || word.contains('=')
            || word.starts_with("weir")
            || word.contains('[')
    };
    if let Some(word) = level.split(',').map(str::trim).find(|word| !is_directive(word)) {
        let place = draft.places.get(&Key::LogLevel).cloned();
        let name = draft.name_of(Key::LogLevel);
        let near = match word.to_ascii_lowercase().as_str() {
            "warning" => "; did you mean `warn`?",
            "verbose" => "; did you mean `debug`?",
            "notice" | "log" => "; did you mean `info`?",
            "fatal" | "panic" | "critical" | "err" => "; did you mean `error`?",
            _ => "",
        };
        let text = format!(
            "{name} must be error, warn, info, debug or trace, or filters such as info,weir_proxy=debug, not `{word}`{near}"
        );
        draft.findings.problem(place, text);
    }
}

fn http(draft: &mut Draft) -> Vec<(SocketAddr, bool)> {
    let mut all = Vec::new();
    for item in draft.values.list(Key::HttpListen).to_vec() {
        match tcp(&item, 9930) {
            Ok(found) => all.extend(found),
            Err(text) => {
                let place = draft.places.get(&Key::HttpListen).cloned();
                draft.findings.problem(place, format!("http.listen: `{item}` {text}"));
            }
        }
    }
    all
}

fn limits(values: &Values) -> Limits {
    Limits {
        max_client_conn: Some(values.size(Key::MaxClientConn)).filter(|&n| n as u64 != AUTO),
        max_prepared_statements: values.size(Key::MaxPreparedStatements),
    }
}

fn timeouts(values: &Values) -> Timeouts {
    Timeouts {
        query_wait_timeout_ms: values.millis(Key::QueryWaitTimeout),
        query_timeout_ms: values.millis(Key::QueryTimeout),
        transaction_timeout_ms: values.millis(Key::TransactionTimeout),
        idle_transaction_timeout_ms: values.millis(Key::IdleTransactionTimeout),
        client_idle_timeout_ms: values.millis(Key::ClientIdleTimeout),
        client_read_timeout_ms: values.millis(Key::ClientReadTimeout),
        client_login_timeout_ms: values.millis(Key::ClientLoginTimeout),
        cancel_wait_timeout_ms: values.millis(Key::CancelWaitTimeout),
        server_connect_timeout_ms: values.millis(Key::ServerConnectTimeout),
        server_idle_timeout_ms: values.millis(Key::ServerIdleTimeout),
        server_lifetime_ms: server_lifetime_ms(values),
        server_login_retry_ms: values.millis(Key::ServerLoginRetry),
        server_check_delay_ms: values.millis(Key::ServerCheckDelay),
        catalogue_check_ms: values.millis(Key::CatalogueCheckInterval),
        drain_timeout_ms: values.millis(Key::DrainTimeout),
        dns_max_ttl_ms: values.millis(Key::DnsMaxTtl),
        log_pins_after_ms: values.millis(Key::LogPinsAfter),
        log_min_duration_ms: values.millis(Key::LogMinDuration),
    }
}

impl Default for Timeouts {
    /// As nobody has set any of them.
    fn default() -> Timeouts {
        timeouts(&Values::new(Flavour::Weir))
    }
}

/// In PgBouncer 0 means one use, as if a connection were too old at once; in weir.toml it means no limit.
fn server_lifetime_ms(values: &Values) -> Option<u64> {
    match (values.flavour(), values.millis(Key::ServerLifetime)) {
        (Flavour::Weir, 0) => None,
        (_, ms) => Some(ms),
    }
}

fn tcp_options(values: &Values) -> Tcp {
    let small = |key| u32::try_from(values.count(key)).unwrap_or(u32::MAX);
    Tcp {
        listen_backlog: small(Key::ListenBacklog),
        keepalive: values.bool(Key::TcpKeepalive),
        keepcnt: small(Key::TcpKeepcnt),
        keepidle_s: small(Key::TcpKeepidle),
        keepintvl_s: small(Key::TcpKeepintvl),
        user_timeout_ms: small(Key::TcpUserTimeout),
    }
}

fn log(values: &Values, folder: Option<&std::path::Path>) -> Log {
    let file = values.text(Key::Logfile);
    Log {
        level: values.text(Key::LogLevel).to_owned(),
        json: values.text(Key::LogFormat) == "json",
        file: (!file.is_empty()).then(|| -> PathBuf { relative_to(folder, file) }),
        connections: values.bool(Key::LogConnections),
        disconnections: values.bool(Key::LogDisconnections),
        pooler_errors: values.bool(Key::LogPoolerErrors),
    }
}
