//! Turns a server's bytes into what its clients get: each message is matched with what is owed next.
//!
//! Messages that are only forwarded are counted by their headers and never read; a run of them is one
//! [`Step::Forward`]. A message that changes state (errors, parameters, ReadyForQuery) is handled only when
//! it is complete.
//!
//! Invariants: a reply that does not match what is owed closes the server; only the head's owner gets bytes,
//! or the holder of the lease when nothing is queued; every request produces one ReadyForQuery.

use crate::back::Back;
use crate::frame::{Header, ServerTag, body, put, server_header};
use crate::front::Front;
use crate::message::query::{SYNC, put_copy_fail};
use crate::message::reply::CLOSE_COMPLETE;
use crate::prepared::Shape;
use crate::queue::{Owed, Undo};
use crate::reset::put_bind_nobody;
use std::sync::Arc;
use weir_wire::limits::SERVER_GATHER_BYTES;
use weir_wire::{Boundary, Fault, FaultKind, INTERNAL, Step, name_of};

/// Where the bytes of a message go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// To the owner, unchanged.
    Forward,
    /// Nowhere.
    Hide,
}

fn protocol(detail: String) -> Fault {
    Fault::new(FaultKind::ServerProtocol, detail)
}

impl Back {
    /// Looks at the start of the server's bytes. `front` is the head's owner or, when nothing is queued, the
    /// client that holds the lease; `None` when that client has gone. Called again with the rest, also with
    /// an empty rest, until it returns `Incomplete`.
    ///
    /// # Errors
    /// The bytes are not the protocol, or do not fit what is owed: the server must be closed.
    pub(crate) fn handle_reply(
        &mut self,
        front: Option<&mut Front>,
        input: &[u8],
        to_client: &mut Vec<u8>,
        to_server: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        let step = self.next_step(front, input, to_client, to_server);
        while self.released > 0 {
            self.released -= 1;
            self.release(to_server);
        }
        step
    }

    fn next_step(
        &mut self,
        mut front: Option<&mut Front>,
        input: &[u8],
        to_client: &mut Vec<u8>,
        to_server: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        if self.incoming > 0 {
            // Its reader may have gone while it was on its way.
            self.incoming_hidden |= front.is_none();
            return Ok(self.continue_message(input));
        }
        let mut run = 0;
        let mut run_way = Way::Forward;
        loop {
            if self.is_unsettled() {
                if run > 0 {
                    break;
                }
                if let Some(step) = self.settle(front.as_deref_mut(), to_client) {
                    return Ok(step);
                }
            }
            let rest = input.get(run..).unwrap_or_default();
            let Some(header) = server_header(rest)? else { break };
            if header.tag == ServerTag::DataRow
                && let Some(what) = self.hidden_row()
            {
                if run > 0 {
                    break;
                }
                if header.total <= SERVER_GATHER_BYTES {
                    let Some(row) = rest.get(..header.total) else { break };
                    self.take_hidden_row(what, body(row));
                    return Ok(Step::Consumed(header.total));
                }
                self.hidden_row_too_long(what);
            }
            if self.is_awaited(header, rest)? {
                break;
            }
            let mut way = self.way(front.is_some());
            if header.tag == ServerTag::NotificationResponse && self.head_listens(front.is_some()) {
                // It is its client's also beside a question of Weir's.
                way = Way::Forward;
            }
            if run > 0 && (way != run_way || stands_alone(header.tag)) {
                break;
            }
            let message = rest.get(..header.total).unwrap_or(rest);
            if header.tag == ServerTag::NotificationResponse {
                let front = front.filter(|_| way == Way::Forward);
                return Ok(self.notified(front.as_deref(), message, to_client));
            }
            if stands_alone(header.tag) {
                return self.alone(front, header, message, to_client);
            }
            if header.tag == ServerTag::NoticeResponse && message.len() == header.total && way == Way::Forward
            {
                let mut fresh = Vec::new();
                if self.notice_with_names(front.as_deref(), message, &mut fresh) {
                    if run > 0 {
                        break;
                    }
                    to_client.extend_from_slice(&fresh);
                    return Ok(Step::Consumed(header.total));
                }
            }
            run_way = self.pass(front.as_deref_mut(), header, message, way, to_server, to_client)?;
            run += message.len();
            if message.len() < header.total {
                self.incoming = header.total - message.len();
                self.incoming_hidden = run_way == Way::Hide;
                break;
            }
        }
        Ok(match (run, run_way) {
            (0, _) => Step::Incomplete,
            (run, Way::Forward) => Step::Forward(run),
            (run, Way::Hide) => Step::Consumed(run),
        })
    }

