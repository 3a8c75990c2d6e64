//! When a client that only listens leaves its server to others, and when what it asks runs on one that
//! listens for it again.
//!
//! After `listen_linger` without a request the server is asked for the client's channels; another connection
//! listens on them (`crate::ear`); the server stops, and is free. A request that does more than read comes
//! back in the same way (`away`), before it runs. Each time the client stays longer, so that one that listens
//! and writes in turns keeps its server in the end.
//!
//! Must not know: what is said to servers (the wing's).
//!
//! Invariant: a client whose other connection is lost, or that misses a step of the way, ends: it may have
//! lost a notification.

use super::away::{Listener, Step};
use super::{Hall, Order};
use crate::client::{Listens, Phase};
use crate::context::{Cx, Ticket};
use crate::crypto::Work;
use crate::ear::{self, News, Place, Said, Way, Wish};
use crate::ids::{Key, Kind};
use crate::server::ServerPhase;
use crate::wing::{Back, Front, Wing};
use std::time::Duration;
use weir_net::Net;
use weir_session::listen::{Channels, Mark};
use weir_session::login::TlsWish;
use weir_wire::{Fault, FaultKind, limits};

/// Maximum time an answer takes where `server_connect_timeout` sets none.
const PATIENCE_MS: u64 = 15_000;

impl<W: Wing, N: Net> Hall<W, N> {
    /// A client that only listens has had its server for a time.
    pub(super) fn listen_timer(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let is_due = |listens| listens == Listens::Lingers;
        let Some(client) = self.clients.get_mut(key).filter(|client| is_due(client.is.listens)) else {
            return;
        };
        client.is.listens = Listens::Here;
        let at_rest = client.stream.input.is_empty() && client.inflight == 0 && !client.is.part_open;
        let (Some(server), active_ms) = (client.lease(), client.active_ms) else { return };
        if !at_rest || self.linger_ms(key).is_none_or(|linger_ms| now_ms < active_ms + linger_ms) {
            return self.await_parting(cx, key);
        }
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        let (Phase::Session(front), ServerPhase::Live(back)) = (&mut client.phase, &mut held.phase) else {
            return;
        };
        if !front.only_listens() {
            return;
        }
        let listener = self.listeners.entry(key).or_default();
        if back.ask_channels(front, key.raw(), held.stream.output.tail_mut()) {
            listener.step = Step::Asking;
            self.moves(cx, key, server);
        } else {
            listener.returns += 1;
            self.await_parting(cx, key);
        }
    }

