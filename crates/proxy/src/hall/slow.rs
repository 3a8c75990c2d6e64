//! Requests that take long, for the operator (`log_min_duration`).
//!
//! Owns: the words of requests that are under way, while such a log is wanted. Must not know: why one is
//! slow.
//!
//! Invariant: where no log is wanted nothing is kept, and a request pays two comparisons.

use super::Hall;
use super::who::log_client;
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::Key;
use crate::wing::{Front, Wing};
use std::collections::VecDeque;
use weir_net::Net;
use weir_wire::limits::SHOWN_STATEMENT_BYTES;

/// Requests of one client whose words are kept, at most: of those that it sends behind them the log has none.
const WORDS: usize = 64;

/// What a client has asked and not been answered.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// How long it waited for a server.
    waited_ns: u64,
    /// Without their values, oldest first.
    words: VecDeque<Box<str>>,
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// A request is about to be sent to a server.
    pub(super) fn note_asked(&mut self, cx: &Cx<'_, N>, key: Key, request: &[u8]) {
        if cx.settings.timeouts.log_min_duration_ms == 0 {
            return;
        }
        let Some(Phase::Session(front)) = self.clients.get(key).map(|client| &client.phase) else { return };
        let words = front.words_of(request, SHOWN_STATEMENT_BYTES).unwrap_or_default();
        let asked = self.asked_for.entry(key).or_default();
        if asked.words.len() < WORDS {
            asked.words.push_back(words.into());
        }
    }

    /// The first request in a client's input is about to be sent behind others.
    pub(super) fn note_ride(&mut self, cx: &Cx<'_, N>, key: Key, len: usize) {
        if cx.settings.timeouts.log_min_duration_ms == 0 {
            return;
        }
        let Some(client) = self.clients.get(key) else { return };
        let input = client.stream.input.as_slice();
        let request = input[..len.min(input.len())].to_vec();
        self.note_asked(cx, key, &request);
    }

    /// A client has a server, for which it waited.
    pub(super) fn note_wait(&mut self, cx: &Cx<'_, N>, key: Key, waited_ns: u64) {
        if cx.settings.timeouts.log_min_duration_ms > 0 {
            self.asked_for.entry(key).or_default().waited_ns = waited_ns;
        }
    }

    /// A request is answered: is it worth a line?
    pub(super) fn note_slow(&mut self, cx: &Cx<'_, N>, key: Key, took_ns: u64) {
        if self.asked_for.is_empty() {
            return;
        }
        let Some(asked) = self.asked_for.get_mut(&key) else { return };
        let (statement, waited_ns) = (asked.words.pop_front(), std::mem::take(&mut asked.waited_ns));
        if self.clients.get(key).is_none_or(|client| client.inflight == 0) {
            self.asked_for.remove(&key);
        }
        // None where it was part of a login.
        let Some(statement) = statement else { return };
        let least_ms = cx.settings.timeouts.log_min_duration_ms;
        let (took_ms, waited_ms) = (took_ns / 1_000_000, waited_ns / 1_000_000);
        if least_ms > 0 && took_ms + waited_ms >= least_ms {
            log_client!(info, self, cx, key, took_ms, waited_ms, statement, "slow request");
        }
    }

    /// A client has gone.
    pub(super) fn forget_asked(&mut self, key: Key) {
        if !self.asked_for.is_empty() {
            self.asked_for.remove(&key);
        }
    }
}
