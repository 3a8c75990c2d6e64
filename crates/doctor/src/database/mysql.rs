//! The checks of a MySQL or MariaDB server. Pure: facts in, findings out.

use super::connection::Facts;
use crate::cure::{Cure, Place};
use crate::finding::{Finding, State};
use crate::numbers::{count, seconds, things};
use crate::question::Question;

/// Weir's default `pool.server_idle_timeout`, in seconds.
const WEIR_IDLE_S: u64 = 600;
/// Weir's default `pool.max_prepared_statements`, for each server connection.
const WEIR_PREPARED: u64 = 200;

/// All checks.
pub fn judge(facts: &Facts, ask: &Question) -> Vec<Finding> {
    let checks: [fn(&Facts, &Question) -> Finding; 11] = [
        max_connections,
        user_limits,
        thread_handling,
        thread_cache,
        back_log,
        wait_timeout,
        interactive_timeout,
        other_timeouts,
        host_errors,
        open_files,
        prepared_statements,
    ];
    checks.iter().map(|check| check(facts, ask)).collect()
}

fn wanted(ask: &Question) -> u64 {
    ask.outgoing().div_ceil(ask.targets.len().max(1) as u64)
}

fn missing(id: &'static str, name: &str) -> Finding {
    Finding::judged(id, State::Unknown, format!("the server did not say its {name}"))
}

fn line(text: impl Into<String>) -> Cure {
    Cure::Line { place: Place::Mysql, text: text.into() }
}

const VARIABLES: &str = "SHOW GLOBAL VARIABLES";
const STATUS: &str = "SHOW GLOBAL STATUS";

fn max_connections(facts: &Facts, ask: &Question) -> Finding {
    const ID: &str = "my_max_connections";
    let Some(max) = facts.number("max_connections") else { return missing(ID, "max_connections") };
    // One of them is this one.
    let others = facts.number("status.threads_connected").unwrap_or(1).saturating_sub(1);
    let most = facts.number("status.max_used_connections").unwrap_or(0);
    let refused = facts.number("status.connection_errors_max_connections").unwrap_or(0);
    let wanted = wanted(ask);
    let state = match wanted {
        n if n > max => State::Blocker,
        n if n > max.saturating_sub(others) || refused > 0 => State::Warn,
        _ => State::Ok,
    };
    let mut words = format!(
        "{} server connections, max_connections is {}; {} are taken now, {} at most so far",
        count(wanted),
        count(max),
        count(others),
        count(most)
    );
    if refused > 0 {
        words.push_str(&format!("; {} were refused since the server started", count(refused)));
    }
    let mut finding = Finding::judged(ID, state, words)
        .read(VARIABLES, format!("max_connections {max}"))
        .read(STATUS, format!("Threads_connected {}, Max_used_connections {most}, Connection_errors_max_connections {refused}", others + 1))
        .breaks_at(max, "any client", "ERROR 1040 (HY000): Too many connections; in drivers SQLSTATE 08004");
    if let Some(extra) = facts.number("extra_max_connections") {
        finding = finding.read(VARIABLES, format!("extra_max_connections {extra} (for extra_port)"));
    }
    if refused > 0 {
        finding = finding.cure(Cure::advice(
            "the pools of all applications together are larger than max_connections: let them share a pooler, or make them smaller",
        ));
    }
    if wanted <= max.saturating_sub(others) {
        return finding;
    }
    finding.cures_unless_ok([
        Cure::weir(format!(
            "pool.default_pool_size = {}   # for each schema and user",
            (max * 3 / 4).max(1).min(wanted)
        )),
        line(format!("max_connections = {}", (wanted + others).max(max).div_ceil(50) * 50)),
    ])
}