    /// The server of a client has done what the client's way asked of it. True: the client is at a boundary.
    pub(super) fn handed(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key) -> bool {
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return false;
        };
        client.inflight = client.inflight.saturating_sub(1);
        let Some(listener) = self.listeners.get_mut(&key) else { return false };
        match listener.step {
            Step::Asking => {
                client.is.listens = Listens::Here;
                listener.step = Step::Here;
                let channels = held.back().and_then(|back| back.take_channels());
                self.join(cx, key, server, channels);
                true
            }
            Step::Parting => {
                listener.step = Step::Away;
                self.note_away(key, Listens::Away);
                true
            }
            Step::Homing { told, .. } => {
                listener.step = Step::Homing { there: true, told };
                self.arrive(cx, key, server);
                false
            }
            Step::Here | Step::Joining | Step::Away => {
                let fault = Fault::new(FaultKind::InternalError, "an answer to a client that goes nowhere");
                self.end_client(cx, key, fault);
                false
            }
        }
    }

    /// Another connection is to listen for a client, too.
    fn join(&mut self, cx: &Cx<'_, N>, key: Key, server: Key, channels: Option<Channels>) {
        let Some(channels) = channels.filter(|it| it.len() <= limits::LISTEN_CHANNELS) else {
            return self.stays(key);
        };
        let (Some(client), Some(held)) = (self.clients.get(key), self.servers.get(server)) else { return };
        let (since_ns, id, target) = (client.request_since_ns, held.pool, held.target.clone());
        let parameters = vec![
            ("application_name".to_owned(), "weir-listen".to_owned()),
            ("client_encoding".to_owned(), "UTF8".to_owned()),
        ];
        let unix = matches!(target, weir_net::Target::Unix(_));
        let Some(params) = self.connect_params(cx, id, unix, TlsWish::Off, parameters) else { return };
        let tls = self.pool(id).and_then(|pool| pool.spec.tls.clone());
        let patience_ms = match cx.settings.timeouts.server_connect_timeout_ms {
            0 => PATIENCE_MS,
            ms => ms,
        };
        let way = Way { params, tls, patience: Duration::from_millis(patience_ms) };
        let number = ear::next_number();
        let place = Place { pool: id, target };
        let wish = Wish::Join { place, way: Box::new(way), channels: channels.clone(), number };
        let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
        if (cx.shared.submit)(ticket, Work::Ear(Box::new(wish))).is_err() {
            return self.stays(key);
        }
        let listener = self.listeners.entry(key).or_default();
        (listener.number, listener.step, listener.since_ns) = (number, Step::Joining, since_ns);
        listener.channels = channels;
    }

    /// A client keeps its server this time.
    fn stays(&mut self, key: Key) {
        if let Some(listener) = self.listeners.get_mut(&key) {
            let returns = listener.returns + 1;
            *listener = Listener { returns, ..Listener::default() };
        }
    }

    /// What becomes of a client that listens.
    pub(super) fn news(&mut self, cx: &mut Cx<'_, N>, key: Key, news: News) {
        let News { number, what } = news;
        let Some(listener) = self.listeners.get_mut(&key).filter(|listener| listener.number == number) else {
            return Self::stop_listening(cx, key, number);
        };
        match (what, listener.step) {
            (Said::Joined(mark), Step::Joining) => self.joined(cx, key, mark),
            (Said::Refused | Said::Lost, Step::Joining) => {
                self.stays(key);
                self.await_parting(cx, key);
            }
            (Said::Notified(message), _) => self.notify(cx, key, &message),
            (Said::AtHome, Step::Homing { there, .. }) => {
                listener.step = Step::Homing { there, told: true };
                if let Some(server) = self.clients.get(key).and_then(|client| client.lease()) {
                    self.arrive(cx, key, server);
                }
            }
            (Said::Joined(_) | Said::Refused | Said::AtHome | Said::Lost, _) => {
                let text = "the connection that listened for a client was lost";
                self.end_client(cx, key, Fault::new(FaultKind::ServerLost, text));
            }
        }
    }

    /// Something was notified to a client.
    fn notify(&mut self, cx: &mut Cx<'_, N>, key: Key, message: &[u8]) {
        let Some(listener) = self.listeners.get_mut(&key) else { return };
        listener.waiting.extend_from_slice(message);
        if listener.waiting.len() > limits::NOTIFICATION_BYTES {
            let text = "more notifications wait for a client than may";
            return self.end_client(cx, key, Fault::new(FaultKind::OutOfResources, text));
        }
        self.tell(cx, key);
    }

    /// Another connection listens, too: the client's own stops, if the client has asked nothing meanwhile.
    fn joined(&mut self, cx: &mut Cx<'_, N>, key: Key, mark: Mark) {
        let since_ns = self.listeners.get(&key).map_or(0, |listener| listener.since_ns);
        let client = self.clients.get_mut(key).filter(|client| {
            client.inflight == 0 && client.stream.input.is_empty() && client.request_since_ns == since_ns
        });
        let server = client.as_ref().and_then(|client| client.lease());
        let held = server.and_then(|server| self.servers.get_mut(server));
        if let (Some(client), Some(held), Some(server)) = (client, held, server)
            && let (Phase::Session(front), ServerPhase::Live(back)) = (&mut client.phase, &mut held.phase)
            && front.only_listens()
            && let Some(listener) = self.listeners.get_mut(&key)
        {
            listener.step = Step::Parting;
            let channels = std::mem::take(&mut listener.channels);
            back.part(front, key.raw(), channels, mark, held.stream.output.tail_mut());
            return self.moves(cx, key, server);
        }
        Self::stop_listening(cx, key, mark.number);
        self.stays(key);
        self.await_parting(cx, key);
    }

    /// A client comes home: once its server listens and it has been told all that came before, what it has
    /// asked runs there.
    fn arrive(&mut self, cx: &mut Cx<'_, N>, key: Key, server: Key) {
        let Some(listener) = self.listeners.get_mut(&key) else { return };
        if listener.step != (Step::Homing { there: true, told: true }) {
            return;
        }
        listener.step = Step::Here;
        listener.number = 0;
        let (waiting, request) = (std::mem::take(&mut listener.waiting), listener.request.take());
        let (Some(client), Some(held)) = (self.clients.get_mut(key), self.servers.get_mut(server)) else {
            return;
        };
        let (Phase::Session(front), ServerPhase::Live(back)) = (&mut client.phase, &mut held.phase) else {
            return;
        };
        let mut out = std::mem::take(&mut self.staging);
        back.is_home(front, waiting, &mut out);
        self.note_away(key, Listens::Here);
        self.send_client(cx, key, &out);
        self.recycle(out);
        if let Some((request, whole)) = request {
            self.dispatch(cx, key, server, &request, whole);
        }
        self.todo.push_back(Order::PumpClient(key));
    }
}
