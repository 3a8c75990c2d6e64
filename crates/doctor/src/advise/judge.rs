//! The recommendation: does a pooler help, in which mode, with which size. Pure; every sentence contains its
//! numbers.
//!
//! Sources of the constants: published runs and our own. TPC-C on PostgreSQL with 56 cores: a pool of one
//! server per core was best, a quarter of that almost as good, 10.7 per core as slow as none. Point selects
//! on MySQL with 48 cores: the knee at 2.7 threads per core from memory. Rule of thumb of their authors: at
//! most 4 per core.

use super::sample::{Group, Keeps};
use super::seen::{GroupSeen, Seen};
use crate::numbers::{count, seconds, things};
use serde::Serialize;

/// Running statements a core at the knee of the throughput curve.
const KNEE_PER_CORE: f64 = 2.7;
/// More running statements a core than this cost throughput.
const MOST_PER_CORE: f64 = 4.0;
/// Room above what was seen.
const HEADROOM: f64 = 1.2;
/// Share of the server's slots that a pool may take: others need some.
const SHARE_OF_SLOTS: f64 = 0.75;

/// Whether a pooler helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It does.
    Yes,
    /// Somewhat.
    Little,
    /// It does not.
    No,
    /// Too little was seen.
    Unknown,
}

/// A verdict and its reasons.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pooler {
    /// The verdict.
    pub helps: Verdict,
    /// What speaks for one.
    pub reasons_for: Vec<String>,
    /// What speaks against one.
    pub reasons_against: Vec<String>,
}

/// A pool mode and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mode {
    /// `transaction` or `session`.
    pub name: &'static str,
    /// Why.
    pub why: String,
}

/// A number of server connections and why.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Size {
    /// Server connections of all pools together.
    pub servers: u64,
    /// How it comes about.
    pub why: Vec<String>,
}

/// The part of one pool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pool {
    /// Whose.
    #[serde(flatten)]
    pub group: Group,
    /// Mean of its connections.
    pub connections: f64,
    /// Mean of those that hold a server.
    pub held: f64,
    /// Its `pool_size`.
    pub pool_size: u64,
}

/// The whole advice.
#[derive(Debug, Clone, PartialEq)]
pub struct Advice {
    /// The database, without its password.
    pub database: String,
    /// What it is judged by.
    pub seen: Seen,
    /// Whether a pooler helps.
    pub pooler: Pooler,
    /// In which mode.
    pub mode: Mode,
    /// With which size.
    pub size: Size,
    /// The size by database and user.
    pub pools: Vec<Pool>,
    /// What else should be known.
    pub remarks: Vec<String>,
}

impl Advice {
    /// Judges what was seen.
    pub fn of(database: &str, seen: Seen) -> Advice {
        let size = size(&seen);
        Advice {
            database: database.to_owned(),
            pooler: pooler(&seen, size.servers),
            mode: mode(&seen),
            pools: pools(&seen.groups, size.servers),
            remarks: remarks(&seen),
            size,
            seen,
        }
    }

    /// Clients to allow: twice what was seen, at least a thousand.
    pub fn max_client_conn(&self) -> u64 {
        let seen = (self.seen.connections.max as u64).max(self.seen.most_ever.unwrap_or(0));
        (seen * 2).max(1000).next_multiple_of(1000)
    }
}

/// Enough for chance: with L in the mean, L + 2 sqrt(L) is exceeded in few of a hundred moments (Poisson).
fn by_chance(mean: f64) -> f64 {
    mean + 2.0 * mean.sqrt()
}

fn one_decimal(n: f64) -> String {
    let whole = (n - n.round()).abs() < 0.05;
    if n >= 100.0 || whole { count(n.round() as u64) } else { format!("{n:.1}") }
}