    /// The message must be there whole before anything of it is dealt with, and is not yet.
    #[inline]
    fn is_awaited(&self, header: Header<ServerTag>, rest: &[u8]) -> Result<bool, Fault> {
        let says_shape = is_shape(header.tag) && matches!(self.queue.next(), Some(Owed::Shape { .. }));
        if !says_shape && !is_gathered(header.tag) {
            return Ok(false);
        }
        if header.total <= SERVER_GATHER_BYTES {
            return Ok(rest.len() < header.total);
        }
        if header.tag == ServerTag::NoticeResponse {
            return Ok(false);
        }
        Err(Fault::new(FaultKind::ServerTooLarge, name_of(&header.tag)))
    }

    fn continue_message(&mut self, input: &[u8]) -> Step {
        let len = input.len().min(self.incoming);
        if len == 0 {
            return Step::Incomplete;
        }
        self.incoming -= len;
        if self.incoming_hidden { Step::Consumed(len) } else { Step::Forward(len) }
    }

    /// Something can be done before the next byte of the server.
    #[inline]
    fn is_unsettled(&self) -> bool {
        match self.queue.head() {
            None => false,
            Some(entry) if entry.items == 0 => entry.ended,
            Some(_) => self.skipping || self.queue.next().is_some_and(Owed::is_synthetic),
        }
    }

    /// Answers what Weir owes itself, drops what the server skips, and ends the head when it is done.
    fn settle(&mut self, mut front: Option<&mut Front>, to_client: &mut Vec<u8>) -> Option<Step> {
        if self.skipping {
            self.skip(front.as_deref_mut());
        }
        while self.queue.next().is_some_and(Owed::is_synthetic) {
            let visible = self.way(front.is_some()) == Way::Forward;
            match self.queue.pop() {
                Some(Owed::KnownClose { .. }) if visible => to_client.extend_from_slice(CLOSE_COMPLETE),
                Some(Owed::KnownShape { statement }) if visible => {
                    let types = statement.shape().map_or(&[0, 0][..], Shape::types);
                    put(to_client, b't', |out| out.extend_from_slice(types));
                    put(to_client, b'n', |_| {});
                }
                _ => {}
            }
        }
        let entry = self.queue.head()?;
        if entry.items > 0 || !entry.ended {
            return None;
        }
        let entry = self.queue.pop_entry()?;
        if !entry.ready {
            // Its Sync is still to come (an error behind which a simple Query was skipped, a COPY of the
            // extended protocol): the server is not idle, whatever it said last.
            self.needs_sync = true;
            self.boundary = if self.skipping { Boundary::Failed } else { Boundary::InTransaction };
        }
        let owner = entry.owner;
        if !entry.ready {
            // What it did counts with that Sync.
            match self.queue.head_mut() {
                Some(next) => next.take_on(entry),
                None => self.unended = Some(Box::new(entry)),
            }
        } else if self.boundary == Boundary::Idle
            && let Some(next) = self.queue.head_mut()
        {
            // Sent before this was known, behind another request or a question of Weir's.
            next.from_idle = true;
        }
        if let Some(front) = front {
            front.answered(1);
            front.boundary = self.boundary;
        }
        Some(Step::Done { owner, boundary: self.boundary })
    }

