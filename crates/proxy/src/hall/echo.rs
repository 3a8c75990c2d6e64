//! The answer to one client's request goes to the others who asked the same (`alike.rs`).
//!
//! Each of them goes through what it would have gone through with the server ([`Back::repeat`]), so that it
//! is afterwards as if it had asked by itself. Must not know: bytes.

use super::{Hall, Order};
use crate::books::{Alike, GroupId};
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::pool::PoolId;
use crate::wing::{Back, Front, Wing};
use weir_net::Net;
use weir_session::Repeated;
use weir_wire::{Fault, FaultKind};

/// So many get an answer in one turn; the others in the next ones, so that nobody else waits for all of them.
const ECHOES_PER_TURN: u32 = 512;

impl<W: Wing, N: Net> Hall<W, N> {
    /// An answer is whole: those who have waited for it get it.
    pub(super) fn echo(&mut self, cx: &mut Cx<'_, N>, id: PoolId, group: GroupId) {
        inject::here("echo");
        let Some(mut echo) = self.echoes.remove(&(id, group)) else { return };
        let Some(voice) = echo.voice.as_deref_mut() else { return };
        for _ in 0..ECHOES_PER_TURN {
            let Some(key) = self.books().next_follower(id, group) else { return };
            self.repeat(cx, key, voice, (&echo.answer, &echo.said));
        }
        self.echoes.insert((id, group), echo);
        self.later.push_back(Order::Echo(id, group));
    }

    /// One of them.
    fn repeat(&mut self, cx: &mut Cx<'_, N>, key: Key, voice: &mut W::Back, (answer, said): (&[u8], &[u8])) {
        let Some(client) = self.clients.get_mut(key) else { return };
        let Some(crate::books::Want::Request { len, .. }) = client.claim.want() else { return };
        let input = std::mem::take(&mut client.stream.input);
        let request = input.as_slice().get(..len as usize).unwrap_or_default();
        let repeated = match client.front() {
            Some(front) if front.is_proven() => voice.repeat(front, key.raw(), request, (answer, said)),
            // What is known of the database has changed.
            Some(_) | None => Repeated::Asks,
        };
        if let Some(client) = self.clients.get_mut(key) {
            client.stream.input = input;
        }
        match repeated {
            Repeated::Answered => self.answered(cx, key, said),
            Repeated::Asks => self.ask_by_itself(cx, key, false),
            Repeated::Torn => {
                let text = "an answer that was repeated is not what the client would have been told";
                debug_assert!(false, "{text}");
                tracing::error!(
                    protocol = W::PROTOCOL.name(),
                    "{text}: this is a defect of Weir, please report it"
                );
                self.end_client(cx, key, Fault::new(FaultKind::InternalError, text));
            }
        }
    }

    /// A client has the answer that another one has asked for.
    fn answered(&mut self, cx: &mut Cx<'_, N>, key: Key, said: &[u8]) {
        let Some(len) = self.books().answered(key) else { return };
        self.drop_request(key, len);
        let now_ns = cx.now_ns();
        let Some(client) = self.clients.get_mut(key) else { return };
        let (took_ns, _) = client.answered(now_ns, false);
        client.fingerprint = 0;
        client.claim.alike = Alike::No;
        let (id, ends) = (client.pool, client.has_said_all());
        self.crowd.answered += 1;
        self.crowd.behind += 1;
        self.cells.request_duration.record_ns(took_ns);
        if let Some(id) = id {
            self.count_pool(id, |cells| {
                cells.requests.inc();
                cells.shared_answers.inc();
            });
        }
        self.send_client(cx, key, said);
        if ends || self.draining {
            let why = (!ends).then(|| FaultKind::ShuttingDown.into());
            self.close_client(cx, key, why);
        } else {
            self.arm_client(cx, key);
            self.todo.push_back(Order::PumpClient(key));
        }
    }

    /// There is no answer for those who have waited for one: they go where they would have been. `again`: it
    /// was not asked for, and one of them asks for the others.
    pub(super) fn scatter(&mut self, cx: &mut Cx<'_, N>, id: PoolId, group: GroupId, again: bool) {
        inject::here("scatter");
        let mut scattered = 0;
        while let Some(key) = self.books().next_follower(id, group) {
            self.ask_by_itself(cx, key, again);
            scattered += 1;
        }
        self.todo.push_back(Order::Rehouse(id, scattered));
    }

    /// A client that has waited for the answer to another one joins the queue, at the place that its time
    /// gives it.
    fn ask_by_itself(&mut self, cx: &mut Cx<'_, N>, key: Key, again: bool) {
        if !self.books().unfollow(key) {
            return;
        }
        if let Some(client) = self.clients.get_mut(key) {
            client.claim.alike = if again { Alike::Yes } else { Alike::ByItself };
        }
        self.join_queue(cx, key);
    }
}
