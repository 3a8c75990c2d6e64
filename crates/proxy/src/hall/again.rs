//! Logins on top of a session: COM_CHANGE_USER.
//!
//! Owns: when such a login begins: nobody is told that the session before is over while its locks are still
//! taken.

use super::login::accept_params;
use super::{Hall, Order};
use crate::client::{Before, LoginPhase, Phase};
use crate::context::Cx;
use crate::ids::Key;
use crate::wing::{Accept, Wing};
use weir_net::Net;

impl<W: Wing, N: Net> Hall<W, N> {
    /// A client logs in again on top of its session, perhaps as another user. Nothing of the session goes
    /// over into the new one, and nothing of it is left on its server when the new one is confirmed.
    pub(super) fn login_again(&mut self, cx: &mut Cx<'_, N>, key: Key, request: &[u8]) {
        let server = self.leave(cx, key);
        let now_ns = cx.now_ns();
        let Some(client) = self.clients.get_mut(key) else { return };
        let Phase::Session(front) = std::mem::replace(&mut client.phase, Phase::Closing) else { return };
        let mut params = accept_params::<W, N>(cx, key, &client.peer);
        params.secured = client.stream.line.secured();
        let begun = W::Accept::again(params, &front, request);
        let pool = client.pool.take();
        let (accept, step) = match begun {
            Ok(begun) => begun,
            Err(fault) => {
                client.phase = Phase::Session(front);
                client.pool = pool;
                self.end_client(cx, key, fault);
                return;
            }
        };
        let mut phase = LoginPhase::new(accept);
        let left =
            server.and_then(|server| self.servers.get_mut(server)).filter(|held| held.is_to_be_cleaned());
        let now = match left {
            Some(held) => {
                held.cleaning.awaited = Some(key);
                (phase.busy, phase.later) = (true, Some(step));
                None
            }
            None => Some(step),
        };
        client.phase = Phase::Login(Box::new(phase));
        client.before = Some(Box::new(Before { front, pool, user: std::mem::take(&mut client.user) }));
        client.request_since_ns = now_ns;
        client.is.greeted = false;
        client.is.counted = true;
        self.cells.wing.client_logins_pending.inc();
        self.arm_client(cx, key);
        if let Some(step) = now {
            self.login_step(cx, key, step);
        }
    }

    /// What the session before has left on its server is gone.
    pub(super) fn login_goes_on(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        if let Some(phase) = self.login_phase(key)
            && let Some(step) = phase.later.take()
        {
            phase.busy = false;
            self.login_step(cx, key, step);
            self.todo.push_back(Order::PumpClient(key));
        }
    }
}
