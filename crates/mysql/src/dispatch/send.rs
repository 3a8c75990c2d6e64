//! Writes a request for its server, with the server's statement ids.
//!
//! Owns: writing requests, whole and in parts. Must not know: replies.

use crate::back::Back;
use crate::frame::{self, HEADER_BYTES, Header};
use crate::front::{Front, Leaves};
use crate::message::Command;
use crate::prepared::Execute;
use crate::queue::{Entry, Stage};
use crate::reset::put_reset;
use crate::rewrite::Rewritten;
use crate::session_state::{Flavour, Slot};
use weir_session::Front as _;
use weir_wire::{Fault, INTERNAL, Owner};

impl Back {
    /// Sends the request itself, or its first part.
    pub(crate) fn send(&mut self, entry: &mut Entry, front: &mut Front, request: &[u8], out: &mut Vec<u8>) {
        entry.stage = Stage::Sent;
        entry.reply.told = front.request.act.as_ref().is_some_and(|act| act.is_told());
        self.statements.put_closes(out);
        match entry.command {
            Command::Query => match front.request.extra.as_deref().and_then(|extra| extra.text.as_ref()) {
                Some(Rewritten { text, names }) => {
                    entry.reply.names = Some(names).filter(|names| !names.is_empty()).cloned();
                    frame::put(out, 0, |out| {
                        out.push(Command::Query as u8);
                        out.extend_from_slice(text);
                    });
                }
                None => {
                    self.keep_text(entry, request.get(HEADER_BYTES + 1..).unwrap_or_default());
                    out.extend_from_slice(request);
                }
            },
            Command::StmtPrepare => {
                let prepare = front.request.extra.as_deref().and_then(|extra| extra.prepare.as_ref());
                let names = prepare.map(|text| &text.names);
                entry.reply.names = names.filter(|names| !names.is_empty()).cloned();
                self.send_prepare(entry, front, request, out);
            }
            Command::StmtExecute => {
                let names = entry.key.as_ref().map(|key| &key.text.names);
                entry.reply.names = names.filter(|names| !names.is_empty()).cloned();
                self.keep_text(entry, request.get(HEADER_BYTES..).unwrap_or_default());
                self.send_execute(entry, front, request, out);
            }
            Command::StmtFetch | Command::StmtReset | Command::StmtSendLongData => {
                let kept = front.statements.as_deref_mut().and_then(|all| all.get_mut(front.request.number));
                let copy = entry.key.as_ref().and_then(|key| self.statements.touch(key));
                if let (Command::StmtSendLongData, Some(kept), Some(copy)) = (entry.command, kept, copy) {
                    put_long_data(&mut kept.long_data, copy.id, out);
                }
                self.send_renamed(entry, request, out);
                if entry.command == Command::StmtSendLongData && entry.whole {
                    entry.stage = Stage::Finished;
                }
            }
            Command::StmtClose => {
                if let Some(key) = &entry.key {
                    self.statements.close(key, out);
                }
                entry.stage = Stage::Finished;
            }
            Command::ResetConnection => {
                // The client keeps its role, and its server with it.
                put_reset(&self.setup_behind_own, out);
                entry.setup_owed = true;
            }
            _ => out.extend_from_slice(request),
        }
    }

    /// Keeps what a read consists of: its text, or its execution.
    fn keep_text(&mut self, entry: &mut Entry, text: &[u8]) {
        if !entry.leaves_trace && entry.whole {
            let oldest = self.queue.iter().map(|entry| &entry.text).find(|text| !text.is_empty());
            entry.text = self.texts.keep(text, oldest.map(|text| text.start));
        }
    }

    /// A client that prepares is told what the text means now. That is asked anew, whatever copies there are,
    /// unless this server has said it and the catalogue, tables included, is known to be as it was; what
    /// stays with its client (a temporary table in front of the one that is meant, a lock) is not in the
    /// catalogue.
    fn send_prepare(&mut self, entry: &mut Entry, front: &Front, request: &[u8], out: &mut Vec<u8>) {
        entry.settled = self.knowledge.state();
        // A server refuses to prepare what writes where it may only be read.
        let may_write = !front.is_in_transaction() && front.state.setting(Slot::ReadOnly).is_none();
        if let Some(key) = &entry.key
            && front.pins().is_empty()
            && may_write
            && front.request.leaves != Leaves::Unsure
            && self.statements.would_say_again(&key.text, entry.settled)
        {
            entry.stage = Stage::Local;
            return;
        }
        self.untold_hint |= front.request.class.lends_settings && self.session.flavour == Flavour::MySql;
        match front.request.extra.as_deref().and_then(|extra| extra.prepare.as_ref()) {
            // Its text may be rewritten.
            Some(text) if entry.whole => {
                frame::put(out, 0, |out| {
                    out.push(Command::StmtPrepare as u8);
                    out.extend_from_slice(&text.text);
                });
            }
            Some(_) | None => out.extend_from_slice(request),
        }
    }

