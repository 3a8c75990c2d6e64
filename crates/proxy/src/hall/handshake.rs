//! TLS with clients: where it begins, how it ends, and how many handshakes fit into a turn.

use super::who::log_client;
use super::{Hall, Order};
use crate::client::Phase;
use crate::context::{Cx, Ticket};
use crate::crypto::{Work, WorkDone};
use crate::ids::{Key, Kind};
use crate::line::{Handshake, Received};
use crate::wing::{Accept, Wing};
use std::io;
use std::sync::Arc;
use weir_net::Net;
use weir_session::login::Secured;
use weir_wire::{Fault, FaultKind};

/// Login work of one turn, in looks at what a client has sent (some 20 us each, measured). What a turn has no
/// room for waits for its end or the next one, so that a query waits a fraction of a millisecond for logins,
/// however many come at once.
const LOGIN_WORK: u32 = 8;

/// What a look at a handshake counts for: an ECDSA signature and a key exchange, 0.15 ms with what is around
/// them.
const HANDSHAKE_WORK: u32 = 8;

/// The end of a handshake: the keys of both directions, and tickets.
const FINISH_WORK: u32 = 2;

/// Who has asked for something within this time is at work.
const AT_WORK_MS: u64 = 100;

/// Whether clients query, looked at when a handshake is lent: counting them costs the queries nothing.
#[derive(Debug, Default)]
pub(super) struct Asked {
    /// Time that all requests so far took, at the last look.
    asked_ns: u64,
    /// When a look last found more of it than the one before.
    at_ms: u64,
}

impl Asked {
    fn is_lately(&mut self, asked_ns: u64, now_ms: u64) -> bool {
        if std::mem::replace(&mut self.asked_ns, asked_ns) != asked_ns {
            self.at_ms = now_ms;
        }
        now_ms.saturating_sub(self.at_ms) < AT_WORK_MS
    }
}

impl<W: Wing, N: Net> Hall<W, N> {
    /// What a look at this client's bytes costs; 0: it is not logging in.
    fn work_of(&self, cx: &Cx<'_, N>, key: Key) -> u32 {
        match self.clients.get(key) {
            Some(client) if client.stream.line.is_expecting_hello() && !self.leaves_handshakes(cx) => {
                HANDSHAKE_WORK
            }
            Some(client) if client.stream.line.is_handshaking() => FINISH_WORK,
            Some(client) if matches!(client.phase, Phase::Login(_)) => 1,
            _ => 0,
        }
    }

    /// This client is not logging in, or its login may go on in this turn. If not, it has a place in the
    /// queue for the end of this turn or the next ones.
    pub(super) fn may_go_on(&mut self, cx: &Cx<'_, N>, key: Key) -> bool {
        let work = self.work_of(cx, key);
        if work == 0 {
            return true;
        }
        let Some(client) = self.clients.get_mut(key) else { return false };
        if std::mem::take(&mut client.is.called) {
            return true;
        }
        if self.login_queue.is_empty() && self.login_work < LOGIN_WORK {
            self.login_work += work;
            return true;
        }
        if !std::mem::replace(&mut client.is.queued, true) {
            self.login_queue.push_back(key);
        }
        false
    }

    /// There was login work in this turn, or some waits.
    pub fn has_logins(&self) -> bool {
        self.login_work > 0 || !self.login_queue.is_empty()
    }

    /// A turn's other work is done: logins for which it had no room go on, in their order.
    pub fn resume_logins(&mut self, cx: &Cx<'_, N>) {
        self.login_work = 0;
        while self.login_work < LOGIN_WORK
            && let Some(key) = self.login_queue.pop_front()
        {
            self.login_work += self.work_of(cx, key);
            if let Some(client) = self.clients.get_mut(key) {
                (client.is.queued, client.is.called) = (false, true);
                self.todo.push_back(Order::PumpClient(key));
            }
        }
    }

    /// The costly step of a client's handshake is another thread's: more clients are at work here than log
    /// in, and not only a few. Where nobody is held up, two wakes of threads are saved.
    fn leaves_handshakes(&self, cx: &Cx<'_, N>) -> bool {
        let coming = self.cells.wing.client_logins_pending.get();
        self.clients.len() as i64 > 2 * coming + cx.settings.few_clients as i64
    }

