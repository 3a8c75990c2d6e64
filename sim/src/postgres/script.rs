//! A model client's next step.
//!
//! Owns: the choice. The client's engine computes the expected answer to any choice; so anything may be
//! chosen at any time, sensible or not, as long as it is valid protocol.

use super::engine::{Engine, Transaction};
use super::wire::{put, put_about, put_bind, put_execute, put_parse, put_query, put_text};
use crate::dice::Dice;
use crate::plan::Plan;
use std::fmt;
use weir_proxy::settings::PoolMode;

/// Values of TimeZone, without blanks.
pub const TIME_ZONES: [&str; 4] = ["UTC", "CET", "EST", "Asia/Tokyo"];

/// What comes next.
pub enum Next {
    /// These bytes: one or more whole requests, or a part that the next step goes on with.
    Send {
        /// The bytes.
        bytes: Vec<u8>,
        /// What they are, for the trace.
        what: String,
    },
    /// A slow request whose cancellation will be asked for.
    SendAndCancel {
        /// The bytes.
        bytes: Vec<u8>,
    },
    /// Says goodbye and goes.
    Terminate,
    /// Goes without a word.
    Close,
    /// Goes with a reset.
    Abort,
    /// Sends nothing more, and reads on.
    HalfShut,
    /// Sends a part of a request and goes.
    Partial {
        /// The part.
        bytes: Vec<u8>,
    },
}

impl fmt::Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Next::Send { what, bytes } => write!(f, "sends {what} ({} bytes)", bytes.len()),
            Next::SendAndCancel { .. } => f.write_str("sends a slow query to be cancelled"),
            Next::Terminate => f.write_str("says goodbye"),
            Next::Close => f.write_str("closes"),
            Next::Abort => f.write_str("resets"),
            Next::HalfShut => f.write_str("sends nothing more"),
            Next::Partial { bytes } => write!(f, "goes in the middle of a message ({} bytes)", bytes.len()),
        }
    }
}

/// A client's script, made up as it goes.
#[derive(Debug)]
pub struct Script {
    name: String,
    dice: Dice,
    counter: u64,
    steps: u64,
    rude: u64,
    statement_mode: bool,
    /// Data of a COPY that is still to be sent, then how it ends.
    copying: Option<Copying>,
    /// A batch is open: the server may still owe its Sync.
    open_batch: bool,
}

#[derive(Debug)]
struct Copying {
    chunks: u64,
    extended: bool,
}

/// Texts that clients prepare; many clients prepare the same.
fn prepared_text(n: u64) -> String {
    match n {
        0 => "INSERT INTO t VALUES ($1) /* id=i0 */".to_owned(),
        1 => "SELECT $1 /* id=p1 fail */".to_owned(),
        2 => "SELECT $1 /* id=p2 rows=40 width=50 */".to_owned(),
        n => format!("SELECT $1 /* id=p{n} rows={} */", n % 4),
    }
}

const KINDS: [(u64, Kind); 28] = [
    (30, Kind::Select),
    (4, Kind::FailingSelect),
    (10, Kind::Begin),
    (12, Kind::EndTransaction),
    (10, Kind::Insert),
    (4, Kind::OwnRows),
    (2, Kind::SetPrivate),
    (4, Kind::ShowPrivate),
    (2, Kind::SetTimeZone),
    (4, Kind::Show),
    (2, Kind::Temporary),
    (3, Kind::ReadTemporary),
    (12, Kind::OneShot),
    (8, Kind::Prepare),
    (14, Kind::ExecutePrepared),
    (3, Kind::ClosePrepared),
    (5, Kind::MixedBatch),
    (4, Kind::Flush),
    (3, Kind::CopyIn),
    (3, Kind::CopyOut),
    (4, Kind::Multi),
    (1, Kind::Listen),
    (1, Kind::Lock),
    (1, Kind::FunctionCall),
    (1, Kind::Large),
    (2, Kind::Clear),
    (3, Kind::Cancelled),
    (30, Kind::Alike),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Select,
    FailingSelect,
    Begin,
    EndTransaction,
    Insert,
    OwnRows,
    SetPrivate,
    ShowPrivate,
    SetTimeZone,
    Show,
    Temporary,
    ReadTemporary,
    OneShot,
    Prepare,
    ExecutePrepared,
    ClosePrepared,
    MixedBatch,
    Flush,
    CopyIn,
    CopyOut,
    Multi,
    Listen,
    Lock,
    FunctionCall,
    Large,
    Clear,
    Cancelled,
    /// What others ask, too.
    Alike,
}