fn user_limits(facts: &Facts, ask: &Question) -> Finding {
    const ID: &str = "my_user_limits";
    let account = facts.text("account").unwrap_or("?");
    let limit_of = |name: &str| facts.number(name).filter(|n| *n > 0);
    let hourly = limit_of("account.max_connections");
    let user = account.split('@').next().unwrap_or(account);
    // The account's own limit replaces the general one.
    let (limit, source, message) = match (
        limit_of("account.max_user_connections"),
        limit_of("max_user_connections"),
    ) {
        (Some(n), _) => {
            let message = format!(
                "ERROR 1226 (42000): User '{user}' has exceeded the 'max_user_connections' resource (current value: {n})"
            );
            (Some(n), "mysql.user", message)
        }
        (None, general) => {
            let message = format!(
                "ERROR 1203 (42000): User {user} already has more than 'max_user_connections' active connections"
            );
            (general, VARIABLES, message)
        }
    };
    let wanted = wanted(ask);
    let finding = match limit {
        Some(limit) => {
            let state = if wanted > limit { State::Blocker } else { State::Ok };
            Finding::judged(
                ID,
                state,
                format!("{} server connections, and {account} may have {}", count(wanted), count(limit)),
            )
            .read(source, format!("max_user_connections {limit}"))
            .breaks_at(limit, "any client", message)
            .cures_unless_ok([Cure::advice(format!(
                "ALTER USER {account} WITH MAX_USER_CONNECTIONS {wanted};"
            ))])
        }
        None => Finding::ok(ID, format!("{account} has no limit of its own"))
            .read(VARIABLES, "max_user_connections 0"),
    };
    match hourly {
        Some(n) => {
            let mut finding = finding.read("mysql.user", format!("max_connections {n} an hour")).breaks(
                "any client",
                format!("ERROR 1226 (42000): User '{user}' has exceeded the 'max_connections_per_hour' resource (current value: {n})"),
            );
            finding.state = finding.state.max(State::Warn);
            finding.summary.push_str(&format!("; it may connect {} an hour", things(n, "time", "times")));
            finding
        }
        None => finding,
    }
}

fn thread_handling(facts: &Facts, ask: &Question) -> Finding {
    const ID: &str = "my_thread_handling";
    let handling = facts.text("thread_handling").unwrap_or("one-thread-per-connection");
    let no_thread = "ERROR 1135 (HY000): Can't create a new thread (errno 11); if you are not out of available memory, you can consult the \
                     manual for a possible OS-dependent bug";
    if handling == "one-thread-per-connection" {
        return Finding::ok(
            ID,
            format!(
                "a thread for each connection: {} for the pool, not one for each client",
                count(wanted(ask))
            ),
        )
        .read(VARIABLES, format!("thread_handling {handling}"))
        .breaks("any client, when direct connections are many thousands", no_thread);
    }
    let of = |name| facts.text(name).unwrap_or("?").to_owned();
    Finding::ok(ID, format!("{handling}: {} groups, {} threads at most", of("thread_pool_size"), of("thread_pool_max_threads")))
        .read(VARIABLES, format!("thread_handling {handling}, thread_pool_size {}", of("thread_pool_size")))
        .breaks("the server's log", "Threadpool could not create additional thread to handle queries, because the number of allowed threads was reached")
}

fn thread_cache(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "my_thread_cache";
    let size = facts.number("thread_cache_size").unwrap_or(0);
    let (made, all) = (
        facts.number("status.threads_created").unwrap_or(0),
        facts.number("status.connections").unwrap_or(0),
    );
    // Below a thousand connects the share says nothing.
    let often = all > 1000 && made * 10 > all && facts.text("thread_handling") != Some("pool-of-threads");
    let words = format!(
        "{} of {} connections needed a new thread; {size} threads are kept for the next",
        count(made),
        count(all)
    );
    let finding = if often { Finding::warn(ID, words) } else { Finding::ok(ID, words) };
    finding
        .read(VARIABLES, format!("thread_cache_size {size}"))
        .read(STATUS, format!("Threads_created {made}, Connections {all}"))
        .cures_unless_ok([line(format!("thread_cache_size = {}", (size * 2).max(100)))])
}