    /// The server discards everything up to the head's Sync: so does what is owed, and what it would have
    /// changed is undone, last first.
    fn skip(&mut self, mut front: Option<&mut Front>) {
        let mut skipped = Vec::new();
        while let Some(owed) = self.queue.next() {
            if matches!(owed, Owed::Sync | Owed::HiddenSync) {
                self.skipping = false;
                break;
            }
            skipped.extend(self.queue.pop());
        }
        for owed in skipped.into_iter().rev() {
            self.released += usize::from(matches!(owed, Owed::Shape { stops: true, .. }));
            if matches!(owed, Owed::Parse { statement: None, .. }) && !owed.names_anew() {
                self.unnamed = None;
            }
            if matches!(owed, Owed::Parse { statement: None, hidden: true, .. })
                && let Some(own) = self.own_names.as_deref_mut()
            {
                own.missed = true;
            }
            self.doubt_reading(&owed);
            owed.undo(false, front.as_deref_mut(), &mut self.prepared);
        }
    }

    /// The server will not say how a statement was read: nobody may read it again, so its client stays.
    fn doubt_reading(&mut self, owed: &Owed) {
        if let Owed::Aside { reading: Some(statement), .. } = owed
            && statement.is_of_unknown_reading()
            && let Some(entry) = self.queue.head_mut()
        {
            entry.raw = true;
        }
    }

    /// Where the next message of the head goes.
    #[inline]
    fn way(&self, has_front: bool) -> Way {
        let Some(entry) = self.queue.head() else {
            return if has_front { Way::Forward } else { Way::Hide };
        };
        if !has_front || entry.owner == INTERNAL {
            return Way::Hide;
        }
        match self.queue.next() {
            Some(
                Owed::Settings { .. }
                | Owed::Internal(_)
                | Owed::HiddenClose { .. }
                | Owed::HiddenSync
                | Owed::Aside { .. }
                | Owed::Begin { .. }
                | Owed::Shape { visible: false, .. }
                | Owed::Doomed(_)
                | Owed::Parse { hidden: true, .. },
            ) => Way::Hide,
            Some(
                Owed::Query { .. }
                | Owed::FunctionCall { .. }
                | Owed::Parse { hidden: false, .. }
                | Owed::Shape { visible: true, .. }
                | Owed::Bind { .. }
                | Owed::Describe { .. }
                | Owed::Execute { .. }
                | Owed::Close { .. }
                | Owed::KnownClose { .. }
                | Owed::KnownShape { .. }
                | Owed::Sync
                | Owed::CopyEnd,
            )
            | None => Way::Forward,
        }
    }

    /// What comes next is passed on to the head's owner.
    pub(crate) fn answers_head(&self) -> bool {
        let is_clients = self.queue.head().is_some_and(|entry| entry.kind == crate::queue::Kind::Client);
        is_clients && self.way(true) == Way::Forward && (self.incoming == 0 || !self.incoming_hidden)
    }

    /// What is notified now is for the head's owner.
    fn head_listens(&self, has_front: bool) -> bool {
        has_front && self.queue.head().is_some_and(|entry| entry.owner != INTERNAL)
    }