impl Script {
    /// The script of a client of this name.
    pub fn new(name: &str, mut dice: Dice, plan: &Plan) -> Self {
        Script {
            name: name.to_owned(),
            counter: 0,
            steps: dice.between(1, plan.steps),
            dice,
            rude: plan.rude,
            statement_mode: plan.mode == PoolMode::Statement,
            copying: None,
            open_batch: false,
        }
    }

    fn tag(&mut self) -> String {
        self.counter += 1;
        format!("{}.{}", self.name, self.counter)
    }

    /// The next step. With `waits`, answers to earlier ones are still to come.
    pub fn next(&mut self, shadow: &Engine, waits: bool) -> Next {
        if self.dice.per_mille(self.rude) {
            return self.rude_end(shadow);
        }
        if let Some(copying) = self.copying.take() {
            return self.copy_more(copying);
        }
        if self.open_batch {
            return self.end_batch();
        }
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return self.polite_end(shadow, waits);
        }
        loop {
            let weights: Vec<u64> = KINDS.iter().map(|&(weight, _)| weight).collect();
            let (_, kind) = KINDS[self.dice.weighted(&weights)];
            if let Some(next) = self.step(kind, shadow, waits) {
                return next;
            }
        }
    }

    fn polite_end(&mut self, _shadow: &Engine, waits: bool) -> Next {
        if waits {
            // It comes back when everything is answered.
            self.steps = 1;
            return Next::Send { bytes: Vec::new(), what: "nothing".into() };
        }
        match self.dice.below(4) {
            0 => Next::Close,
            1 => Next::HalfShut,
            _ => Next::Terminate,
        }
    }

    fn rude_end(&mut self, shadow: &Engine) -> Next {
        match self.dice.below(6) {
            0 => Next::Close,
            1 => Next::Abort,
            2 => Next::HalfShut,
            3 => Next::Terminate,
            _ => {
                let mut bytes = Vec::new();
                let (kind, _) = (Kind::Insert, 0);
                match self.step(kind, shadow, true) {
                    Some(Next::Send { bytes: whole, .. }) if self.copying.is_none() => bytes = whole,
                    _ => put(&mut bytes, b'd', b"half a line"),
                }
                let n = self.dice.below(bytes.len() as u64) as usize;
                bytes.truncate(n);
                Next::Partial { bytes }
            }
        }
    }

    /// The beginning of the comment of a text that was written by others.
    pub fn comment_of(&mut self, shadow: &Engine) -> String {
        format!("/* tag={} tz={} ", self.tag(), shadow.setting("TimeZone"))
    }

    fn comment(&mut self, shadow: &Engine, more: &str) -> String {
        let tag = self.tag();
        format!("/* tag={tag} tz={} {more} */", shadow.setting("TimeZone"))
    }

    fn simple(&mut self, shadow: &Engine, text: &str, more: &str) -> Option<Next> {
        let text = format!("{text} {}", self.comment(shadow, more));
        let mut bytes = Vec::new();
        put_query(&mut bytes, &text);
        Some(Next::Send { bytes, what: text.chars().take(100).collect() })
    }

    fn step(&mut self, kind: Kind, shadow: &Engine, waits: bool) -> Option<Next> {
        let idle = shadow.transaction == Transaction::Idle;
        match kind {
            Kind::Select => {
                let (rows, width) = (self.dice.spread(0, 60), self.dice.spread(0, 3_000));
                let sleep = if self.dice.one_in(10) { self.dice.spread(100, 20_000) } else { 0 };
                let notice = if self.dice.one_in(8) { "notice" } else { "" };
                let more = format!("rows={rows} width={width} sleep={sleep} {notice}");
                self.simple(shadow, "SELECT 'x'", &more)
            }
            Kind::FailingSelect => self.simple(shadow, "SELECT 'x'", "fail"),
            Kind::Begin if idle && !self.statement_mode => self.simple(shadow, "BEGIN", ""),
            Kind::Begin => None,
            Kind::EndTransaction if !idle => {
                let end = *self.dice.pick(&["COMMIT", "COMMIT", "ROLLBACK"]);
                self.simple(shadow, end, "")
            }
            Kind::EndTransaction => None,
            Kind::Insert => self.simple(shadow, "INSERT INTO t VALUES (1)", ""),
            Kind::OwnRows if !idle => self.simple(shadow, "SELECT own FROM t", ""),
            Kind::OwnRows => None,
            Kind::SetPrivate => {
                let text = match self.dice.below(4) {
                    0 => "RESET sim.v".to_owned(),
                    1 => format!("SET sim.v = 'bad {}'", self.name),
                    _ => format!("SET sim.v = 'of {}'", self.name),
                };
                self.simple(shadow, &text, "")
            }
            Kind::ShowPrivate => self.simple(shadow, "SHOW sim.v", ""),
            Kind::SetTimeZone => {
                let zone = *self.dice.pick(&TIME_ZONES);
                let text = match self.dice.below(5) {
                    0 => "RESET TimeZone".to_owned(),
                    1 if !idle => format!("SET LOCAL TimeZone = '{zone}'"),
                    _ => format!("SET TimeZone = '{zone}'"),
                };
                self.simple(shadow, &text, "")
            }
            Kind::Show => {
                let name =
                    *self.dice.pick(&["TimeZone", "application_name", "search_path", "no_such_setting"]);
                self.simple(shadow, &format!("SHOW {name}"), "")
            }
            Kind::Temporary => {
                let text = match self.dice.below(3) {
                    0 => "DROP TABLE tmp".to_owned(),
                    _ => format!("CREATE TEMP TABLE tmp AS SELECT 'of {}' AS v", self.name),
                };
                self.simple(shadow, &text, "")
            }
            Kind::ReadTemporary => self.simple(shadow, "SELECT v FROM tmp", ""),
            Kind::OneShot
            | Kind::Prepare
            | Kind::ExecutePrepared
            | Kind::ClosePrepared
            | Kind::MixedBatch => Some(self.batch(kind)),
            Kind::Flush if !waits => Some(self.begin_batch()),
            Kind::Flush => None,
            Kind::CopyIn if !waits => self.copy_in(shadow),
            Kind::CopyIn => None,
            Kind::CopyOut => {
                let more = format!("rows={} width={}", self.dice.spread(0, 50), self.dice.spread(0, 2_000));
                self.simple(shadow, "COPY t TO STDOUT", &more)
            }
            Kind::Multi => Some(self.multi(shadow)),
            Kind::Listen => {
                let text = *self.dice.pick(&["LISTEN channel", "LISTEN channel", "UNLISTEN *"]);
                self.simple(shadow, text, "")
            }
            Kind::Lock => {
                let text =
                    *self.dice.pick(&["SELECT pg_try_advisory_lock(1)", "SELECT pg_advisory_unlock_all()"]);
                self.simple(shadow, text, "")
            }
            Kind::FunctionCall => {
                let mut body = 1_234u32.to_be_bytes().to_vec();
                body.extend_from_slice(&[0; 6]);
                let mut bytes = Vec::new();
                put(&mut bytes, b'F', &body);
                Some(Next::Send { bytes, what: "a function call".into() })
            }
            Kind::Large => {
                let size = self.dice.spread(20_000, 150_000) as usize;
                let text = format!("SELECT 'x' {} /*{}*/", self.comment(shadow, "rows=1"), "-".repeat(size));
                let mut bytes = Vec::new();
                put_query(&mut bytes, &text);
                Some(Next::Send { bytes, what: "a large query".into() })
            }
            Kind::Clear => {
                let texts = ["DISCARD ALL", "DEALLOCATE ALL", "RESET ALL", ""];
                let text = *self.dice.pick(&texts);
                let mut bytes = Vec::new();
                put_query(&mut bytes, text);
                Some(Next::Send { bytes, what: format!("{text:?}") })
            }
            Kind::Cancelled if !waits && shadow.transaction != Transaction::Failed => {
                let sleep = self.dice.spread(1_000, 60_000);
                let text = format!("SELECT 'x' {}", self.comment(shadow, &format!("sleep={sleep}")));
                let mut bytes = Vec::new();
                put_query(&mut bytes, &text);
                Some(Next::SendAndCancel { bytes })
            }
            Kind::Cancelled => None,
            Kind::Alike => {
                let n = self.dice.below(4);
                let text = format!("SELECT 'clock' FROM t /* id=a{n} rows={n} sleep={} */", 700 * n);
                let mut bytes = Vec::new();
                put_query(&mut bytes, &text);
                Some(Next::Send { bytes, what: text })
            }
        }
    }

    fn multi(&mut self, shadow: &Engine) -> Next {
        let mut text = String::new();
        for _ in 0..self.dice.between(2, 4) {
            let statement = *self.dice.pick(&["SELECT 'm'", "INSERT INTO t VALUES (1)", "SELECT 'm'"]);
            let more = if self.dice.one_in(8) { "fail" } else { "rows=2" };
            text.push_str(&format!("{statement} {}; ", self.comment(shadow, more)));
        }
        let mut bytes = Vec::new();
        put_query(&mut bytes, &text);
        Next::Send { bytes, what: text.chars().take(100).collect() }
    }

    fn statement_name(&mut self) -> String {
        format!("s{}", self.dice.below(4))
    }

    /// A batch of the extended protocol with its Sync.
    fn batch(&mut self, kind: Kind) -> Next {
        let mut bytes = Vec::new();
        let mut what = Vec::new();
        let parts = if kind == Kind::MixedBatch { self.dice.between(2, 5) } else { 1 };
        for _ in 0..parts {
            let kinds = [
                Kind::OneShot,
                Kind::Prepare,
                Kind::ExecutePrepared,
                Kind::ExecutePrepared,
                Kind::ClosePrepared,
            ];
            let kind = if kind == Kind::MixedBatch { *self.dice.pick(&kinds) } else { kind };
            what.push(self.batch_part(kind, &mut bytes));
        }
        put(&mut bytes, b'S', b"");
        Next::Send { bytes, what: what.join(", ") }
    }

    fn batch_part(&mut self, kind: Kind, bytes: &mut Vec<u8>) -> String {
        match kind {
            Kind::OneShot => {
                let text = prepared_text(self.dice.below(7));
                put_parse(bytes, "", &text);
                let tag = self.bind_and_execute(bytes, "");
                format!("{text} as {tag}")
            }
            Kind::Prepare => {
                let (name, n) = (self.statement_name(), self.dice.below(9));
                if self.dice.one_in(2) {
                    put_about(bytes, b'C', b'S', &name);
                }
                put_parse(bytes, &name, &prepared_text(n));
                if self.dice.one_in(2) {
                    put_about(bytes, b'D', b'S', &name);
                }
                format!("prepares {name} as text {n}")
            }
            Kind::ClosePrepared => {
                let name = self.statement_name();
                put_about(bytes, b'C', b'S', &name);
                format!("closes {name}")
            }
            _ => {
                let name = self.statement_name();
                let tag = self.bind_and_execute(bytes, &name);
                format!("executes {name} as {tag}")
            }
        }
    }

    fn bind_and_execute(&mut self, bytes: &mut Vec<u8>, statement: &str) -> String {
        let tag = self.tag();
        let portal =
            if self.dice.one_in(8) { format!("portal{}", self.dice.below(2)) } else { String::new() };
        put_bind(bytes, &portal, statement, &[&tag]);
        if self.dice.one_in(2) {
            put_about(bytes, b'D', b'P', &portal);
        }
        if self.dice.one_in(6) {
            put_execute(bytes, &portal, 2);
        }
        put_execute(bytes, &portal, 0);
        if self.dice.one_in(8) {
            put_about(bytes, b'C', b'P', &portal);
        }
        tag
    }

    /// A batch that ends in Flush: its Sync comes when the answers have come.
    fn begin_batch(&mut self) -> Next {
        let mut bytes = Vec::new();
        let kind = *self.dice.pick(&[Kind::OneShot, Kind::Prepare, Kind::ExecutePrepared]);
        let mut what = self.batch_part(kind, &mut bytes);
        put(&mut bytes, b'H', b"");
        what.push_str(", flush");
        self.open_batch = true;
        Next::Send { bytes, what }
    }

    fn end_batch(&mut self) -> Next {
        let mut bytes = Vec::new();
        let mut what = String::new();
        if self.dice.one_in(3) {
            what = self.batch_part(Kind::ExecutePrepared, &mut bytes);
            put(&mut bytes, b'H', b"");
            what.push_str(", flush");
        } else {
            if self.dice.one_in(3) {
                what = self.batch_part(Kind::ExecutePrepared, &mut bytes);
            }
            put(&mut bytes, b'S', b"");
            what.push_str(", sync");
            self.open_batch = false;
        }
        Next::Send { bytes, what }
    }

    fn copy_in(&mut self, shadow: &Engine) -> Option<Next> {
        let fail = if self.dice.one_in(5) { "fail" } else { "" };
        let text = format!("COPY t FROM STDIN {}", self.comment(shadow, fail));
        let mut bytes = Vec::new();
        let extended = self.dice.one_in(4);
        if extended {
            put_parse(&mut bytes, "", &text);
            put_bind(&mut bytes, "", "", &[]);
            put_execute(&mut bytes, "", 0);
            put(&mut bytes, if self.dice.one_in(2) { b'S' } else { b'H' }, b"");
        } else {
            put_query(&mut bytes, &text);
        }
        let mut copying = Copying { chunks: self.dice.below(6), extended };
        if self.dice.one_in(3) {
            // All at once, without waiting for CopyInResponse.
            while copying.chunks > 0 {
                copying.chunks -= 1;
                self.copy_chunk(&mut bytes);
            }
            self.copy_end(&mut bytes, extended);
        } else {
            self.copying = Some(copying);
        }
        Some(Next::Send { bytes, what: text })
    }

    fn copy_chunk(&mut self, bytes: &mut Vec<u8>) {
        let n = self.dice.spread(1, 20_000) as usize;
        let mut data = format!("{}\t", self.name).into_bytes();
        data.resize(n.max(data.len()), b'y');
        put(bytes, b'd', &data);
    }

    fn copy_end(&mut self, bytes: &mut Vec<u8>, extended: bool) {
        if self.dice.one_in(6) {
            let mut reason = Vec::new();
            put_text(&mut reason, "the client thought better of it");
            put(bytes, b'f', &reason);
        } else {
            put(bytes, b'c', b"");
        }
        if extended {
            put(bytes, b'S', b"");
        }
    }

    fn copy_more(&mut self, mut copying: Copying) -> Next {
        let mut bytes = Vec::new();
        if copying.chunks == 0 {
            self.copy_end(&mut bytes, copying.extended);
            return Next::Send { bytes, what: "the end of its copy".into() };
        }
        copying.chunks -= 1;
        self.copy_chunk(&mut bytes);
        self.copying = Some(copying);
        Next::Send { bytes, what: "copy data".into() }
    }
}
