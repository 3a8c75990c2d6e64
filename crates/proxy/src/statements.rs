//! What each statement has cost, by fingerprint: calls, errors, rows, times (SHOW STATEMENTS).
//!
//! Owns: the table of one worker for one protocol, and its bound. Must not know: what a statement is, nor
//! where the figures are shown.
//!
//! Invariants: the rows and the rest together hold every request that was noted, each once; there are at most
//! as many rows as [`Statements::see`] was told last. In a full table a newcomer must come twice before it
//! takes the place of the one that was called longest ago, so that statements which come only once drive
//! nobody out.

use crate::pool::PoolId;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use weir_metrics::HistogramTotals;
use weir_wire::limits::STATEMENT_WORDS_BYTES;

/// Places in which a newcomer is remembered.
const DOOR: usize = 1_024;

/// What calls have cost.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Figures {
    /// Calls that were answered with an error.
    pub errors: u64,
    /// Rows that were returned or changed, as far as replies say it.
    pub rows: u64,
    /// How long servers took for each call, the wait for one left out.
    pub times: HistogramTotals,
}

impl Figures {
    fn note(&mut self, call: Call) {
        self.errors += u64::from(call.failed);
        self.rows = self.rows.saturating_add(call.rows);
        self.times.record_ns(call.took_ns);
    }

    /// Adds those of others.
    pub fn add(&mut self, other: &Figures) {
        self.errors += other.errors;
        self.rows = self.rows.saturating_add(other.rows);
        self.times.add(&other.times);
    }
}

/// One call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call {
    pub(crate) took_ns: u64,
    pub(crate) rows: u64,
    pub(crate) failed: bool,
}

/// One statement of one pool.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) pool: PoolId,
    pub(crate) fingerprint: u32,
    /// Without its values.
    pub(crate) words: Box<str>,
    pub(crate) figures: Figures,
    called: u64,
}

/// The table.
#[derive(Debug, Default)]
pub(crate) struct Statements {
    most: usize,
    rows: HashMap<u64, Row, BuildHasherDefault<Spread>>,
    /// Of all that have no row.
    rest: Figures,
    door: Box<[u64]>,
    calls: u64,
}

fn key_of(pool: PoolId, fingerprint: u32) -> u64 {
    u64::from(pool.0) << 32 | u64::from(fingerprint)
}

impl Statements {
    /// A request is about to be sent, of which there may be at most `most` rows. `words`: of a new statement,
    /// at most so many bytes of them.
    #[inline]
    pub(crate) fn see(
        &mut self,
        most: usize,
        pool: PoolId,
        fingerprint: u32,
        words: impl FnOnce(usize) -> Option<String>,
    ) {
        if most != self.most {
            self.limit(most);
        }
        if self.wants(pool, fingerprint)
            && let Some(words) = words(STATEMENT_WORDS_BYTES)
        {
            self.learn(pool, fingerprint, words);
        }
    }

    /// So many rows from now on; 0: nothing is noted.
    fn limit(&mut self, most: usize) {
        self.most = most;
        while self.rows.len() > most {
            self.drop_oldest();
        }
        if most == 0 {
            *self = Statements::default();
        }
    }

    /// The words of this statement are wanted: it has no row and is to get one.
    #[inline]
    fn wants(&mut self, pool: PoolId, fingerprint: u32) -> bool {
        let key = key_of(pool, fingerprint);
        if self.most == 0 || fingerprint == 0 || self.rows.contains_key(&key) {
            return false;
        }
        self.rows.len() < self.most || self.knocks(key)
    }

    /// It has come before, as far as is remembered.
    #[cold]
    fn knocks(&mut self, key: u64) -> bool {
        if self.door.is_empty() {
            self.door = vec![0; DOOR].into();
        }
        let at = (spread(key) >> 32) as usize % DOOR;
        let Some(place) = self.door.get_mut(at) else { return false };
        std::mem::replace(place, key) == key
    }

    /// A statement gets a row.
    #[cold]
    fn learn(&mut self, pool: PoolId, fingerprint: u32, words: String) {
        if self.rows.len() >= self.most {
            self.drop_oldest();
        }
        let (words, figures) = (words.into(), Figures::default());
        let row = Row { pool, fingerprint, words, figures, called: self.calls };
        self.rows.insert(key_of(pool, fingerprint), row);
    }

