//! A model client's next step.
//!
//! Owns: the choice. The client's engine computes the expected answer to any choice; so anything may be
//! chosen at any time, sensible or not, as long as it is valid protocol.

use super::engine::{Engine, SCHEMAS};
use super::wire::{command, put_command, put_string};
use crate::dice::Dice;
use crate::plan::Plan;
use crate::postgres::script::Next;
use weir_proxy::settings::PoolMode;

/// A client's script, made up as it goes.
#[derive(Debug)]
pub struct Script {
    name: String,
    dice: Dice,
    counter: u64,
    steps: u64,
    rude: u64,
    statement_mode: bool,
    multi: bool,
    /// The last request was one that fails: its messages may be asked for.
    failed: bool,
    /// Parameters whose types this client has said, by statement.
    bound: Vec<u32>,
}

const KINDS: [(u64, Kind); 26] = [
    (34, Kind::Select),
    (4, Kind::FailingSelect),
    (10, Kind::Begin),
    (14, Kind::EndTransaction),
    (10, Kind::Insert),
    (4, Kind::OwnRows),
    (2, Kind::SetVariable),
    (4, Kind::ReadVariable),
    (3, Kind::SetTimeZone),
    (4, Kind::Show),
    (3, Kind::Use),
    (1, Kind::Autocommit),
    (2, Kind::Temporary),
    (3, Kind::ReadTemporary),
    (8, Kind::Prepare),
    (18, Kind::Execute),
    (3, Kind::CloseStatement),
    (2, Kind::ResetStatement),
    (2, Kind::LongData),
    (4, Kind::Multi),
    (1, Kind::Lock),
    (3, Kind::Ping),
    (1, Kind::Large),
    (2, Kind::Reset),
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
    SetVariable,
    ReadVariable,
    SetTimeZone,
    Show,
    Use,
    Autocommit,
    Temporary,
    ReadTemporary,
    Prepare,
    Execute,
    CloseStatement,
    ResetStatement,
    LongData,
    Multi,
    Lock,
    Ping,
    Large,
    Reset,
    Cancelled,
    /// What others ask, too.
    Alike,
}

/// Texts that clients prepare; many clients prepare the same.
fn prepared_text(n: u64) -> String {
    match n {
        0 => "INSERT INTO t VALUES (?) /* id=i0 */".to_owned(),
        1 => "SELECT ? /* id=p1 fail */".to_owned(),
        2 => "SELECT ? /* id=p2 rows=40 width=50 */".to_owned(),
        3 => "COMMIT".to_owned(),
        4 => "SELECT 'fixed' /* id=p4 rows=3 */".to_owned(),
        n => format!("SELECT ? /* id=p{n} rows={} */", n % 4),
    }
}

