//! How far a client's bytes have been examined, and what the batch that is being gathered will need.
//!
//! Owns: that, for `find` and `long`. Must not know: what a request becomes on a server.
//!
//! Invariant: a text is in [`Texts`] once, from the time it is found until it is dispatched.

use crate::effects::{Draws, Effects};
use std::collections::VecDeque;
use std::sync::Arc;
use weir_sql::Scanner;

/// The text of a long Query, of which nothing is kept.
#[derive(Debug)]
pub(super) struct LongText {
    pub(super) scanner: Scanner,
    /// The state of the catalogue by which it reads.
    pub(super) state: u64,
    /// Which catalogue that is.
    pub(super) edition: u64,
}

/// How far the client's bytes were looked at.
#[derive(Debug)]
pub(super) struct Scan {
    /// Bytes at the start of the input that belong to the batch being gathered.
    pub(super) looked: usize,
    /// Bytes of a long message that have not been handed out. A message has at most 2^31.
    left: u32,
    /// What the long message is, while `left` is not 0.
    pub(super) long: Long,
    /// Reads a long Query.
    pub(super) scanner: Option<Box<LongText>>,
    /// Parts of a batch were handed out, and not its end.
    pub(super) open: bool,
    /// A request was rejected before its end had come.
    pub(super) discarding: bool,
    /// What there is of a batch is not to wait for its end.
    pub(super) hastens: bool,
    /// The request found last puts settings back to the server's defaults. What this client named at its
    /// start must be brought back behind it, so nothing is looked at until it is answered.
    pub(super) resetting: bool,
    /// What was found uses names whose meaning is not known yet, or is behind what may change how a text is
    /// read: it waits until everything before it is answered, and is looked at again then.
    pub(super) waits: bool,
    /// What comes next belongs to the request found last.
    pub(super) tail: Tail,
    /// The request found last may leave something that ties its client to its server.
    pub(super) may_pin: bool,
    /// Texts were read otherwise before.
    pub(super) dialect_changed: bool,
    pub(super) batch: Batch,
}

impl Scan {
    /// Nothing has been looked at.
    pub(super) const NEW: Scan = Scan {
        looked: 0,
        left: 0,
        long: Long::Batch,
        scanner: None,
        open: false,
        discarding: false,
        hastens: false,
        resetting: false,
        waits: false,
        tail: Tail::No,
        may_pin: false,
        dialect_changed: false,
        batch: Batch::EMPTY,
    };

    /// Bytes of a long message that have not been handed out.
    #[inline]
    pub(super) fn left(&self) -> usize {
        self.left as usize
    }

    pub(super) fn set_left(&mut self, left: usize) {
        self.left = u32::try_from(left).unwrap_or(u32::MAX);
    }
}

/// What is behind the end of the data of a COPY. A server in copy-in mode ignores Sync (section 55.2.3), so
/// it answers the request that has begun the COPY at the Sync behind the data, and sends nothing before: up
/// to there nothing may wait for that answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tail {
    No,
    /// Nothing yet: that request ended with Sync, which is not its end when it begins a COPY.
    MayCome,
    /// Such data was sent, and the server has not said yet that it takes any.
    Guess,
    /// The end of the request that has begun the COPY.
    Known,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Long {
    /// Part of a batch.
    Batch,
    /// A Query or FunctionCall: its end is the end of the request.
    Request,
    /// COPY data for the server.
    Copy,
    /// Nobody waits for it.
    Drop,
    /// A rejected Query: ReadyForQuery is due at its end.
    Rejected,
}

/// No text of the batch has been judged.
pub(super) const NOTHING_JUDGED: u64 = u64::MAX;

