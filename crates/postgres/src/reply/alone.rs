//! Messages that are handled singly: ErrorResponse, ParameterStatus and NotificationResponse, and a
//! NoticeResponse that names a statement. They are read
//! when complete, may change Weir's state, and may be rewritten.
//!
//! Invariant: no name that Weir made up reaches a client.

use super::{Way, protocol};
use crate::back::Back;
use crate::error::{field, fields, put_as_fatal, put_plan_must_not_change};
use crate::frame::{Header, ServerTag, body, put, put_cstr};
use crate::front::Front;
use crate::listen::lost;
use crate::message::reply::read_parameter;
use crate::prepared::{NAME_BYTES, is_server_name};
use crate::queue::{Internal, Kind, Owed, Undo};
use crate::session_state::{Settings, after_report, follows};
use std::sync::Arc;
use weir_session::Front as _;
use weir_wire::{ErrorCode, Fault, FaultKind, INTERNAL, Pin, Step};

impl Back {
    /// An ErrorResponse or a ParameterStatus, whole.
    pub(super) fn alone(
        &mut self,
        mut front: Option<&mut Front>,
        header: Header<ServerTag>,
        message: &[u8],
        to_client: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        if header.tag == ServerTag::ErrorResponse {
            if self.request_is_behind_settings() {
                // These settings were good here before, so the request is on its way behind them: it runs,
                // and under others. Whoever is told that it did not run might repeat it.
                return Err(Fault::new(FaultKind::ServerLost, "settings refused in front of a request"));
            }
            if matches!(
                self.queue.next(),
                Some(Owed::Internal(Internal::HandOver | Internal::Parted | Internal::AtHome))
            ) {
                return Err(lost());
            }
            if self.refuses_to_begin() {
                // Nothing behind it runs.
                return Err(Fault::new(FaultKind::ServerLost, "a transaction was refused that had begun"));
            }
            return Ok(self.error(front, message, to_client));
        }
        let (name, value) =
            read_parameter(body(message)).map_err(|_| protocol("malformed ParameterStatus".to_owned()))?;
        if !self.reported.set(name, value) {
            return Err(Fault::new(FaultKind::ServerTooLarge, format!("parameter {name}")));
        }
        let way = self.way(front.is_some());
        // It goes back further, to what its client began with, and the client is told at the end.
        let may_go_back = self.own.is_none()
            && front.as_deref().is_some_and(|front| front.startup.get(name).is_some())
            && self.base.get(name) == Some(value);
        let among_others = may_go_back && way == Way::Forward && self.queue.head_puts_back(name);
        let goes_back = among_others || may_go_back && self.queue.head_resets(name);
        if let Some(front) = front.as_deref_mut().filter(|_| among_others) {
            front.go_back(name);
        }
        let brings = match self.queue.next() {
            Some(Owed::Settings { brings, .. }) => Some(brings),
            _ => None,
        };
        if self.queue.is_empty() {
            // The server's own configuration has changed.
            if self.applied.get(name).is_none() {
                self.base.set(name, value);
            }
        } else if let Some(brings) = brings {
            // The server's own value, where this very query has gone back to it: of requests behind it others
            // are applied by now.
            if brings.get(name).is_none() && (follows(name) || !brings.is_somebody()) {
                self.base.set(name, value);
            }
        } else if follows(name) {
            if self.may_have_set || self.queue.head_may_set(name) {
                self.follow(front.as_deref_mut().filter(|_| way == Way::Forward && !goes_back), name, value);
            } else if self.applied.get(name).is_none() {
                // A server notices a reload of its configuration with its next request, whatever that is.
                self.base.set(name, value);
            }
        }
        match front {
            Some(front) if way == Way::Forward && !goes_back => {
                front.observe(name, value);
                Ok(Step::Forward(header.total))
            }
            _ => Ok(Step::Consumed(header.total)),
        }
    }

    /// A setting changed while a request ran: it is in force here, and moves with the client.
    pub(super) fn follow(&mut self, front: Option<&mut Front>, name: &str, value: &[u8]) {
        let nothing = Settings::default();
        let applied = after_report(&self.applied, &nothing, &self.base, name, value);
        let Some(front) = front else {
            match applied {
                Ok(applied) => self.applied = applied,
                Err(_) => self.spoiled = true,
            }
            return;
        };
        let same = Arc::ptr_eq(&self.applied, &front.settings);
        match (applied, after_report(&front.settings, &front.startup, &self.base, name, value)) {
            (Ok(applied), Ok(settings)) => {
                front.settings = settings;
                self.applied = if same { Arc::clone(&front.settings) } else { applied };
            }
            _ => {
                front.traces.pin(Pin::Setting);
                self.traces.pin(Pin::Setting);
            }
        }
    }

