//! Mail, and the shutdown of a worker: transactions end, then clients are closed, then servers.

use super::Hall;
use super::login::Arrival;
use crate::client::Phase;
use crate::context::Cx;
use crate::crypto::WorkDone;
use crate::ids::Kind;
use crate::mail::WingMail;
use crate::server::ServerState;
use crate::wing::{Back, Front, Wing};
use std::sync::atomic::Ordering::Relaxed;
use weir_net::Net;
use weir_session::login::KillOutcome;
use weir_wire::{Boundary, Fault, FaultKind};

/// Why a login ends whose slow work gave nothing.
const WORK_LOST: &str = "the thread that worked on a login has panicked";

impl<W: Wing, N: Net> Hall<W, N> {
    /// A message for this hall.
    pub fn mail(&mut self, cx: &mut Cx<'_, N>, mail: WingMail<W, N>) {
        match mail {
            WingMail::Client { parcel, peer } => self.accepted(cx, Arrival::Parcel(parcel), peer),
            WingMail::Server(transfer) => self.taken_over(cx, *transfer),
            WingMail::Want { pool, from } => self.wanted(cx, &pool, from),
            WingMail::SlotFree { pool } => {
                let id = pool.id;
                self.pool_of(cx, &pool);
                self.open_for_waiters(cx, id);
            }
            WingMail::Console(letter) => self.console_letter(cx, letter),
            WingMail::Sweep { pools } => self.sweep(&pools),
            WingMail::Sized { pool } => self.sized(cx, &pool),
            WingMail::Place(place) => self.place_arrived(cx, place),
            WingMail::Evict { pool } => self.evict(cx, &pool),
            WingMail::Kill(kill) => self.kill(cx, kill),
            WingMail::KillDone { asker, outcome } => self.kill_done(cx, asker, outcome),
            WingMail::Job { kind, key, done } => match (kind, done) {
                (Kind::Client, WorkDone::Login(done)) => self.client_job_done(cx, key, done),
                (Kind::Client, WorkDone::Learnt(answer)) => self.client_answered(cx, key, answer),
                (Kind::Client, WorkDone::Vouched(said)) => self.client_vouched(cx, key, said),
                (Kind::Client, WorkDone::Ear(news)) => self.news(cx, key, news),
                (Kind::Client, WorkDone::Handshake(step)) => self.handshake_back(cx, key, *step),
                (Kind::Server, WorkDone::Login(done)) => self.server_job_done(cx, key, done),
                (Kind::Canceller, WorkDone::Login(done)) => self.canceller_job_done(cx, key, done),
                (Kind::Client, WorkDone::Nothing) => {
                    self.end_client(cx, key, Fault::new(FaultKind::OutOfResources, WORK_LOST));
                }
                (Kind::Server, WorkDone::Nothing) => {
                    self.login_ended(cx, key, Fault::new(FaultKind::ServerUnavailable, WORK_LOST));
                }
                (Kind::Canceller, WorkDone::Nothing) => self.canceller_over(cx, key),
                (
                    Kind::Server | Kind::Canceller,
                    WorkDone::Handshake(_) | WorkDone::Learnt(_) | WorkDone::Vouched(_) | WorkDone::Ear(_),
                )
                | (Kind::Listener | Kind::Pool | Kind::Batch | Kind::Kept | Kind::Listen, _) => {}
            },
        }
    }

    /// Nobody new comes in; who is between transactions goes now, the others when theirs ends.
    pub fn drain(&mut self, cx: &mut Cx<'_, N>) {
        self.draining = true;
        for key in self.clients.keys() {
            let Some(client) = self.clients.get(key) else { continue };
            let busy =
                client.is.empty || client.inflight > 0 || client.is.part_open || client.claim.is_in_line();
            let in_transaction = client.lease().and_then(|server| self.servers.get_mut(server));
            let in_transaction = in_transaction
                .and_then(|server| server.back().map(|back| back.boundary()))
                .is_some_and(|boundary| boundary != Boundary::Idle);
            if !busy && !in_transaction {
                self.end_client(cx, key, FaultKind::ShuttingDown.into());
            }
        }
    }

