//! The summary of samples and counters: the answers to the published questions as numbers. Pure.

use super::sample::{About, Cores, Counters, Doing, Group, Keeps, Snapshot, is_held};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// How a number was spread over the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Smallest.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// 95 of 100 samples were at most this.
    pub p95: f64,
    /// Largest.
    pub max: f64,
}

impl Spread {
    /// Of these values; all 0 when there are none.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Spread {
        let mut sorted: Vec<f64> = values.into_iter().collect();
        sorted.sort_by(f64::total_cmp);
        let (Some(min), Some(max)) = (sorted.first(), sorted.last()) else { return Spread::default() };
        // Nearest rank.
        let rank = (sorted.len() * 95).div_ceil(100).max(1) - 1;
        let p95 = sorted.get(rank).unwrap_or(max);
        Spread { min: *min, mean: sorted.iter().sum::<f64>() / sorted.len() as f64, p95: *p95, max: *max }
    }
}

/// The connections of one database and user.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GroupSeen {
    /// Which.
    #[serde(flatten)]
    pub group: Group,
    /// Connections.
    pub connections: Spread,
    /// Of them those that would hold a server in transaction mode.
    pub held: Spread,
}

/// Everything that was seen.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seen {
    /// Name and version of the server.
    pub product: String,
    /// How long it was watched.
    pub seconds: f64,
    /// How often it was looked at.
    pub samples: u64,
    /// Cores of its machine.
    pub cores: Option<Cores>,
    /// Connections ordinary users can have.
    pub slots: u64,
    /// The most there ever were since its start.
    pub most_ever: Option<u64>,
    /// Connections.
    pub connections: Spread,
    /// Those that run a statement and do not wait for a lock.
    pub running: Spread,
    /// Those that wait for a lock.
    pub waiting_for_lock: Spread,
    /// Those in a transaction that wait for their client.
    pub idle_in_transaction: Spread,
    /// Those that would hold a server in transaction mode: the three above together.
    pub held: Spread,
    /// Mean of running statements by the server's own clock, where it has one: it sees those between two
    /// looks, but long ones only when they end.
    pub running_counted: Option<f64>,
    /// The same for all that hold a server.
    pub held_counted: Option<f64>,
    /// Of the mean of connections, those whose state this user may not see.
    pub hidden: f64,
    /// Connections made each second.
    pub connects_per_s: Option<f64>,
    /// Mean life in seconds of the connections that come and go, when there were connects.
    pub lifetime_s: Option<f64>,
    /// Connections that were there from the first look to the last.
    pub stayed: u64,
    /// Connections refused because there were too many, while it was watched.
    pub refused: Option<f64>,
    /// Transactions each second: all of them, or the explicit ones where only those are counted.
    pub transactions_per_s: Option<f64>,
    /// Only explicit transactions are counted.
    pub explicit_only: bool,
    /// Share of them that were rolled back.
    pub rolled_back: Option<f64>,
    /// Statements each second.
    pub statements_per_s: Option<f64>,
    /// Mean time a transaction holds its connection, in seconds.
    pub transaction_s: Option<f64>,
    /// Mean time of a statement, in seconds.
    pub statement_s: Option<f64>,
    /// The longest transaction that was seen open, in seconds.
    pub longest_transaction_s: f64,
    /// Connections that could not be shared, by reason: the mean.
    pub keeps: BTreeMap<Keeps, f64>,
    /// By database and user, the most held first.
    pub groups: Vec<GroupSeen>,
    /// CPU time of the server for a connect, in seconds.
    pub connect_cpu_s: f64,
    /// What this user may not see.
    pub blind: Option<String>,
}

/// Samples and counters in the order they were taken.
#[derive(Debug, Default)]
pub struct Gathered {
    /// Connections at each look.
    pub snapshots: Vec<Snapshot>,
    /// Counters before the first and after the last look.
    pub counters: (Counters, Counters),
    /// Time between the two counters, in seconds.
    pub seconds: f64,
    /// Statements of the watching itself between the two counters.
    pub own_statements: f64,
}

/// Fewer hits than this in all looks together are chance, not a mean.
const HITS_MIN: f64 = 20.0;

/// A rate is none below this many events: one connect in a minute says nothing.
const EVENTS_MIN: f64 = 1.0;

impl Seen {
    /// Adds everything up.
    pub fn of(about: About, gathered: &Gathered) -> Seen {
        let looks = &gathered.snapshots;
        let spread =
            |count: &dyn Fn(&Snapshot) -> u64| Spread::of(looks.iter().map(|look| count(look) as f64));
        let of = |doing: Doing| spread(&move |look: &Snapshot| look.count(doing));
        let connections = spread(&|look| look.seats.len() as u64);
        let held = spread(&|look| look.held());
        let rates = Rates::of(gathered);
        // Little's law: how many are there = how many come a second x how long they stay.
        let held_mean = rates.held.map_or(held.mean, |counted| counted.min(connections.mean).max(held.mean));
        let stayed = stayed(looks);
        let sampled = of(Doing::Running).mean;
        let running = rates.running.or_else(|| (sampled * looks.len() as f64 >= HITS_MIN).then_some(sampled));
        let per = |rate: Option<f64>, mean: f64| {
            rate.filter(|rate| *rate * gathered.seconds >= EVENTS_MIN).map(|rate| mean / rate)
        };
        Seen {
            product: about.product,
            seconds: gathered.seconds,
            samples: looks.len() as u64,
            cores: about.cores,
            slots: about.slots,
            most_ever: about.most_ever,
            running: of(Doing::Running),
            waiting_for_lock: of(Doing::WaitingForLock),
            idle_in_transaction: of(Doing::IdleInTransaction),
            held,
            running_counted: rates.running.map(|mean| mean.min(connections.mean)),
            held_counted: rates.held.map(|mean| mean.min(connections.mean)),
            hidden: of(Doing::Hidden).mean,
            connects_per_s: rates.connects,
            lifetime_s: per(rates.connects, (connections.mean - stayed as f64).max(0.0)).filter(|s| *s > 0.0),
            stayed,
            refused: rates.refused,
            transactions_per_s: rates.transactions,
            explicit_only: gathered.counters.1.transactions.is_none(),
            rolled_back: rates.rolled_back,
            statements_per_s: rates.statements,
            transaction_s: per(rates.transactions, held_mean)
                .filter(|_| gathered.counters.1.transactions.is_some()),
            statement_s: running.and_then(|running| per(rates.statements, running)),
            longest_transaction_s: longest(looks),
            keeps: keeps(looks),
            groups: groups(looks),
            connect_cpu_s: about.connect_cpu_s,
            blind: about.blind,
            connections,
        }
    }

