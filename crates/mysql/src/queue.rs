//! What a server owes: the queue of requests, and for each of them the commands ahead of it and its progress.
//!
//! Owns: [`Entry`], [`Stage`], [`Ahead`]. Must not know: packets, what goes ahead of which request.
//!
//! Invariant: replies arrive in the order of the queue; within an entry, the replies to the commands ahead
//! come first, in their order.

use crate::binding::Binding;
use crate::front::Outcome;
use crate::insert_id::InsertUse;
use crate::message::Command;
use crate::prepared::{Key, PrepareReply};
use crate::reply::Reply;
use crate::warnings::Left;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use weir_sql::catalogue::Unsettled;
use weir_wire::{INTERNAL, Owner};

/// A command sent ahead of a request.
#[derive(Debug)]
pub(crate) enum Ahead {
    /// COM_CHANGE_USER; nothing else can be sent until it is through.
    Login,
    /// COM_RESET_CONNECTION, which takes away user variables of others; nothing else can be sent until it is
    /// through.
    Reset,
    /// It changes the session.
    State,
    /// It goes to this schema, in which statements are prepared that the request can do without.
    Schema(Arc<str>),
    /// COM_SET_OPTION or COM_PING: it leaves warnings and FOUND_ROWS().
    Command,
    /// It prepares a statement the request needs.
    Prepare(PrepareAhead),
    /// A read whose warnings the request asks for is run again, and must end as it did; or what has settled a
    /// statement's types is. The rows go nowhere.
    Repeat(Option<Left>),
    /// A SELECT of Weir's without a table, for FOUND_ROWS(): it leaves MariaDB's warnings.
    Rows,
    /// What is LAST_INSERT_ID() here?
    AskInsertId,
    /// What is FOUND_ROWS() here?
    AskFoundRows,
    /// What are the warnings here, which what is to go ahead would take away? Nothing else is sent until they
    /// are known.
    AskWarnings,
    /// A condition like the one the client's last statement left is raised.
    Signal,
}

/// The reply to a statement prepared for an EXECUTE, as far as it came.
#[derive(Debug)]
pub(crate) struct PrepareAhead {
    pub key: Key,
    pub id: u32,
    pub reply: Option<PrepareReply>,
    pub definitions: Vec<u8>,
    pub left: usize,
    /// The request can do without it.
    pub along: bool,
    /// Its schema is gone, so that it was prepared in another one.
    pub astray: bool,
}

impl PrepareAhead {
    pub(crate) fn new(key: Key) -> PrepareAhead {
        PrepareAhead {
            key,
            id: 0,
            reply: None,
            definitions: Vec::new(),
            left: 0,
            along: false,
            astray: false,
        }
    }
}

/// Where an entry of the queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Nothing of it was sent: something before it must be confirmed first.
    Waiting,
    /// What goes ahead was sent, the request is held.
    Ahead,
    /// The request was sent (or is being sent, in parts).
    Sent,
    /// The reply can be given without the server.
    Local,
    /// The reply was passed on; a COM_PING asks where it left the transaction.
    Ping,
    /// What went ahead failed; the client is still sending the rest of the request.
    Refused,
    /// The server ended the request while the client was still sending it.
    Torn,
    /// All is done.
    Finished,
    /// All is done but for one question: what is LAST_INSERT_ID() now?
    AskInsertId,
    /// That was answered, too.
    Answered,
    /// All is done but for one question: what are the warnings?
    AskWarnings,
    /// All is done but for one question: what is FOUND_ROWS()?
    AskFoundRows,
    /// All is done but for one question: what has SET made of these settings?
    AskSettings,
    /// All is done but for one question: what are the user variables that it may have set?
    AskVariables,
}

/// An error that its client has got in other words than a server's.
#[derive(Debug)]
pub(crate) struct Reworded {
    pub from: Box<[u8]>,
    pub to: Box<[u8]>,
    pub code: u16,
}

/// Whether a statement is prepared with nothing behind it: where that fails and something stood behind it,
/// the server has forgotten the warnings that its client may ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alone {
    No,
    /// It was refused with others behind it, and is to be prepared once more.
    Next,
    /// It is under way.
    Now,
}