    /// Nobody is a client here, and the worker may end: its idle servers go to the first worker. True:
    /// nothing is left here.
    pub fn clears(&mut self, cx: &mut Cx<'_, N>) -> bool {
        if !self.clients.is_empty() {
            return false;
        }
        for index in 0..self.pools.len() {
            while let Some(server) = self.pools[index].as_ref().and_then(|pool| pool.newest_idle()) {
                self.hand_over(cx, server, 0);
            }
        }
        self.servers.is_empty() && self.cancellers.is_empty()
    }

    /// The worker ends, with nothing left: nobody is to look for anything here.
    pub fn cleared(&mut self) {
        self.pools.iter_mut().flatten().for_each(|pool| pool.begin_anew());
    }

    /// This worker has panicked: what it was doing is half done, and nothing of it can be relied on. All
    /// servers are closed, none is used again; limits, seats and what others were told are given back.
    /// Clients go, too; those that wait for nothing are told why. What the worker is to serve from here on
    /// begins anew.
    pub fn begin_anew(&mut self, cx: &mut Cx<'_, N>) {
        self.todo.clear();
        self.later.clear();
        self.dirty.clear();
        self.login_queue.clear();
        self.consoles.clear();
        for key in self.listeners.keys().copied().collect::<Vec<_>>() {
            self.forget_listener(cx, key);
        }
        self.echoes.clear();
        (self.staging, self.causes, self.asked_for) = Default::default();
        for key in self.servers.keys() {
            let Some(server) = self.servers.remove(key) else { continue };
            self.count_pool(server.pool, |cells| cells.server_closes.inc());
            server.stream.line.close(cx.net, true);
        }
        let cancellers = self.cancellers.keys().into_iter().filter_map(|key| self.cancellers.remove(key));
        let askers: Vec<_> = cancellers.filter_map(|canceller| canceller.close(cx)).collect();
        for key in self.clients.keys() {
            let Some(mut client) = self.clients.remove(key) else { continue };
            let waits = client.inflight > 0 || client.server().is_some() || client.claim.is_in_line();
            let mut words = Vec::new();
            if let (false, true, Phase::Session(front)) =
                (waits, client.stream.output.is_empty(), &mut client.phase)
            {
                front.fatal(&FaultKind::WorkerFailed.into(), &mut words);
                drop(client.stream.line.send(cx.net, &words));
            }
            client.stream.line.close(cx.net, words.is_empty());
            cx.shared.clients.fetch_sub(1, Relaxed);
            if client.is.proven {
                cx.shared.proven.fetch_sub(1, Relaxed);
            }
            cx.shared.berths.leave_seat(cx.worker);
        }
        self.cells.wing.client_connections.set(0);
        self.cells.wing.client_logins_pending.set(0);
        askers.into_iter().for_each(|asker| self.answer_kill(cx, asker, KillOutcome::Killed));
        self.cleared();
        self.leave_room(cx);
    }

    /// What was used here under the limits of pools is free for those who wait elsewhere.
    fn leave_room(&mut self, cx: &mut Cx<'_, N>) {
        let entries: Vec<_> = self.pools.iter().flatten().map(|pool| pool.entry.clone()).collect();
        for entry in entries {
            self.cap_freed(cx, &entry);
            self.room_for_waiters(cx, &entry);
            self.fill(cx, entry.id);
        }
    }

    /// Everybody goes now.
    pub fn stop(&mut self, cx: &mut Cx<'_, N>) {
        self.draining = true;
        for key in self.clients.keys() {
            let Some(client) = self.clients.get(key) else { continue };
            if !matches!(client.phase, Phase::Closing) {
                self.end_client(cx, key, FaultKind::ShuttingDown.into());
            }
            if self.clients.get(key).is_some() {
                self.remove_client(cx, key, false);
            }
        }
        for key in self.servers.keys() {
            let Some(server) = self.servers.get_mut(key) else { continue };
            // One that works for those who have just gone hears no goodbye before it is done.
            let is_free = matches!(server.state(), ServerState::Idle | ServerState::Cleaning);
            if is_free && server.back().is_some() {
                self.close_server(cx, key, "Weir stops");
            } else if let Some(server) = self.servers.remove(key) {
                server.stream.line.close(cx.net, true);
            }
        }
        self.leave_room(cx);
    }
}