fn size(seen: &Seen) -> Size {
    let mut why = Vec::new();
    let thinking = seen.idle_in_transaction.p95;
    let running_mean = seen.running_mean();
    let running = seen.running.p95.max(by_chance(running_mean));
    let work = match &seen.cores {
        Some(cores) => {
            let knee = (cores.count as f64 * KNEE_PER_CORE).ceil();
            if running > knee {
                why.push(format!(
                    "{} statements run at once, {} cores ({}) serve {} best: more would only wait inside the database",
                    one_decimal(running),
                    cores.count,
                    cores.from,
                    count(knee as u64)
                ));
                knee
            } else {
                why.push(format!(
                    "{} statements run at once (mean {}); {} cores ({}) serve up to {} well",
                    one_decimal(running),
                    one_decimal(running_mean),
                    cores.count,
                    cores.from,
                    count(knee as u64)
                ));
                running
            }
        }
        None => {
            why.push(format!(
                "{} statements run at once (mean {}); the server's cores are not known: --cores N",
                one_decimal(running),
                one_decimal(running_mean)
            ));
            running
        }
    };
    let most_waiting = seen.cores.as_ref().map_or(f64::MAX, |cores| cores.count as f64);
    let waiting = seen.waiting_for_lock.p95.min(most_waiting);
    if waiting >= 1.0 {
        why.push(format!("{} wait for locks and need no core", one_decimal(waiting)));
    }
    if thinking >= 1.0 {
        why.push(format!(
            "{} are in a transaction and wait for their client: each holds a server",
            one_decimal(thinking)
        ));
    }
    let wanted = ((work + waiting + thinking) * HEADROOM).ceil() as u64;
    let floor = seen.cores.as_ref().map_or(1, |cores| cores.count).min((seen.connections.max as u64).max(1));
    if wanted < floor {
        why.push(format!("one server for each core costs nothing: {floor}"));
    } else {
        why.push("a fifth more as headroom".to_owned());
    }
    let ceiling = ((seen.slots as f64 * SHARE_OF_SLOTS) as u64).max(1);
    // More servers than there are connections would never be used.
    let wanted = wanted.min((seen.connections.max as u64).max(1));
    let mut servers = wanted.max(floor).max(1);
    if seen.slots > 0 && servers > ceiling {
        why.push(format!(
            "the server allows {} connections; {} leave some for others",
            count(seen.slots),
            count(ceiling)
        ));
        servers = ceiling;
    }
    Size { servers, why }
}

fn pooler(seen: &Seen, servers: u64) -> Pooler {
    let (mut score, mut reasons_for, mut reasons_against) = (0, Vec::new(), Vec::new());
    let connections = seen.connections.mean;
    if seen.connections.max < 1.0 && seen.connects_per_s.unwrap_or(0.0) * seen.seconds < 1.0 {
        reasons_against.push("no client was connected during the watch".to_owned());
        return Pooler { helps: Verdict::Unknown, reasons_for, reasons_against };
    }
    if seen.hidden > connections / 2.0 {
        reasons_against.push(format!(
            "this user sees the state of only a few of {} connections",
            one_decimal(connections)
        ));
        return Pooler { helps: Verdict::Unknown, reasons_for, reasons_against };
    }
    let mut speaks = |weight: u32, text: String| {
        score += weight;
        reasons_for.push(text);
    };
    let held_share = 1.0 - seen.idle_share();
    if connections >= 2.0 * servers as f64 && seen.idle_share() >= 0.5 {
        speaks(
            3,
            format!(
                "of {} connections {} are idle at any time: {} carry the same work",
                one_decimal(connections),
                one_decimal(connections - seen.held_mean()),
                things(servers, "server connection", "server connections")
            ),
        );
    }
    if let Some((weight, text)) = churn(seen) {
        speaks(weight, text);
    }
    if let Some((weight, text)) = crowd(seen) {
        speaks(weight, text);
    }
    if let Some((weight, text)) = slots(seen) {
        speaks(weight, text);
    }
    if held_share >= 0.8 && connections >= 2.0 {
        reasons_against.push(format!(
            "{:.0}% of the connections are in a transaction at any time: there is little to share",
            held_share * 100.0
        ));
    }
    if seen.connections.max <= servers as f64 && reasons_for.is_empty() {
        reasons_against.push(format!(
            "there are no more connections ({} at most) than a pool would have: a pooler would add a hop and save no connections",
            count(seen.connections.max as u64)
        ));
    } else if reasons_for.is_empty() && reasons_against.is_empty() {
        reasons_against.push(format!(
            "{} connections, {} of them active, few connects: the server handles them easily",
            one_decimal(connections),
            one_decimal(seen.held_mean())
        ));
    }
    let helps = match score {
        3.. => Verdict::Yes,
        1..=2 => Verdict::Little,
        _ => Verdict::No,
    };
    Pooler { helps, reasons_for, reasons_against }
}

/// Connects that cost the database.
fn churn(seen: &Seen) -> Option<(u32, String)> {
    let rate = seen.connects_per_s.filter(|rate| *rate >= 0.1)?;
    let cpu = rate * seen.connect_cpu_s;
    let of_cores = seen.cores.as_ref().map_or(cpu, |cores| cpu / cores.count as f64);
    let life = seen.lifetime_s.map(|s| format!(", each open for {}", seconds(s))).unwrap_or_default();
    let cost = format!("{:.1}% of its cores", of_cores * 100.0);
    let text =
        format!("{} connects per second{life}: they cost the database about {cost}", one_decimal(rate));
    match of_cores {
        share if share >= 0.1 => Some((3, text)),
        share if share >= 0.02 => Some((2, text)),
        share if share >= 0.005 => Some((1, text)),
        _ => None,
    }
}