    /// The mean number of connections that hold a server. Looks miss what is short, counters what is long:
    /// the larger.
    pub fn held_mean(&self) -> f64 {
        self.held_counted.map_or(self.held.mean, |counted| counted.max(self.held.mean))
    }

    /// The mean number of statements that run, in the same way.
    pub fn running_mean(&self) -> f64 {
        self.running_counted.map_or(self.running.mean, |counted| counted.max(self.running.mean))
    }

    /// Share of the connections that do nothing.
    pub fn idle_share(&self) -> f64 {
        if self.connections.mean <= 0.0 {
            return 0.0;
        }
        (1.0 - self.held_mean() / self.connections.mean).clamp(0.0, 1.0)
    }
}

/// Counters as rates.
struct Rates {
    transactions: Option<f64>,
    rolled_back: Option<f64>,
    statements: Option<f64>,
    running: Option<f64>,
    held: Option<f64>,
    connects: Option<f64>,
    refused: Option<f64>,
}

impl Rates {
    fn of(gathered: &Gathered) -> Rates {
        let (before, after) = &gathered.counters;
        // A counter that went back was reset meanwhile: nothing is known.
        let grown = |counter: &dyn Fn(&Counters) -> Option<f64>| {
            let (old, new) = (counter(before)?, counter(after)?);
            (new >= old).then_some(new - old)
        };
        let per_s = |n: f64| n / gathered.seconds.max(0.001);
        let own = gathered.own_statements;
        let all = grown(&|c| c.transactions).map(|n| (n - own).max(0.0));
        let transactions = all.or_else(|| grown(&|c| c.explicit));
        let rollbacks = grown(&|c| c.rollbacks);
        let running = grown(&|c| c.running_s).map(per_s);
        let waiting = grown(&|c| c.idle_in_transaction_s).map(per_s);
        Rates {
            transactions: transactions.map(per_s),
            rolled_back: transactions
                .filter(|n| *n >= EVENTS_MIN)
                .and_then(|n| Some((rollbacks? / n).min(1.0))),
            statements: grown(&|c| c.statements).map(|n| per_s((n - own).max(0.0))),
            running,
            held: running.and_then(|running| Some(running + waiting?)),
            connects: grown(&|c| c.connects).map(per_s),
            refused: grown(&|c| c.refused),
        }
    }
}

/// Connections that the first and the last look have.
fn stayed(looks: &[Snapshot]) -> u64 {
    let ids = |look: Option<&Snapshot>| -> BTreeSet<String> {
        look.map(|look| look.seats.iter().map(|seat| seat.id.clone()).collect()).unwrap_or_default()
    };
    ids(looks.first()).intersection(&ids(looks.last())).count() as u64
}

fn longest(looks: &[Snapshot]) -> f64 {
    let ages = looks
        .iter()
        .flat_map(|look| &look.seats)
        .filter(|seat| is_held(seat.doing))
        .filter_map(|seat| seat.transaction_s);
    ages.fold(0.0, f64::max)
}

fn keeps(looks: &[Snapshot]) -> BTreeMap<Keeps, f64> {
    let mut sums: BTreeMap<Keeps, f64> = BTreeMap::new();
    for why in looks.iter().flat_map(|look| &look.seats).filter_map(|seat| seat.keeps) {
        *sums.entry(why).or_default() += 1.0;
    }
    sums.values_mut().for_each(|sum| *sum /= looks.len() as f64);
    sums
}

fn groups(looks: &[Snapshot]) -> Vec<GroupSeen> {
    let all: BTreeSet<&Group> = looks.iter().flat_map(|look| &look.seats).map(|seat| &seat.group).collect();
    let of = |group: &Group, held: bool| {
        let count = |look: &Snapshot| {
            look.seats.iter().filter(|seat| seat.group == *group && (!held || is_held(seat.doing))).count()
                as f64
        };
        Spread::of(looks.iter().map(count))
    };
    let mut groups: Vec<GroupSeen> = all
        .into_iter()
        .map(|group| GroupSeen { group: group.clone(), connections: of(group, false), held: of(group, true) })
        .collect();
    groups.sort_by(|a, b| {
        b.held.mean.total_cmp(&a.held.mean).then(b.connections.mean.total_cmp(&a.connections.mean))
    });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_take_the_nearest_rank() {
        let spread = Spread::of((1..=100).map(f64::from));
        assert_eq!((spread.min, spread.mean, spread.p95, spread.max), (1.0, 50.5, 95.0, 100.0));
        assert_eq!(Spread::of([7.0]).p95, 7.0);
        assert_eq!(Spread::of([]), Spread::default());
    }
}