/// A request in the queue.
#[derive(Debug)]
pub(crate) struct Entry {
    pub owner: Owner,
    pub gone: bool,
    pub stage: Stage,
    pub command: Command,
    /// `dispatch_welcome`.
    pub welcome: bool,
    /// What goes ahead and was not confirmed yet.
    pub ahead: VecDeque<Ahead>,
    /// The first error of what went ahead.
    pub ahead_error: Option<Box<[u8]>>,
    /// Its statement is prepared by itself.
    pub alone: Alone,
    /// Its client's schema has been dropped: the words of the server about that. It runs where no schema is
    /// the default one, as it would in a session that stands in a schema that is gone.
    pub lost_schema: Option<Box<[u8]>>,
    /// This session could not go to where its client is, and is in whatever schema it was.
    pub kept_out: bool,
    /// The request, while it is held.
    pub held: Vec<u8>,
    /// No further part of it will come.
    pub whole: bool,
    /// A reset is followed by the set-up of trackers, whose reply is owed.
    pub setup_owed: bool,
    /// COM_RESET_CONNECTION has left something that only a reset of Weir's own, or none, takes away.
    pub keeps_beyond_reset: bool,
    /// It may change the session.
    pub leaves_trace: bool,
    /// It may change the session in a way that cannot be undone by setting everything anew.
    pub taints: bool,
    /// The copy of a statement it is about.
    pub key: Option<Key>,
    /// What is executed on that copy before, once it is prepared: a COM_STMT_EXECUTE.
    pub first: Option<Box<[u8]>>,
    /// What the parameters of that copy have to be, if it is prepared now; `true`: it may be executed for
    /// that.
    pub kinds: Option<(Binding, bool)>,
    /// It runs in the schema its statement was prepared in, which is not its client's.
    pub elsewhere: bool,
    /// It is Weir's question about the catalogue.
    pub studies: bool,
    /// It may change the catalogue.
    pub unsettled: Option<Unsettled>,
    /// The state of the catalogue when it was sent, of a COM_STMT_PREPARE; 0: of none that is known.
    pub settled: u64,
    /// That copy has Weir's answers in its text: it is of use for this one execution.
    pub answered: bool,
    /// What it has to do with LAST_INSERT_ID().
    pub insert_use: InsertUse,
    /// The request was refused by Weir with this error, of which no server knows.
    pub refusal: Option<Box<[u8]>>,
    /// The server had what its client's statement before had left.
    pub had_warnings: bool,
    /// The server had Weir's mark in their place.
    pub marked: bool,
    /// What FOUND_ROWS() gave here was its client's own.
    pub found_own: bool,
    /// It was Weir's mark.
    pub found_marked: bool,
    /// What goes ahead of it last leaves no warnings here.
    pub clears: bool,
    /// What it asks about warnings stands in its text: whosever are here may be.
    pub answers_warnings: bool,
    /// Its warnings were asked for.
    pub asked_warnings: bool,
    /// The message of its error in the server's words, and the error that its client got.
    pub reworded: Option<Box<Reworded>>,
    /// It has been sent as its client wrote it, to be refused in the same way.
    pub original_sent: bool,
    /// Its place among the texts that may have to be asked again.
    pub text: Range<u64>,
    pub reply: Reply,
    pub outcome: Outcome,
}

impl Entry {
    pub(crate) fn new(owner: Owner, command: Command, stage: Stage) -> Entry {
        Entry {
            owner,
            gone: false,
            stage,
            command,
            welcome: false,
            ahead: VecDeque::new(),
            ahead_error: None,
            alone: Alone::No,
            lost_schema: None,
            kept_out: false,
            held: Vec::new(),
            whole: true,
            setup_owed: false,
            keeps_beyond_reset: false,
            leaves_trace: false,
            taints: false,
            key: None,
            first: None,
            kinds: None,
            elsewhere: false,
            studies: false,
            unsettled: None,
            settled: 0,
            answered: false,
            insert_use: InsertUse::Nothing,
            refusal: None,
            had_warnings: false,
            marked: false,
            found_own: false,
            found_marked: false,
            clears: false,
            answers_warnings: false,
            asked_warnings: false,
            reworded: None,
            original_sent: false,
            text: 0..0,
            reply: Reply::new(command),
            outcome: Outcome::default(),
        }
    }

    /// A request that was sent without anything ahead.
    pub(crate) fn sent(owner: Owner, command: Command) -> Entry {
        Entry::new(owner, command, Stage::Sent)
    }

    /// Who gets its reply: nobody when its owner has gone or asks elsewhere.
    pub(crate) fn reader(&self) -> Owner {
        if self.gone { INTERNAL } else { self.owner }
    }

    /// Nothing behind it may be sent yet.
    pub(crate) fn blocks(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Ahead)
    }
}
