//! Requests of Weir's own, and cleaning up after a client that disconnected in the middle of a request.
//!
//! Invariant: nothing here affects the replies of other owners; a message that was only partly sent cannot be
//! completed, so its server is spoiled.

use crate::back::Back;
use crate::dispatch::NOBODY;
use crate::dispatch::statements::RAW_PARSE;
use crate::effects::Outcome;
use crate::frame::{put, put_cstr};
use crate::front::Front;
use crate::message::query::{SYNC, TERMINATE, put_copy_fail, put_query};
use crate::queue::{Internal, Kind, Owed, put_right};
use weir_session::Back as _;
use weir_wire::{Boundary, INTERNAL, Owner};

/// The reason in a CopyFail of Weir's own; the server writes it to its log.
const CLIENT_LEFT: &str = "the client went away";

impl Back {
    /// The owner has gone: its replies are dropped. A part of a request that it never ended is ended for it,
    /// appended to `out`. When that cannot be done, the server is broken ([`Back::is_broken`]).
    pub(crate) fn forget(&mut self, owner: Owner, out: &mut Vec<u8>) {
        let mine = self.queue.tail().is_some_and(|tail| tail.owner == owner);
        self.incoming_hidden |= self.head() == Some(owner);
        self.listening = None;
        self.end_unended();
        self.queue.disown(owner);
        if !mine {
            return;
        }
        if self.outgoing > 0 {
            // Whatever is sent now would be read as the rest of that message: nothing can be waited for.
            self.spoiled = true;
            self.queue.clear();
            self.held = None;
            self.boundary = Boundary::Idle;
            return;
        }
        let mut ending = Vec::new();
        if self.copy_in {
            self.copy_in = false;
            put_copy_fail(&mut ending, CLIENT_LEFT);
        }
        let swallowed = std::mem::take(&mut self.swallowed);
        if let Some(tail) = self.queue.tail_mut().filter(|_| swallowed) {
            tail.ended = false;
        }
        self.end_tail(&mut ending);
        self.write(&ending, out);
    }

    /// The client that has sent the end of a COPY's data has gone, and has not sent the Sync behind them.
    pub(crate) fn end_swallowed(&mut self, to_server: &mut Vec<u8>) {
        if std::mem::take(&mut self.swallowed)
            && let Some(tail) = self.queue.tail_mut()
        {
            tail.ended = false;
            self.end_tail(to_server);
        }
    }

    /// Ends the last request for a client that has gone in the midst of it.
    fn end_tail(&mut self, ending: &mut Vec<u8>) {
        if let Some(tail) = self.queue.tail_mut()
            && !tail.ended
        {
            tail.ended = true;
            // Its Sync would commit what it has run. It never came, so without Weir that would be undone.
            put_bind_nobody(ending);
            self.queue.push(Owed::Bind { statement: None, leaves: None });
            ending.extend_from_slice(SYNC);
            self.queue.push(Owed::Sync);
        }
    }

    /// A whole request of `owner` of whose reply nothing has come will run elsewhere: its reply here is
    /// dropped, and `front` is as it was before its dispatch.
    pub(crate) fn recall(&mut self, front: &mut Front, owner: Owner, _out: &mut Vec<u8>) {
        let (undone, requests) = self.queue.take_back(owner);
        for undo in undone {
            put_right(Some(Box::new(undo)), false, Some(front));
        }
        front.answered(requests);
    }

    /// Queues a ROLLBACK of Weir's own.
    pub(crate) fn rollback(&mut self, out: &mut Vec<u8>) {
        self.internal(Internal::Rollback, b"ROLLBACK", out);
    }

    /// Queues a full reset of Weir's own. An open transaction is rolled back first: DISCARD ALL cannot run
    /// in one.
    pub(crate) fn reset(&mut self, out: &mut Vec<u8>) {
        self.surprises = self.knowledge.surprises();
        if self.boundary != Boundary::Idle || !self.queue.is_empty() {
            self.rollback(out);
        }
        self.internal(Internal::Reset, b"DISCARD ALL", out);
        self.prepared.distrust_all();
        self.unnamed = None;
    }

    /// The rest of a request will not come: whatever of it has succeeded may be there.
    fn end_unended(&mut self) {
        let Some(before) = self.unended.take() else { return };
        for effects in &before.succeeded {
            self.apply(None, effects, Outcome::Doubtful);
        }
        if before.raw {
            RAW_PARSE.iter().for_each(|&pin| self.traces.pin(pin));
        }
    }

    /// Queues the cheapest question that proves that the server answers: a Sync alone.
    pub(crate) fn check(&mut self, out: &mut Vec<u8>) {
        self.begin_internal();
        self.queue.push(Owed::HiddenSync);
        self.write(SYNC, out);
    }

    fn internal(&mut self, what: Internal, text: &[u8], out: &mut Vec<u8>) {
        self.begin_internal();
        let mut bytes = Vec::new();
        if self.needs_sync && !self.skipping {
            // As in `end_tail`.
            put_bind_nobody(&mut bytes);
            self.queue.push(Owed::Bind { statement: None, leaves: None });
        }
        if std::mem::take(&mut self.needs_sync) || self.skipping {
            bytes.extend_from_slice(SYNC);
            self.queue.push(Owed::HiddenSync);
        }
        put_query(&mut bytes, text);
        self.queue.push(Owed::Internal(what));
        self.unnamed = None;
        self.write(&bytes, out);
    }

    fn begin_internal(&mut self) {
        self.end_unended();
        self.queue.push_entry(INTERNAL, Kind::Internal, false);
        if let Some(tail) = self.queue.tail_mut() {
            tail.ended = true;
        }
    }

    /// Says goodbye.
    pub(crate) fn quit(&mut self, out: &mut Vec<u8>) {
        // Behind half a message it would be read as the rest of that message.
        if self.outgoing == 0 {
            out.extend_from_slice(TERMINATE);
        }
    }

    /// Appends bytes to `out`, or behind those that are held back.
    pub(crate) fn write(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        self.held.as_mut().map_or(out, |held| &mut held.bytes).extend_from_slice(bytes);
    }
}

/// Appends a Bind of a statement that does not exist.
pub(crate) fn put_bind_nobody(out: &mut Vec<u8>) {
    put(out, b'B', |out| {
        put_cstr(out, b"");
        put_cstr(out, NOBODY);
        out.extend_from_slice(&[0; 6]);
    });
}
