//! What a server owes, and to whom: the queue of requests and, in one list behind it, the replies that are
//! outstanding for each.
//!
//! Owns: [`Queue`], [`Entry`], [`Owed`]. Must not know: bytes.
//!
//! Invariants: the items of an entry are contiguous and in the order in which the server will reply; `items`
//! of all entries add up to the length of the list; the changes of skipped messages are undone in reverse
//! order.

use crate::effects::{Draws, Effects};
use crate::error::Refusal;
use crate::front::Front;
use crate::prepared::{Names, ServerPrepared, Statement};
use crate::session_state::Settings;
use std::collections::VecDeque;
use std::sync::Arc;
use weir_wire::{INTERNAL, Owner};

/// A request of Weir's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Internal {
    /// `ROLLBACK`.
    Rollback,
    /// `DISCARD ALL`.
    Reset,
    /// A question about the catalogue; `catalogue.rs`.
    Catalogue,
    /// What makes a client's request right, in front of it. An error in it would be the request's, too.
    Quiet,
    /// A question for what its client has set; `follow.rs`.
    Values,
    /// The question whether BEGIN may wait; `late.rs`.
    Facts,
    /// The question on which channels a client listens; `listen.rs`.
    Channels,
    /// A part of a way between two connections that listen for a client.
    HandOver,
    /// The end of that: the server has stopped to listen.
    Parted,
    /// The end of that: the server listens.
    AtHome,
}

/// What kind of request an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A client's.
    Client,
    /// The check of a client's login settings.
    Welcome,
    /// Weir's own.
    Internal,
}

/// One request in the queue.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Whose it is; `INTERNAL` when that client has gone.
    pub owner: Owner,
    pub kind: Kind,
    /// Entries of one server are numbered from 1.
    pub number: u64,
    /// Replies it is owed: items of the row.
    pub items: usize,
    /// Its last message has been sent: when nothing is owed any more, it is done.
    pub ended: bool,
    /// An ErrorResponse came for it.
    pub failed: bool,
    /// The server could not read its text.
    pub misread: bool,
    /// A command of it completed.
    pub completed: bool,
    /// ReadyForQuery came last: the boundary is known.
    pub ready: bool,
    /// The server was idle when it was sent, or is known to be when everything in front of it is answered.
    pub from_idle: bool,
    /// It holds a Parse that went as it was, or of which it is not known how it was read: the owner stays
    /// here, whatever else the request does.
    pub raw: bool,
    /// It has transaction control.
    pub controls: bool,
    pub draws: Draws,
    /// Something in it may tie its client to the server.
    pub ties: bool,
    /// It asks what was drawn.
    pub asks: bool,
    /// What it asks, its client may have drawn on another server.
    pub asks_elsewhere: bool,
    /// It is one Parse of a named statement and nothing else.
    pub only_prepares: bool,
    /// It may change the catalogue.
    pub ddl: bool,
    /// Effects of executions that succeeded; they count at ReadyForQuery.
    pub succeeded: Vec<Arc<Effects>>,
}

impl Entry {
    /// This request goes on with one whose last replies did not include ReadyForQuery.
    pub fn take_on(&mut self, before: Entry) {
        self.from_idle = before.from_idle;
        self.failed |= before.failed;
        self.completed |= before.completed;
        self.raw |= before.raw;
        self.controls |= before.controls;
        self.draws = self.draws.max(before.draws);
        self.ties |= before.ties;
        self.asks |= before.asks;
        self.asks_elsewhere |= before.asks_elsewhere;
        self.ddl |= before.ddl;
        self.only_prepares = false;
        self.succeeded.splice(0..0, before.succeeded);
    }
}

/// What is to be put right in the client's map when a message failed or was skipped.
#[derive(Debug)]
pub(crate) enum Undo {
    /// A name was given.
    Named { name: Box<[u8]>, statement: Arc<Statement> },
    /// A name was given, perhaps in place of another statement.
    Renamed { name: Box<[u8]>, statement: Arc<Statement>, before: Option<Arc<Statement>> },
    /// A name was taken away.
    Unnamed { name: Box<[u8]>, statement: Arc<Statement> },
    /// All names were taken away.
    AllUnnamed(Names),
    /// The statement of this number was prepared again under its client's name for it; see
    /// `dispatch/own_names.rs`.
    Brought(u64),
    /// Nothing: the text was refused for this reason, and its error is replaced.
    Refused(Refusal),
    /// The unnamed statement was replaced by this one, or closed. What was there before is known from
    /// replies.
    Replaced(Option<Arc<Statement>>),
}

