//! Server bytes to clients.

use super::{Hall, Order, READS_PER_TURN};
use crate::client::Phase;
use crate::context::Cx;
use crate::ids::Key;
use crate::panics::inject;
use crate::server::{Server, ServerPhase, ServerState};
use crate::stream::Heard;
use crate::wing::{Back, Wing};
use std::ops::Range;
use weir_net::Net;
use weir_wire::{Fault, FaultKind, Step, limits};

/// Bytes of a reply that are copied together with others rather than sent by a call of their own.
const COPY_BYTES: usize = 16 * 1024;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Looks at what a server has sent, and reads more.
    pub(super) fn pump_server(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get(key) else { return };
        if matches!(server.phase, ServerPhase::Login { .. }) {
            self.pump_login(cx, key);
            return;
        }
        self.replies_kept(cx, key);
        let mut scratch = std::mem::take(cx.scratch);
        for read in 0.. {
            let Some(server) = self.servers.get_mut(key) else { break };
            if !server.stream.line.readable || server.is.paused {
                break;
            }
            if read == READS_PER_TURN {
                self.later.push_back(Order::PumpServer(key));
                break;
            }
            match server.stream.hear(cx.net, &mut scratch) {
                Heard::Bytes(len) => {
                    let id = server.pool;
                    self.count_pool(id, |cells| cells.server_received_bytes.add(len as u64));
                    self.server_bytes(cx, key, &scratch[..len]);
                }
                Heard::Again => {}
                Heard::Nothing => break,
                Heard::End => {
                    let text = "the server closed the connection";
                    self.server_lost(cx, key, Fault::new(FaultKind::ServerLost, text));
                    break;
                }
                Heard::Failed(e) => {
                    self.server_lost(cx, key, Fault::new(FaultKind::ServerLost, e.to_string()));
                    break;
                }
            }
        }
        *cx.scratch = scratch;
    }

    fn server_bytes(&mut self, cx: &mut Cx<'_, N>, key: Key, bytes: &[u8]) {
        inject::here("server_bytes");
        let Some(server) = self.servers.get_mut(key) else { return };
        if server.stream.input.is_empty() {
            let used = self.replies(cx, key, bytes);
            if used < bytes.len()
                && let Some(server) = self.servers.get_mut(key)
            {
                server.stream.input.append(&bytes[used..]);
            }
        } else {
            server.stream.input.append(bytes);
            self.replies_kept(cx, key);
        }
        if self.servers.get(key).is_some_and(|s| s.stream.input.len() > limits::SERVER_GATHER_BYTES) {
            let paused = self.servers.get(key).is_some_and(|s| s.is.paused);
            if !paused {
                self.server_lost(cx, key, Fault::new(FaultKind::ServerTooLarge, "a message over the bound"));
            }
        }
    }

    /// Looks again at bytes that were kept, or lets a back speak that has something to say of its own.
    fn replies_kept(&mut self, cx: &mut Cx<'_, N>, key: Key) {
        let Some(server) = self.servers.get_mut(key) else { return };
        if server.is.paused {
            return;
        }
        let mut input = std::mem::take(&mut server.stream.input);
        let used = self.replies(cx, key, input.as_slice());
        let Some(server) = self.servers.get_mut(key) else { return };
        input.consume(used.min(input.len()));
        input.release_if_empty();
        server.stream.input = input;
    }

    /// Gives a server's bytes to those they are for; returns how many were dealt with.
    fn replies(&mut self, cx: &mut Cx<'_, N>, key: Key, input: &[u8]) -> usize {
        let mut parcel = Parcel { staged: std::mem::take(&mut self.staging), run: 0..0 };
        let mut used = 0;
        loop {
            let heard = self.heard_by_others(key);
            let Some(server) = self.servers.get_mut(key).filter(|server| !server.is.paused) else { break };
            let ServerPhase::Live(back) = &mut server.phase else { break };
            let owner = back.head().and_then(Key::from_raw).or(match server.post.state() {
                ServerState::Leased(client) if back.head().is_none() => Some(client),
                _ => None,
            });
            let front = owner.and_then(|owner| self.clients.get_mut(owner)).and_then(|client| {
                match &mut client.phase {
                    Phase::Session(front) => Some(front),
                    Phase::Login(_) | Phase::Closing => None,
                }
            });
            let due = server.cleaning.cancel_due;
            let before = (parcel.staged.len(), server.stream.output.len());
            let step =
                back.handle_reply(front, &input[used..], &mut parcel.staged, server.stream.output.tail_mut());
            // What it held may have gone on, or have been given up.
            if server.stream.output.len() > before.1 || server.is.full {
                self.mark_dirty(key);
            }
            parcel.order(before.0, input);
            self.overhear_step(heard, &step, &input[used..]);
            match step {
                Ok(Step::Forward(n)) => {
                    let n = n.min(input.len() - used);
                    if owner.is_some() && !parcel.forward(used..used + n, input) {
                        self.deliver(cx, key, owner, &mut parcel, input);
                        parcel.forward(used..used + n, input);
                    }
                    used += n;
                }
                Ok(Step::Consumed(n)) => used += n.min(input.len() - used),
                Ok(Step::Done { owner: done, boundary }) => {
                    self.deliver(cx, key, owner, &mut parcel, input);
                    self.done(cx, key, done, boundary);
                }
                Ok(Step::Incomplete) => {
                    self.deliver(cx, key, owner, &mut parcel, input);
                    if let Some(owner) = owner {
                        if due.is_some_and(|due| due.client == owner) {
                            self.cancel_when_due(cx, key, owner, None);
                        }
                        self.close_if_awaited_in_vain(cx, owner);
                    }
                    break;
                }
                Err(fault) => {
                    self.deliver(cx, key, owner, &mut parcel, input);
                    self.recycle(parcel.staged);
                    self.server_lost(cx, key, fault);
                    return input.len();
                }
            }
        }
        self.recycle(parcel.staged);
        used
    }

    /// Sends what has been collected for a client. One that reads too slowly makes its server wait.
    fn deliver(
        &mut self,
        cx: &mut Cx<'_, N>,
        server: Key,
        owner: Option<Key>,
        parcel: &mut Parcel,
        input: &[u8],
    ) {
        inject::here("deliver");
        if let Some(owner) = owner {
            if self.is_overheard(Some(owner)) {
                self.overhear(Some(owner), &[], &parcel.staged);
                self.overhear(Some(owner), &[], &input[parcel.run.clone()]);
            }
            if !parcel.staged.is_empty() {
                self.send_client(cx, owner, &parcel.staged);
            }
            if !parcel.run.is_empty() {
                self.send_client(cx, owner, &input[parcel.run.clone()]);
            }
            if let Some(client) = self.clients.get_mut(owner)
                && client.stream.output.len() > limits::CLIENT_OUTPUT_BYTES
                && let Some(server_mut) = self.servers.get_mut(server)
                && owes(server_mut, owner)
            {
                client.chokes = Some(server);
                server_mut.is.paused = true;
                if server_mut.state() == ServerState::Shared {
                    // It reads too slowly; the others must not wait for that.
                    self.seclude(cx, server);
                }
            }
        }
        parcel.staged.clear();
        parcel.run = 0..0;
    }
}

