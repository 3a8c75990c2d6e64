//! Mail, and the end of a worker: transactions end, then clients go, then servers.

use super::login::Arrival;
use super::{Hall, Task};
use crate::client::Phase;
use crate::context::Cx;
use crate::crypto::WorkDone;
use crate::ids::Kind;
use crate::mail::WingMail;
use crate::wing::{Back, Wing};
use weir_net::Net;
use weir_wire::{Boundary, FaultKind};

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
            WingMail::Sized { pool } => self.sized(cx, &pool),
            WingMail::Place(place) => self.placed(cx, place),
            WingMail::Evict { pool } => self.evict(cx, &pool),
            WingMail::Kill(kill) => self.kill(cx, kill),
            WingMail::KillDone { asker, outcome } => self.kill_done(cx, asker, outcome),
            WingMail::Job { kind, key, done } => match (kind, done) {
                (Kind::Client, WorkDone::Login(done)) => self.client_job_done(cx, key, done),
                (Kind::Client, WorkDone::Handshake(step)) => self.handshake_back(cx, key, *step),
                (Kind::Server, WorkDone::Login(done)) => self.server_job_done(cx, key, done),
                (Kind::Canceller, WorkDone::Login(done)) => self.canceller_job_done(cx, key, done),
                (Kind::Server | Kind::Canceller, WorkDone::Handshake(_)) => {}
                (Kind::Listener | Kind::Pool, _) => {}
            },
        }
    }

    /// Nobody new comes in; who is between transactions goes now, the others when theirs ends.
    pub fn drain(&mut self, cx: &mut Cx<'_, N>) {
        self.draining = true;
        for key in self.clients.keys() {
            let Some(client) = self.clients.get(key) else { continue };
            let busy = client.inflight > 0 || client.is.part_open || client.is_waiting();
            let in_transaction = client.lease.and_then(|server| self.servers.get_mut(server));
            let in_transaction = in_transaction
                .and_then(|server| server.back().map(|back| back.boundary()))
                .is_some_and(|boundary| boundary != Boundary::Idle);
            if !busy && !in_transaction {
                self.end_client(cx, key, FaultKind::ShuttingDown.into());
            }
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
            match self.servers.get_mut(key).map(|server| server.back().is_some()) {
                Some(true) => self.close_server(cx, key, "Weir stops"),
                Some(false) | None => {
                    if let Some(server) = self.servers.remove(key) {
                        server.line.close(cx.net, true);
                    }
                }
            }
        }
        self.todo.retain(|task| matches!(task, Task::PumpClient(_)));
    }
}