/// More statements at once than the cores serve well.
fn crowd(seen: &Seen) -> Option<(u32, String)> {
    let cores = seen.cores.as_ref()?;
    let per_core = seen.running.p95 / cores.count as f64;
    let text = format!(
        "{} statements run at once on {} cores: waiting in front of the database keeps its throughput, waiting inside lowers it",
        one_decimal(seen.running.p95),
        cores.count
    );
    match per_core {
        n if n > MOST_PER_CORE => Some((3, text)),
        n if n > KNEE_PER_CORE => Some((2, text)),
        _ => None,
    }
}

/// The server's slots run out.
fn slots(seen: &Seen) -> Option<(u32, String)> {
    let slots = seen.slots as f64;
    if let Some(refused) = seen.refused.filter(|n| *n >= 1.0) {
        return Some((
            3,
            format!(
                "{} connections were refused during the watch: max_connections is reached",
                count(refused as u64)
            ),
        ));
    }
    let most = seen.connections.max.max(seen.most_ever.unwrap_or(0) as f64);
    (slots > 0.0 && most >= slots * 0.8).then(|| {
        (
            2,
            format!(
                "at the peak, {} of {} possible connections were used",
                count(most as u64),
                count(seen.slots)
            ),
        )
    })
}

fn mode(seen: &Seen) -> Mode {
    // Those that only listen hold no server of Weir's.
    let keeps = || seen.keeps.iter().filter(|(why, _)| **why != Keeps::Listen);
    let pinned: f64 = keeps().map(|(_, n)| n).sum();
    let named: Vec<String> =
        keeps().map(|(why, n)| format!("{} ({})", why.name(), one_decimal(*n))).collect();
    let connections = seen.connections.mean.max(1.0);
    if pinned >= connections / 2.0 && pinned >= 1.0 {
        return Mode {
            name: "session",
            why: format!(
                "{} of {} connections have state that cannot be shared: {}",
                one_decimal(pinned),
                one_decimal(connections),
                named.join(", ")
            ),
        };
    }
    let lasting = match seen.transaction_s {
        Some(s) => format!("a transaction holds its connection for {} on average", seconds(s)),
        None => format!(
            "{} of {} connections hold a server at any time",
            one_decimal(seen.held_mean()),
            one_decimal(seen.connections.mean)
        ),
    };
    let pins = if named.is_empty() {
        String::new()
    } else {
        format!("; {} would keep their server for a while: {}", one_decimal(pinned), named.join(", "))
    };
    Mode { name: "transaction", why: format!("{lasting}; then another client can use its server{pins}") }
}

/// Deals servers out by what the pools hold; each has at least one.
fn pools(groups: &[GroupSeen], servers: u64) -> Vec<Pool> {
    let weight = |group: &GroupSeen| group.held.mean + group.connections.mean / 1000.0;
    let all: f64 = groups.iter().map(weight).sum();
    let share = |group: &GroupSeen| if all > 0.0 { weight(group) / all * servers as f64 } else { 1.0 };
    let mut pools: Vec<Pool> = groups
        .iter()
        .map(|group| Pool {
            group: group.group.clone(),
            connections: group.connections.mean,
            held: group.held.mean,
            pool_size: (share(group).floor() as u64).max(1),
        })
        .collect();
    // What rounding left goes to those that hold most: they stand first.
    let mut left = servers.saturating_sub(pools.iter().map(|pool| pool.pool_size).sum());
    for pool in pools.iter_mut() {
        if left == 0 {
            break;
        }
        pool.pool_size += 1;
        left -= 1;
    }
    pools
}

fn remarks(seen: &Seen) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(blind) = &seen.blind {
        remarks.push(blind.clone());
    }
    if let Some(most) = seen.most_ever.filter(|most| *most as f64 >= seen.connections.max * 1.5 + 2.0) {
        remarks.push(format!(
            "the peak was {} connections, now at most {}: watch again in the busiest hour",
            count(most),
            count(seen.connections.max as u64)
        ));
    } else {
        remarks.push("this is a short sample: watch again in the busiest hour".to_owned());
    }
    if seen.longest_transaction_s >= 60.0 {
        remarks.push(format!(
            "one transaction was open for {}: it holds its server and old row versions for that time; idle_transaction_timeout ends forgotten ones",
            seconds(seen.longest_transaction_s)
        ));
    }
    if seen.waiting_for_lock.mean >= 1.0 && seen.waiting_for_lock.mean >= seen.running.mean {
        remarks.push(format!(
            "{} connections wait for locks and {} run: contention for rows is the bottleneck; no pool size helps",
            one_decimal(seen.waiting_for_lock.mean),
            one_decimal(seen.running.mean)
        ));
    }
    if let Some(share) = seen.rolled_back.filter(|share| *share >= 0.2) {
        remarks.push(format!("{:.0}% of the transactions are rolled back", share * 100.0));
    }
    remarks
}
