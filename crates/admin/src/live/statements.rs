//! Which statements have taken most time lately.
//!
//! Owns: two looks at the sums, and what came between them. Must not know: where the sums come from.
//!
//! Invariant: what is shown is about at least [`LEAST`], and at most three times that while somebody looks,
//! so that a statement which runs once in a few seconds does not come and go.

use super::document::{StatementFigures, Times};
use std::collections::HashMap;
use std::time::{Duration, Instant};
use weir_metrics::HistogramTotals;
use weir_proxy::statements::Figures;
use weir_session::Protocol;

/// The time that is looked back over, at least.
const LEAST: Duration = Duration::from_secs(10);

/// Statements in the document.
const SHOWN: usize = 20;

/// A statement of a pool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Name {
    pub(crate) protocol: Protocol,
    pub(crate) database: String,
    pub(crate) user: String,
    pub(crate) words: String,
    /// Tells it from others with the same words, where these are not all.
    pub(crate) apart: u32,
}

struct Look {
    at: Instant,
    sums: HashMap<Name, Figures>,
}

/// The last two looks that are far enough apart.
#[derive(Default)]
pub(crate) struct Lately {
    before: Option<Look>,
    between: Option<Look>,
    shown: Vec<StatementFigures>,
}

impl Lately {
    /// What there is in sum at this moment.
    pub(crate) fn note(&mut self, now: Instant, sums: HashMap<Name, Figures>) {
        let age = |look: &Look| now.saturating_duration_since(look.at);
        if self.between.as_ref().is_some_and(|between| age(between) >= LEAST) {
            self.before = self.between.take();
        }
        // Nobody has looked meanwhile.
        self.before = self.before.take().filter(|before| age(before) <= 3 * LEAST);
        self.shown = match &self.before {
            Some(before) => busiest(before, now, &sums),
            None => Vec::new(),
        };
        let look = Look { at: now, sums };
        match &self.before {
            None => self.before = Some(look),
            Some(_) if self.between.is_none() => self.between = Some(look),
            Some(_) => {}
        }
    }

    /// Those that have taken most time.
    pub(crate) fn shown(&self) -> &[StatementFigures] {
        &self.shown
    }
}

fn busiest(before: &Look, now: Instant, sums: &HashMap<Name, Figures>) -> Vec<StatementFigures> {
    let seconds = now.saturating_duration_since(before.at).as_secs_f64();
    if seconds <= 0.0 {
        return Vec::new();
    }
    let none = Figures::default();
    let mut shown: Vec<StatementFigures> = sums
        .iter()
        .filter_map(|(name, figures)| {
            let earlier = before.sums.get(name).unwrap_or(&none);
            let times = figures.times.since(&earlier.times);
            let per_s = |now: u64, then: u64| now.saturating_sub(then) as f64 / seconds;
            (times.count() > 0).then(|| StatementFigures {
                protocol: name.protocol.name().to_owned(),
                database: name.database.clone(),
                user: name.user.clone(),
                statement: name.words.clone(),
                calls_per_s: times.count() as f64 / seconds,
                errors_per_s: per_s(figures.errors, earlier.errors),
                rows_per_s: per_s(figures.rows, earlier.rows),
                in_progress: times.sum_ns as f64 / 1e9 / seconds,
                times: times_of(&times),
            })
        })
        .collect();
    shown.sort_by(|a, b| b.in_progress.total_cmp(&a.in_progress).then_with(|| a.statement.cmp(&b.statement)));
    shown.truncate(SHOWN);
    shown
}

fn times_of(times: &HistogramTotals) -> Times {
    let us = |quantile| times.quantile_ns(quantile) / 1_000;
    Times { p50_us: us(0.5), p95_us: us(0.95), p99_us: us(0.99) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(of: &[(&str, u64)]) -> HashMap<Name, Figures> {
        of.iter()
            .map(|&(words, calls)| {
                let mut figures = Figures { rows: 3 * calls, ..Figures::default() };
                (0..calls).for_each(|_| figures.times.record_ns(1_000_000));
                let (database, user) = ("app".to_owned(), "app".to_owned());
                (
                    Name { protocol: Protocol::Postgres, database, user, words: words.to_owned(), apart: 0 },
                    figures,
                )
            })
            .collect()
    }

    #[test]
    fn what_is_shown_is_about_the_last_seconds() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut lately = Lately::default();
        lately.note(start, sums(&[("a", 1_000)]));
        assert_eq!(lately.shown(), [], "one look says nothing of what is new");
        lately.note(start + 10 * second, sums(&[("a", 1_000), ("b", 50)]));
        let [b] = lately.shown() else { panic!("{:?}", lately.shown()) };
        assert_eq!((b.statement.as_str(), b.calls_per_s, b.rows_per_s), ("b", 5.0, 15.0));
        assert!((b.in_progress - 0.005).abs() < 1e-9 && (900..1_200).contains(&b.times.p50_us), "{b:?}");
        // The first look has had its time.
        for n in 11..40 {
            lately.note(start + n * second, sums(&[("a", 1_000), ("b", 50), ("c", u64::from(n) - 10)]));
        }
        let [c] = lately.shown() else { panic!("{:?}", lately.shown()) };
        assert_eq!((c.statement.as_str(), c.calls_per_s), ("c", 1.0));
        lately.note(start + 3_600 * second, sums(&[("a", 2_000)]));
        assert_eq!(lately.shown(), [], "an hour ago is not lately");
        lately.note(start + 3_610 * second, sums(&[("a", 2_010)]));
        assert_eq!(lately.shown().first().map(|a| a.calls_per_s), Some(1.0));
    }

    #[test]
    fn the_busiest_come_first_and_not_all() {
        let now = Instant::now();
        let names: Vec<String> = (0..100).map(|n| format!("statement {n}")).collect();
        let mut lately = Lately::default();
        lately.note(now, HashMap::new());
        let of: Vec<(&str, u64)> =
            names.iter().enumerate().map(|(n, name)| (name.as_str(), n as u64)).collect();
        lately.note(now + LEAST, sums(&of));
        assert_eq!(lately.shown().len(), SHOWN);
        assert_eq!(lately.shown()[0].statement, "statement 99");
    }
}