/// A reply, or several, that a server owes for one message; or one that Weir owes itself.
#[derive(Debug)]
pub(crate) enum Owed {
    /// For the query that brings settings: all of it through ReadyForQuery, hidden.
    Settings {
        /// What the server had before.
        previous: Arc<Settings>,
        /// What it has then. Others may have been sent behind it since.
        brings: Arc<Settings>,
        /// The last of them: the request may go on.
        last: bool,
        /// There is no other.
        only: bool,
    },
    /// For a request of Weir's own, through ReadyForQuery, hidden.
    Internal(Internal),
    /// For a simple Query, through ReadyForQuery.
    Query { effects: Option<Arc<Effects>>, undo: Option<Box<Undo>> },
    /// For a FunctionCall, through ReadyForQuery.
    FunctionCall { leaves_nothing: bool },
    /// ParseComplete.
    Parse {
        /// The statement and the number of this Parse; `None` for the unnamed one and for raw names.
        statement: Option<(Arc<Statement>, u64)>,
        undo: Option<Box<Undo>>,
        /// The name in it is in use, and will be refused under Weir's name for it.
        taken: Option<Box<[u8]>>,
        /// Weir added it; an error in it is the client's all the same.
        hidden: bool,
        /// An error in it is hidden, too.
        quiet: bool,
    },
    /// ParameterDescription first, then RowDescription or NoData, for the Describe behind every Parse.
    Shape {
        statement: Arc<Statement>,
        /// Of the Parse.
        number: u64,
        /// What is sent behind it is held until it has come.
        stops: bool,
        /// The client asks the same, and gets the answer.
        visible: bool,
        /// The body of the ParameterDescription, once it has come.
        types: Option<Box<[u8]>>,
    },
    /// An error: this one (a body), or that what the client was told of the statement is not so any more.
    /// Sent in its place was a Bind of nothing.
    Doomed(Option<Box<[u8]>>),
    /// BindComplete.
    Bind {
        statement: Option<Arc<Statement>>,
        /// What may be left of it already: parts of a statement run when it is planned, and the rest when SQL
        /// fetches from the portal.
        leaves: Option<Arc<Effects>>,
    },
    /// ParameterDescription first if `of_statement`, then RowDescription or NoData.
    Describe { of_statement: bool, statement: Option<Arc<Statement>> },
    /// Rows and CommandComplete, EmptyQueryResponse or PortalSuspended; or a COPY.
    Execute { effects: Option<Arc<Effects>>, undo: Option<Box<Undo>> },
    /// CloseComplete.
    Close { undo: Option<Box<Undo>> },
    /// CloseComplete by Weir itself.
    KnownClose { undo: Option<Box<Undo>> },
    /// ParameterDescription and NoData by Weir itself.
    KnownShape { statement: Arc<Statement> },
    /// CloseComplete for a Close that Weir added. With a name when that must not stay behind.
    HiddenClose { leftover: Option<Box<[u8]>> },
    /// Replies to a statement of Weir's own among the client's messages: so many are still to come.
    Aside {
        left: u8,
        /// Its row says under which settings this statement was read.
        reading: Option<Arc<Statement>>,
    },
    /// So many replies to a BEGIN that was held back. Where it `fails`, the error of what stands behind it to
    /// make it fail.
    Begin { left: u8, fails: bool },
    /// ReadyForQuery.
    Sync,
    /// ReadyForQuery for a Sync that Weir added.
    HiddenSync,
    /// Nothing: CopyDone or CopyFail was sent here.
    CopyEnd,
}

impl Owed {
    /// A Parse under the name that its client gave, on a server that has those: the unnamed statement is not
    /// touched by it.
    pub fn names_anew(&self) -> bool {
        let Owed::Parse { undo: Some(undo), .. } = self else { return false };
        matches!(**undo, Undo::Renamed { .. } | Undo::Brought(_))
    }

    /// Weir answers it, nothing comes from the server.
    pub fn is_synthetic(&self) -> bool {
        matches!(self, Owed::KnownClose { .. } | Owed::KnownShape { .. } | Owed::CopyEnd)
    }

