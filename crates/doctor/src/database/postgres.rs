//! The checks of a PostgreSQL server. Pure: facts in, findings out.

use super::connection::Facts;
use crate::cure::{Cure, Place};
use crate::finding::{Finding, State};
use crate::numbers::{count, seconds};
use crate::question::Question;

/// Weir's default `pool.server_idle_timeout`: it closes idle servers itself after that.
pub const WEIR_IDLE_MS: u64 = 600_000;

/// All checks.
pub fn judge(facts: &Facts, ask: &Question) -> Vec<Finding> {
    [max_connections, connection_limits, idle_session, idle_in_transaction, statement_timeouts, keepalives]
        .iter()
        .map(|check| check(facts, ask))
        .collect()
}

/// Connections the question opens to this server.
fn wanted(ask: &Question) -> u64 {
    ask.outgoing().div_ceil(ask.targets.len().max(1) as u64)
}

fn missing(id: &'static str, name: &str) -> Finding {
    Finding::judged(id, State::Unknown, format!("the server did not say its {name}"))
}

fn line(text: String) -> Cure {
    Cure::Line { place: Place::Postgres, text }
}

fn max_connections(facts: &Facts, ask: &Question) -> Finding {
    const ID: &str = "pg_max_connections";
    let Some(max) = facts.number("max_connections") else { return missing(ID, "max_connections") };
    let for_superusers = facts.number("superuser_reserved_connections").unwrap_or(3);
    let for_role = facts.number("reserved_connections").unwrap_or(0);
    let superuser = facts.number("superuser") == Some(1);
    let reserved = if superuser { 0 } else { for_superusers + for_role };
    let usable = max.saturating_sub(reserved);
    let others = facts.number("connections").unwrap_or(0);
    let wanted = wanted(ask);
    let words = format!(
        "{} server connections, {} of max_connections = {max} are for this user{}; {} are taken now",
        count(wanted),
        count(usable),
        if reserved > 0 { format!(" ({reserved} reserved)") } else { String::new() },
        count(others)
    );
    let state = match wanted {
        n if n > usable => State::Blocker,
        n if n > usable.saturating_sub(others) => State::Warn,
        _ => State::Ok,
    };
    let new = facts.number("server_version_num").unwrap_or(0) >= 160_000;
    let slots = if new {
        "FATAL: remaining connection slots are reserved for roles with the SUPERUSER attribute (53300)"
    } else {
        "FATAL: remaining connection slots are reserved for non-replication superuser connections (53300)"
    };
    Finding::judged(ID, state, words)
        .read("pg_settings", format!("max_connections {max}, superuser_reserved_connections {for_superusers}, reserved_connections {for_role}"))
        .read("pg_stat_activity", format!("{others} other client backends"))
        .breaks_at(usable, "any client", slots)
        .breaks_at(max, "any client", "FATAL: sorry, too many clients already (53300)")
        .cures_unless_ok([
            Cure::weir(format!("pool.default_pool_size = {}   # for each database and user", (usable * 3 / 4).max(1).min(wanted))),
            line(format!("max_connections = {}   # restart; a pooler is what makes this unnecessary", (wanted + others + reserved).div_ceil(50) * 50)),
        ])
}

fn connection_limits(facts: &Facts, ask: &Question) -> Finding {
    const ID: &str = "pg_connection_limits";
    let of = |name: &str| {
        facts.text(name).and_then(|text| text.parse::<i64>().ok()).filter(|n| *n >= 0).map(|n| n as u64)
    };
    let (role, database) = (facts.text("role").unwrap_or("?"), facts.text("database").unwrap_or("?"));
    let limits = [
        ("role", role, of("role_limit"), facts.number("connections_of_role").unwrap_or(0), "ROLE"),
        (
            "database",
            database,
            of("database_limit"),
            facts.number("connections_of_database").unwrap_or(0),
            "DATABASE",
        ),
    ];
    let tightest = limits
        .into_iter()
        .filter_map(|(what, name, limit, used, word)| Some((limit?, what, name, used, word)))
        .min();
    let Some((limit, what, name, used, word)) = tightest else {
        return Finding::ok(ID, format!("role {role} and database {database} have no connection limit"))
            .read("pg_roles, pg_database", "rolconnlimit -1, datconnlimit -1");
    };
    let superuser = facts.number("superuser") == Some(1);
    let wanted = wanted(ask);
    let state = match wanted {
        _ if superuser => State::Ok,
        n if n > limit => State::Blocker,
        n if n > limit.saturating_sub(used) => State::Warn,
        _ => State::Ok,
    };
    Finding::judged(
        ID,
        state,
        format!(
            "{} server connections, and {what} {name} may have {limit}; {used} are taken now",
            count(wanted)
        ),
    )
    .read("pg_roles, pg_database", format!("connection limit of {what} {name}: {limit}"))
    .breaks_at(limit, "any client", format!("FATAL: too many connections for {what} \"{name}\" (53300)"))
    .cures_unless_ok([Cure::advice(format!("ALTER {word} {name} CONNECTION LIMIT {};", wanted.max(limit)))])
}