    /// A request was answered.
    #[inline]
    pub(crate) fn note(&mut self, pool: PoolId, fingerprint: u32, call: Call) {
        if self.most == 0 {
            return;
        }
        self.calls += 1;
        match self.rows.get_mut(&key_of(pool, fingerprint)) {
            Some(row) => {
                row.called = self.calls;
                row.figures.note(call);
            }
            None => self.rest.note(call),
        }
    }

    fn drop_oldest(&mut self) {
        let oldest = self.rows.iter().min_by_key(|(_, row)| row.called).map(|(&key, _)| key);
        if let Some(row) = oldest.and_then(|key| self.rows.remove(&key)) {
            self.rest.add(&row.figures);
        }
    }

    /// Another pool may get this number.
    pub(crate) fn forget(&mut self, pool: PoolId) {
        let rest = &mut self.rest;
        self.rows.retain(|_, row| {
            let stays = row.pool != pool;
            if !stays {
                rest.add(&row.figures);
            }
            stays
        });
    }

    /// All rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &Row> {
        self.rows.values()
    }

    /// All calls that have no row.
    pub(crate) fn rest(&self) -> &Figures {
        &self.rest
    }
}

/// Keys are numbers that are well mixed already, but for their upper half, which a table looks at first.
#[derive(Default)]
struct Spread(u64);

fn spread(key: u64) -> u64 {
    (key ^ key >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

impl Hasher for Spread {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = spread(self.0 ^ u64::from(byte));
        }
    }

    fn write_u64(&mut self, key: u64) {
        self.0 = spread(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const POOL: PoolId = PoolId(3);

    fn call(statements: &mut Statements, pool: PoolId, fingerprint: u32, took_ns: u64) {
        if statements.wants(pool, fingerprint) {
            statements.learn(pool, fingerprint, format!("statement {fingerprint}"));
        }
        statements.note(pool, fingerprint, Call { took_ns, rows: 2, failed: took_ns > 1_000_000 });
    }

    fn calls(statements: &Statements) -> u64 {
        statements.rows().map(|row| row.figures.times.count()).sum::<u64>() + statements.rest().times.count()
    }

    fn of(statements: &Statements, fingerprint: u32) -> Option<&Figures> {
        statements.rows.get(&key_of(POOL, fingerprint)).map(|row| &row.figures)
    }

    #[test]
    fn each_statement_of_each_pool_has_a_row() {
        let mut statements = Statements::default();
        call(&mut statements, POOL, 7, 1);
        assert_eq!(calls(&statements), 0, "it is off");
        statements.limit(10);
        for took_ns in [10_000, 20_000, 2_000_000] {
            call(&mut statements, POOL, 7, took_ns);
        }
        call(&mut statements, PoolId(4), 7, 10_000);
        // Of several at a time nothing is known.
        call(&mut statements, POOL, 0, 10_000);
        let figures = of(&statements, 7).unwrap();
        assert_eq!((figures.times.count(), figures.errors, figures.rows), (3, 1, 6));
        assert_eq!(figures.times.sum_ns, 2_030_000);
        assert_eq!((statements.rows().count(), statements.rest().times.count()), (2, 1));
        statements.forget(POOL);
        assert_eq!((statements.rows().count(), calls(&statements)), (1, 5));
    }

    #[test]
    fn what_comes_once_drives_nobody_out() {
        let mut statements = Statements::default();
        statements.limit(3);
        for fingerprint in [1, 2, 3, 1, 2] {
            call(&mut statements, POOL, fingerprint, 10_000);
        }
        for fingerprint in 100..10_000 {
            call(&mut statements, POOL, fingerprint, 10_000);
        }
        assert!((1..=3).all(|fingerprint| of(&statements, fingerprint).is_some()));
        call(&mut statements, POOL, 7, 10_000);
        call(&mut statements, POOL, 7, 10_000);
        assert!(of(&statements, 3).is_none(), "it was called longest ago");
        assert_eq!(of(&statements, 7).map(|figures| figures.times.count()), Some(1));
        assert_eq!(calls(&statements), 5 + 9_900 + 2, "each is counted once");
        statements.limit(1);
        assert_eq!((statements.rows().count(), calls(&statements)), (1, 9_907));
        statements.limit(0);
        assert_eq!((statements.rows().count(), calls(&statements)), (0, 0));
    }
}