fn back_log(facts: &Facts, ask: &Question) -> Finding {
    const ID: &str = "my_back_log";
    let Some(back_log) = facts.number("back_log") else { return missing(ID, "back_log") };
    let wanted = wanted(ask);
    let state = if wanted > back_log { State::Warn } else { State::Ok };
    Finding::judged(
        ID,
        state,
        format!(
            "{} connections may wait for the server to accept them; a pool opens up to {}",
            count(back_log),
            count(wanted)
        ),
    )
    .read(VARIABLES, format!("back_log {back_log}"))
    .breaks_at(
        back_log,
        "whoever connects at once",
        "connect takes 1, 3 or 7 s longer, or ERROR 2003 (HY000) ... (110)",
    )
    .cures_unless_ok([
        line(format!("back_log = {}", wanted.next_power_of_two().max(4096))),
        Cure::sysctl("net.core.somaxconn", 32_768),
    ])
}

fn wait_timeout(facts: &Facts, _ask: &Question) -> Finding {
    idle_timeout(facts, "my_wait_timeout", "wait_timeout", "connections")
}

fn interactive_timeout(facts: &Facts, _ask: &Question) -> Finding {
    idle_timeout(
        facts,
        "my_interactive_timeout",
        "interactive_timeout",
        "interactive connections (the mysql program, clients that say so)",
    )
}

fn idle_timeout(facts: &Facts, id: &'static str, name: &'static str, what: &str) -> Finding {
    let Some(s) = facts.number(name) else { return missing(id, name) };
    let state = if s <= WEIR_IDLE_S { State::Warn } else { State::Ok };
    let gone = if facts.text("version").is_some_and(|version| version.contains("MariaDB")) {
        "ERROR 2006 (HY000): MySQL server has gone away, or 2013 Lost connection"
    } else {
        "ERROR 4031 (HY000): The client was disconnected by the server because of inactivity. See wait_timeout and interactive_timeout \
         for configuring this behavior."
    };
    Finding::judged(id, state, format!("the server closes {what} that are idle for {}", seconds(s as f64)))
        .read(VARIABLES, format!("{name} {s}"))
        .breaks("idle connections of a pool", gone)
        .cures_unless_ok([
            Cure::weir(format!("pool.server_idle_timeout = {}   # Weir closes first", (s / 2).max(1))),
            line(format!("{name} = 28800")),
        ])
}

fn other_timeouts(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "my_timeouts";
    // Name, its unit in seconds, what a client reads.
    let known: [(&str, f64, &str); 5] = [
        (
            "max_execution_time",
            0.001,
            "ERROR 3024 (HY000): Query execution was interrupted, maximum statement execution time exceeded",
        ),
        (
            "max_statement_time",
            1.0,
            "ERROR 1969 (70100): Query execution was interrupted (max_statement_time exceeded)",
        ),
        (
            "idle_transaction_timeout",
            1.0,
            "ERROR 2006 (HY000): MySQL server has gone away, after an idle transaction",
        ),
        (
            "idle_write_transaction_timeout",
            1.0,
            "ERROR 2006 (HY000): MySQL server has gone away, after an idle transaction",
        ),
        (
            "idle_readonly_transaction_timeout",
            1.0,
            "ERROR 2006 (HY000): MySQL server has gone away, after an idle transaction",
        ),
    ];
    let value = |name: &str| facts.text(name).and_then(|text| text.parse::<f64>().ok()).filter(|n| *n > 0.0);
    let mut finding = Finding::ok(ID, String::new());
    let mut shown = Vec::new();
    for (name, unit, message) in known {
        if let Some(n) = value(name) {
            shown.push(format!("{name} {}", seconds(n * unit)));
            finding = finding.breaks("any client", message);
        }
    }
    finding.summary =
        if shown.is_empty() { "no statement or transaction timeout".to_owned() } else { shown.join(", ") };
    let summary = finding.summary.clone();
    finding.read(VARIABLES, summary)
}