    /// NotificationResponse: programs tell their own notifications from those of others by the number that
    /// they were told at their login. It is for nobody without `front`.
    pub(super) fn notified(
        &mut self,
        front: Option<&Front>,
        message: &[u8],
        to_client: &mut Vec<u8>,
    ) -> Step {
        let Some(front) = front else { return Step::Consumed(message.len()) };
        if !self.hands_over(message, to_client) {
            return Step::Consumed(message.len());
        }
        let (own, number) = (self.server_pid().to_be_bytes(), front.id().to_be_bytes());
        if body(message).get(..own.len()) != Some(&own[..]) {
            return Step::Forward(message.len());
        }
        put(to_client, b'A', |out| {
            out.extend_from_slice(&number);
            out.extend_from_slice(body(message).get(own.len()..).unwrap_or_default());
        });
        Step::Consumed(message.len())
    }

    /// ErrorResponse: it goes to the client at once, and in the extended protocol the server now discards
    /// everything up to the Sync.
    pub(super) fn error(
        &mut self,
        mut front: Option<&mut Front>,
        message: &[u8],
        to_client: &mut Vec<u8>,
    ) -> Step {
        let body = body(message);
        let fatal = matches!(field(body, b'V').or_else(|| field(body, b'S')), Some(b"FATAL" | b"PANIC"));
        self.spoiled |= fatal;
        self.learn_from(body);
        let way = self.way(front.is_some());
        let reads = matches!(self.queue.next(), Some(Owed::Query { .. } | Owed::Parse { hidden: false, .. }));
        let Some(entry) = self.queue.head_mut() else {
            if let Some(front) = front {
                front.told_fatal |= fatal;
            }
            return if way == Way::Forward {
                Step::Forward(message.len())
            } else {
                Step::Consumed(message.len())
            };
        };
        entry.failed = true;
        entry.misread = reads && is_of_reading(body);
        if entry.asks_elsewhere
            && field(body, b'C') == Some(b"55000")
            && let Some(front) = front.as_deref_mut()
        {
            front.knowledge.note_sequences_asked();
            front.rare.get_or_insert_default().asks_later = true;
        }
        let kind = entry.kind;
        let visible = entry.owner != INTERNAL && front.is_some();
        let mut taken_name = None;
        let doomed = match self.queue.next_mut() {
            Some(Owed::Doomed(told)) => Some(told.take()),
            Some(Owed::Query { undo: Some(undo), .. }) if let Undo::Refused(why) = **undo => {
                Some(Some(why.told()))
            }
            // Weir had brought it in front of this request, and knows why it is not there.
            Some(Owed::Shape { statement, .. }) if field(body, b'C') == Some(b"26000") => {
                self.own_names.as_deref().and_then(|own| own.why_lost(statement)).map(|why| Some(why.into()))
            }
            // So it is where SQL executes it.
            Some(Owed::Query { .. }) => {
                self.refused_stand_in.take().filter(|_| field(body, b'C') == Some(b"26000")).map(Some)
            }
            _ => None,
        };
        let quiet = matches!(
            self.queue.next(),
            Some(
                Owed::Parse { quiet: true, .. }
                    | Owed::HiddenSync
                    | Owed::Internal(Internal::Quiet | Internal::Values | Internal::Channels)
                    | Owed::Begin { .. }
            )
        );
        if let Some(Owed::Parse { statement: None, hidden: true, quiet: true, .. }) = self.queue.next()
            && is_refusal(body)
        {
            self.refused_stand_in = Some(body.into());
        }
        if visible && !quiet {
            self.tally.error = field(body, b'C').and_then(ErrorCode::of_sqlstate);
        }
        let aside = matches!(self.queue.next(), Some(Owed::Aside { .. }));
        match self.queue.next() {
            Some(
                Owed::Parse { .. }
                | Owed::Shape { .. }
                | Owed::Doomed(_)
                | Owed::Bind { .. }
                | Owed::Describe { .. }
                | Owed::Execute { .. }
                | Owed::Close { .. }
                | Owed::KnownClose { .. }
                | Owed::KnownShape { .. }
                | Owed::HiddenClose { .. }
                | Owed::Aside { .. }
                | Owed::Begin { .. }
                | Owed::CopyEnd,
            ) => {
                taken_name = self.fail_extended(front.as_deref_mut(), body);
            }
            // Who may not read the catalogue can do everything else.
            Some(Owed::Internal(Internal::Catalogue)) => self.catalogue_refused(body),
            Some(Owed::Internal(Internal::Facts)) => {}
            Some(Owed::Internal(Internal::Rollback | Internal::Reset)) => self.spoiled = true,
            Some(
                Owed::Settings { .. }
                | Owed::Internal(
                    Internal::Quiet
                    | Internal::Values
                    | Internal::Channels
                    | Internal::HandOver
                    | Internal::Parted
                    | Internal::AtHome,
                )
                | Owed::Query { .. }
                | Owed::FunctionCall { .. }
                | Owed::Sync
                | Owed::HiddenSync,
            ) => {}
            // Behind the last message of a part that is not ended.
            None => self.skipping = true,
        }
        self.end_copy(front.as_deref_mut());
        // The text behind it is refused with the same words.
        let repeated =
            aside && is_of_failed_transaction(body) && matches!(self.queue.next(), Some(Owed::HiddenSync));
        if quiet || repeated {
            if let Some(entry) = self.queue.head_mut() {
                entry.failed = false;
            }
            return Step::Consumed(message.len());
        }
        match front {
            Some(front) if visible => {
                front.told_fatal |= fatal;
                if kind == Kind::Welcome {
                    front.welcome_refused = true;
                    // That was the last word, whatever becomes of the server now.
                    front.told_fatal = true;
                    put_as_fatal(to_client, body);
                    return Step::Consumed(message.len());
                }
                if let Some(told) = doomed {
                    match told {
                        Some(told) => put(to_client, b'E', |out| out.extend_from_slice(&told)),
                        None => put_plan_must_not_change(to_client),
                    }
                    return Step::Consumed(message.len());
                }
                if way == Way::Forward && !contains_server_name(body) {
                    return Step::Forward(message.len());
                }
                self.put_with_client_names(to_client, b'E', body, taken_name.as_deref(), front);
                Step::Consumed(message.len())
            }
            _ => Step::Consumed(message.len()),
        }
    }