/// What was learnt of the messages in the batch being gathered.
#[derive(Debug, Clone, Copy)]
pub(super) struct Batch {
    pub(super) shareable: bool,
    /// Of all its texts.
    pub(super) fingerprint: u32,
    pub(super) asks_sequence: bool,
    pub(super) draws: Draws,
    pub(super) controls: bool,
    pub(super) characteristics: bool,
    /// What its texts do.
    pub(super) texts: Told,
    pub(super) parses: bool,
    pub(super) parses_unnamed: bool,
    pub(super) binds: bool,
    /// Settings are put back to their defaults.
    pub(super) resets: bool,
    /// Names of statements are asked for, given or taken.
    pub(super) uses_names: bool,
    /// So is an unnamed statement of an earlier request.
    pub(super) uses_unnamed: bool,
    /// They are given or taken.
    pub(super) changes_names: bool,
    /// Which there are matters to a text of it.
    pub(super) names_matter: Names,
    /// The same of a text that was only prepared in it so far.
    pub(super) names_will_matter: bool,
    /// What was parsed in it needs a server that was opened for this client, once it runs.
    pub(super) wants_own: bool,
    /// The same of its unnamed statement.
    pub(super) unnamed_wants_own: bool,
    /// The state of the catalogue by which its texts were judged.
    pub(super) judged_by: u64,
    /// What decides how a text is read may be another behind it.
    pub(super) changes_dialect: bool,
    /// It may leave something that ties its client to its server.
    pub(super) may_pin: bool,
    /// It only begins or ends a transaction, and may be answered without a server.
    pub(super) late: bool,
}

/// What the texts of a batch do, in a byte: there are many clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told(u8);

impl Told {
    const IS_THERE: u8 = 1;
    const PARSES_MORE: u8 = 2;
    const RUNS_MORE: u8 = 4;
    const DIFFERS: u8 = 8;
    const EXECUTES: u8 = 16;
    const RUNS_ALONE: u8 = 32;
    const RUNS_CODE: u8 = 64;
    const PLANS_OTHERWISE: u8 = 128;

    /// There is one.
    pub(super) fn is_there(self) -> bool {
        self.0 & Told::IS_THERE != 0
    }

    /// Whatever the batch runs only reads, by proof.
    pub(super) fn only_reads(self) -> bool {
        self.0 & Told::RUNS_MORE == 0
    }

    /// It runs code of users.
    pub(super) fn runs_code(self) -> bool {
        self.0 & Told::RUNS_CODE != 0
    }

    /// Under settings that it changes itself.
    pub(super) fn plans_otherwise(self) -> bool {
        self.0 & Told::PLANS_OTHERWISE != 0
    }

    /// As far as this says.
    pub(super) fn note_code(&mut self, effects: &Effects) {
        self.0 |= if effects.runs_code { Told::RUNS_CODE } else { 0 };
        let otherwise = effects.plans_otherwise || effects.sets_plans();
        self.0 |= if otherwise || effects.is_personal { Told::PLANS_OTHERWISE } else { 0 };
    }

    /// Its answer is the same for all who ask it with the same settings, as far as its texts and its form
    /// say.
    pub(super) fn is_alike(self) -> bool {
        self.0 & Told::DIFFERS == 0
    }

    /// As far as this says.
    pub(super) fn note_alike(&mut self, alike: bool) {
        self.0 |= if alike { 0 } else { Told::DIFFERS };
    }

    /// It has an Execute that ends only with its last row.
    pub(super) fn executes(self) -> bool {
        self.0 & Told::EXECUTES != 0
    }

    /// It has one now.
    pub(super) fn note_execute(&mut self) {
        self.0 |= Told::EXECUTES;
    }

    /// Something runs that is not a lone DEALLOCATE.
    pub(super) fn runs_alone(self) -> bool {
        self.0 & Told::RUNS_ALONE != 0
    }

    /// It does, if `this` is not DEALLOCATE.
    pub(super) fn note_alone(&mut self, this: bool) {
        self.0 |= if this { Told::RUNS_ALONE } else { 0 };
    }