impl Script {
    /// The script of a client of this name.
    pub fn new(name: &str, mut dice: Dice, plan: &Plan, multi: bool) -> Self {
        Script {
            name: name.to_owned(),
            counter: 0,
            steps: dice.between(1, plan.steps),
            dice,
            rude: plan.rude,
            statement_mode: plan.mode == PoolMode::Statement,
            multi,
            failed: false,
            bound: Vec::new(),
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
        let asks = !waits && self.dice.one_in(3);
        if std::mem::take(&mut self.failed) && asks {
            return query("SHOW WARNINGS".to_owned());
        }
        self.steps = self.steps.saturating_sub(1);
        if self.steps == 0 {
            return self.polite_end(waits);
        }
        loop {
            let weights: Vec<u64> = KINDS.iter().map(|&(weight, _)| weight).collect();
            let (_, kind) = KINDS[self.dice.weighted(&weights)];
            if let Some(next) = self.step(kind, shadow, waits) {
                return next;
            }
        }
    }

    fn polite_end(&mut self, waits: bool) -> Next {
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
                let Some(Next::Send { mut bytes, .. }) = self.step(Kind::Insert, shadow, true) else {
                    return Next::Close;
                };
                bytes.truncate(self.dice.below(bytes.len() as u64) as usize);
                Next::Partial { bytes }
            }
        }
    }

    /// The beginning of the comment of a text that was written by others.
    pub fn comment_of(&mut self, shadow: &Engine) -> String {
        format!("/* tag={} tz={} db={} ", self.tag(), shadow.setting("time_zone"), shadow.schema())
    }

    fn comment(&mut self, shadow: &Engine, more: &str) -> String {
        let tag = self.tag();
        format!("/* tag={tag} tz={} db={} {more} */", shadow.setting("time_zone"), shadow.schema())
    }

    fn simple(&mut self, shadow: &Engine, text: &str, more: &str) -> Option<Next> {
        Some(query(format!("{text} {}", self.comment(shadow, more))))
    }

    fn step(&mut self, kind: Kind, shadow: &Engine, waits: bool) -> Option<Next> {
        let open = shadow.in_transaction;
        match kind {
            Kind::Select => {
                let (rows, width) = (self.dice.spread(0, 60), self.dice.spread(0, 3_000));
                let sleep = if self.dice.one_in(10) { self.dice.spread(100, 20_000) } else { 0 };
                self.simple(shadow, "SELECT 'x'", &format!("rows={rows} width={width} sleep={sleep}"))
            }
            Kind::FailingSelect => {
                self.failed = true;
                self.simple(shadow, "SELECT 'x'", "fail")
            }
            Kind::Begin if self.statement_mode => None,
            Kind::Begin => {
                let text = *self.dice.pick(&["BEGIN", "START TRANSACTION"]);
                self.simple(shadow, text, "")
            }
            Kind::EndTransaction if !open => None,
            Kind::EndTransaction => {
                let end = *self.dice.pick(&["COMMIT", "COMMIT", "ROLLBACK"]);
                self.simple(shadow, end, "")
            }
            Kind::Insert => self.simple(shadow, "INSERT INTO t VALUES (1)", ""),
            Kind::OwnRows if open => self.simple(shadow, "SELECT own FROM t", ""),
            Kind::OwnRows => None,
            Kind::SetVariable => {
                let text = format!("SET @v = 'of {}'", self.name);
                self.simple(shadow, &text, "")
            }
            Kind::ReadVariable => self.simple(shadow, "SELECT @v", ""),
            Kind::SetTimeZone => {
                let zone = *self.dice.pick(&["UTC", "CET", "Asia/Tokyo", "bad"]);
                self.simple(shadow, &format!("SET time_zone = '{zone}'"), "")
            }
            Kind::Show => {
                let texts = [
                    "SELECT @@time_zone",
                    "SELECT DATABASE()",
                    "SELECT CONNECTION_ID()",
                    "SELECT LAST_INSERT_ID()",
                ];
                let text = *self.dice.pick(&texts);
                self.simple(shadow, text, "")
            }
            Kind::Use => {
                let schema = if self.dice.one_in(5) { "nowhere" } else { *self.dice.pick(&SCHEMAS) };
                if self.dice.one_in(2) {
                    return Some(command_of(command::INIT_DB, schema.as_bytes(), format!("schema {schema}")));
                }
                self.simple(shadow, &format!("USE {schema}"), "")
            }
            Kind::Autocommit if self.statement_mode => None,
            Kind::Autocommit => {
                let text = format!("SET autocommit = {}", self.dice.below(2));
                self.simple(shadow, &text, "")
            }
            Kind::Temporary => {
                let text = match self.dice.below(3) {
                    0 => "DROP TEMPORARY TABLE tmp".to_owned(),
                    _ => format!("CREATE TEMPORARY TABLE tmp AS SELECT 'of {}' AS v", self.name),
                };
                self.simple(shadow, &text, "")
            }
            Kind::ReadTemporary => self.simple(shadow, "SELECT v FROM tmp", ""),
            Kind::Prepare => {
                let text = prepared_text(self.dice.below(9));
                Some(command_of(command::PREPARE, text.as_bytes(), format!("prepares {text}")))
            }
            Kind::Execute => self.execute(shadow, false),
            Kind::LongData => self.execute(shadow, true),
            Kind::CloseStatement => {
                let (id, _) = self.statement(shadow);
                Some(command_of(command::CLOSE, &id.to_le_bytes(), format!("closes {id}")))
            }
            Kind::ResetStatement => {
                let (id, _) = self.statement(shadow);
                Some(command_of(command::RESET, &id.to_le_bytes(), format!("resets {id}")))
            }
            Kind::Multi if !self.multi => None,
            Kind::Multi => Some(self.multi(shadow)),
            Kind::Lock => {
                let text = *self.dice.pick(&["SELECT GET_LOCK('l',0)", "SELECT RELEASE_ALL_LOCKS()"]);
                self.simple(shadow, text, "")
            }
            Kind::Ping => Some(command_of(command::PING, &[], "a ping".into())),
            Kind::Large => {
                let size = self.dice.spread(20_000, 150_000) as usize;
                let text = format!("SELECT 'x' {} /*{}*/", self.comment(shadow, "rows=1"), "-".repeat(size));
                Some(query(text))
            }
            Kind::Reset if self.dice.one_in(2) => {
                self.bound.clear();
                Some(command_of(command::RESET_CONNECTION, &[], "a reset".into()))
            }
            Kind::Reset => Some(query(String::new())),
            Kind::Cancelled if !waits => {
                let sleep = self.dice.spread(1_000, 60_000);
                let text = format!("SELECT 'x' {}", self.comment(shadow, &format!("sleep={sleep}")));
                let mut bytes = Vec::new();
                put_command(&mut bytes, command::QUERY, text.as_bytes());
                Some(Next::SendAndCancel { bytes })
            }
            Kind::Cancelled => None,
            Kind::Alike => {
                let n = self.dice.below(4);
                let text = format!("SELECT 'clock' FROM t /* id=a{n} rows={n} sleep={} */", 700 * n);
                Some(query(text))
            }
        }
    }

    /// A statement it has, mostly: its number and parameters.
    fn statement(&mut self, shadow: &Engine) -> (u32, usize) {
        let all: Vec<_> = shadow.prepared().collect();
        if all.is_empty() || self.dice.one_in(12) {
            return (self.dice.between(40, 50) as u32 * 7, 1);
        }
        *self.dice.pick(&all)
    }

    fn execute(&mut self, shadow: &Engine, long: bool) -> Option<Next> {
        let (id, parameters) = self.statement(shadow);
        if long && parameters == 0 {
            return None;
        }
        let (tag, mut bytes) = (self.tag(), Vec::new());
        if long {
            for part in [&tag.as_bytes()[..1], &tag.as_bytes()[1..]] {
                put_command(&mut bytes, command::LONG_DATA, &[&id.to_le_bytes()[..], &[0, 0], part].concat());
            }
        }
        let mut rest = [&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat();
        if parameters > 0 {
            // Drivers say the types once, and again when they change.
            let said = self.bound.contains(&id) && self.dice.one_in(2);
            rest.push(0);
            if said {
                rest.push(0);
            } else {
                self.bound.push(id);
                rest.extend_from_slice(&[1, 253, 0]);
            }
            if !long {
                put_string(&mut rest, tag.as_bytes());
            }
        }
        put_command(&mut bytes, command::EXECUTE, &rest);
        Some(Next::Send { bytes, what: format!("executes {id} as {tag}") })
    }

    fn multi(&mut self, shadow: &Engine) -> Next {
        let mut text = String::new();
        for _ in 0..self.dice.between(2, 4) {
            let statement = *self.dice.pick(&["SELECT 'm'", "INSERT INTO t VALUES (1)", "SELECT 'm'"]);
            let more = if self.dice.one_in(8) { "fail" } else { "rows=2" };
            text.push_str(&format!("{statement} {}; ", self.comment(shadow, more)));
        }
        query(text)
    }
}

fn query(text: String) -> Next {
    command_of(command::QUERY, text.as_bytes(), text.chars().take(100).collect())
}

fn command_of(code: u8, rest: &[u8], what: String) -> Next {
    let mut bytes = Vec::new();
    put_command(&mut bytes, code, rest);
    Next::Send { bytes, what }
}