    /// A message that passes as it is. Changes what is owed; returns where it goes.
    fn pass(
        &mut self,
        front: Option<&mut Front>,
        header: Header<ServerTag>,
        message: &[u8],
        way: Way,
        to_server: &mut Vec<u8>,
        to_client: &mut Vec<u8>,
    ) -> Result<Way, Fault> {
        use ServerTag as T;
        let tag = header.tag;
        if tag == T::NoticeResponse {
            // Whoever prepares the same is to be told, too.
            if let Some(head) = self.queue.head_mut() {
                head.only_prepares = false;
            }
            return Ok(way);
        }
        if tag == T::CommandComplete && way == Way::Forward {
            self.tally.rows += rows_of(body(message));
        }
        let Some(owed) = self.queue.next_mut() else {
            return Err(protocol(format!("{} although nothing is owed", name_of(&tag))));
        };
        match (owed, tag) {
            (_, T::ReadyForQuery) => return self.ready(front, message, way, to_server, to_client),
            (
                Owed::Settings { .. } | Owed::Internal(_),
                T::RowDescription | T::DataRow | T::CommandComplete | T::EmptyQueryResponse,
            )
            | (
                Owed::Query { .. },
                T::RowDescription | T::DataRow | T::CopyOutResponse | T::CopyData | T::CopyDone,
            )
            | (Owed::Execute { .. }, T::DataRow | T::CopyOutResponse | T::CopyData | T::CopyDone)
            | (Owed::FunctionCall { .. }, T::FunctionCallResponse) => {}
            (Owed::Query { .. }, T::CommandComplete | T::EmptyQueryResponse) => {
                if let Some(entry) = self.queue.head_mut() {
                    entry.completed = true;
                }
                self.end_copy(front);
            }
            (Owed::Query { .. } | Owed::Execute { .. }, T::CopyInResponse) => {
                self.begin_copy(front, to_server)
            }
            (Owed::Parse { .. }, T::ParseComplete) => self.parse_complete(front),
            (Owed::Close { .. }, T::CloseComplete) => {
                if let Some(Owed::Close { undo }) = self.queue.pop() {
                    unnamed_is_answered(undo, front);
                }
            }
            (Owed::HiddenClose { .. }, T::CloseComplete) => {
                self.queue.pop();
            }
            (
                Owed::Aside { left, .. },
                T::ParseComplete | T::BindComplete | T::DataRow | T::CommandComplete | T::CloseComplete,
            ) => {
                *left = left.saturating_sub(1);
                if *left == 0 {
                    self.queue.pop();
                }
            }
            (Owed::Begin { left, fails }, T::ParseComplete | T::BindComplete | T::CommandComplete)
                if *left > 0 =>
            {
                *left -= 1;
                if *left == 0 && !*fails {
                    self.queue.pop();
                }
            }
            (Owed::Shape { types, .. }, T::ParameterDescription) => *types = Some(body(message).into()),
            (Owed::Shape { .. }, T::RowDescription | T::NoData) => {
                let columns = (tag == T::RowDescription).then(|| body(message));
                self.shape_complete(columns, to_server);
            }
            (Owed::Bind { .. }, T::BindComplete) => {
                if let Some(Owed::Bind { leaves: Some(leaves), .. }) = self.queue.pop()
                    && let Some(entry) = self.queue.head_mut()
                {
                    entry.succeeded.push(leaves);
                }
            }
            (Owed::Describe { of_statement: false, .. }, T::RowDescription | T::NoData) => {
                self.queue.pop();
            }
            (Owed::Describe { of_statement, .. }, T::ParameterDescription) if *of_statement => {
                *of_statement = false;
            }
            (Owed::Execute { .. }, T::CommandComplete | T::EmptyQueryResponse | T::PortalSuspended) => {
                self.execute_complete(front);
            }
            (owed, _) => return Err(protocol(format!("{} where {} is owed", name_of(&tag), name_of(owed)))),
        }
        Ok(way)
    }

    fn parse_complete(&mut self, front: Option<&mut Front>) {
        match self.queue.pop() {
            Some(Owed::Parse { statement: Some((statement, number)), hidden, .. }) => {
                self.prepared.confirm(&statement.key(), number);
                if !hidden {
                    statement.answered();
                }
                let alone = self.queue.head().is_some_and(|entry| entry.only_prepares && !entry.controls);
                if alone && self.boundary == Boundary::Idle && self.traces.pins().is_empty() {
                    self.prepared.known.insert(&statement.key(), statement.state());
                }
            }
            Some(Owed::Parse { statement: None, undo, .. }) => {
                unnamed_is_answered(undo, front);
                // An older answer is never taken for a newer statement: the entry says which one is meant.
                let number = self.queue.head().map_or(0, |entry| entry.number);
                if let Some(unnamed) = &mut self.unnamed
                    && unnamed.entry == number
                {
                    unnamed.confirmed = true;
                }
            }
            _ => {}
        }
    }

