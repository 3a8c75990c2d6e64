//! Clients that only listen, while another connection listens for them: what they are told, and how they
//! come back to a server.
//!
//! Owns: what is kept of such clients. Must not know: that connection (`crate::ear`), and what is said to the
//! servers (the wing's).
//!
//! Invariants: `Flags::listens` says who listens; while that changes nothing the client asks is looked at; a
//! client is told of notifications in their order, between its requests and outside its transactions; what
//! waits for it is bounded.

use super::{Hall, Order};
use crate::client::{Client, Listens, Phase};
use crate::context::{Cx, Ticket};
use crate::crypto::Work;
use crate::ear::Wish;
use crate::ids::{Key, Kind, Tag};
use crate::server::ServerPhase;
use crate::settings::PoolMode;
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_session::listen::Channels;
use weir_wire::limits;

/// Maximum time a client keeps a server on which it only listens, however often it has come back.
const LINGER_MS: u64 = 60_000;

/// A client that listens.
#[derive(Debug, Default)]
pub(super) struct Listener {
    /// Its number among them; 0: it has none.
    pub number: u64,
    pub step: Step,
    /// How often it has come back, or could not go.
    pub returns: u32,
    /// When its last request had been sent when it was to go.
    pub since_ns: u64,
    /// Its channels, when it is to go.
    pub channels: Channels,
    /// Notifications that it is to be told.
    pub waiting: Vec<u8>,
    /// What it asks once it is home, and whether that is a whole request.
    pub request: Option<(Vec<u8>, bool)>,
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Step {
    /// Its server listens.
    #[default]
    Here,
    /// That is asked for its channels.
    Asking,
    /// The other connection is to listen, too.
    Joining,
    /// The server is to stop.
    Parting,
    /// The other connection listens.
    Away,
    /// A server is to listen again. `there`: it does; `told`: the other connection has told everything.
    Homing { there: bool, told: bool },
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// A client keeps its server beyond a boundary: if it only listens, that ends after a time.
    pub(super) fn await_parting(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key).filter(|it| it.is.listens == Listens::Here) else {
            return;
        };
        if !client.front().is_some_and(|front| front.only_listens()) {
            return;
        }
        let Some(linger_ms) = self.linger_ms(key) else { return };
        if self.listeners.get(&key).is_some_and(|listener| listener.step != Step::Here) {
            return;
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.is.listens = Listens::Lingers;
        }
        cx.wheel
            .insert(cx.now_ms() + linger_ms, Tag { kind: Kind::Listen, protocol: W::PROTOCOL, key }.pack());
    }

    /// Time for which a client keeps a server on which it only listens; `None`: for ever.
    pub(super) fn linger_ms(&self, key: Key) -> Option<u64> {
        let id = self.clients.get(key)?.pool?;
        let spec = &self.pools.get(id.0 as usize)?.as_deref()?.spec;
        let linger_ms = spec.listen_linger_ms.filter(|_| spec.mode == PoolMode::Transaction)?;
        let returns = self.listeners.get(&key).map_or(0, |listener| listener.returns);
        Some(linger_ms.saturating_mul(1 << (2 * returns.min(16))).min(LINGER_MS))
    }

    /// A request goes to a server on which its client must listen first: then it waits for that.
    pub(super) fn comes_home(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        server: Key,
        request: &[u8],
        whole: bool,
    ) -> bool {
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return false;
        };
        let (Phase::Session(front), ServerPhase::Live(back)) = (&mut client.phase, &mut held.phase) else {
            return false;
        };
        let Some(listener) = self.listeners.get_mut(&key).filter(|_| front.wants_home()) else {
            return false;
        };
        listener.step = Step::Homing { there: false, told: false };
        listener.returns += 1;
        listener.request = Some((request.to_vec(), whole));
        back.come_home(front, key.raw(), held.stream.output.tail_mut());
        self.moves(cx, key, server);
        true
    }

    /// A client's server has been asked to begin or to end listening for it.
    pub(super) fn moves(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key) {
        let now_ns = cx.now_ns();
        if let Some(client) = self.clients.get_mut(key) {
            client.is.listens = match client.is.listens {
                Listens::Away | Listens::Returns => Listens::Returns,
                Listens::Here | Listens::Lingers | Listens::Goes => Listens::Goes,
            };
            client.inflight += 1;
            client.request_since_ns = now_ns;
        }
        self.mark_dirty(server);
        self.todo.push_back(Order::PumpServer(server));
        self.arm_client(cx, key);
    }

    /// Another connection listens for a client from now on, or no longer.
    pub(super) fn note_away(&mut self, key: Key, listens: Listens) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let before = std::mem::replace(&mut client.is.listens, listens);
        if let Some(id) = client.pool.filter(|_| before.is_away() != listens.is_away()) {
            let change = if listens.is_away() { 1 } else { -1 };
            self.count_pool(id, |cells| cells.listening_clients.add(change));
        }
    }

    /// A client is told what was notified, if it may be now.
    pub(super) fn tell(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get(key) else { return };
        let Some(listener) = self.listeners.get_mut(&key) else { return };
        if listener.waiting.is_empty() || !may_be_told(client, listener.step) {
            return;
        }
        let waiting = std::mem::take(&mut listener.waiting);
        self.send_client(cx, key, &waiting);
    }

    /// A client is gone.
    pub(super) fn forget_listener(&mut self, cx: &Cx<'_, N>, key: Key) {
        if let Some(listener) = self.listeners.remove(&key) {
            self.note_away(key, Listens::Here);
            Self::stop_listening(cx, key, listener.number);
        }
    }

    /// Nobody is to listen for it any more.
    pub(super) fn stop_listening(cx: &Cx<'_, N>, key: Key, number: u64) {
        if number != 0 {
            let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
            let _ = (cx.shared.submit)(ticket, Work::Ear(Box::new(Wish::Leave { number })));
        }
    }
}

/// Between requests, outside transactions, and as long as it reads.
fn may_be_told<W: Wing, S>(client: &Client<W, S>, step: Step) -> bool {
    let Phase::Session(front) = &client.phase else { return false };
    let between = match step {
        Step::Away => client.inflight == 0,
        Step::Homing { .. } => client.inflight <= 1,
        Step::Here | Step::Asking | Step::Joining | Step::Parting => false,
    };
    between
        && !client.is.part_open
        && !front.is_in_empty_transaction()
        && client.stream.output.len() <= limits::CLIENT_OUTPUT_BYTES
}
