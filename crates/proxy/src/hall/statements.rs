//! What each statement costs, for the operator (SHOW STATEMENTS).
//!
//! Owns: when a request is noted, and the rows of a list. Must not know: what is kept of it
//! (`crate::statements`).
//!
//! Invariant: a request pays two look-ups in a small table; its words are read when its statement comes for
//! the first time.

use super::Hall;
use crate::client::Phase;
use crate::console::StatementRow;
use crate::context::Cx;
use crate::ids::Key;
use crate::pool::PoolId;
use crate::statements::{Call, Row};
use crate::wing::{Front, Tally, Wing};
use weir_net::Net;
use weir_wire::limits::STATEMENT_WORDS_BYTES;

impl<W: Wing, N: Net> Hall<W, N> {
    /// A request is about to be sent to a server: the words of a new statement are kept.
    #[inline]
    pub(super) fn note_statement(&mut self, cx: &Cx<'_, N>, key: Key, request: &[u8]) {
        if self.is_new_statement(cx, key) {
            self.learn_statement(key, request);
        }
    }

    /// The same for the request at the start of a client's input, which goes behind others.
    #[inline]
    pub(super) fn note_riding_statement(&mut self, cx: &Cx<'_, N>, key: Key, len: usize) {
        if self.is_new_statement(cx, key)
            && let Some(client) = self.clients.get(key)
        {
            let input = client.stream.input.as_slice();
            let request = input[..len.min(input.len())].to_vec();
            self.learn_statement(key, &request);
        }
    }

    fn is_new_statement(&mut self, cx: &Cx<'_, N>, key: Key) -> bool {
        if self.statements.most() != cx.settings.statements {
            self.statements.limit(cx.settings.statements);
        }
        let client = self.clients.get(key);
        let asked = client.and_then(|client| Some((client.pool?, client.fingerprint)));
        asked.is_some_and(|(id, fingerprint)| self.statements.wants(id, fingerprint))
    }

    #[cold]
    fn learn_statement(&mut self, key: Key, request: &[u8]) {
        if let Some(client) = self.clients.get(key)
            && let (Some(id), Phase::Session(front)) = (client.pool, &client.phase)
            && let Some(words) = front.words_of(request, STATEMENT_WORDS_BYTES)
        {
            self.statements.learn(id, client.fingerprint, words);
        }
    }

    /// A request is answered.
    #[inline]
    pub(super) fn note_call(&mut self, id: PoolId, fingerprint: u32, took_ns: u64, tally: &Tally) {
        let call = Call { took_ns, rows: tally.rows, failed: tally.error.is_some() };
        self.statements.note(id, fingerprint, call);
    }

    /// Each statement, and what all others together have cost.
    pub(super) fn list_statements(&self) -> Vec<StatementRow> {
        let spec_of = |row: &Row| Some(&self.pools.get(row.pool.0 as usize)?.as_deref()?.spec);
        let called = self.statements.rows().filter(|row| row.figures.times.count() > 0);
        let rows = called.map(|row| {
            let spec = spec_of(row);
            StatementRow {
                user: spec.map(|spec| spec.user.clone()).unwrap_or_default(),
                database: spec.map(|spec| spec.database.clone()).unwrap_or_default(),
                words: Some(row.words.to_string()),
                // Two that begin alike are two.
                apart: if row.words.len() < STATEMENT_WORDS_BYTES { 0 } else { row.fingerprint },
                figures: row.figures.clone(),
            }
        });
        let rest = self.statements.rest().clone();
        let others = StatementRow {
            user: String::new(),
            database: String::new(),
            words: None,
            apart: 0,
            figures: rest,
        };
        rows.chain(std::iter::once(others).filter(|row| row.figures.times.count() > 0)).collect()
    }
}