    /// What the server makes of a statement has come, whole.
    fn shape_complete(&mut self, columns: Option<&[u8]>, to_server: &mut Vec<u8>) {
        let Some(Owed::Shape { statement, number, stops, types, .. }) = self.queue.pop() else { return };
        let shape = Shape::of(&types.unwrap_or_default(), columns);
        let as_told = self.prepared.described(&statement, number, shape);
        self.released += usize::from(stops);
        if as_told && let Some(own) = self.own_names.as_deref_mut() {
            own.proven(&statement);
        }
        if stops && !as_told {
            // It is asked again before its next use.
            self.unnamed.take_if(|unnamed| Arc::ptr_eq(&unnamed.statement, &statement));
            // An error takes the place of what the client asks for: the server skips it as it would have.
            put_bind_nobody(to_server);
            self.queue.push_next(Owed::Doomed(None));
        }
    }

    fn execute_complete(&mut self, mut front: Option<&mut Front>) {
        if let Some(Owed::Execute { effects: Some(effects), .. }) = self.queue.pop()
            && let Some(entry) = self.queue.head_mut()
        {
            if let Some(front) = front.as_deref_mut() {
                front.note_named(&effects);
            }
            entry.succeeded.push(effects);
        }
        self.end_copy(front);
    }

    fn begin_copy(&mut self, front: Option<&mut Front>, to_server: &mut Vec<u8>) {
        let extended = matches!(self.queue.next(), Some(Owed::Execute { .. }));
        let owned = self.queue.head().is_some_and(|entry| entry.owner != INTERNAL);
        let is_sent = self.queue.begin_copy();
        self.swallowed = extended && !self.queue.has_sync();
        if is_sent {
            match front.filter(|_| owned) {
                Some(front) => front.copy_has_begun(),
                None => self.end_swallowed(to_server),
            }
            return;
        }
        if let Some(front) = front.filter(|_| owned) {
            self.copy_in = true;
            front.copy_in = true;
            return;
        }
        // Nobody is there to send the data. The Sync that was sent behind has been read as data.
        put_copy_fail(to_server, "the client went away");
        self.swallowed = false;
        if extended {
            to_server.extend_from_slice(SYNC);
            self.queue.push(Owed::HiddenSync);
        }
    }

    fn end_copy(&mut self, front: Option<&mut Front>) {
        self.copy_in = false;
        if let Some(front) = front {
            front.copy_in = false;
        }
    }
}

/// The unnamed statement was replaced or closed, as was asked for.
fn unnamed_is_answered(undo: Option<Box<Undo>>, front: Option<&mut Front>) {
    if let (Some(Undo::Replaced(now)), Some(front)) = (undo.map(|undo| *undo), front) {
        if let Some(statement) = &now {
            statement.answered();
        }
        front.prepared_mut().answered = now;
    }
}

/// A message that must be there whole before anything of it is dealt with; a notice only if it is short.
#[inline]
fn is_gathered(tag: ServerTag) -> bool {
    matches!(tag, ServerTag::ReadyForQuery | ServerTag::NoticeResponse) || stands_alone(tag)
}

/// A message that may say what a statement is like.
#[inline]
fn is_shape(tag: ServerTag) -> bool {
    matches!(tag, ServerTag::ParameterDescription | ServerTag::RowDescription | ServerTag::NoData)
}

/// A message that may be rewritten, and so is dealt with by itself.
#[inline]
fn stands_alone(tag: ServerTag) -> bool {
    matches!(tag, ServerTag::ErrorResponse | ServerTag::ParameterStatus | ServerTag::NotificationResponse)
}

mod alone;
mod ready;
mod row;
/// The rows in a command's tag, its last word (section 54.7, CommandComplete): `SELECT 5`, `INSERT 0 5`.
fn rows_of(tag: &[u8]) -> u64 {
    let tag = tag.strip_suffix(b"\0").unwrap_or(tag);
    let digits = tag.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    let number = tag.get(tag.len() - digits..).unwrap_or_default();
    number.iter().fold(0, |sum: u64, digit| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0')))
}
