//! The advice as text: the verdict first, then its reasons.

use super::judge::{Advice, Verdict};
use super::seen::{Seen, Spread};
use crate::numbers::{count, seconds, things};
use crate::text::{WIDTH, wrap};
use std::fmt::Write;

/// Column at which the words begin.
const INDENT: usize = 14;

/// Pools that are listed.
const POOLS_SHOWN: usize = 12;

/// The whole advice.
pub fn advice(advice: &Advice) -> String {
    let mut out = String::new();
    let seen = &advice.seen;
    let head = format!(
        "{}: {}, watched for {}, {}",
        advice.database,
        seen.product,
        seconds(seen.seconds.round()),
        things(seen.samples, "sample", "samples")
    );
    let _ = writeln!(out, "{}\n", wrap(&head, WIDTH, 0));
    let verdict = match advice.pooler.helps {
        Verdict::Yes => "a pooler helps",
        Verdict::Little => "a pooler helps a little",
        Verdict::No => "a pooler does not help",
        Verdict::Unknown => "too few samples for a recommendation",
    };
    field(&mut out, "POOLER", verdict);
    for reason in &advice.pooler.reasons_for {
        field(&mut out, "  for", reason);
    }
    for reason in &advice.pooler.reasons_against {
        field(&mut out, "  against", reason);
    }
    if advice.pooler.helps != Verdict::Unknown {
        field(&mut out, "MODE", &format!("{}: {}", advice.mode.name, advice.mode.why));
        field(&mut out, "POOL SIZE", &things(advice.size.servers, "server connection", "server connections"));
        for why in &advice.size.why {
            field(&mut out, "  why", why);
        }
        pools(&mut out, advice);
    }
    for remark in &advice.remarks {
        field(&mut out, "REMARK", remark);
    }
    answers(&mut out, seen);
    if matches!(advice.pooler.helps, Verdict::Yes | Verdict::Little) {
        let _ = writeln!(
            out,
            "\nTo try it: weir serve URL --pool-mode {} --pool-size {} --max-client-conn {}",
            advice.mode.name,
            advice.pools.iter().map(|pool| pool.pool_size).max().unwrap_or(advice.size.servers),
            advice.max_client_conn()
        );
    }
    out
}

fn field(out: &mut String, name: &str, text: &str) {
    let _ = writeln!(out, "{name:<INDENT$}{}", wrap(text, WIDTH - INDENT, INDENT));
}

fn pools(out: &mut String, advice: &Advice) {
    if advice.pools.len() < 2 {
        return;
    }
    let _ = writeln!(
        out,
        "\n  {:<24}{:<24}{:>12}{:>12}{:>12}",
        "database", "user", "connections", "at work", "pool_size"
    );
    for pool in advice.pools.iter().take(POOLS_SHOWN) {
        let _ = writeln!(
            out,
            "  {:<24}{:<24}{:>12}{:>12}{:>12}",
            pool.group.database,
            pool.group.user,
            number(pool.connections),
            number(pool.held),
            pool.pool_size
        );
    }
    if advice.pools.len() > POOLS_SHOWN {
        let _ = writeln!(out, "  and {} more", advice.pools.len() - POOLS_SHOWN);
    }
    out.push('\n');
}

fn number(n: f64) -> String {
    if n >= 100.0 || n.fract() == 0.0 { count(n.round() as u64) } else { format!("{n:.1}") }
}

fn spread(of: &Spread) -> String {
    format!(
        "mean {}, {} to {}, 95th percentile {}",
        number(of.mean),
        number(of.min),
        number(of.max),
        number(of.p95)
    )
}

/// The published questions and what was counted.
fn answers(out: &mut String, seen: &Seen) {
    out.push_str("\nMeasurements\n");
    let mut line = |name: &str, text: String| {
        let _ = writeln!(out, "  {name:<24}{}", wrap(&text, WIDTH - 26, 26));
    };
    line("connections", spread(&seen.connections));
    let ever = seen.most_ever.map(|most| format!(", peak {}", count(most))).unwrap_or_default();
    line("possible", format!("{}{ever}", count(seen.slots)));
    line("running a statement", spread(&seen.running));
    line("waiting for a lock", spread(&seen.waiting_for_lock));
    line("idle in transaction", spread(&seen.idle_in_transaction));
    if let Some(counted) = seen.held_counted.or(seen.running_counted) {
        line("by the server's clock", format!("mean {} of the three above", number(counted)));
    }
    if seen.hidden > 0.0 {
        line("not visible", format!("mean {}", number(seen.hidden)));
    }
    let unknown = || "not counted here".to_owned();
    let rate = |rate: Option<f64>| rate.map_or_else(unknown, |n| format!("{} per second", number(n)));
    let what = if seen.explicit_only { "explicit transactions" } else { "transactions" };
    line(what, rate(seen.transactions_per_s));
    line("statements", rate(seen.statements_per_s));
    if let Some(s) = seen.transaction_s {
        line(
            "transaction duration",
            format!("mean {}; longest {}", seconds(s), seconds(seen.longest_transaction_s)),
        );
    } else {
        line("longest transaction", seconds(seen.longest_transaction_s));
    }
    if let Some(s) = seen.statement_s {
        line("statement duration", format!("mean {}", seconds(s)));
    }
    let life = seen.lifetime_s.map(|s| format!(", each open for {}", seconds(s))).unwrap_or_default();
    line("connects", format!("{}{life}", rate(seen.connects_per_s)));
    line("connected all the time", things(seen.stayed, "connection", "connections"));
    let cores = seen.cores.as_ref().map_or_else(
        || "not known: --cores N".to_owned(),
        |cores| format!("{} ({})", cores.count, cores.from),
    );
    line("cores", cores);
}