    /// Reads a client's hello, which begins TLS. Another thread may have to answer it: then there is nothing
    /// to be read until that is back.
    pub(super) fn receive_hello(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        buf: &mut [u8],
    ) -> io::Result<Received> {
        let leaves = self.leaves_handshakes(cx);
        let Some(client) = self.clients.get_mut(key) else { return Err(io::ErrorKind::WouldBlock.into()) };
        if !leaves {
            return client.stream.line.recv(cx.net, buf);
        }
        let Some(step) = client.stream.line.lend(cx.net, buf)? else {
            return Ok(Received { len: 0, drained: true });
        };
        let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
        let beside_queries = self.asked.is_lately(self.cells.request_duration.sum_ns(), cx.now_ms());
        let work = Work::Handshake { step: Box::new(step), beside_queries };
        match (cx.shared.submit)(ticket, work) {
            Ok(()) => Err(io::ErrorKind::WouldBlock.into()),
            // Too much waits there.
            Err(refused) => {
                if let WorkDone::Handshake(step) = refused.run() {
                    client.stream.line.take_back(cx.net, *step)?;
                }
                Err(io::ErrorKind::Interrupted.into())
            }
        }
    }

    /// A handshake is back from another thread, a step further.
    pub(super) fn handshake_back(&mut self, cx: &mut Cx<'_, N>, key: Key, step: Handshake) {
        let Some(client) = self.clients.get_mut(key) else { return };
        match client.stream.line.take_back(cx.net, step) {
            Ok(()) => {
                // It may have sent more meanwhile.
                client.stream.line.readable = true;
                self.todo.push_back(Order::PumpClient(key));
            }
            Err(e) if e.kind() == io::ErrorKind::InvalidData => self.tls_failed(cx, key, &e),
            Err(_) => {
                client.is.broken = true;
                self.close_client(cx, key, Some(FaultKind::ClientGone.into()));
            }
        }
    }

    /// A client asked for TLS: what it sends from here on, and `early`, is that.
    pub(super) fn begin_tls(&mut self, cx: &mut Cx<'_, N>, key: Key, early: &[u8]) -> Result<(), Fault> {
        let stream = cx.settings.tls.acceptor(W::PROTOCOL).map(|acceptor| acceptor.accept());
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        match stream {
            Some(Ok(stream)) => {
                let clear = std::mem::take(&mut client.stream.output);
                client.stream.line.secure(stream, early, clear.as_slice());
                // What was read with the wish for TLS is looked at without waiting for more.
                if !early.is_empty() {
                    client.stream.line.readable = true;
                    self.todo.push_back(Order::PumpClient(key));
                }
                Ok(())
            }
            Some(Err(error)) => Err(Fault::new(FaultKind::ClientTls, error.to_string())),
            None => Err(Fault::new(FaultKind::ClientTls, "there is no certificate")),
        }
    }

    /// A client's handshake is done. The fault is what its login ends by.
    pub(super) fn client_secured(&mut self, key: Key, secured: Arc<Secured>) -> Result<(), Fault> {
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        match &mut client.phase {
            Phase::Login(phase) => phase.accept.handle_secured(secured),
            Phase::Session(_) | Phase::Closing => Ok(()),
        }
    }

    /// A client's TLS has failed. It was told by an alert, and can be told nothing else.
    pub(super) fn tls_failed(&mut self, cx: &mut Cx<'_, N>, key: Key, error: &std::io::Error) {
        let Some(client) = self.clients.get(key) else { return };
        if cx.settings.logged.pooler_errors {
            log_client!(info, self, cx, key, "TLS with this client failed: {error}");
        }
        self.count_fault(FaultKind::ClientTls);
        if matches!(client.phase, Phase::Login(_)) {
            self.cells.wing.logins_failed.inc();
        }
        self.begin_closing(cx, key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_that_ask_nothing_are_not_spared() {
        let mut asked = Asked::default();
        assert!(!asked.is_lately(0, 5_000), "nobody has asked yet");
        assert!(asked.is_lately(1, 5_001));
        assert!(asked.is_lately(1, 5_001 + AT_WORK_MS - 1), "one of many looks finds none");
        assert!(!asked.is_lately(1, 5_001 + AT_WORK_MS));
        assert!(asked.is_lately(2, 9_000));
    }
}
