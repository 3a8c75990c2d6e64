//! A client whose user no file lists: Weir asks a database, and the login continues with its answer.
//!
//! Owns: holding the client's bytes meanwhile. Must not know: what is asked, or how (`ask`).

use super::Hall;
use crate::ask::Question;
use crate::client::Phase;
use crate::context::{Cx, Ticket};
use crate::crypto::Work;
use crate::ids::{Key, Kind};
use crate::wing::Wing;
use weir_config::console::Rights;
use weir_net::Net;
use weir_session::Login;
use weir_wire::{Fault, FaultKind};

impl<W: Wing, N: Net> Hall<W, N> {
    /// A login may not go on at once: nobody comes in like this (`Err`), or a database is asked first, and
    /// its bytes wait for the answer. `None`: it goes on.
    pub(super) fn hold_up(&mut self, cx: &Cx<'_, N>, key: Key, login: &Login) -> Option<Result<(), Fault>> {
        let client = self.clients.get(key)?;
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
        let question = routes.question(W::PROTOCOL, login)?;
        Some(self.ask_about(cx, key, login, question))
    }

    fn ask_about(
        &mut self,
        cx: &Cx<'_, N>,
        key: Key,
        login: &Login,
        question: Question,
    ) -> Result<(), Fault> {
        let question = Question { patience_ms: cx.settings.timeouts.server_connect_timeout_ms, ..question };
        if let Some(client) = self.clients.get_mut(key)
            && let Phase::Login(phase) = &mut client.phase
        {
            phase.login = Some(login.clone());
            phase.busy = true;
        }
        let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
        (cx.shared.submit)(ticket, Work::Ask(Box::new(question))).map_err(|_| FaultKind::TooManyLogins.into())
    }
}
