//! TLS between a connection's socket and its protocol machine: the handshake, and records.

use super::Worker;
use super::conn::Stage;
use super::serve::Flow;
use crate::client::{Protocol, Refusal};
use crate::clock;
use crate::record::Phase;
use std::sync::Arc;
use weir_session::Connect as _;
use weir_tls::{Facts, TlsError};

impl<P: Protocol> Worker<P> {
    // ---- the handshake ----

    /// The login has asked for TLS. `more`: something came behind the server's consent.
    pub(super) fn tls_asked(&mut self, i: usize, more: bool) -> Flow {
        if more {
            // Whoever put it there is not the server: what that encrypts comes behind the handshake.
            self.lose(i, Phase::Tls, "protocol", "unencrypted bytes in front of TLS");
            return Flow::Gone;
        }
        let stage = std::mem::replace(&mut self.conns[i].stage, Stage::Connecting);
        if let Stage::LoggingIn(login) = stage {
            let now = clock::now_ns();
            // PostgreSQL's client has asked at once: that was for TLS. MySQL's server has greeted first.
            let begun_ns = if P::TLS_IS_ASKED_FIRST { self.conns[i].since_ns } else { now };
            self.begin_tls(i, login, begun_ns);
        }
        // Whatever has become of it: these bytes are dealt with.
        Flow::Gone
    }

    /// Begins a handshake. False: the connection is closed.
    pub(super) fn begin_tls(&mut self, i: usize, login: Box<P::Login>, begun_ns: u64) -> bool {
        self.move_to(i, Stage::Securing(login, begun_ns));
        let server = self.conns[i].client as usize % self.shared.plan.servers.len().max(1);
        let url = self.shared.plan.servers.get(server);
        let Some(tls) = url.and_then(|url| url.tls.clone()) else {
            self.lose(i, Phase::Tls, "tls", "TLS that nobody wished for");
            return false;
        };
        self.out.clear();
        let begun = tls.connector.connect(&tls.host).and_then(|mut stream| {
            stream.handle_input(&mut [], &mut Vec::new(), &mut self.out)?;
            Ok(stream)
        });
        match begun {
            Ok(stream) => {
                self.conns[i].tls = Some(Box::new(stream));
                self.send_sealed(i)
            }
            Err(error) => {
                self.lose(i, Phase::Tls, "tls", &error.to_string());
                false
            }
        }
    }

    /// The handshake is done: the login goes on, or begins.
    fn secured(&mut self, i: usize, facts: Facts) {
        let stage = std::mem::replace(&mut self.conns[i].stage, Stage::Connecting);
        let Stage::Securing(mut login, begun_ns) = stage else { return };
        let tls_ns = clock::now_ns() - begun_ns;
        self.totals.tls.record(tls_ns);
        self.totals.tls_resumed += u64::from(facts.resumed);
        // What is left is the login's time.
        self.conns[i].since_ns += tls_ns;
        let server = self.conns[i].client as usize % self.shared.plan.servers.len().max(1);
        let url = self.shared.plan.servers.get(server);
        let is_direct = url.and_then(|url| url.tls.as_ref()).is_some_and(|tls| tls.direct);
        self.out.clear();
        let told = login.handle_secured(Arc::new(weir_config::secured(facts)), &mut self.out);
        if is_direct {
            login.start(&mut self.out);
        }
        self.move_to(i, Stage::LoggingIn(login));
        match told {
            Ok(()) => {
                self.send(i);
            }
            Err(fault) => self.lose(i, Phase::Login, fault.kind.label(), &fault.to_string()),
        }
    }

    // ---- records ----

    /// Encrypts what is in `out`, if there is TLS.
    pub(super) fn seal(&mut self, i: usize) -> Result<(), TlsError> {
        let Some(tls) = &mut self.conns[i].tls else { return Ok(()) };
        if self.out.is_empty() {
            return Ok(());
        }
        self.sealed.clear();
        tls.encrypt(&self.out, &mut self.sealed)?;
        std::mem::swap(&mut self.out, &mut self.sealed);
        Ok(())
    }

    /// The same, and behind it that nothing more follows.
    pub(super) fn seal_goodbye(&mut self, i: usize) -> Result<(), TlsError> {
        self.seal(i)?;
        match &mut self.conns[i].tls {
            Some(tls) => tls.close(&mut self.out),
            None => Ok(()),
        }
    }

    /// Takes bytes of the socket, to the protocol machine as plain text.
    pub(super) fn take(&mut self, i: usize, bytes: &mut [u8]) {
        let is_leaving = matches!(self.conns[i].stage, Stage::Leaving);
        let is_securing = matches!(self.conns[i].stage, Stage::Securing(..));
        let Some(tls) = self.conns[i].tls.as_mut().filter(|_| !is_leaving) else {
            return self.handle_bytes(i, bytes);
        };
        let mut plain = std::mem::take(&mut self.plain);
        plain.clear();
        self.out.clear();
        let taken = tls.handle_input(bytes, &mut plain, &mut self.out);
        let is_closed = tls.is_peer_closed();
        let facts = if is_securing { tls.facts() } else { None };
        let generation = self.conns[i].generation;
        if self.send_sealed(i) {
            if let Some(facts) = facts {
                self.secured(i, facts);
            }
            if !plain.is_empty() && self.conns[i].socket.is_some() {
                self.handle_bytes(i, &plain);
            }
            let is_same = self.conns[i].generation == generation && self.conns[i].socket.is_some();
            match taken {
                Err(error) if is_same => self.lose_tls(i, &error),
                Ok(()) if is_same && is_closed => self.handle_end(i),
                Ok(()) | Err(_) => {}
            }
        }
        self.plain = plain;
    }

    /// A server that refuses in clear what is TLS by now has words too.
    fn lose_tls(&mut self, i: usize, error: &TlsError) {
        let refusal = match &self.conns[i].stage {
            Stage::LoggingIn(login) => P::refusal(login),
            _ => None,
        };
        let Refusal { code, text, .. } = refusal.unwrap_or_else(|| Refusal {
            code: "tls".to_owned(),
            text: error.to_string(),
            fatal: true,
        });
        self.lose(i, self.phase(i), &code, &text);
    }
}