    /// What it would have to put right in its client's map, which from now on is none of its business.
    fn take_undo(&mut self) -> Option<Box<Undo>> {
        match self {
            Owed::Parse { undo, .. }
            | Owed::KnownClose { undo }
            | Owed::Close { undo }
            | Owed::Execute { undo, .. }
            | Owed::Query { undo, .. } => undo.take(),
            Owed::HiddenClose { .. }
            | Owed::Aside { .. }
            | Owed::Begin { .. }
            | Owed::Settings { .. }
            | Owed::Internal(_)
            | Owed::FunctionCall { .. }
            | Owed::Shape { .. }
            | Owed::Doomed(_)
            | Owed::KnownShape { .. }
            | Owed::Bind { .. }
            | Owed::Describe { .. }
            | Owed::Sync
            | Owed::HiddenSync
            | Owed::CopyEnd => None,
        }
    }

    /// Its message failed (`failed`) or was skipped by the server.
    pub fn undo(self, failed: bool, front: Option<&mut Front>, prepared: &mut ServerPrepared) {
        match self {
            Owed::Parse { statement, undo, .. } => {
                if let Some((statement, number)) = statement {
                    prepared.fail(&statement.key(), number, statement.state());
                }
                put_right(undo, failed, front);
            }
            Owed::KnownClose { undo }
            | Owed::Close { undo }
            | Owed::Execute { undo, .. }
            | Owed::Query { undo, .. } => {
                put_right(undo, failed, front);
            }
            Owed::HiddenClose { leftover } => prepared.leftovers.extend(leftover),
            Owed::Settings { .. }
            | Owed::Aside { .. }
            | Owed::Begin { .. }
            | Owed::Internal(_)
            | Owed::FunctionCall { .. }
            | Owed::Shape { .. }
            | Owed::Doomed(_)
            | Owed::KnownShape { .. }
            | Owed::Bind { .. }
            | Owed::Describe { .. }
            | Owed::Sync
            | Owed::HiddenSync
            | Owed::CopyEnd => {}
        }
    }
}

/// Puts the client's map right after a message failed or was skipped.
pub(crate) fn put_right(undo: Option<Box<Undo>>, failed: bool, front: Option<&mut Front>) {
    let (Some(undo), Some(front)) = (undo, front) else { return };
    let prepared = front.prepared_mut();
    match *undo {
        Undo::Named { name, statement } => prepared.remove_if(&name, &statement),
        Undo::Renamed { name, statement, before } => {
            prepared.remove_if(&name, &statement);
            if let Some(before) = before
                && prepared.get(&name).is_none()
            {
                prepared.insert(&name, before);
            }
        }
        Undo::Unnamed { name, statement } => {
            if prepared.get(&name).is_none() {
                prepared.insert(&name, statement);
            }
        }
        Undo::AllUnnamed(names) => prepared.restore_names(names),
        Undo::Brought(_) | Undo::Refused(_) => {}
        // A Parse that fails has already dropped the statement it was to replace.
        Undo::Replaced(_) if failed => prepared.answered = None,
        Undo::Replaced(_) => {}
    }
}