    /// Puts in the server's number of the statement, the types the client bound if the server's copy was
    /// bound with others since, and long data ahead of it.
    pub(super) fn send_execute(
        &mut self,
        entry: &mut Entry,
        front: &mut Front,
        request: &[u8],
        out: &mut Vec<u8>,
    ) {
        let number = front.request.number;
        let statement = front.statements.as_deref_mut().and_then(|all| all.get_mut(number));
        let copy = entry.key.as_ref().and_then(|key| self.statements.touch(key));
        let (Some(statement), Some(copy)) = (statement, copy) else {
            // Forgotten between dispatch and now, by a reset: the server will say that it knows no such
            // statement.
            self.send_renamed(entry, request, out);
            return;
        };
        put_long_data(&mut statement.long_data, copy.id, out);
        let (Some(header), Some(payload)) = (Header::read(request), request.get(HEADER_BYTES..)) else {
            return;
        };
        let execute = Execute::read(payload, statement.params).ok();
        let missing = execute.and_then(|e| e.types_flag_at).filter(|_| copy.types != statement.types);
        let missing =
            missing.filter(|_| execute.is_some_and(|e| !e.has_types) && !statement.types.is_empty());
        let added = missing.map_or(0, |_| statement.types.len());
        let fits = header.len + added < frame::MAX_PAYLOAD_BYTES;
        Header { len: if fits { header.len + added } else { header.len }, seq: 0 }.write(out);
        let id_end = 5.min(payload.len());
        out.push(Command::StmtExecute as u8);
        out.extend_from_slice(&copy.id.to_le_bytes());
        match missing.filter(|_| fits) {
            Some(at) => {
                out.extend_from_slice(&payload[id_end..at]);
                out.push(1);
                out.extend_from_slice(&statement.types);
                out.extend_from_slice(payload.get(at + 1..).unwrap_or_default());
            }
            None => out.extend_from_slice(&payload[id_end..]),
        }
        if execute.is_some_and(|e| e.has_types) || added > 0 {
            copy.types = statement.types.clone();
        }
    }

    /// A command whose first argument is the number of a statement.
    pub(super) fn send_renamed(&mut self, entry: &Entry, request: &[u8], out: &mut Vec<u8>) {
        let copy = entry.key.as_ref().and_then(|key| self.statements.touch(key));
        let id = copy.map_or(0, |copy| copy.id);
        let fixed = HEADER_BYTES + 1;
        out.extend_from_slice(request.get(..fixed).unwrap_or_default());
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(request.get(fixed + 4..).unwrap_or_default());
    }

    /// A further part of the request at the end of the queue, or of a file the server asked for.
    ///
    /// Whoever calls it looks at [`Back::held_bytes`] first: what has to be held has no bound here.
    ///
    /// # Errors
    /// None yet.
    pub(crate) fn extend(
        &mut self,
        _front: &mut Front,
        bytes: &[u8],
        whole: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        let Some(entry) = self.queue.back_mut() else { return Ok(()) };
        match entry.stage {
            Stage::Waiting | Stage::Ahead => {
                entry.held.extend_from_slice(bytes);
                entry.whole = whole;
            }
            Stage::Sent if entry.reply.wants_file() => {
                entry.reply.send_file(bytes, out);
                if whole {
                    entry.reply.file_ended();
                    entry.whole = true;
                }
            }
            Stage::Sent if !entry.whole => {
                out.extend_from_slice(bytes);
                entry.whole = whole;
                if whole && entry.command == Command::StmtSendLongData {
                    entry.stage = Stage::Finished;
                }
            }
            Stage::Refused => entry.whole = whole,
            Stage::Sent
            | Stage::Local
            | Stage::Ping
            | Stage::Torn
            | Stage::Finished
            | Stage::AskInsertId
            | Stage::Answered
            | Stage::AskFoundRows
            | Stage::AskSettings
            | Stage::AskVariables
            | Stage::AskWarnings => {}
        }
        Ok(())
    }

    /// The owner has gone: its replies are dropped, and what it did not send to the end is ended.
    pub(crate) fn forget(&mut self, owner: Owner, _out: &mut Vec<u8>) {
        for entry in self.queue.iter_mut().filter(|entry| entry.owner == owner && owner != INTERNAL) {
            entry.gone = true;
            entry.held = Vec::new();
            if entry.stage != Stage::Sent {
                entry.whole = true;
            } else if !entry.whole || entry.reply.wants_file() {
                // Half a command cannot be taken back. A file that ends early would be loaded and committed
                // as far as it came; without its connection the server takes all of it back.
                self.broken = true;
            }
        }
    }
}

/// Sends kept long data under the server's number, and keeps it no longer.
pub(super) fn put_long_data(long_data: &mut Vec<u8>, id: u32, out: &mut Vec<u8>) {
    let mut rest = std::mem::take(long_data);
    let mut at = 0;
    while let Some(header) = rest.get(at..).and_then(Header::read) {
        let number_at = at + HEADER_BYTES + 1;
        if let Some(number) = rest.get_mut(number_at..number_at + 4) {
            number.copy_from_slice(&id.to_le_bytes());
        }
        at += header.total();
    }
    out.append(&mut rest);
}

/// Sends an execution as it was, under the server's number.
pub(crate) fn put_execute(id: u32, payload: &[u8], out: &mut Vec<u8>) {
    frame::put(out, 0, |out| {
        out.push(Command::StmtExecute as u8);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(payload.get(5..).unwrap_or_default());
    });
}
