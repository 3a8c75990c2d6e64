//! Client bytes to servers.

use super::{Hall, Order, READS_PER_TURN};
use crate::books::{Holding, Want};
use crate::client::{Client, Phase};
use crate::context::Cx;
use crate::ids::Key;
use crate::line::{self, Received};
use crate::panics::inject;
use crate::stream::Heard;
use crate::wing::{Back, Front, Welcomes, Wing};
use std::io::ErrorKind;
use weir_net::Net;
use weir_wire::{Fault, FaultKind, Found, Needs, limits};

impl<W: Wing, N: Net> Hall<W, N> {
    /// Looks at what a client has sent, and reads more.
    pub(super) fn pump_client(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.pump_console(cx, key);
        if self.clients.get(key).is_some_and(|client| client.is.listens.is_away()) {
            self.tell(cx, key);
        }
        self.consume_kept(cx, key);
        let mut scratch = std::mem::take(cx.scratch);
        for read in 0.. {
            let Some(client) = self.clients.get_mut(key) else { break };
            if !client.stream.line.readable || client.is.eof || client.is.broken {
                break;
            }
            if !self.may_read(key) {
                break;
            }
            if read == READS_PER_TURN {
                self.later.push_back(Order::PumpClient(key));
                break;
            }
            if !self.may_go_on(cx, key) {
                break;
            }
            let received = self.receive(cx, key, &mut scratch);
            let Some(client) = self.clients.get_mut(key) else { break };
            let heard = client.stream.heard(received);
            if let Some(secured) = client.stream.line.take_secured()
                && let Err(fault) = self.client_secured(key, secured)
            {
                self.refuse(cx, key, fault);
                break;
            }
            let Some(client) = self.clients.get_mut(key) else { break };
            match heard {
                Heard::Bytes(len) => {
                    self.cells.wing.client_received_bytes.add(len as u64);
                    client.active_ms = cx.net.now_ns() / 1_000_000;
                    self.client_bytes(cx, key, &scratch[..len]);
                }
                Heard::Again => {}
                Heard::Nothing => break,
                Heard::End => {
                    client.is.eof = true;
                    self.client_ended(cx, key);
                    break;
                }
                Heard::Failed(e) if client.stream.line.is_tls() && e.kind() == ErrorKind::InvalidData => {
                    self.tls_failed(cx, key, &e);
                    break;
                }
                Heard::Failed(e) => {
                    client.is.broken = true;
                    self.close_client(cx, key, Some(line::kind_of(&e).into()));
                    break;
                }
            }
        }
        *cx.scratch = scratch;
        if self.clients.get(key).is_some_and(|client| client.is.eof && !client.claim.is_served_later()) {
            self.close_if_awaited_in_vain(cx, key);
        }
    }

    fn receive(&mut self, cx: &mut Cx<'_, N>, key: Key, buf: &mut [u8]) -> std::io::Result<Received> {
        match self.clients.get_mut(key) {
            Some(client) if !client.stream.line.is_expecting_hello() => client.stream.line.recv(cx.net, buf),
            Some(_) | None => self.receive_hello(cx, key, buf),
        }
    }

    /// There is room for more of this client's bytes.
    fn may_read(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get(key) else { return false };
        if matches!(client.phase, Phase::Closing) {
            return true;
        }
        if client.stream.input.len() >= limits::CLIENT_INPUT_BYTES {
            return false;
        }
        match client.lease().and_then(|server| self.servers.get_mut(server)) {
            Some(server) if server.backlog() > limits::SERVER_OUTPUT_BYTES => {
                server.is.full = true;
                false
            }
            _ => true,
        }
    }

