//! When a server is asked for its database's catalogue: before any client gets the first one, after a change,
//! and periodically.
//!
//! Owns: the occasions. Must not know: what is asked, or what the answer means (`weir_sql::catalogue`).
//!
//! Invariant: no client gets a server of a pool whose catalogue has never been read, if the wing can read it.

use super::{Hall, Order};
use crate::context::Cx;
use crate::ids::Key;
use crate::pool::PoolId;
use crate::server::{Server, ServerPhase};
use crate::wing::{Back, Wing};
use weir_net::Net;
use weir_sql::catalogue::{Knowledge, Reading};

/// The catalogue should be read, or asked whether it is what it was.
pub(super) fn is_due<W: Wing, N: Net>(cx: &Cx<'_, N>, knowledge: &Knowledge) -> bool {
    let now_ms = if W::RESTS_BEHIND_TABLES { cx.now_ms() } else { u64::MAX };
    knowledge.is_due(now_ms, cx.now_ms().saturating_sub(cx.settings.timeouts.catalogue_check_ms))
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// What is known of this pool's database is out of date, and nobody asks yet.
    pub(super) fn wants_study(&self, cx: &Cx<'_, N>, id: PoolId) -> bool {
        let Some(pool) = self.pools.get(id.0 as usize).and_then(|pool| pool.as_deref()) else { return false };
        W::HAS_CATALOGUE && is_due::<W, N>(cx, &pool.entry.knowledge) && !pool.entry.knowledge.is_being_read()
    }

    /// A server that is about to be free is asked what Weir must know of it, and asks for the catalogue, if
    /// somebody must. True: it is under way.
    pub(super) fn study(&mut self, cx: &mut Cx<'_, N>, key: Key) -> bool {
        let Some(server) = self.servers.get_mut(key) else { return false };
        let id = server.pool;
        if let Server { phase: ServerPhase::Live(back), stream, .. } = server
            && back.introduce(stream.output.tail_mut())
        {
            self.books().study_begins(key);
            return true;
        }
        let Some(pool) = self.pools.get(id.0 as usize).and_then(|pool| pool.as_deref()) else { return false };
        let (now_ms, knowledge) = (cx.now_ms(), &pool.entry.knowledge);
        // Nobody is to wait for a question that may meet a lock once more.
        let asks_again = pool.waiting_len() == 0 && knowledge.may_be_unlocked(now_ms);
        if !W::HAS_CATALOGUE || !(asks_again || is_due::<W, N>(cx, knowledge)) || self.is_reserved(key) {
            return false;
        }
        let Some(reading) = knowledge.begin_reading(now_ms) else { return false };
        self.books().study_begins(key);
        self.ask(key, reading)
    }

    fn ask(&mut self, key: Key, reading: Reading) -> bool {
        let Some(server) = self.servers.get_mut(key) else { return false };
        let Server { phase: ServerPhase::Live(back), stream, .. } = server else { return false };
        back.ask_catalogue(reading, stream.output.tail_mut());
        true
    }

    /// A request of Weir's own is done: perhaps it was the question.
    pub(super) fn studied(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let Some(answer) = self.servers.get_mut(key).and_then(|server| server.back()?.take_catalogue())
        else {
            // It was introduced, if anything.
            self.books().study_ends(key);
            return;
        };
        let Some(id) = self.servers.get(key).map(|server| server.pool) else { return };
        if answer.catalogue.is_some() && !answer.failed {
            self.count_pool(id, |cells| cells.catalogue_reads.inc());
        }
        let (was_blind, cure) = (self.is_blind(id), answer.cure());
        let asks_on = answer.conclude(now_ms);
        if self.is_blind(id) && !was_blind {
            self.say_blind(id, cure);
        }
        if let Some(reading) = asks_on
            && self.ask(key, reading)
        {
            self.mark_dirty(key);
            self.arm_server(cx, key);
            self.todo.push_back(Order::PumpServer(key));
        } else {
            self.books().study_ends(key);
        }
    }

    /// Nothing can be known of this pool's database.
    fn is_blind(&self, id: PoolId) -> bool {
        let pool = self.pools.get(id.0 as usize).and_then(|pool| pool.as_deref());
        pool.and_then(|pool| pool.entry.knowledge.last()).is_some_and(|last| last.is_blind())
    }

    /// Once for each time that it becomes so: what this costs, and the cure.
    fn say_blind(&mut self, id: PoolId, cure: &str) {
        let Some(pool) = self.pools.get(id.0 as usize).and_then(|pool| pool.as_deref()) else { return };
        let (database, user) = (&pool.spec.database, &pool.spec.user);
        tracing::warn!(
            protocol = W::PROTOCOL.name(),
            database,
            user,
            "the catalogue of this database cannot be read: every statement may run code that nobody knows of, so no \
             server is shared and each stays with its client. {cure}"
        );
    }
}