/// More may come from this server for this client. Where the requests of others stand behind its own, nothing
/// does once that is answered, and they must not wait for it to read.
fn owes<W: Wing, S>(server: &mut Server<W, S>, client: Key) -> bool {
    let leased = server.state() == ServerState::Leased(client);
    leased || server.back().is_some_and(|back| back.head() == Some(client.raw()))
}

/// What is collected for one client in one look at a server's bytes: first `staged`, then `run`.
struct Parcel {
    /// Bytes of our own, and small forwarded ones between them.
    staged: Vec<u8>,
    /// A run of the server's bytes that can be sent as it stands.
    run: Range<usize>,
}

impl Parcel {
    /// The wing may have appended to `staged` while a run was waiting: the run goes first.
    fn order(&mut self, staged_before: usize, input: &[u8]) {
        if self.staged.len() > staged_before && !self.run.is_empty() {
            self.staged.splice(staged_before..staged_before, input[self.run.clone()].iter().copied());
            self.run = 0..0;
        }
    }

    /// Adds forwarded bytes. False when what is there must be delivered first.
    fn forward(&mut self, bytes: Range<usize>, input: &[u8]) -> bool {
        if self.run.is_empty() && self.staged.is_empty() {
            self.run = bytes;
        } else if !self.run.is_empty() && self.run.end == bytes.start {
            self.run.end = bytes.end;
        } else if self.run.is_empty() && bytes.len() <= COPY_BYTES {
            self.staged.extend_from_slice(&input[bytes]);
        } else if self.run.is_empty() {
            self.run = bytes;
        } else if self.run.len() + bytes.len() <= COPY_BYTES {
            self.staged.extend_from_slice(&input[self.run.clone()]);
            self.staged.extend_from_slice(&input[bytes]);
            self.run = 0..0;
        } else {
            return false;
        }
        true
    }
}