    /// New bytes of a client, behind those that were kept.
    fn client_bytes(&mut self, cx: &mut Cx<'_, N>, key: Key, bytes: &[u8]) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.stream.input.is_empty() {
            let used = self.consume(cx, key, bytes);
            if used < bytes.len()
                && let Some(client) = self.clients.get_mut(key)
            {
                client.stream.input.append(&bytes[used..]);
                self.after_keeping(cx, key);
            }
        } else {
            client.stream.input.append(bytes);
            self.consume_kept(cx, key);
        }
    }

    /// Looks again at bytes that were kept.
    pub(super) fn consume_kept(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(client) = self.clients.get_mut(key) else { return };
        if client.stream.input.is_empty() {
            return;
        }
        let mut input = std::mem::take(&mut client.stream.input);
        let used = self.consume(cx, key, input.as_slice());
        let Some(client) = self.clients.get_mut(key) else { return };
        input.consume(used.min(input.len()));
        input.release_if_empty();
        client.stream.input = input;
        self.after_keeping(cx, key);
    }

    /// A request that was left in `input` waits for a server: give it one if there is one.
    fn after_keeping(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        if let Some(client) = self.clients.get(key)
            && matches!(client.claim.holding(), Holding::Wanting(Want::Request { .. }))
        {
            self.acquire_or_wait(cx, key);
        }
    }

    /// Deals with as many of these bytes as it can; returns how many. What is left must be kept.
    fn consume(&mut self, cx: &mut Cx<'_, N>, key: Key, bytes: &[u8]) -> usize {
        let mut used = 0;
        loop {
            let rest = &bytes[used..];
            let Some(client) = self.clients.get_mut(key) else { return bytes.len() };
            match &client.phase {
                Phase::Closing => return bytes.len(),
                Phase::Login(_) => {
                    let n = self.login_input(cx, key, rest);
                    used += n;
                    let still = self.clients.get(key).is_some_and(|c| matches!(c.phase, Phase::Login(_)));
                    if n == 0 && still {
                        return used;
                    }
                }
                Phase::Session(_) => {
                    if rest.is_empty() || !self.may_look(key) {
                        return used;
                    }
                    match self.look(cx, key, rest) {
                        Some(n) => used += n,
                        None => return used,
                    }
                }
            }
        }
    }

    /// The next request of this client may be looked at.
    fn may_look(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get(key) else { return false };
        if client.claim.is_served_later()
            // What stood behind a request that was cancelled for it would run without that.
            || client.is.given_up
            // What it asks next must not run before its server listens, or on one that no longer does.
            || client.is.listens.moves()
            || !client.is.greeted
            || client.inflight as usize >= limits::CLIENT_PIPELINE
            || client.stream.output.len() > limits::CLIENT_OUTPUT_BYTES
        {
            return false;
        }
        let idle = client.inflight == 0;
        let Some(server) = client.lease().and_then(|server| self.servers.get_mut(server)) else {
            return true;
        };
        if server.post.is_held() && idle {
            // A cancel of what it ran before is on its way, and would hit this one.
            return false;
        }
        if server.backlog() > limits::SERVER_OUTPUT_BYTES {
            server.is.full = true;
            return false;
        }
        true
    }

    /// Finds the next request and deals with it. `None`: nothing more can be done with these bytes now.
    fn look(&mut self, cx: &mut Cx<'_, N>, key: Key, rest: &[u8]) -> Option<usize> {
        inject::arm(rest);
        if self.clients.get(key).is_some_and(|client| client.is.console) {
            return self.look_at_console(cx, key, rest);
        }
        let mut out = std::mem::take(&mut self.staging);
        let found = match self.clients.get_mut(key)?.front() {
            Some(front) => front.find(rest, &mut out),
            None => return None,
        };
        self.send_client(cx, key, &out);
        self.recycle(out);
        match found {
            Ok(Found::Incomplete) => {
                let front = self.clients.get_mut(key)?.front()?;
                if front.is_between_messages(rest.len()) {
                    self.await_batch(cx, key);
                }
                None
            }
            Ok(Found::Answered { len }) => Some(len),
            Ok(Found::Drop { len }) => {
                self.dropped(cx, key);
                Some(len)
            }
            Ok(Found::Login { len }) => {
                self.login_again(cx, key, &rest[..len.min(rest.len())]);
                Some(len)
            }
            Ok(Found::Goodbye) => {
                self.close_client(cx, key, None);
                Some(rest.len())
            }
            Ok(Found::Kill { len, target, query_only }) => {
                self.ask_kill(cx, key, target, query_only);
                Some(len)
            }
            Ok(Found::Request { len, needs }) => self.found(cx, key, rest, len, true, needs).then_some(len),
            Ok(Found::Part { len, needs }) => self.found(cx, key, rest, len, false, needs).then_some(len),
            Err(fault) => {
                self.end_client(cx, key, fault);
                Some(rest.len())
            }
        }
    }

    /// Bytes were dropped: the client's wing keeps what it needs of them, or they are the rest of a COPY that
    /// its server has ended. Perhaps the server waited for nothing else.
    fn dropped(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        self.arm_client(cx, key);
        let Some(client) = self.clients.get(key).filter(|client| client.is.part_open && client.inflight == 0)
        else {
            return;
        };
        let back =
            client.lease().and_then(|server| self.servers.get_mut(server)).and_then(|server| server.back());
        if let Some(boundary) = back.map(|back| back.boundary()) {
            self.boundary(cx, key, boundary);
        }
    }

    /// A request was found: sends it on, or leaves it to be queued. True when its bytes are dealt with.
    fn found(
        &mut self,
        cx: &mut Cx<'_, N>,
        key: Key,
        rest: &[u8],
        len: usize,
        whole: bool,
        needs: Needs,
    ) -> bool {
        inject::here("found");
        let Some(request) = rest.get(..len) else {
            self.end_client(cx, key, Fault::new(FaultKind::ClientProtocol, "found more than there is"));
            return true;
        };
        let Some(client) = self.clients.get_mut(key) else { return true };
        if needs.continues {
            return match client.lease() {
                Some(server) => {
                    self.extend(cx, key, server, request, whole);
                    true
                }
                // Its server is gone, and with it whoever waited for these bytes.
                None => true,
            };
        }
        if needs.lists {
            client.listed_ms = cx.now_ms();
        }
        let (mut lease, id) = (client.lease(), client.pool);
        client.note_needs(whole, needs);
        let shares = whole && needs.shareable && self.depth_of(key) > 1 && !self.may_be_slow(key, needs);
        let late = needs.late && lease.is_none() && self.lets_begin_wait(id);
        if late && self.answer(cx, key, request) {
            self.answered_late(cx, key);
            return true;
        }
        if needs.choosy && lease.is_some_and(|server| self.may_change(key, server)) {
            self.abandon(cx, key);
            lease = None;
        }
        if let Some(server) = lease {
            self.dispatch(cx, key, server, request, whole);
            self.offer_to_share(key, server, shares);
            return true;
        }
        if let Some(server) = self.free_at_once(cx, key)
            && self.lease(cx, server, key).is_some()
        {
            self.dispatch(cx, key, server, request, whole);
            self.offer_to_share(key, server, shares);
            return true;
        }
        if needs.prepares && self.answer(cx, key, request) {
            return true;
        }
        let wants = self.books().want(key, Want::Request { len: len as u32, whole, shares });
        self.sound(wants);
        false
    }

    /// No server is needed: what servers have said before answers this request.
    fn answer(&mut self, cx: &mut Cx<'_, N>, key: Key, request: &[u8]) -> bool {
        let Some(client) = self.clients.get_mut(key) else { return false };
        let Some(pool) = client.pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref()) else {
            return false;
        };
        let Some(front) = client.front() else { return false };
        let mut out = std::mem::take(&mut self.staging);
        let answered = pool.entry.welcomes().answer(front, request, &mut out);
        let begun = front.is_in_empty_transaction();
        // Before the answer: who has read it may look at the metrics.
        self.note_empty(key, begun);
        self.send_client(cx, key, &out);
        self.recycle(out);
        answered
    }

    /// A client asks to end another one or what it runs.
    fn ask_kill(&mut self, cx: &mut Cx<'_, N>, key: Key, target: u32, query_only: bool) {
        let Some(kill) = self.kill_of(cx, key, target, query_only) else { return };
        let Some(client) = self.clients.get_mut(key) else { return };
        client.inflight += 1;
        client.request_since_ns = cx.net.now_ns();
        self.send_kill(cx, kill);
    }

    /// The client will send nothing more.
    fn client_ended(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        inject::here("client_ended");
        let Some(client) = self.clients.get_mut(key) else { return };
        // Requests under way run to their end, as they would on the database itself. A request that only
        // waits is dropped: nobody has begun it and nobody will read its answer.
        let in_session = matches!(client.phase, Phase::Session(_));
        if in_session && !client.is.hangup && !self.has_all_it_gets(key) {
            return self.arm_client(cx, key);
        }
        self.close_client(cx, key, None);
    }

    /// A client that will send nothing more has got all that comes without it. The rest of a message whose
    /// beginning it has got still comes, whatever it belongs to.
    fn has_all_it_gets(&mut self, key: Key) -> bool {
        let Some(client) = self.clients.get(key) else { return true };
        let at_work = client.inflight > 0 && !client.is.part_open;
        let held = client.lease().and_then(|server| self.servers.get_mut(server));
        let Some(back) = held.and_then(|server| server.back()) else { return !at_work };
        // A message of the server that this client holds has come in part.
        let is_cut = back.head().is_none_or(|head| head == key.raw()) && back.is_mid_message();
        // What this client runs goes on only when it sends more.
        let is_awaited = back.head() == Some(key.raw()) && back.awaits_client();
        (!at_work || is_awaited) && !is_cut
    }

    /// A server has sent everything for now. If it waits for a client that will send nothing more, it would
    /// wait forever.
    pub(super) fn close_if_awaited_in_vain(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let ended =
            |client: &Client<W, N::Socket>| client.is.eof && matches!(client.phase, Phase::Session(_));
        if self.clients.get(key).is_some_and(ended) && self.has_all_it_gets(key) {
            self.close_client(cx, key, None);
        }
    }
}
