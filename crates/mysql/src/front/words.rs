//! What Weir sends to a client in place of a server: errors, the final error, OK.
//!
//! Owns: the sequence number of such a packet. Must not know: requests.

use super::find::query_of;
use super::{Front, Phase, Request};
use crate::message::ok::OkPacket;
use crate::message::{Capabilities, Command, ok, status};
use crate::session_state::Flavour;
use crate::{error, frame};
use weir_session::login::KillOutcome;
use weir_wire::{Fault, FaultKind, Found};

/// A server that is killed, or whose client is, says nothing: the driver finds the connection closed, and
/// knows what that means (2013).
fn ends_without_a_word(kind: FaultKind) -> bool {
    matches!(kind, FaultKind::Killed | FaultKind::ServerLost | FaultKind::ServerProtocol)
}

/// Behind what a server says of the account Weir logs in with.
const WEIRS_OWN_LOGIN: &[u8] = b" (the database server refused Weir's own login, not this client's to Weir)";

impl Front {
    pub(super) fn unknown_command(&self, len: usize, out: &mut Vec<u8>) -> Found {
        error::put(out, 1, 1047, "08S01", "Unknown command");
        Found::Answered { len }
    }

    pub(super) fn not_allowed(&self, len: usize, out: &mut Vec<u8>) -> Found {
        error::put_fault(out, self.reply_seq, FaultKind::NotAllowed);
        Found::Answered { len }
    }

    /// The request will not run: answers it with an error; the session goes on.
    pub(crate) fn reject(&mut self, fault: &Fault, _request: &[u8], out: &mut Vec<u8>) {
        let mute = matches!(self.request.command, Command::StmtClose | Command::StmtSendLongData);
        if !mute {
            let mark = out.len();
            error::put_fault(out, self.reply_seq, fault.kind);
            self.answered_by_error(out, mark);
        }
        self.forget_request();
    }

    /// The packets that follow a long one look like others.
    pub(crate) fn rejects_parts(&self) -> bool {
        false
    }

    /// Last words before Weir closes this client. None in the middle of a reply: they would be taken for a
    /// part of it. None to one that another client has killed: servers just close.
    pub(crate) fn fatal(&mut self, fault: &Fault, out: &mut Vec<u8>) {
        if matches!(self.phase, Phase::Greeting) {
            error::put_fault(out, self.seq, fault.kind);
        } else if !self.reply_begun && !self.parting && !ends_without_a_word(fault.kind) {
            // To a client that waits for nothing it is the first packet of all.
            let idle = matches!(self.phase, Phase::Idle) && self.traits.flavour == Flavour::MySql;
            error::put_fault(out, if idle { 0 } else { self.reply_seq }, fault.kind);
        }
    }

    /// Last words: a server's refusal of Weir's login.
    pub(crate) fn fatal_rejection(&mut self, rejection: &[u8], out: &mut Vec<u8>) {
        let seq = if matches!(self.phase, Phase::Greeting) { self.seq } else { self.reply_seq };
        // Before its own login is through, a server may leave out the SQLSTATE; a client of ours is past
        // that.
        match ok::ErrPacket::read(rejection) {
            Ok(err) => {
                let sqlstate = if err.sqlstate.is_empty() { &b"HY000"[..] } else { err.sqlstate };
                // Of an account (class 28) it reads as if the client's were meant.
                let whose = if sqlstate.starts_with(b"28") { WEIRS_OWN_LOGIN } else { b"" };
                let message = [err.message, whose].concat();
                frame::put(out, seq, |out| ok::ErrPacket { sqlstate, message: &message, ..err }.write(out));
            }
            Err(_) => {
                error::put_fault(out, seq, FaultKind::ServerLoginFailed);
            }
        }
    }

    /// The answer to `Found::Kill`. Returns the request that stands behind the KILL in the same text, to be
    /// found next.
    pub(crate) fn killed(&mut self, outcome: KillOutcome, out: &mut Vec<u8>) -> Vec<u8> {
        let (target, seq) = (self.request.number, self.reply_seq);
        self.shift = 0;
        let mark = out.len();
        let behind = self.take_behind_kill();
        if self.request.command == Command::Query && self.traits.flavour == Flavour::MySql {
            self.forget_warnings();
        }
        let mut next = Vec::new();
        match outcome {
            // Whoever interrupts itself is told so, as by a server. That closes behind it, without a word.
            KillOutcome::Killed if target == self.id.number() => {
                self.parting = !self.request.query_only;
                let is_told = self.parting && self.traits.flavour == Flavour::MariaDb;
                error::put_fault(out, seq, if is_told { FaultKind::Killed } else { FaultKind::Cancelled });
            }
            KillOutcome::Killed => {
                let untold = self.take_untold();
                let status = self.status & !status::OF_THE_REPLY;
                let mut ok = OkPacket { status, changes: &untold, ..OkPacket::default() };
                if let Some(behind) = behind {
                    ok.status |= status::MORE_RESULTS;
                    self.shift = seq;
                    next = query_of(&behind);
                }
                frame::put(out, seq, |out| ok.write(ok::OK, self.capabilities, out));
            }
            KillOutcome::NoSuchThread | KillOutcome::NotOurs => {
                error::put(out, seq, 1094, "HY000", &format!("Unknown thread id: {target}"));
            }
            KillOutcome::Denied => {
                error::put(out, seq, 1095, "HY000", &format!("You are not owner of thread {target}"));
            }
        }
        match out.get(mark + crate::frame::HEADER_BYTES) {
            Some(&ok::ERR) => {
                self.forget_warnings();
                self.answered_by_error(out, mark);
            }
            Some(_) | None => self.answered_here(0),
        }
        self.forget_request();
        next
    }

    pub(super) fn forget_request(&mut self) {
        self.request = Request::new(Command::Ping);
        self.phase = Phase::Idle;
        self.reply_begun = false;
    }

    /// An OK; with `first` an EOF has no room for more for clients of old.
    pub(crate) fn put_ok(&mut self, first: u8, out: &mut Vec<u8>) {
        let has_room = first == ok::OK || self.capabilities.has(Capabilities::DEPRECATE_EOF);
        let untold = if has_room { self.take_untold() } else { Vec::new() };
        let status = self.status & !status::OF_THE_REPLY;
        let ok = OkPacket { status, changes: &untold, ..OkPacket::default() };
        frame::put(out, 1, |out| ok.write(first, self.capabilities, out));
    }
}
