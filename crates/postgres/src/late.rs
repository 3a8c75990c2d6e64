//! Delays BEGIN until the first statement of its transaction, so that a transaction without a request holds
//! no server.
//!
//! Weir answers a simple Query that is one plain BEGIN or START TRANSACTION as a server would, and sends it
//! ahead of the first request of that transaction, in the same packet. It also answers COMMIT and ROLLBACK of
//! a transaction without a request. All other forms (extended protocol, AND CHAIN, `--` comments) go to a
//! server at once.
//!
//! Owns: [`Late`], [`Control`], [`Facts`]. Must not know: who has a server, and whether the pool wants this.
//!
//! Invariants: as far as is known, a delayed BEGIN cannot fail when it is sent; if it fails all the same,
//! nothing after it runs. Nothing is delayed where the server would end an idle transaction by itself.

use crate::back::Back;
use crate::catalogue::defaults;
use crate::effects::Draws;
use crate::frame::{put, put_cstr};
use crate::front::Front;
use crate::message::query::{SYNC, lone_query, put_parse, put_query};
use crate::message::reply::put_ready;
use crate::queue::{Internal, Kind, Owed};
use crate::reset::put_bind_nobody;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
use weir_session::Front as _;
use weir_wire::{Boundary, INTERNAL};

/// Settings of a session by which the server ends a transaction in which nothing happens.
const ENDS: [&str; 2] = ["idle_in_transaction_session_timeout", "transaction_timeout"];

/// One row where neither of [`ENDS`] is set, another one where the server is not in recovery, one where no
/// `DateStyle` is stored, which a startup packet does not see, one where the search path that a session has
/// by itself may put new tables among the temporary ones, and what the session goes back to.
const QUESTION: &str = concat!(
    "SELECT 1 WHERE pg_catalog.current_setting('idle_in_transaction_session_timeout') \
     OPERATOR(pg_catalog.=) '0' AND COALESCE(pg_catalog.current_setting('transaction_timeout', true), '0') \
     OPERATOR(pg_catalog.=) '0' UNION ALL SELECT 2 WHERE NOT pg_catalog.pg_is_in_recovery() UNION ALL \
     SELECT 4 WHERE NOT EXISTS \
     (SELECT FROM pg_catalog.pg_db_role_setting, pg_catalog.unnest(setconfig) stored \
     WHERE pg_catalog.left(pg_catalog.lower(stored), 10) OPERATOR(pg_catalog.=) 'datestyle=') UNION ALL \
     SELECT 8 WHERE pg_catalog.strpos(pg_catalog.lower(pg_catalog.current_setting('search_path')), 'pg_temp') \
     OPERATOR(pg_catalog.>) 0 UNION ALL SELECT ",
    defaults!()
);

/// The answers to BEGIN and BIND of it: ParseComplete, BindComplete, CommandComplete.
const REPLIES: u8 = 3;

/// What a BEGIN asks for beyond the transaction: a byte, for there are many clients. Two bits say how it
/// reads, two whether it is deferrable, three how it is isolated; 0 is what is not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Modes(u8);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    ReadOnly = 0b1,
    ReadWrite = 0b10,
    Deferrable = 0b100,
    NotDeferrable = 0b1000,
    Serializable = 0b01_0000,
    RepeatableRead = 0b10_0000,
    ReadCommitted = 0b11_0000,
    ReadUncommitted = 0b100_0000,
}

/// Each mode as it is said. Of those of one kind a transaction has one at most.
const KINDS: [(u8, &[(Mode, &str)]); 3] = [
    (
        0b111_0000,
        &[
            (Mode::Serializable, " ISOLATION LEVEL SERIALIZABLE"),
            (Mode::RepeatableRead, " ISOLATION LEVEL REPEATABLE READ"),
            (Mode::ReadCommitted, " ISOLATION LEVEL READ COMMITTED"),
            (Mode::ReadUncommitted, " ISOLATION LEVEL READ UNCOMMITTED"),
        ],
    ),
    (0b11, &[(Mode::ReadOnly, " READ ONLY"), (Mode::ReadWrite, " READ WRITE")]),
    (0b1100, &[(Mode::Deferrable, " DEFERRABLE"), (Mode::NotDeferrable, " NOT DEFERRABLE")]),
];

