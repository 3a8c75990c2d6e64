//! A client of whom somebody else knows more: a database is asked for the password of its user, an LDAP
//! server or PAM whether the password that it has given is right; the login continues with the answer.
//!
//! Owns: holding the client's bytes meanwhile. Must not know: what is asked, or how (`ask`, `vouch`).

use super::Hall;
use crate::ask::Question;
use crate::client::Phase;
use crate::context::{Cx, Ticket};
use crate::crypto::Work;
use crate::ids::{Key, Kind};
use crate::vouch::Vouching;
use crate::wing::Wing;
use weir_auth::Password;
use weir_config::console::Rights;
use weir_net::Net;
use weir_session::Login;
use weir_wire::{Fault, FaultKind};

impl<W: Wing, N: Net> Hall<W, N> {
    /// A login may not go on at once: nobody comes in like this (`Err`), or a database is asked first, and
    /// its bytes wait for the answer. `None`: it goes on.
    pub(super) fn hold_up(&mut self, cx: &Cx<'_, N>, key: Key, login: &Login) -> Option<Result<(), Fault>> {
        let client = self.clients.get_mut(key)?;
        let routes = &cx.settings.routes;
        // Whom the kernel vouches for needs no password.
        if routes.console(W::PROTOCOL, login, &client.peer) == Some(Some(Rights::Owner)) {
            return None;
        }
        if let Some(why) = routes.rejects(W::PROTOCOL, login, &client.visitor()) {
            let (user, database) = (&login.user, login.database.as_deref().unwrap_or("-"));
            let why = format!("{why} (user {user}, database {database})");
            return Some(Err(Fault::new(FaultKind::LoginRejected, why)));
        }
        let question = routes.question(W::PROTOCOL, login, &client.visitor())?;
        if let Phase::Login(phase) = &mut client.phase {
            phase.login = Some(login.clone());
            phase.busy = true;
        }
        let question = Question { patience_ms: cx.settings.timeouts.server_connect_timeout_ms, ..question };
        let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
        let taken = (cx.shared.submit)(ticket, Work::Ask(Box::new(question)));
        Some(taken.map_err(|_| FaultKind::TooManyLogins.into()))
    }

    /// Whoever knows the user's password is asked whether this is it.
    pub(super) fn ask_voucher(&mut self, cx: &Cx<'_, N>, key: Key, password: Password) -> Result<(), Fault> {
        let now_ms = cx.now_ms();
        let Some(client) = self.clients.get_mut(key) else { return Ok(()) };
        let login = match &client.phase {
            Phase::Login(phase) => phase.login.clone(),
            Phase::Session(_) | Phase::Closing => None,
        };
        let routes = &cx.settings.routes;
        let voucher = login.as_ref().and_then(|login| routes.voucher(W::PROTOCOL, login, &client.visitor()));
        let (Some(login), Some(voucher)) = (login, voucher) else {
            return Err(Fault::new(FaultKind::LoginRejected, "the settings have changed during the login"));
        };
        let spent_ms = now_ms.saturating_sub(client.active_since_login_ms());
        let most_ms = cx.settings.timeouts.client_login_timeout_ms;
        let vouching = Vouching::new(voucher, login.user, password, &client.peer, most_ms, spent_ms);
        if let Phase::Login(phase) = &mut client.phase {
            phase.busy = true;
            phase.vouching = true;
        }
        let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
        let taken = (cx.shared.submit)(ticket, Work::Vouch(Box::new(vouching)));
        taken.map_err(|_| FaultKind::TooManyLogins.into())
    }
}