    /// A message of the extended protocol failed: the server skips to the Sync, and what the message and
    /// those behind it would have changed is undone. Returns the client's name in it, if that was refused as
    /// taken.
    fn fail_extended(&mut self, mut front: Option<&mut Front>, body: &[u8]) -> Option<Box<[u8]>> {
        let owed = self.queue.pop()?;
        self.skipping = true;
        // What was held until it is answered goes on its way, to be skipped as well.
        self.released += usize::from(matches!(owed, Owed::Shape { stops: true, .. }));
        // At once, and what came last first: the error may speak of a name that a skipped Close has taken
        // away.
        self.skip(front.as_deref_mut());
        let mut taken_name = front.as_deref().and_then(|front| self.name_for_client(&owed, body, front));
        if let Owed::Execute { effects: Some(effects), .. } | Owed::Bind { leaves: Some(effects), .. } = &owed
            && let Some(entry) = self.queue.head_mut()
        {
            if let Some(front) = front.as_deref_mut() {
                front.note_named(effects);
            }
            entry.succeeded.extend(effects.of_failure());
        }
        if let Owed::Parse { undo: Some(undo), .. } = &owed
            && let Undo::Brought(id) = **undo
            && let Some(own) = self.own_names.as_deref_mut()
        {
            own.lost(id, Some(body).filter(|body| is_refusal(body)));
            own.missed |= is_of_failed_transaction(body);
        }
        if let Owed::Parse { taken, statement, hidden, .. } = &owed {
            if taken.is_some() {
                taken_name.clone_from(taken);
            }
            match (statement, front.as_deref_mut()) {
                (None, _) if owed.names_anew() => {}
                (None, _) => self.unnamed = None,
                // Answered by heart, and a server reads it for the first time: as if its Parse had failed.
                (Some((statement, _)), Some(front))
                    if *hidden && statement.shape().is_none() && is_refusal(body) =>
                {
                    front.prepared_mut().remove_statement(statement);
                }
                (Some(_), _) => {}
            }
        }
        self.doubt_reading(&owed);
        owed.undo(true, front, &mut self.prepared);
        taken_name
    }

    /// What is owed next is for settings, and the request that needs them was sent with them.
    fn request_is_behind_settings(&self) -> bool {
        let Some(Owed::Settings { last, .. }) = self.queue.next() else { return false };
        let Some(entry) = self.queue.head() else { return false };
        let held = self.held.as_ref().is_some_and(|held| held.settings_of == entry.number);
        entry.items > if *last { 1 } else { 2 } && !held
    }

