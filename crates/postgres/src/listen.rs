//! Clients that only listen leave their server to others: another connection listens for all of them.
//!
//! A client whose server is kept for it by LISTEN alone is asked about its channels, the other connection
//! listens on them, and the server stops. What was notified in between is told once, in its order: on its
//! channel of marks Weir notifies both connections, which see that at the same place among all
//! notifications of the database (PostgreSQL documentation, NOTIFY). The server tells what is in front of
//! the mark, the other connection what is behind it. In the same way the client comes home before a request
//! that does more than read: what it notifies itself comes with the reply to that, and LISTEN, UNLISTEN and
//! pg_listening_channels() find its channels.
//!
//! Owns: which clients only listen, the messages of both ways, and which notifications a server tells
//! meanwhile. Must not know: the other connection, and when a client goes which way (`weir_proxy`).
//!
//! Invariants: a client's traces have LISTEN from the first message of its way home until the server has
//! confirmed UNLISTEN; a server on which one of these messages fails is given up with its client.

use crate::back::Back;
use crate::frame::body;
use crate::front::Front;
use crate::late::Late;
use crate::message::query::put_query;
use crate::queue::{Internal, Kind, Owed};
use std::sync::Arc;
use weir_session::Front as _;
use weir_session::listen::{Channels, Mark};
use weir_wire::{Boundary, Fault, FaultKind, Owner, Pin, Pins, Reader};

/// The question for its channels.
const QUESTION: &[u8] = b"SELECT pg_catalog.pg_listening_channels()";

/// The channels of a client that has no server.
#[derive(Debug)]
pub(crate) struct Away {
    channels: Channels,
    mark: Mark,
    /// The request found last waits for its server to listen.
    pub wants_home: bool,
}

/// A client goes, or comes back.
#[derive(Debug)]
pub(crate) struct HandOver {
    channels: Channels,
    mark: Mark,
    comes: bool,
    /// The mark has come.
    is_past: bool,
    /// What was notified behind it to a client that comes: others are told first.
    later: Vec<u8>,
}

/// What a server has of listening clients beyond what it has of all.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    /// Names that were asked for.
    asked: Vec<Box<[u8]>>,
    hand_over: Option<HandOver>,
    /// What the client is told when its transaction is over.
    withheld: Vec<u8>,
}

impl Front {
    /// Another connection listens for it.
    #[inline]
    pub(crate) fn is_away(&self) -> bool {
        self.rare.as_deref().is_some_and(|rare| rare.away.is_some())
    }

    /// A request was found; `reads`: that is all it does, by proof, or it does nothing a server knows of.
    #[inline]
    pub(super) fn note_home(&mut self, reads: bool) -> bool {
        let at_rest = self.late == Late::No && self.boundary == Boundary::Idle;
        let Some(away) = self.rare.as_deref_mut().and_then(|rare| rare.away.as_mut()) else { return false };
        away.wants_home = !reads || !at_rest;
        away.wants_home
    }

    pub(crate) fn wants_home(&self) -> bool {
        let away = self.rare.as_deref().and_then(|rare| rare.away.as_ref());
        away.is_some_and(|away| away.wants_home)
    }

    pub(crate) fn only_listens(&self) -> bool {
        self.traces.pins() == Pins::from(Pin::Listen)
            && !self.traces.is_lasting()
            && self.outstanding == 0
            && self.boundary == Boundary::Idle
            && self.late == Late::No
            && !self.is_at_home
            && !self.is_part_open()
            && !self.is_told_the_end()
    }
}

impl Back {
    pub(crate) fn ask_channels(&mut self, front: &mut Front, owner: Owner, out: &mut Vec<u8>) -> bool {
        // Texts of notifications are told in the encoding of a session.
        let in_utf8 = self.reported.get("client_encoding") == Some(b"UTF8");
        let at_rest = self.queue.is_empty()
            && self.boundary == Boundary::Idle
            && !(self.spoiled || self.skipping || self.needs_sync || self.copy_in || self.doubtful)
            && self.held.is_none()
            && self.outgoing == 0
            && self.incoming == 0;
        let only = front.only_listens() && self.traces.pins() == Pins::from(Pin::Listen);
        if !(in_utf8 && at_rest && only) || self.own.is_some() || self.questions.is_some() {
            return false;
        }
        self.listening = Some(Box::default());
        self.begin_hand_over(front, owner);
        self.ask(Internal::Channels, QUESTION, out);
        true
    }

    /// A row of the answer: the body of a DataRow of one column.
    pub(crate) fn channel_row(&mut self, row: &[u8]) {
        if let Some(listening) = self.listening.as_deref_mut() {
            let name = crate::follow::read_values(row).ok().and_then(|values| values.into_iter().next());
            listening.asked.extend(name.flatten());
        }
    }

    pub(crate) fn take_channels(&mut self) -> Option<Channels> {
        let asked = std::mem::take(&mut self.listening.as_deref_mut()?.asked);
        self.listening = None;
        (!asked.is_empty()).then(|| asked.into())
    }

    pub(crate) fn part(
        &mut self,
        front: &mut Front,
        owner: Owner,
        channels: Channels,
        mark: Mark,
        out: &mut Vec<u8>,
    ) {
        self.begin_hand_over(front, owner);
        self.ask(Internal::HandOver, &listen(&[mark.channel.as_bytes()]), out);
        self.ask(Internal::HandOver, notify(&mark, &mark.parting()).as_bytes(), out);
        self.ask(Internal::Parted, b"UNLISTEN *", out);
        let hand_over = HandOver { channels, mark, comes: false, is_past: false, later: Vec::new() };
        self.listening.get_or_insert_default().hand_over = Some(hand_over);
    }