/// The transaction of a client that no server knows of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Late {
    /// There is none.
    #[default]
    No,
    /// It has begun.
    Begun(Modes),
    /// And its first request was cancelled before it got a server.
    Failed(Modes),
}

/// A text that is one statement, which begins or ends a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Control {
    /// `BEGIN`.
    Begin(Modes),
    /// `START TRANSACTION`.
    Start(Modes),
    /// COMMIT, END.
    Commit,
    /// ROLLBACK, ABORT.
    Rollback,
}

impl Modes {
    fn of_kind(self, kind: u8, mode: Mode) -> bool {
        self.0 & kind == mode as u8
    }

    /// Adds one. `None`: there is one of its kind.
    fn with(self, mode: Mode) -> Option<Modes> {
        let (kind, _) = KINDS.into_iter().find(|(kind, _)| kind & mode as u8 != 0)?;
        (self.0 & kind == 0).then_some(Modes(self.0 | mode as u8))
    }

    /// A server in recovery refuses it.
    fn needs_primary(self) -> bool {
        self.of_kind(0b111_0000, Mode::Serializable) || self.of_kind(0b11, Mode::ReadWrite)
    }

    /// The statement that begins such a transaction.
    fn text(self) -> String {
        let said = KINDS.into_iter().flat_map(|(kind, modes)| {
            modes.iter().filter(move |(mode, _)| self.of_kind(kind, *mode)).map(|(_, words)| *words)
        });
        std::iter::once("BEGIN").chain(said).collect()
    }
}

impl Control {
    /// Reads a text. `None`: it is anything else, or is written in a way that is not looked into.
    pub fn of(text: &[u8]) -> Option<Control> {
        let text = std::str::from_utf8(text).ok().filter(|text| text.is_ascii())?;
        let text = without_comments(text)?;
        let text = without_comments(text.strip_suffix(';').unwrap_or(text))?;
        let mut words = Words { rest: text };
        let control = match words.next()? {
            "begin" => Control::Begin(words.noise().modes()?),
            "start" => {
                words.next().filter(|word| *word == "transaction")?;
                Control::Start(words.modes()?)
            }
            "commit" | "end" => Control::Commit,
            "rollback" | "abort" => Control::Rollback,
            _ => return None,
        };
        words.noise().rest.is_empty().then_some(control)
    }
}

fn is_space(byte: char) -> bool {
    matches!(byte, ' ' | '\t' | '\n' | '\r' | '\x0c')
}

/// A text without the space and the comments around it. `None`: one of them is not plain.
fn without_comments(text: &str) -> Option<&str> {
    let mut text = text.trim_matches(is_space);
    while let Some(begun) = text.strip_prefix("/*") {
        let (comment, rest) = begun.split_once("*/")?;
        text = rest.trim_start_matches(is_space);
        if comment.contains("/*") {
            return None;
        }
    }
    while let Some(ended) = text.strip_suffix("*/") {
        let (rest, comment) = ended.rsplit_once("/*")?;
        text = rest.trim_end_matches(is_space);
        if comment.contains("*/") {
            return None;
        }
    }
    Some(text)
}

/// The words of a text, in lower case.
struct Words<'a> {
    rest: &'a str,
}