    /// The client's name for the statement that a message is about which names one of Weir's: the client may
    /// have the same text under several.
    fn name_for_client(&self, owed: &Owed, body: &[u8], front: &Front) -> Option<Box<[u8]>> {
        let (Owed::Bind { statement: Some(statement), .. }
        | Owed::Describe { statement: Some(statement), .. }
        | Owed::Parse { statement: Some((statement, _)), .. }) = owed
        else {
            return None;
        };
        if !contains_server_name(body) {
            return None;
        }
        let prepared = front.prepared.as_deref()?;
        let this = prepared.name_of_statement(statement, false);
        let closed = || self.queue.closed_name_of(statement);
        // Under other settings it is another statement by now.
        this.or_else(closed).or_else(|| prepared.name_of_statement(statement, true)).map(Box::from)
    }

    /// A notice that names a statement of Weir's (`log_statement`, `client_min_messages`) and is for the
    /// client: it gets it with its own name.
    pub(super) fn notice_with_names(
        &self,
        front: Option<&Front>,
        message: &[u8],
        to_client: &mut Vec<u8>,
    ) -> bool {
        let body = body(message);
        let Some(front) = front.filter(|_| contains_server_name(body)) else { return false };
        let known = self.queue.next().and_then(|owed| self.name_for_client(owed, body, front));
        self.put_with_client_names(to_client, b'N', body, known.as_deref(), front);
        true
    }

    /// Appends an error or a notice in which Weir's names of statements are the client's again.
    fn put_with_client_names(
        &self,
        out: &mut Vec<u8>,
        tag: u8,
        body: &[u8],
        known: Option<&[u8]>,
        front: &Front,
    ) {
        let client_name = |name: &[u8]| {
            let key = self.prepared.key_of_name(name)?;
            front.prepared.as_deref()?.name_of(&key)
        };
        put(out, tag, |out| {
            for (field, text) in fields(body) {
                out.push(field);
                let mut fresh = Vec::new();
                let mut rest = text;
                while let Some(at) = server_name_at(rest) {
                    let (before, from) = rest.split_at(at);
                    let (name, after) = from.split_at(from.len().min(NAME_BYTES));
                    fresh.extend_from_slice(before);
                    fresh.extend_from_slice(known.or_else(|| client_name(name)).unwrap_or(b"?"));
                    rest = after;
                }
                fresh.extend_from_slice(rest);
                put_cstr(out, &fresh);
            }
            out.push(0);
        });
    }

    /// Some errors say that a statement of Weir's is not what it was.
    fn learn_from(&mut self, body: &[u8]) {
        match field(body, b'C') {
            // What it names is not there any more, or is something else (class 42, syntax error or access
            // rule violation; 3F000, invalid schema name; "cached plan must not change result type"): who
            // prepares the same text now is better told so at once.
            Some([b'4', b'2', ..] | b"3F000" | b"0A000") => {
                if let Some(
                    Owed::Bind { statement: Some(statement), .. }
                    | Owed::Describe { statement: Some(statement), .. },
                ) = self.queue.next()
                {
                    self.prepared.known.forget(&statement.key(), statement.state());
                }
            }
            // Something dropped it unseen.
            Some(b"26000") if contains_server_name(body) => self.prepared.distrust_all(),
            _ => {}
        }
    }
}

/// The error is about the text, and not about the moment (a failed transaction, a cancel, a lack of memory).
fn is_refusal(body: &[u8]) -> bool {
    const ABOUT_TEXT: [&[u8]; 5] = [b"0A", b"22", b"3D", b"3F", b"42"];
    let class = field(body, b'C').and_then(|code| code.get(..2));
    class.is_some_and(|class| ABOUT_TEXT.contains(&class))
}

/// The transaction had failed, unseen.
fn is_of_failed_transaction(body: &[u8]) -> bool {
    field(body, b'C') == Some(b"25P02")
}

fn server_name_at(text: &[u8]) -> Option<usize> {
    text.windows(NAME_BYTES).position(is_server_name)
}

fn contains_server_name(body: &[u8]) -> bool {
    server_name_at(body).is_some()
}

/// The error of a statement that the server has not begun to run: it stands at a place in the text itself
/// (field P), and no code was run that could have come upon another text (fields q and W).
fn is_of_reading(body: &[u8]) -> bool {
    field(body, b'P').is_some() && field(body, b'q').is_none() && field(body, b'W').is_none()
}