fn host_errors(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "my_host_errors";
    let Some(max) = facts.number("max_connect_errors") else { return missing(ID, "max_connect_errors") };
    let by_name = facts.text("skip_name_resolve") != Some("ON") && facts.number("host_cache_size") != Some(0);
    // The default. Behind a pooler all clients are one host, and one port scan or health check that says
    // nothing is an error.
    let state = if max <= 100 && by_name { State::Warn } else { State::Ok };
    let words = if by_name {
        format!(
            "after {} broken logins in a row a host is locked out, and a pooler is one host for all clients",
            count(max)
        )
    } else {
        "hosts are not locked out: names are not looked up".to_owned()
    };
    Finding::judged(ID, state, words)
        .read(VARIABLES, format!("max_connect_errors {max}, skip_name_resolve {}", facts.text("skip_name_resolve").unwrap_or("?")))
        .breaks("all clients of the pooler at once", "ERROR 1129 (HY000): Host 'X' is blocked because of many connection errors; unblock with 'mysqladmin flush-hosts'")
        .cures_unless_ok([line("max_connect_errors = 1000000"), Cure::advice("or skip_name_resolve = ON, when accounts name addresses")])
}

fn open_files(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "my_open_files";
    let Some(limit) = facts.number("open_files_limit") else { return missing(ID, "open_files_limit") };
    let (connections, tables) =
        (facts.number("max_connections").unwrap_or(0), facts.number("table_open_cache").unwrap_or(0));
    // The server's own sum: 10 for itself, one a connection, two a table.
    let needed = 10 + connections + 2 * tables;
    let state = if limit < connections + 10 {
        State::Blocker
    } else if limit < needed {
        State::Warn
    } else {
        State::Ok
    };
    Finding::judged(
        ID,
        state,
        format!(
            "the server may open {} files; {} connections and {} tables may take {}",
            count(limit),
            count(connections),
            count(tables),
            count(needed)
        ),
    )
    .read(VARIABLES, format!("open_files_limit {limit}, table_open_cache {tables}"))
    .breaks_at(limit.saturating_sub(10), "the server's log", "Error in accept: Too many open files")
    .breaks(
        "the server's log, at its start",
        "Could not increase number of max_open_files to more than N (request: M)",
    )
    .cures_unless_ok([
        line(format!("open_files_limit = {}", needed.next_power_of_two())),
        Cure::advice("and LimitNOFILE= in the unit of the database (mysql.service or mariadb.service)"),
    ])
}

fn prepared_statements(facts: &Facts, ask: &Question) -> Finding {
    const ID: &str = "my_prepared_statements";
    let Some(max) = facts.number("max_prepared_stmt_count") else {
        return missing(ID, "max_prepared_stmt_count");
    };
    let now = facts.number("status.prepared_stmt_count").unwrap_or(0);
    let needed = wanted(ask) * WEIR_PREPARED;
    let state = if needed > max { State::Warn } else { State::Ok };
    Finding::judged(
        ID,
        state,
        format!("the whole server keeps {} prepared statements; {} connections may keep {}, {} are there now", count(max), count(wanted(ask)), count(needed), count(now)),
    )
    .read(VARIABLES, format!("max_prepared_stmt_count {max}"))
    .read(STATUS, format!("Prepared_stmt_count {now}"))
    .breaks_at(max / WEIR_PREPARED, "clients that prepare", format!("ERROR 1461 (42000): Can't create more than max_prepared_stmt_count statements (current value: {max})"))
    .cures_unless_ok([
        line(format!("max_prepared_stmt_count = {}", needed.next_power_of_two())),
        Cure::weir(format!("pool.max_prepared_statements = {}", (max / wanted(ask).max(1)).max(1))),
    ])
}
