//! Clients of the administration console: their logins, statements and answers; and what the console orders
//! for pools and other clients.
//!
//! Owns: the seats of these clients. Must not know: what a statement means.
//!
//! Invariants: such a client has no pool, no server and no place in a queue; it does not count towards
//! `max_client_conn`, so that an operator can log in when Weir is full; one statement of it is in progress at
//! a time, and it buffers no more bytes of its answer than any other client does.

use super::{Hall, Order};
use crate::client::Phase;
use crate::console::{Giving, Letter};
use crate::context::{Cx, Ticket};
use crate::ids::{Key, Kind};
use crate::mail::WingMail;
use crate::pool::PoolEntry;
use crate::wing::{Accept, Console, Front, Wing};
use std::sync::Arc;
use weir_auth::Secret;
use weir_config::Learnt;
use weir_config::console::Rights;
use weir_net::Net;
use weir_session::Protocol;
use weir_session::{Admission, AuthMethod, Login};
use weir_wire::console::{Answer, Heard, Progress};
use weir_wire::{FaultKind, limits};

/// What PostgreSQL's clients are told as the version of their server; `psql` shows it.
const VERSION: &str = "1.26.1/bouncer";

/// Bytes of an answer that are made in one turn.
const PIECE_BYTES: usize = 64 * 1024;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Nobody is here but clients of the console.
    pub(crate) fn has_left(&self) -> bool {
        self.clients.len() == self.consoles.len()
    }

    fn rights_at_console(&self, cx: &Cx<'_, N>, key: Key, login: &Login) -> Option<Option<Rights>> {
        cx.settings.routes.console(W::PROTOCOL, login, &self.clients.get(key)?.peer)
    }

    /// How a client of the console must prove itself: as at its own database, but whom the kernel vouches
    /// for. `None`: this login is not one to the console.
    pub(super) fn admit_to_console(
        &self,
        cx: &Cx<'_, N>,
        key: Key,
        login: &Login,
        learnt: Option<&Learnt>,
    ) -> Option<Admission> {
        let is_owner = self.rights_at_console(cx, key, login)? == Some(Rights::Owner);
        Some(match (is_owner, W::PROTOCOL) {
            (false, _) => {
                cx.settings.routes.admit(W::PROTOCOL, login, &self.clients.get(key)?.visitor(), learnt)
            }
            (true, Protocol::Postgres) => Admission { method: AuthMethod::Trust, secret: None, names: None },
            // A MySQL client always gives a password; this one's is empty.
            (true, Protocol::Mysql) => Admission {
                method: cx.settings.routes.default_method(W::PROTOCOL),
                secret: Some(Arc::new(Secret::plain(""))),
                names: None,
            },
        })
    }

    /// A client has proved itself, and has come to the console: as whom, and what it may do there.
    fn comes_to_console(&self, cx: &Cx<'_, N>, key: Key) -> Option<(Login, Option<Rights>)> {
        let Phase::Login(phase) = &self.clients.get(key)?.phase else { return None };
        let login = phase.login.as_ref()?;
        let rights = self.rights_at_console(cx, key, login)?;
        Some((login.clone(), rights))
    }

    /// A client has proved itself. True: it has come to the console, and all is done.
    pub(super) fn seat_at_console(&mut self, cx: &mut Cx<'_, N>, key: Key, out: &mut Vec<u8>) -> bool {
        let Some((login, rights)) = self.comes_to_console(cx, key) else { return false };
        let Some(client) = self.clients.get_mut(key) else { return false };
        let Phase::Login(phase) = std::mem::replace(&mut client.phase, Phase::Closing) else { return false };
        let mut front = phase.accept.into_front();
        let database = login.database.as_deref().unwrap_or(&login.user);
        let admin = matches!(rights, Some(Rights::Admin | Rights::Owner));
        let visit = rights.map(|_| cx.shared.console.visit(admin, &login.user, database));
        client.user = self.names.number(&login.user);
        client.before = None;
        let refused = match visit {
            Some(Some(visit)) => {
                client.is.console = true;
                self.consoles.insert(key, visit);
                client.is.greeted = true;
                front.console_greet(VERSION, out);
                self.cells.wing.logins_ok.inc();
                None
            }
            Some(None) => Some(("no more connections allowed to the console", FaultKind::TooManyClients)),
            None => Some(("not allowed", FaultKind::NotAllowed)),
        };
        if let Some((words, _)) = refused {
            front.console_refuse(words, out);
        }
        client.phase = Phase::Session(front);
        self.leave_login(key);
        self.send_client(cx, key, out);
        match refused {
            Some((words, kind)) => self.refused_at_console(cx, key, &login, words, kind),
            None => {
                let (user, protocol) = (&login.user, W::PROTOCOL.name());
                tracing::info!(protocol, user, admin, "console login");
                self.arm_client(cx, key);
            }
        }
        true
    }

    fn refused_at_console(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        login: &Login,
        words: &str,
        kind: FaultKind,
    ) {
        self.cells.wing.logins_failed.inc();
        self.count_fault(kind);
        if cx.settings.logged.pooler_errors {
            tracing::info!(
                protocol = W::PROTOCOL.name(),
                user = login.user,
                "console login refused: {words}"
            );
        }
        self.begin_closing(cx, key);
    }

    /// Looks at the bytes of a client of the console. `None`: nothing more can be done with them now.
    pub(super) fn look_at_console(&mut self, cx: &mut Cx<'_, N>, key: Key, rest: &[u8]) -> Option<usize> {
        let mut out = std::mem::take(&mut self.staging);
        let client = self.clients.get_mut(key)?;
        let heard = match &mut client.phase {
            Phase::Session(front) if client.inflight == 0 => front.console_find(rest, &mut out),
            Phase::Session(_) | Phase::Login(_) | Phase::Closing => Heard::Incomplete,
        };
        self.send_client(cx, key, &out);
        self.recycle(out);
        match heard {
            Heard::Incomplete => None,
            Heard::Answered { len } => Some(len),
            Heard::Statement { len, text } => {
                self.ask_console(cx, key, text);
                Some(len)
            }
            Heard::Goodbye => {
                self.close_client(cx, key, None);
                Some(rest.len())
            }
            Heard::Refused => {
                self.count_fault(FaultKind::ClientProtocol);
                self.begin_closing(cx, key);
                Some(rest.len())
            }
        }
    }

    fn ask_console(&mut self, cx: &mut Cx<'_, N>, key: Key, text: String) {
        let (Some(client), Some(visit)) = (self.clients.get_mut(key), self.consoles.get_mut(&key)) else {
            return;
        };
        client.inflight += 1;
        let ticket = Ticket { worker: cx.worker, protocol: W::PROTOCOL, kind: Kind::Client, key };
        if !cx.shared.console.ask(visit.ask(ticket, text)) {
            let answer = Box::new(Answer::Error("the console is not open".to_owned()));
            visit.answer = Some(Giving { answer, progress: Progress::default(), _hold: None });
            self.later.push_back(Order::PumpClient(key));
        }
    }

    /// Gives a client of the console more of its answer, if there is one. Called before each look at a
    /// client.
    #[inline]
    pub(super) fn pump_console(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let is_console = self.clients.get(key).is_some_and(|client| client.is.console);
        if is_console && self.consoles.get(&key).is_some_and(|visit| visit.answer.is_some()) {
            self.answer_at_console(cx, key);
        }
    }

    fn answer_at_console(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let now_ms = cx.now_ms();
        let mut out = std::mem::take(&mut self.staging);
        let Some(client) = self.clients.get_mut(key) else { return self.recycle(out) };
        let (Some(visit), Phase::Session(front)) = (self.consoles.get_mut(&key), &mut client.phase) else {
            return self.recycle(out);
        };
        let Some(Giving { answer, progress, .. }) = &mut visit.answer else { return self.recycle(out) };
        if client.stream.output.len() > limits::CLIENT_OUTPUT_BYTES / 2 {
            // It reads slowly: the rest comes when it has taken this.
            return self.recycle(out);
        }
        let done = front.console_put(answer, progress, PIECE_BYTES, &mut out);
        if done {
            visit.answer = None;
            client.inflight = client.inflight.saturating_sub(1);
            client.active_ms = now_ms;
        }
        let ended = done && client.is.eof && client.inflight == 0;
        self.send_client(cx, key, &out);
        self.recycle(out);
        if ended {
            self.todo.push_back(Order::CloseClient(key));
        } else {
            // The next piece has its turn when the others have had theirs.
            self.later.push_back(Order::PumpClient(key));
        }
    }

    /// Something of the console for this hall.
    pub(super) fn console_letter(&mut self, cx: &mut Cx<'_, N>, letter: Letter<W>) {
        match letter {
            Letter::Answer { client: key, answer, hold } => {
                let Some(visit) = self.consoles.get_mut(&key) else { return };
                visit.answer = Some(Giving { answer, progress: Progress::default(), _hold: hold });
                self.answer_at_console(cx, key);
            }
            Letter::Ordered { pool } => self.ordered(cx, &pool),
            Letter::KillAll { pool, from } => self.kill_some(cx, pool, from),
            Letter::KillClient { number, told } => {
                let found = self
                    .clients
                    .key_of(cx.shared.numbers.slot(number))
                    .filter(|&key| self.is_client(key, number));
                if let Some(key) = found {
                    self.end_with(cx, key, "admin forced disconnect");
                }
                told(found.is_some());
            }
            Letter::List { list, servers, from } => self.list(cx, list, servers, from),
        }
    }

    /// This is the client of that number, and one that has logged in to a database.
    fn is_client(&self, key: Key, number: u32) -> bool {
        self.clients.get(key).is_some_and(|client| match &client.phase {
            Phase::Session(front) => front.id() == number,
            Phase::Login(_) | Phase::Closing => false,
        })
    }

    /// A new pool is what was ordered before it was there. Orders may change meanwhile: who gives them looks
    /// at the pools behind that, so the last word is looked at here once more.
    pub(super) fn heed_orders(cx: &Cx<'_, N>, entry: &PoolEntry<W::Welcomes>) {
        let database = &entry.spec().database;
        loop {
            let paused = cx.shared.console.decrees().is_paused(database);
            if entry.shared.is_paused() == paused {
                return;
            }
            entry.shared.set_paused(paused);
        }
    }

    /// What is ordered of a pool has changed: idle servers that are not to be there are closed, those in use
    /// when they are next free; or who waits gets servers again.
    fn ordered(&mut self, cx: &mut Cx<'_, N>, entry: &Arc<PoolEntry<W::Welcomes>>) {
        let idle = self.pool_of(cx, entry).idle_keys().to_vec();
        for key in idle {
            if self.is_to_be_replaced(cx, key) {
                self.close_server(cx, key, "the console has ordered it");
            }
        }
        self.todo.push_back(Order::Freed(entry.clone()));
    }

    /// Ends clients of a pool, some in each turn.
    fn kill_some(&mut self, cx: &mut Cx<'_, N>, pool: Arc<PoolEntry<W::Welcomes>>, from: u32) {
        let end = self.clients.slots().min(from.saturating_add(KILLS));
        for slot in from..end {
            let Some(key) = self.clients.key_of(slot) else { continue };
            if self.clients.get(key).is_some_and(|client| client.pool == Some(pool.id)) {
                self.end_with(cx, key, "database removed");
            }
        }
        if end < self.clients.slots() {
            cx.post::<W>(cx.worker, WingMail::Console(Letter::KillAll { pool, from: end }));
        } else {
            self.ordered(cx, &pool);
        }
    }

    /// Ends a client with these words.
    fn end_with(&mut self, cx: &mut Cx<'_, N>, key: Key, words: &str) {
        if cx.settings.logged.pooler_errors {
            super::who::log_client!(info, self, cx, key, "client closed: {words}");
        }
        self.stop_what_runs(cx, key);
        if !self.is_mid_message(key) {
            let mut out = std::mem::take(&mut self.staging);
            match self.clients.get_mut(key).map(|client| &mut client.phase) {
                Some(Phase::Session(front)) => front.console_farewell(words, &mut out),
                Some(Phase::Login(phase)) => phase.accept.refuse(&FaultKind::Killed.into(), &mut out),
                Some(Phase::Closing) | None => {}
            }
            self.send_client(cx, key, &out);
            self.recycle(out);
        }
        self.count_fault(FaultKind::Killed);
        self.begin_closing(cx, key);
    }
}

/// Clients that are looked at for a KILL in one turn. To end one costs some 20 us.
const KILLS: u32 = 64;