fn idle_session(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "pg_idle_session_timeout";
    let Some(ms) = facts.number("idle_session_timeout") else {
        return Finding::ok(ID, "this version has no idle_session_timeout");
    };
    if ms == 0 {
        return Finding::ok(ID, "idle sessions are not ended").read("pg_settings", "idle_session_timeout 0");
    }
    let words = format!("the server ends sessions that are idle for {}", seconds(ms as f64 / 1000.0));
    let state = if ms <= WEIR_IDLE_MS { State::Warn } else { State::Ok };
    Finding::judged(ID, state, words)
        .read("pg_settings", format!("idle_session_timeout {ms} ms"))
        .breaks(
            "idle connections of a pool",
            "FATAL: terminating connection due to idle-session timeout (57P05)",
        )
        .cures_unless_ok([
            Cure::weir(format!(
                "pool.server_idle_timeout = {}   # Weir closes first",
                (ms / 1000 / 2).max(1)
            )),
            Cure::advice("or for the pool's user only: ALTER ROLE ... SET idle_session_timeout = 0;"),
        ])
}

fn idle_in_transaction(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "pg_idle_in_transaction";
    let Some(ms) = facts.number("idle_in_transaction_session_timeout") else {
        return missing(ID, "idle_in_transaction_session_timeout");
    };
    let now = facts.number("idle_in_transaction").unwrap_or(0);
    let words = match ms {
        0 => {
            format!("no limit: an idle transaction keeps its server connection; {now} are idle now")
        }
        ms => format!(
            "transactions that are idle for {} are ended; {now} are idle now",
            seconds(ms as f64 / 1000.0)
        ),
    };
    Finding::ok(ID, words)
        .read("pg_settings", format!("idle_in_transaction_session_timeout {ms} ms"))
        .read("pg_stat_activity", format!("{now} idle in transaction"))
        .breaks(
            "applications that leave a transaction open",
            "FATAL: terminating connection due to idle-in-transaction timeout (25P03)",
        )
}

fn statement_timeouts(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "pg_timeouts";
    let names = ["statement_timeout", "lock_timeout", "transaction_timeout"];
    let set: Vec<_> =
        names.iter().filter_map(|name| Some((*name, facts.number(name).filter(|ms| *ms > 0)?))).collect();
    if set.is_empty() {
        return Finding::ok(ID, "no statement, lock or transaction timeout").read("pg_settings", "all 0");
    }
    let shown: Vec<_> =
        set.iter().map(|(name, ms)| format!("{name} {}", seconds(*ms as f64 / 1000.0))).collect();
    let mut finding = Finding::ok(ID, shown.join(", ")).read("pg_settings", shown.join(", "));
    for (name, _) in set {
        let from = facts.text(&format!("source.{name}")).unwrap_or_default();
        if !from.is_empty() {
            finding = finding.read("pg_settings.source", format!("{name} is set for the {from}"));
        }
        finding = finding.breaks(
            "any client",
            match name {
                "statement_timeout" => "ERROR: canceling statement due to statement timeout (57014)",
                "lock_timeout" => "ERROR: canceling statement due to lock timeout (55P03)",
                _ => "FATAL: terminating connection due to transaction timeout (25P04)",
            },
        );
    }
    finding
}

fn keepalives(facts: &Facts, _ask: &Question) -> Finding {
    const ID: &str = "pg_keepalives";
    let of = |name: &str| facts.number(name).unwrap_or(0);
    let (idle, interval, probes) =
        (of("tcp_keepalives_idle"), of("tcp_keepalives_interval"), of("tcp_keepalives_count"));
    let words = match idle {
        0 => "a Unix socket has no keepalives, or the server's system decides".to_owned(),
        _ => format!(
            "the server probes an idle connection after {} and gives it up {} later",
            seconds(idle as f64),
            seconds((interval * probes) as f64)
        ),
    };
    Finding::ok(ID, words)
        .read(
            "pg_settings",
            format!(
                "tcp_keepalives_idle {idle}, interval {interval}, count {probes}, tcp_user_timeout {}",
                of("tcp_user_timeout")
            ),
        )
        .breaks(
            "the server's log, when a pooler's machine has vanished",
            "could not receive data from client: Connection timed out",
        )
}