    /// There is another one.
    pub(super) fn note(&mut self) {
        self.0 |= Told::IS_THERE;
    }

    /// One is prepared; `reads`: it only reads.
    pub(super) fn parses(&mut self, reads: bool) {
        self.0 |= if reads { 0 } else { Told::PARSES_MORE };
    }

    /// One is run; `reads`: it only reads.
    pub(super) fn runs(&mut self, reads: bool) {
        self.0 |= if reads { 0 } else { Told::RUNS_MORE };
    }

    /// What has been prepared may be run.
    pub(super) fn runs_parsed(&mut self) {
        self.runs(self.0 & Told::PARSES_MORE == 0);
    }
}

impl Batch {
    pub(super) const EMPTY: Batch = Batch {
        shareable: true,
        fingerprint: 0,
        asks_sequence: false,
        draws: Draws::No,
        controls: false,
        characteristics: false,
        texts: Told(0),
        parses: false,
        parses_unnamed: false,
        binds: false,
        resets: false,
        uses_names: false,
        uses_unnamed: false,
        changes_names: false,
        names_matter: Names::NoMatter,
        names_will_matter: false,
        wants_own: false,
        unnamed_wants_own: false,
        judged_by: NOTHING_JUDGED,
        changes_dialect: false,
        may_pin: false,
        late: false,
    };

    /// Another text of it was judged by this state.
    pub(super) fn note_state(&mut self, state: u64) {
        if self.judged_by == NOTHING_JUDGED {
            self.judged_by = state;
        }
        self.shareable &= state == self.judged_by;
        self.texts.runs(state == self.judged_by);
    }

    pub(super) fn note_fingerprint(&mut self, fingerprint: u32) {
        self.fingerprint = self.fingerprint.rotate_left(7) ^ fingerprint;
    }

    pub(super) fn note_sequences(&mut self, effects: &Effects) {
        self.asks_sequence |= effects.asks_sequence;
        self.draws = self.draws.max(effects.draws);
        self.controls |= effects.controls;
        self.texts.note_code(effects);
        self.characteristics |= effects.characteristics;
    }

    /// What it has parsed runs in it.
    pub(super) fn names_begin_to_matter(&mut self) {
        if self.names_will_matter {
            self.names_matter = self.names_matter.max(Names::ToText);
        }
    }

    /// A text of these effects is run or prepared in it.
    pub(super) fn note_names(&mut self, effects: &Effects) {
        let changes = effects.deallocates.is_some() || effects.drops_all_statements();
        self.may_pin |= !effects.pins.is_empty() || effects.role;
        self.changes_names |= changes;
        if effects.statement_names {
            self.names_matter = self.names_matter.max(Names::ToText);
        }
        self.uses_names |= changes || effects.executes.is_some() || effects.statement_names;
    }
}

/// To what of a request it matters which statements are prepared under which names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Names {
    #[default]
    NoMatter,
    /// To its texts alone.
    ToText,
    /// To more: a statement that was prepared before, or another part of it.
    ToMore,
}

impl Names {
    pub(crate) fn matter(self) -> bool {
        self != Names::NoMatter
    }
}

/// Effects of the texts found and not yet dispatched, in order. Nearly always at most one.
#[derive(Debug, Default)]
pub(super) struct Texts {
    pub(super) first: Option<(Arc<Effects>, u64)>,
    pub(super) more: VecDeque<(Arc<Effects>, u64)>,
}

impl Texts {
    pub(super) fn push(&mut self, effects: Arc<Effects>, state: u64) {
        if self.first.is_none() && self.more.is_empty() {
            self.first = Some((effects, state));
        } else {
            self.more.push_back((effects, state));
        }
    }
    pub(super) fn pop(&mut self) -> Option<(Arc<Effects>, u64)> {
        self.first.take().or_else(|| self.more.pop_front())
    }
    pub(super) fn clear(&mut self) {
        self.first = None;
        self.more = VecDeque::new();
    }
}