impl Words<'_> {
    fn peek(&self) -> Option<(&'static str, usize)> {
        const KNOWN: [&str; 21] = [
            "begin",
            "start",
            "commit",
            "end",
            "rollback",
            "abort",
            "work",
            "transaction",
            "isolation",
            "level",
            "serializable",
            "repeatable",
            "read",
            "committed",
            "uncommitted",
            "only",
            "write",
            "not",
            "deferrable",
            ",",
            "chain",
        ];
        let begins = self.rest.trim_start_matches(is_space);
        let skipped = self.rest.len() - begins.len();
        let len = match begins.find(|byte: char| !byte.is_ascii_alphabetic()).unwrap_or(begins.len()) {
            0 => 1,
            len => len,
        };
        let word = begins.get(..len)?;
        let known = KNOWN.into_iter().find(|known| word.eq_ignore_ascii_case(known))?;
        Some((known, skipped + len))
    }

    fn next(&mut self) -> Option<&'static str> {
        let (word, len) = self.peek()?;
        self.rest = self.rest.get(len..).unwrap_or_default();
        Some(word)
    }

    /// Skips `WORK` or `TRANSACTION`.
    fn noise(&mut self) -> &mut Self {
        if matches!(self.peek(), Some(("work" | "transaction", _))) {
            self.next();
        }
        self
    }

    /// All that is left: modes, each kind once at most, with commas between them or without.
    fn modes(&mut self) -> Option<Modes> {
        let mut modes = Modes::default();
        let mut first = true;
        while !self.rest.is_empty() {
            let mut word = self.next()?;
            if word == "," && !first {
                word = self.next()?;
            }
            first = false;
            let mode = match word {
                "isolation" => self.isolation()?,
                "read" => match self.next()? {
                    "only" => Mode::ReadOnly,
                    "write" => Mode::ReadWrite,
                    _ => return None,
                },
                "deferrable" => Mode::Deferrable,
                "not" if self.next() == Some("deferrable") => Mode::NotDeferrable,
                _ => return None,
            };
            modes = modes.with(mode)?;
        }
        Some(modes)
    }

    fn isolation(&mut self) -> Option<Mode> {
        self.next().filter(|word| *word == "level")?;
        Some(match self.next()? {
            "serializable" => Mode::Serializable,
            "repeatable" if self.next() == Some("read") => Mode::RepeatableRead,
            "read" => match self.next()? {
                "committed" => Mode::ReadCommitted,
                "uncommitted" => Mode::ReadUncommitted,
                _ => return None,
            },
            _ => return None,
        })
    }
}

/// What the servers of a pool have said, by which it is known whether BEGIN may wait. For all workers.
#[derive(Debug, Default)]
pub(crate) struct Facts(AtomicU8);

impl Facts {
    /// They do not end a transaction for being idle.
    const LETS_WAIT: u8 = 1;
    /// They are not in recovery.
    const IS_PRIMARY: u8 = 2;
    /// No `DateStyle` is stored for a database or a role there.
    const STORES_NO_DATESTYLE: u8 = 4;
    /// Only of the server that says it: it has such a search path by itself.
    const TEMPORARY_PATH: u8 = 8;

    /// A server has answered [`QUESTION`] with these rows.
    fn note(&self, rows: u8) {
        self.0.store(rows, Relaxed);
    }

    /// Nothing is known of them any more.
    pub(crate) fn forget(&self) {
        self.note(0);
    }

    /// What servers have by themselves is what a startup packet's `DateStyle` is completed from.
    pub fn stores_no_datestyle(&self) -> bool {
        self.0.load(Relaxed) & Self::STORES_NO_DATESTYLE != 0
    }

    fn lets_wait(&self, modes: Modes) -> bool {
        let facts = self.0.load(Relaxed);
        facts & Self::LETS_WAIT != 0 && (!modes.needs_primary() || facts & Self::IS_PRIMARY != 0)
    }
}

impl Front {
    /// What of a whole text that is all of its request may be answered without a server.
    pub(crate) fn control_of(&self, text: &[u8]) -> Option<Control> {
        Control::of(text).filter(|control| match control {
            Control::Begin(_) | Control::Start(_) => {
                self.late == Late::No
                    && self.boundary == Boundary::Idle
                    && self.outstanding == 0
                    && !self.is_at_home
                    && self.pins().is_empty()
                    && ENDS.iter().all(|name| self.settings.get(name).is_none())
            }
            Control::Commit | Control::Rollback => self.late != Late::No,
        })
    }

    /// Answers the request found last, if that begins a transaction or ends one that no server knows of.
    /// False: a server must be asked.
    pub(crate) fn answer_late(&mut self, request: &[u8], facts: &Facts, out: &mut Vec<u8>) -> bool {
        let Some(control) = lone_query(request).and_then(|text| self.control_of(text)) else { return false };
        let tag: &[u8] = match control {
            Control::Begin(modes) | Control::Start(modes) if !facts.lets_wait(modes) => return false,
            Control::Begin(modes) | Control::Start(modes) => {
                (self.late, self.boundary) = (Late::Begun(modes), Boundary::InTransaction);
                if matches!(control, Control::Start(_)) { b"START TRANSACTION" } else { b"BEGIN" }
            }
            Control::Commit | Control::Rollback => {
                let late = std::mem::take(&mut self.late);
                self.boundary = Boundary::Idle;
                let commits = control == Control::Commit && !matches!(late, Late::Failed(_));
                if commits { b"COMMIT" } else { b"ROLLBACK" }
            }
        };
        self.forget_control();
        put(out, b'C', |out| put_cstr(out, tag));
        put_ready(out, self.boundary);
        true
    }