    pub(crate) fn come_home(&mut self, front: &mut Front, owner: Owner, out: &mut Vec<u8>) {
        let Some(away) = front.rare.as_deref_mut().and_then(|rare| rare.away.take()) else { return };
        let Away { channels, mark, .. } = away;
        front.traces.pin(Pin::Listen);
        self.traces.pin(Pin::Listen);
        self.begin_hand_over(front, owner);
        // Names are read in the client's encoding, and nobody else's time limit is to hold for them.
        if !self.is_settled_home(front) && !Arc::ptr_eq(&self.applied, &front.settings) {
            let mut bytes = Vec::new();
            self.bring_settings(front, &mut bytes);
            self.write(&bytes, out);
        }
        let mut names: Vec<&[u8]> = channels.iter().map(|name| &**name).collect();
        names.push(mark.channel.as_bytes());
        self.ask(Internal::HandOver, &listen(&names), out);
        self.ask(Internal::HandOver, notify(&mark, &mark.coming_home()).as_bytes(), out);
        self.ask(Internal::AtHome, format!("UNLISTEN \"{}\"", mark.channel).as_bytes(), out);
        let hand_over = HandOver { channels, mark, comes: true, is_past: false, later: Vec::new() };
        self.listening.get_or_insert_default().hand_over = Some(hand_over);
    }

    fn begin_hand_over(&mut self, front: &mut Front, owner: Owner) {
        front.owner = owner;
        front.outstanding = front.outstanding.saturating_add(1);
        self.queue.push_entry(owner, Kind::Internal, false);
        if let Some(tail) = self.queue.tail_mut() {
            tail.ended = true;
        }
    }

    fn ask(&mut self, what: Internal, text: &[u8], out: &mut Vec<u8>) {
        let mut bytes = Vec::new();
        put_query(&mut bytes, text);
        self.queue.push(Owed::Internal(what));
        self.unnamed = None;
        self.write(&bytes, out);
    }

    /// The last answer of a hand-over.
    ///
    /// # Errors
    /// The mark has not come: nobody knows what the client was told.
    pub(crate) fn handed_over(&mut self, front: Option<&mut Front>) -> Result<(), Fault> {
        let Some(hand_over) = self.listening.as_deref_mut().and_then(|it| it.hand_over.as_ref()) else {
            // Its client has gone.
            return Ok(());
        };
        if !hand_over.is_past {
            return Err(lost());
        }
        let Some(front) = front.filter(|_| !hand_over.comes) else { return Ok(()) };
        front.traces.unpin(Pin::Listen);
        self.traces.unpin(Pin::Listen);
        let hand_over = self.listening.take().and_then(|listening| listening.hand_over);
        front.rare.get_or_insert_default().away =
            hand_over.map(|HandOver { channels, mark, .. }| Away { channels, mark, wants_home: false });
        Ok(())
    }

    pub(crate) fn is_home(&mut self, front: &Front, mut before: Vec<u8>, out: &mut Vec<u8>) {
        let hand_over = self.listening.take().and_then(|listening| listening.hand_over);
        before.extend(hand_over.map(|hand_over| hand_over.later).unwrap_or_default());
        if front.late == Late::No {
            out.extend(before);
        } else if !before.is_empty() {
            self.listening = Some(Box::new(Listening { withheld: before, ..Listening::default() }));
        }
    }

    /// A notification for the client that has this server: whether it is told now.
    pub(super) fn hands_over(&mut self, message: &[u8], to_client: &mut Vec<u8>) -> bool {
        let Some(listening) = self.listening.as_deref_mut() else { return true };
        to_client.append(&mut listening.withheld);
        let Some(hand_over) = &mut listening.hand_over else { return true };
        if let Some((channel, text)) = read(message)
            && channel == hand_over.mark.channel.as_bytes()
        {
            let mark = &hand_over.mark;
            let expected = if hand_over.comes { mark.coming_home() } else { mark.parting() };
            hand_over.is_past |= text == expected.as_bytes();
            return false;
        }
        if hand_over.comes && hand_over.is_past {
            hand_over.later.extend_from_slice(message);
        }
        !hand_over.comes && !hand_over.is_past
    }

    /// A transaction is over: its client is told what came meanwhile.
    pub(super) fn tell_withheld(&mut self, to_client: &mut Vec<u8>) {
        if let Some(listening) = self.listening.as_deref_mut() {
            to_client.append(&mut listening.withheld);
        }
    }
}

/// Why a client ends whose channels went astray.
pub(crate) fn lost() -> Fault {
    Fault::new(FaultKind::ServerLost, "the channels of a client that listens could not be handed over")
}

/// Listens on all of these, or on none.
fn listen(names: &[&[u8]]) -> Vec<u8> {
    let mut text = Vec::new();
    for name in names {
        text.extend_from_slice(b"LISTEN ");
        put_name(&mut text, name);
        text.push(b';');
    }
    text
}

/// Appends the name of a channel as it stands in a text.
pub fn put_name(text: &mut Vec<u8>, name: &[u8]) {
    text.push(b'"');
    for &byte in name {
        text.extend(std::iter::repeat_n(byte, 1 + usize::from(byte == b'"')));
    }
    text.push(b'"');
}

fn notify(mark: &Mark, text: &str) -> String {
    format!("NOTIFY \"{}\", '{text}'", mark.channel)
}

/// Channel and text of a NotificationResponse (section 55.7).
pub fn read(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(body(message));
    reader.u32_be().ok()?;
    let channel = reader.cstr().ok()?;
    Some((channel, reader.cstr().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_channels_are_quoted() {
        assert_eq!(listen(&[b"a", b"B\"c"]), b"LISTEN \"a\";LISTEN \"B\"\"c\";");
    }
}