/// Requests and what is owed for them.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: VecDeque<Entry>,
    owed: VecDeque<Owed>,
    numbers: u64,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub fn head(&self) -> Option<&Entry> {
        self.entries.front()
    }

    pub fn head_mut(&mut self) -> Option<&mut Entry> {
        self.entries.front_mut()
    }

    pub fn tail(&self) -> Option<&Entry> {
        self.entries.back()
    }

    pub fn tail_mut(&mut self) -> Option<&mut Entry> {
        self.entries.back_mut()
    }

    /// What this owner has under way may change settings in a way that is not known yet.
    pub fn may_change_settings(&self, owner: Owner) -> bool {
        let mut first = 0;
        self.entries.iter().any(|entry| {
            let range = first..first + entry.items;
            first += entry.items;
            entry.owner == owner
                && (!entry.succeeded.is_empty()
                    || self.owed.range(range).any(|owed| match owed {
                        Owed::Query { effects, .. } | Owed::Execute { effects, .. } => effects.is_some(),
                        _ => false,
                    }))
        })
    }

    /// What this owner has under way sets what decides how literals are read.
    pub fn changes_reading(&self, owner: Owner) -> bool {
        self.has_under_way(owner, Effects::sets_reading)
    }

    /// What this owner has under way sets what a plan may hold something of.
    pub fn changes_plans(&self, owner: Owner) -> bool {
        self.has_under_way(owner, |effects| effects.sets_plans() || effects.plans_otherwise)
    }

    fn has_under_way(&self, owner: Owner, does: impl Fn(&Effects) -> bool) -> bool {
        let mut first = 0;
        self.entries.iter().any(|entry| {
            let range = first..first + entry.items;
            first += entry.items;
            entry.owner == owner
                && (entry.succeeded.iter().any(|effects| does(effects))
                    || self.owed.range(range).any(|owed| match owed {
                        Owed::Query { effects, .. } | Owed::Execute { effects, .. } => {
                            effects.as_ref().is_some_and(|effects| does(effects))
                        }
                        _ => false,
                    }))
        })
    }

    /// Something under way may change the catalogue.
    pub fn changes_catalogue(&self) -> bool {
        self.entries.iter().any(|entry| entry.ddl)
    }

    /// The request at the head may have set this parameter.
    pub fn head_may_set(&self, name: &str) -> bool {
        let Some(entry) = self.entries.front() else { return false };
        let under_way = self.owed.range(..entry.items).filter_map(|owed| match owed {
            Owed::Query { effects, .. } | Owed::Execute { effects, .. } => effects.as_ref(),
            Owed::Settings { .. }
            | Owed::Internal(_)
            | Owed::FunctionCall { .. }
            | Owed::Parse { .. }
            | Owed::Shape { .. }
            | Owed::Doomed(_)
            | Owed::KnownShape { .. }
            | Owed::Bind { .. }
            | Owed::Describe { .. }
            | Owed::Close { .. }
            | Owed::KnownClose { .. }
            | Owed::HiddenClose { .. }
            | Owed::Aside { .. }
            | Owed::Begin { .. }
            | Owed::Sync
            | Owed::HiddenSync
            | Owed::CopyEnd => None,
        });
        entry.kind == Kind::Internal
            || entry.raw
            || entry.succeeded.iter().chain(under_way).any(|effects| effects.may_set_name(name))
    }

    /// Texts of the head, outside of a transaction, may put this setting back to the server's own value among
    /// other statements, and set it in no other way.
    pub fn head_puts_back(&self, name: &str) -> bool {
        let Some(entry) = self.entries.front() else { return false };
        let Some(Owed::Query { effects: Some(effects), .. }) = self.next() else { return false };
        let alone = entry.from_idle && !entry.controls && entry.succeeded.is_empty();
        alone && effects.puts_back(name)
    }

    /// A lone statement of the head, which has run, puts this setting back to the server's own value.
    pub fn head_resets(&self, name: &str) -> bool {
        let Some(entry) = self.entries.front() else { return false };
        let under_way = match self.next() {
            Some(Owed::Query { effects: Some(effects), .. }) => Some(effects),
            _ => None,
        };
        entry.succeeded.iter().chain(under_way).any(|effects| effects.resets_name(name))
    }

    /// A BEGIN that was held back stands in front of the request at the head.
    pub fn head_begins(&self) -> bool {
        let items = self.entries.front().map_or(0, |entry| entry.items);
        self.owed.range(..items).any(|owed| matches!(owed, Owed::Begin { .. }))
    }

    /// Requests of clients stand behind the head.
    pub fn others_wait(&self) -> bool {
        self.entries.iter().skip(1).any(|entry| entry.owner != INTERNAL)
    }

    /// The name under which a client had this statement, if it has closed that since.
    pub fn closed_name_of(&self, statement: &Arc<Statement>) -> Option<&[u8]> {
        self.owed.iter().find_map(|owed| {
            let (Owed::KnownClose { undo: Some(undo) }
            | Owed::Query { undo: Some(undo), .. }
            | Owed::Execute { undo: Some(undo), .. }) = owed
            else {
                return None;
            };
            match &**undo {
                Undo::Unnamed { name, statement: closed } if Arc::ptr_eq(closed, statement) => Some(&**name),
                _ => None,
            }
        })
    }

    /// Nothing is waited for any more.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.owed.clear();
    }

    /// A new request at the end.
    pub fn push_entry(&mut self, owner: Owner, kind: Kind, from_idle: bool) -> u64 {
        self.numbers += 1;
        self.entries.push_back(Entry {
            owner,
            kind,
            number: self.numbers,
            items: 0,
            ended: false,
            failed: false,
            misread: false,
            completed: false,
            ready: false,
            from_idle,
            raw: false,
            controls: false,
            draws: Draws::No,
            ties: false,
            asks: false,
            asks_elsewhere: false,
            only_prepares: false,
            ddl: false,
            succeeded: Vec::new(),
        });
        self.numbers
    }

    /// One more reply for the request at the end.
    pub fn push(&mut self, owed: Owed) {
        if let Some(entry) = self.entries.back_mut() {
            entry.items += 1;
            self.owed.push_back(owed);
        }
    }

    /// One more reply for the request at the head, before all others.
    pub fn push_next(&mut self, owed: Owed) {
        if let Some(entry) = self.entries.front_mut() {
            entry.items += 1;
            self.owed.push_front(owed);
        }
    }

    /// The last reply of the request at the end.
    pub fn last_mut(&mut self) -> Option<&mut Owed> {
        if self.entries.back()?.items == 0 { None } else { self.owed.back_mut() }
    }

    /// What the request at the head is owed next.
    pub fn next(&self) -> Option<&Owed> {
        if self.entries.front()?.items == 0 { None } else { self.owed.front() }
    }

    pub fn next_mut(&mut self) -> Option<&mut Owed> {
        if self.entries.front()?.items == 0 { None } else { self.owed.front_mut() }
    }

    /// The head's next reply has come.
    pub fn pop(&mut self) -> Option<Owed> {
        let entry = self.entries.front_mut()?;
        entry.items = entry.items.checked_sub(1)?;
        self.owed.pop_front()
    }

    /// A COPY begins with the head's next reply: Syncs behind it that were sent before its end are read as
    /// data and ignored. True when the end of the copy has been sent already.
    pub fn begin_copy(&mut self) -> bool {
        let mut at = 1;
        while let Some(owed) = self.owed.get(at) {
            match owed {
                Owed::Sync => {
                    self.remove(at);
                }
                Owed::CopyEnd => {
                    self.remove(at);
                    return true;
                }
                // The server will take it for an error of the copy.
                Owed::Settings { .. }
                | Owed::Internal(_)
                | Owed::Query { .. }
                | Owed::FunctionCall { .. }
                | Owed::Parse { .. }
                | Owed::Shape { .. }
                | Owed::Doomed(_)
                | Owed::Bind { .. }
                | Owed::Describe { .. }
                | Owed::Execute { .. }
                | Owed::Close { .. }
                | Owed::HiddenClose { .. }
                | Owed::Aside { .. }
                | Owed::Begin { .. }
                | Owed::HiddenSync => return false,
                Owed::KnownClose { .. } | Owed::KnownShape { .. } => at += 1,
            }
        }
        false
    }

    /// A Sync has been sent to which nothing has been answered.
    pub fn has_sync(&self) -> bool {
        self.owed.iter().any(|owed| matches!(owed, Owed::Sync | Owed::HiddenSync))
    }

    fn remove(&mut self, at: usize) {
        let mut before = 0;
        for entry in &mut self.entries {
            if at < before + entry.items {
                entry.items -= 1;
                self.owed.remove(at);
                return;
            }
            before += entry.items;
        }
    }

    /// The request at the head is done.
    pub fn pop_entry(&mut self) -> Option<Entry> {
        self.entries.pop_front()
    }

    /// Whose request stands at this place; 0 is the head.
    pub fn owner_at(&self, place: usize) -> Option<Owner> {
        self.entries.get(place).map(|entry| entry.owner)
    }

    /// What is to be undone, last first, if the requests of this owner are taken back; and how many they are.
    /// Their replies are still owed, to nobody.
    pub fn take_back(&mut self, owner: Owner) -> (Vec<Undo>, u16) {
        let (mut first, mut undone, mut requests) = (0, Vec::new(), 0);
        for entry in &mut self.entries {
            let range = first..first + entry.items;
            first += entry.items;
            if entry.owner == owner {
                entry.owner = INTERNAL;
                requests += 1;
                undone.extend(self.owed.range_mut(range).filter_map(Owed::take_undo).map(|undo| *undo));
            }
        }
        undone.reverse();
        (undone, requests)
    }

    /// The owner has gone: its requests are Weir's own from now on.
    pub fn disown(&mut self, owner: Owner) {
        for entry in self.entries.iter_mut().filter(|entry| entry.owner == owner) {
            entry.owner = INTERNAL;
        }
    }

    /// Items counted by entry and in the row agree.
    #[cfg(test)]
    pub fn is_consistent(&self) -> bool {
        self.entries.iter().map(|entry| entry.items).sum::<usize>() == self.owed.len()
    }
}