    /// No server gets it, so nothing of it waits for one. As every simple Query it has destroyed the unnamed
    /// statement.
    fn forget_control(&mut self) {
        drop(self.next_text());
        (self.controls, self.draws, self.ties) = (false, Draws::No, false);
        if let Some(prepared) = self.prepared.as_deref_mut() {
            prepared.unnamed = None;
            prepared.answered = None;
            prepared.unnamed_is_raw = false;
            prepared.portal = None;
        }
    }

    /// Its first request will not run, and answers with an error.
    pub(crate) fn fail_late(&mut self) {
        if let Late::Begun(modes) = self.late {
            (self.late, self.boundary) = (Late::Failed(modes), Boundary::Failed);
        }
    }
}

impl Back {
    /// Asks the server, before any client has it, whether BEGIN may wait. False: it was asked.
    pub(crate) fn introduce(&mut self, out: &mut Vec<u8>) -> bool {
        if self.own.is_some() || std::mem::replace(&mut self.facts_asked, true) {
            return false;
        }
        self.queue.push_entry(INTERNAL, Kind::Internal, true);
        self.queue.push(Owed::Internal(Internal::Facts));
        if let Some(tail) = self.queue.tail_mut() {
            tail.ended = true;
        }
        let mut bytes = Vec::new();
        put_query(&mut bytes, QUESTION.as_bytes());
        self.write(&bytes, out);
        true
    }

    /// A row of the answer: the body of a DataRow of one column.
    pub(crate) fn facts_row(&mut self, body: &[u8]) {
        const SHORT: usize = 7;
        if body.len() > SHORT {
            self.defaults = body.get(SHORT - 1..).map(Into::into);
            return;
        }
        self.facts_said |= match body.last() {
            Some(b'1') => Facts::LETS_WAIT,
            Some(b'2') => Facts::IS_PRIMARY,
            Some(b'4') => Facts::STORES_NO_DATESTYLE,
            Some(b'8') => Facts::TEMPORARY_PATH,
            _ => 0,
        };
    }

    /// The server has said it, or has refused to.
    pub(crate) fn facts_done(&mut self, failed: bool) {
        self.own_temporary_path = failed || self.facts_said & Facts::TEMPORARY_PATH != 0;
        self.facts.note(if failed { 0 } else { self.facts_said });
    }

    /// Begins the transaction that was held back, in front of its first request. As messages of the extended
    /// protocol, without a Sync: were it refused, the server would run nothing of what stands behind.
    pub(crate) fn begin_late(&mut self, late: Late, out: &mut Vec<u8>) {
        let (modes, fails) = match late {
            Late::No => return,
            Late::Begun(modes) => (modes, false),
            Late::Failed(modes) => (modes, true),
        };
        let mut bytes = Vec::new();
        let mut content = modes.text().into_bytes();
        content.extend_from_slice(&[0; 3]);
        put_parse(&mut bytes, b"", &content);
        put(&mut bytes, b'B', |out| out.extend_from_slice(&[0; 8]));
        put(&mut bytes, b'E', |out| out.extend_from_slice(&[0; 5]));
        self.queue.push(Owed::Begin { left: REPLIES, fails });
        if fails {
            put_bind_nobody(&mut bytes);
            bytes.extend_from_slice(SYNC);
            self.queue.push(Owed::HiddenSync);
        }
        (self.unnamed, self.has_begin_portal) = (None, true);
        if let Some(tail) = self.queue.tail_mut() {
            tail.controls = true;
        }
        self.write(&bytes, out);
    }

    /// The server has refused to begin, or to answer at all, before the request in front of which it was to.
    pub(crate) fn refuses_to_begin(&self) -> bool {
        match self.queue.next() {
            Some(Owed::Begin { left, fails }) => *left > 0 || !fails,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests;
