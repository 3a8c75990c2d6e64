//! TLS with clients and servers: where it begins, how it ends, and how much of it a turn has room for.

use super::{Hall, Task};
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::Key;
use crate::line::Line;
use crate::pool::PoolId;
use crate::server::ServerPhase;
use crate::wing::{Accept, Connect, Wing};
use std::sync::Arc;
use weir_auth::login::{Secured, TlsWish};
use weir_config::ServerTls;
use weir_net::Net;
use weir_tls::SslMode;
use weir_wire::{Fault, FaultKind};

/// Looks at clients' handshakes in each of the two halves of a turn. One costs about 0.1 ms (an ECDSA signature and a
/// key exchange, measured), so that a query waits a millisecond for them at most, however many clients come at once.
const HANDSHAKES: u32 = 4;

impl<W: Wing, N: Net> Hall<W, N> {
    /// This client's handshake may go on in this turn. If not, it has a place in the queue for the next ones.
    pub(super) fn may_shake(&mut self, key: Key) -> bool {
        if self.handshakes < HANDSHAKES {
            self.handshakes += 1;
            return true;
        }
        self.shaking.push_back(key);
        false
    }

    /// There is room again: those go on whose handshakes had none, in their order.
    pub(super) fn shake(&mut self) {
        self.handshakes = 0;
        let next = self.shaking.len().min(HANDSHAKES as usize);
        self.todo.extend(self.shaking.drain(..next).map(Task::PumpClient));
    }

    /// A client asked for TLS: what it sends from here on, and `early`, is that.
    pub(super) fn begin_tls(&mut self, cx: &mut Cx<'_, N>, key: Key, early: &[u8]) {
        let stream = cx.settings.tls.acceptor(W::INDEX).map(|acceptor| acceptor.accept());
        let Some(client) = self.clients.get_mut(key) else { return };
        if !client.output.is_empty() {
            // It has not taken what goes in clear before the handshake: a few bytes.
            return self.close_client(cx, key, Some(FaultKind::ClientGone.into()));
        }
        match stream {
            Some(Ok(stream)) => {
                client.line.secure(stream, early);
                // What was read with the wish for TLS is looked at without waiting for more.
                if !early.is_empty() {
                    client.is.readable = true;
                    self.todo.push_back(Task::PumpClient(key));
                }
            }
            Some(Err(error)) => {
                self.refuse(cx, key, Fault::new(FaultKind::ClientTls, error.to_string()));
            }
            None => self.refuse(cx, key, Fault::new(FaultKind::ClientTls, "there is no certificate")),
        }
    }

    /// A client's handshake is done. False when its login ends by that.
    pub(super) fn client_secured(&mut self, cx: &mut Cx<'_, N>, key: Key, secured: Arc<Secured>) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let Phase::Login(phase) = &mut client.phase else { return true };
        match phase.accept.handle_secured(secured) {
            Ok(()) => true,
            Err(fault) => {
                self.refuse(cx, key, fault);
                false
            }
        }
    }

    /// A client's TLS has failed. It was told by an alert, and can be told nothing else.
    pub(super) fn tls_failed(&mut self, cx: &mut Cx<'_, N>, key: Key, error: &std::io::Error) {
        let Some(client) = self.clients.get(key) else { return };
        if cx.settings.logged.pooler_errors {
            tracing::info!(protocol = W::NAME, peer = ?client.peer, "TLS with a client failed: {error}");
        }
        self.count_fault(FaultKind::ClientTls);
        if matches!(client.phase, Phase::Login(_)) {
            self.cells.wing.logins_failed.inc();
        }
        self.begin_closing(cx, key);
    }

    /// How the server of a pool is to be asked for TLS: at the first try, or at the second by the other transport.
    pub(super) fn tls_wish(mode: Option<SslMode>, second: bool) -> TlsWish {
        match (mode, second) {
            (None | Some(SslMode::Disable), _)
            | (Some(SslMode::Allow), false)
            | (Some(SslMode::Prefer), true) => TlsWish::Off,
            (Some(SslMode::Prefer), false) => TlsWish::IfOffered,
            (Some(SslMode::Allow), true) => TlsWish::Required,
            (Some(SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull), _) => TlsWish::Required,
        }
    }

    /// A login that has failed may go through by the other transport, where the mode leaves it open.
    pub(super) fn may_try_otherwise(
        &self,
        phase: &ServerPhase<W>,
        pool: PoolId,
        fault: &Fault,
        tls: bool,
    ) -> bool {
        let ServerPhase::Login { connect, second: false, .. } = phase else { return false };
        let pool = self.pools.get(pool.0 as usize).and_then(|pool| pool.as_deref());
        let mode = pool.and_then(|pool| pool.spec.tls.as_deref()).map(|tls| tls.mode);
        let refused = connect.as_deref().is_some_and(|connect| connect.is_transport_refused());
        match mode {
            Some(SslMode::Prefer) => tls && (refused || fault.kind == FaultKind::ServerTls),
            Some(SslMode::Allow) => !tls && refused,
            _ => false,
        }
    }
}

/// Begins TLS with a server as its client.
pub(super) fn connect_tls<N: Net>(
    line: &mut Line<N::Socket>,
    net: &mut N,
    tls: &ServerTls,
    early: &[u8],
) -> Result<(), Fault> {
    let failed = |text: String| Fault::new(FaultKind::ServerTls, text);
    let stream = tls.connector.connect(&tls.host).map_err(|error| failed(error.to_string()))?;
    line.secure(stream, early);
    line.nudge(net).map_err(|error| failed(error.to_string()))
}
