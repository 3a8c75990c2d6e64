//! A PostgreSQL session as a pure machine: bytes in, bytes out.
//!
//! Each run has two: one behind Weir, in a session of the model database, with time and faults; and one
//! beside each client, fed the same bytes at once, as if that client had the database for itself. What the
//! client gets through Weir must equal the output of its own engine.
//!
//! Owns: a session's state and the rules of the protocol. Must not know: connections, Weir.

use super::sql::{self, Command, Left, Statement};
use super::wire::{
    field, message, put, put_complaint, put_complete, put_description, put_parameter, put_row, put_text,
    take_text,
};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

mod extended;
#[cfg(test)]
mod tests;
mod transaction;

/// Settings the server reports, as it writes their names, with their defaults.
pub const REPORTED: [(&str, &str); 12] = [
    ("application_name", ""),
    ("client_encoding", "UTF8"),
    ("DateStyle", "ISO, MDY"),
    ("default_transaction_read_only", "off"),
    ("in_hot_standby", "off"),
    ("integer_datetimes", "on"),
    ("IntervalStyle", "postgres"),
    ("is_superuser", "off"),
    ("server_encoding", "UTF8"),
    ("server_version", "15.4 (model)"),
    ("standard_conforming_strings", "on"),
    ("TimeZone", "UTC"),
];

/// Settings it knows and does not report. Names with a dot are known, too, and empty by default.
const SILENT: [(&str, &str); 9] = [
    ("array_nulls", "on"),
    ("backslash_quote", "safe_encoding"),
    ("lc_monetary", "C"),
    ("search_path", "public"),
    ("statement_timeout", "0"),
    ("timezone_abbreviations", "Default"),
    ("transform_null_equals", "off"),
    ("work_mem", "4MB"),
    ("xmloption", "content"),
];

/// Values by name, in small letters. Looked at more often than changed.
type Settings = Rc<BTreeMap<String, String>>;

/// Where a session is with its transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transaction {
    /// None is open.
    Idle,
    /// One is open.
    Open,
    /// One is open and has failed.
    Failed,
}

#[derive(Debug, Clone)]
struct Portal {
    statement: Statement,
    values: Vec<String>,
    /// Rows already given.
    given: usize,
}

#[derive(Debug, Clone)]
struct CopyIn {
    statement: Statement,
    extended: bool,
    bytes: u64,
    hash: u64,
}

#[derive(Debug, Clone)]
struct Running {
    statement: Statement,
    values: Vec<String>,
    /// Of an Execute: which portal and how many rows.
    portal: Option<(String, usize)>,
    until_ns: u64,
    cancelled: bool,
}

/// What ROLLBACK TO goes back to.
#[derive(Debug, Clone)]
struct Savepoint {
    settings: Settings,
    local: BTreeMap<String, Option<String>>,
    temporary: Option<String>,
    staged: usize,
}

/// A session.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Bytes that may go out.
    pub output: Vec<u8>,
    /// Entries of transactions that were committed, in order; taken out by the owner.
    pub committed: Vec<String>,
    /// Tags of statements that were begun, in order; taken out by the owner.
    pub begun: Vec<String>,
    /// A rule was broken.
    pub problem: Option<String>,
    /// Terminate came.
    pub over: bool,
    /// Where it is with its transaction.
    pub transaction: Transaction,
    /// Whose tags were seen last.
    pub client: Option<String>,
    held: Vec<u8>,
    input: Vec<u8>,
    settings: Settings,
    defaults: Settings,
    settings_before: Option<Settings>,
    local: BTreeMap<String, Option<String>>,
    savepoint: Option<Savepoint>,
    statements: BTreeMap<String, Statement>,
    portals: BTreeMap<String, Portal>,
    temporary: Option<String>,
    temporary_before: Option<Option<String>>,
    listening: bool,
    locked: bool,
    staged: Vec<String>,
    /// Statements of an implicit transaction have run.
    implicit: bool,
    copy: Option<CopyIn>,
    /// Statements of a simple query that are still to run.
    queue: VecDeque<Statement>,
    in_query: bool,
    skips: bool,
    /// When it began to work on the last statement.
    begun_ns: u64,
    running: Option<Running>,
    /// Statements take no time.
    instant: bool,
    /// How long a statement takes beside what it says itself.
    pub pace_ns: u64,
    /// Who left something in the session that others must not see.
    owner_of_state: Option<String>,
    /// Whose request was cancelled. What it had sent behind that runs all the same, and under settings that
    /// the cancelled one was to change or to keep.
    cancelled: Option<String>,
    /// Weir's own change of settings was cancelled: nobody may be shown what a query behind it finds.
    settings_cancelled: bool,
    /// The statement that runs does so under other settings than its client's.
    misled: bool,
}

impl Engine {
    /// A session after its login, with the settings named in the startup packet. With `instant` statements
    /// take no time.
    pub fn new(startup: &[(String, String)], instant: bool) -> Self {
        let known = REPORTED.iter().chain(&SILENT);
        let mut settings: BTreeMap<String, String> =
            known.map(|(name, value)| (name.to_ascii_lowercase(), (*value).to_owned())).collect();
        for (name, value) in startup {
            settings.insert(name.to_ascii_lowercase(), value.clone());
        }
        let settings = Rc::new(settings);
        Engine {
            output: Vec::new(),
            committed: Vec::new(),
            begun: Vec::new(),
            problem: None,
            over: false,
            transaction: Transaction::Idle,
            client: None,
            held: Vec::new(),
            input: Vec::new(),
            defaults: settings.clone(),
            settings,
            settings_before: None,
            local: BTreeMap::new(),
            savepoint: None,
            statements: BTreeMap::new(),
            portals: BTreeMap::new(),
            temporary: None,
            temporary_before: None,
            listening: false,
            locked: false,
            staged: Vec::new(),
            implicit: false,
            copy: None,
            queue: VecDeque::new(),
            in_query: false,
            skips: false,
            begun_ns: 0,
            running: None,
            instant,
            pace_ns: 0,
            owner_of_state: None,
            cancelled: None,
            settings_cancelled: false,
            misled: false,
        }
    }

    /// What a server says between "ok" and the first ReadyForQuery, without its key.
    pub fn greeting(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for (name, _) in REPORTED {
            put_parameter(&mut out, name, self.setting(name));
        }
        out
    }

    /// The value of a setting.
    pub fn setting(&self, name: &str) -> &str {
        value(&self.settings, name).map_or("", String::as_str)
    }

    /// New bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Statements take time from now on.
    pub fn become_slow(&mut self) {
        self.instant = false;
        self.pace_ns = 1;
    }

    /// Statements take no time from now on.
    pub fn become_instant(&mut self) {
        self.instant = true;
        self.pace_ns = 0;
    }

    /// When it wants to be called again.
    pub fn busy_until_ns(&self) -> Option<u64> {
        self.running.as_ref().map(|running| running.until_ns)
    }

    /// Bytes that came and were not looked at.
    pub fn unread(&self) -> usize {
        self.input.len()
    }

    /// It has nothing to do and owes nothing.
    pub fn is_at_rest(&self) -> bool {
        self.input.is_empty()
            && self.running.is_none()
            && self.queue.is_empty()
            && self.copy.is_none()
            && !self.skips
            && self.transaction == Transaction::Idle
            && self.held.is_empty()
    }

    /// The tag of what runs.
    pub fn running_tag(&self) -> Option<&str> {
        let running = self.running.as_ref().map(|running| &running.statement);
        let copying = self.copy.as_ref().map(|copy| &copy.statement);
        running.or(copying).and_then(|statement| statement.tag.as_deref())
    }

    /// A cancel request. True when something ran.
    pub fn cancel(&mut self, now_ns: u64) -> bool {
        if self.running.is_some() || self.copy.is_some() {
            self.cancelled = self.client.clone();
        }
        if let Some(running) = &mut self.running {
            self.settings_cancelled |= matches!(running.statement.command, Command::SetConfig(_));
            running.cancelled = true;
            running.until_ns = now_ns;
            return true;
        }
        if let Some(copy) = self.copy.take() {
            self.fail(
                "57014",
                &format!("cancelled {}", copy.statement.tag.unwrap_or_default()),
                copy.extended,
            );
            return true;
        }
        false
    }

    /// Something that may be said at any time.
    pub fn mention(&mut self, text: &str) {
        put_complaint(&mut self.held, b'N', "NOTICE", "00000", text);
        self.flush();
    }

    /// A line on the channel it listens to, if it does.
    pub fn notify(&mut self) -> bool {
        if self.listening {
            let mut body = 77u32.to_be_bytes().to_vec();
            put_text(&mut body, "channel");
            put_text(&mut body, self.owner_of_state.as_deref().unwrap_or(""));
            put(&mut self.held, b'A', &body);
            self.flush();
        }
        self.listening
    }

    /// What is left in it that another client must not meet.
    pub fn state_left(&self) -> Option<String> {
        let mut left = Vec::new();
        if self.transaction != Transaction::Idle {
            left.push(format!("a transaction ({:?})", self.transaction));
        }
        if self.temporary.is_some() {
            left.push("a temporary table".into());
        }
        if self.listening {
            left.push("LISTEN".into());
        }
        if self.locked {
            left.push("a lock".into());
        }
        for (name, value) in self.settings.iter() {
            if name.contains('.') && !value.is_empty() {
                left.push(format!("{name} = {value}"));
            }
        }
        if self.copy.is_some() {
            left.push("a COPY".into());
        }
        (!left.is_empty()).then(|| left.join(", "))
    }

    fn flush(&mut self) {
        self.output.append(&mut self.held);
    }

    /// Works until it needs more bytes or more time.
    pub fn work(&mut self, now_ns: u64) {
        while !self.over && self.problem.is_none() {
            if let Some(running) = &self.running {
                if !self.instant && now_ns < running.until_ns {
                    return;
                }
                let Some(running) = self.running.take() else { return };
                self.finish(running);
            } else if self.copy.is_none()
                && let Some(statement) = self.queue.pop_front()
            {
                self.begin(statement, Vec::new(), None, now_ns);
            } else if self.copy.is_none() && self.in_query {
                self.end_query();
            } else if !self.next_message(now_ns) {
                return;
            }
        }
    }

    fn next_message(&mut self, now_ns: u64) -> bool {
        let input = std::mem::take(&mut self.input);
        let Some((tag, body, total)) = message(&input) else {
            self.input = input;
            return false;
        };
        if total > 64 << 20 {
            self.problem = Some(format!("a message of {total} bytes"));
            return false;
        }
        let body = body.to_vec();
        self.input = input;
        self.input.drain(..total);
        self.handle(tag, &body, now_ns);
        true
    }

    fn handle(&mut self, tag: u8, body: &[u8], now_ns: u64) {
        if self.copy.is_some() && self.handle_copy(tag, body) {
            return;
        }
        if self.skips && !matches!(tag, b'S' | b'X') {
            return;
        }
        let done = match tag {
            b'Q' => self.simple_query(body),
            b'P' => self.parse(body),
            b'B' => self.bind(body),
            b'D' => self.describe(body),
            b'E' => self.execute(body, now_ns),
            b'C' => self.close(body),
            b'S' => {
                self.sync();
                Some(())
            }
            b'H' => {
                self.flush();
                Some(())
            }
            b'F' => self.function_call(body),
            // Data of a COPY that is over is dropped.
            b'd' | b'c' | b'f' => Some(()),
            b'X' => {
                self.over = true;
                Some(())
            }
            _ => None,
        };
        if done.is_none() {
            self.problem = Some(format!("a malformed message {:?} of {} bytes", tag as char, body.len()));
        }
    }

    // COPY FROM STDIN.

    fn handle_copy(&mut self, tag: u8, body: &[u8]) -> bool {
        let Some(copy) = &mut self.copy else { return false };
        match tag {
            b'd' => {
                copy.bytes += body.len() as u64;
                for &byte in body {
                    copy.hash = (copy.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
                }
                if copy.statement.fails && copy.bytes > 100 {
                    let (extended, tag) = (copy.extended, copy.statement.tag.clone().unwrap_or_default());
                    self.copy = None;
                    self.fail("22P04", &format!("bad copy data {tag}"), extended);
                }
            }
            b'c' => {
                let Some(copy) = self.copy.take() else { return true };
                let tag = copy.statement.tag.clone().unwrap_or_default();
                self.staged.push(format!("{tag}:{}:{:x}", copy.bytes, copy.hash));
                put_complete(&mut self.held, &format!("COPY {}", copy.bytes));
                if copy.extended {
                    self.implicit = true;
                }
            }
            b'f' => {
                let Some(copy) = self.copy.take() else { return true };
                let tag = copy.statement.tag.clone().unwrap_or_default();
                self.fail("57014", &format!("COPY from stdin failed {tag}"), copy.extended);
            }
            b'S' | b'H' => {}
            b'X' => self.over = true,
            _ => {
                let extended = copy.extended;
                self.copy = None;
                self.fail("08P01", "unexpected message during COPY from stdin", extended);
            }
        }
        true
    }

    // Simple queries.

    fn simple_query(&mut self, body: &[u8]) -> Option<()> {
        let mut rest = body;
        let text = take_text(&mut rest)?;
        if !rest.is_empty() {
            return None;
        }
        self.statements.remove("");
        self.portals.remove("");
        if text.starts_with(CATALOGUE) && self.transaction == Transaction::Idle {
            // Nobody has made anything here that runs code.
            put_description(&mut self.held, &["kind", "name"]);
            put_row(&mut self.held, &[b"z", b"0"]);
            put_complete(&mut self.held, "SELECT 1");
            self.ready();
            return Some(());
        }
        if text.starts_with(FACTS) && self.transaction == Transaction::Idle {
            put_description(&mut self.held, &["?column?"]);
            put_row(&mut self.held, &[b"1"]);
            put_row(&mut self.held, &[b"2"]);
            put_complete(&mut self.held, "SELECT 2");
            self.ready();
            return Some(());
        }
        self.queue = sql::split(text).iter().map(|text| Statement::read(text)).collect();
        if self.queue.is_empty() {
            put(&mut self.held, b'I', b"");
        }
        self.in_query = true;
        Some(())
    }

    fn end_query(&mut self) {
        self.in_query = false;
        self.end_implicit();
        self.ready();
    }

    fn ready(&mut self) {
        let status = match self.transaction {
            Transaction::Idle => b'I',
            Transaction::Open => b'T',
            Transaction::Failed => b'E',
        };
        put(&mut self.held, b'Z', &[status]);
        self.flush();
    }

    // The extended protocol.

    fn refuses(&mut self, statement: &Statement) -> bool {
        if self.transaction == Transaction::Failed && !statement.ends_transaction() {
            self.fail("25P02", "current transaction is aborted", true);
            return true;
        }
        false
    }

    // Running a statement.

    fn begin(
        &mut self,
        statement: Statement,
        values: Vec<String>,
        portal: Option<(String, usize)>,
        now_ns: u64,
    ) {
        let tag = statement.tag.clone().or_else(|| values.first().cloned());
        if let Some(tag) = tag {
            self.touch(&tag, &statement);
            self.begun.push(tag);
        }
        self.begun_ns = now_ns;
        let until_ns = now_ns + self.pace_ns + statement.sleep_us * 1_000;
        self.running = Some(Running { statement, values, portal, until_ns, cancelled: false });
    }

    /// A statement of this client runs here: it must meet nothing that another client left.
    fn touch(&mut self, tag: &str, statement: &Statement) {
        let client = tag.split('.').next().unwrap_or(tag).to_owned();
        if let (Some(owner), Some(left)) = (&self.owner_of_state, self.state_left())
            && *owner != client
        {
            self.problem = Some(format!("{tag} runs in a session where {owner} left {left}"));
        }
        if self.owner_of_state.is_none() && self.state_left().is_some() {
            // Weir has begun its transaction.
            self.owner_of_state = Some(client.clone());
        }
        let other = statement.time_zone.as_deref().is_some_and(|wanted| wanted != self.setting("timezone"));
        // A query that stood behind somebody else's and was taken back when that was to be cancelled. It is
        // asked again elsewhere, and its answer goes nowhere: should a client read it, the client will say
        // so.
        self.misled = other && self.settings_cancelled && matches!(statement.command, Command::Literal(_));
        if let Some(wanted) = statement.time_zone.as_deref().filter(|_| other && !self.misled)
            && self.cancelled.as_ref() != Some(&client)
        {
            self.problem =
                Some(format!("{tag} runs under TimeZone {} and not {wanted}", self.setting("timezone")));
        }
        self.client = Some(client);
    }

    fn finish(&mut self, running: Running) {
        let Running { statement, values, portal, cancelled, .. } = running;
        let extended = portal.is_some();
        let tag = statement.tag.clone().or_else(|| values.first().cloned()).unwrap_or_default();
        if cancelled {
            return self.fail("57014", &format!("cancelled {tag}"), extended);
        }
        if self.transaction == Transaction::Failed && !statement.ends_transaction() {
            return self.fail("25P02", "current transaction is aborted", extended);
        }
        if statement.notices {
            put_complaint(&mut self.held, b'N', "NOTICE", "00000", &format!("on the way of {tag}"));
        }
        if statement.fails && statement.command != Command::CopyIn {
            return self.fail("22012", &format!("division by zero in {tag}"), extended);
        }
        // A BEGIN that Weir has held back does not say whose it is: the first statement behind it that does.
        let nobodys = tag.is_empty()
            && match self.state_left() {
                Some(_) => self.owner_of_state.is_none(),
                None => statement.command == Command::Begin,
            };
        self.open_implicit(&statement);
        if statement.has_rows() {
            self.rows(&statement, &values, portal);
        } else {
            if let Some(portal) = portal.and_then(|(name, _)| self.portals.get_mut(&name)) {
                portal.given = 1;
            }
            self.effect(&statement, &tag, extended);
        }
        if self.state_left().is_some() {
            self.owner_of_state = self.client.clone().filter(|_| !nobodys);
        }
    }

    fn rows(&mut self, statement: &Statement, values: &[String], portal: Option<(String, usize)>) {
        if let Command::SetConfig(settings) = &statement.command {
            self.settings_cancelled = false;
            for (name, value) in settings.clone() {
                if let Err((code, text)) = self.set(&name, value) {
                    return self.fail(code, &text, portal.is_some());
                }
            }
        }
        if matches!(statement.command, Command::Lock) {
            self.locked = true;
        }
        if matches!(statement.command, Command::Unlock) {
            self.locked = false;
        }
        let cells = match self.cells(statement, values) {
            Ok(cells) => cells,
            Err((code, text)) => return self.fail(code, &text, portal.is_some()),
        };
        if portal.is_none() {
            put_description(&mut self.held, &columns(statement));
        }
        let (given, limit) = match &portal {
            Some((name, rows)) => {
                let given = self.portals.get(name).map_or(0, |portal| portal.given);
                (given, if *rows == 0 { usize::MAX } else { *rows })
            }
            None => (0, usize::MAX),
        };
        let now: Vec<_> = cells.iter().skip(given).take(limit).collect();
        for row in &now {
            let row: Vec<&[u8]> = row.iter().map(|cell| cell.as_bytes()).collect();
            put_row(&mut self.held, &row);
        }
        let after = given + now.len();
        if let Some((name, _)) = portal {
            if let Some(portal) = self.portals.get_mut(&name) {
                portal.given = after;
            }
            if now.len() == limit {
                put(&mut self.held, b's', b"");
                return;
            }
        }
        put_complete(&mut self.held, &format!("SELECT {}", now.len()));
    }

    fn cells(
        &self,
        statement: &Statement,
        values: &[String],
    ) -> Result<Vec<Vec<String>>, (&'static str, String)> {
        let shown = |text: &str| {
            (0..statement.rows)
                .map(|row| {
                    let mut cell = format!("{text}|{}|{row}|", statement.id);
                    let missing = statement.width.saturating_sub(cell.len());
                    let letter = row % 26;
                    cell.push_str(&LETTERS[letter..=letter].repeat(missing));
                    vec![cell]
                })
                .collect()
        };
        Ok(match &statement.command {
            Command::Literal(_) if self.misled => shown("under the settings of another client"),
            Command::Literal(text) if text == crate::oracle::CLOCK => {
                shown(&crate::oracle::clock(self.begun_ns))
            }
            Command::Literal(text) => shown(text),
            Command::Parameter => shown(values.first().map_or("", String::as_str)),
            Command::OwnRows => vec![vec![self.staged.join(",")]],
            Command::Temporary => match &self.temporary {
                Some(text) => vec![vec![text.clone()]],
                None => return Err(("42P01", "relation \"tmp\" does not exist".to_owned())),
            },
            Command::SetConfig(settings) => {
                vec![settings.iter().map(|(name, _)| self.setting(name).to_owned()).collect()]
            }
            Command::Show(name) => {
                if !name.contains('.') && !self.settings.contains_key(name) {
                    return Err(("42704", format!("unrecognized configuration parameter \"{name}\"")));
                }
                vec![vec![self.setting(name).to_owned()]]
            }
            Command::Left(columns) => vec![columns.iter().map(|column| self.left(column)).collect()],
            Command::Lock => vec![vec!["t".to_owned()]],
            Command::Unlock => vec![vec![String::new()]],
            _ => Vec::new(),
        })
    }

    /// What Weir asks about it.
    fn left(&self, column: &Left) -> String {
        let is = |there: bool| if there { "t" } else { "f" }.to_owned();
        match column {
            Left::Setting(name) => self.setting(name).to_owned(),
            Left::Settings => {
                let set =
                    self.settings.iter().filter(|(name, value)| self.defaults.get(*name) != Some(value));
                set.map(|(name, _)| name.to_ascii_lowercase()).collect::<Vec<_>>().join(",")
            }
            Left::Lock => is(self.locked),
            Left::Temporary => is(self.temporary.is_some()),
            Left::Listens => is(self.listening),
        }
    }

    /// A statement without rows.
    fn effect(&mut self, statement: &Statement, tag: &str, extended: bool) {
        let complete = match &statement.command {
            Command::Empty => {
                put(&mut self.held, b'I', b"");
                return;
            }
            Command::Set(name, value) => match self.set(name, value.clone()) {
                Ok(())
                    if value.is_none()
                        && statement.text.trim_start().to_ascii_uppercase().starts_with("RESET") =>
                {
                    "RESET"
                }
                Ok(()) => "SET",
                Err((code, text)) => return self.fail(code, &text, extended),
            },
            Command::SetLocal(name, value) => {
                if self.transaction == Transaction::Open {
                    let before = self.settings.get(name).cloned();
                    self.local.entry(name.clone()).or_insert(before);
                    if let Err((code, text)) = self.set(name, Some(value.clone())) {
                        return self.fail(code, &text, extended);
                    }
                }
                "SET"
            }
            Command::ResetAll => {
                let defaults = self.defaults.clone();
                self.change_all(defaults);
                "RESET"
            }
            Command::Begin => {
                self.transaction = Transaction::Open;
                "BEGIN"
            }
            Command::Commit if self.transaction == Transaction::Failed => {
                self.roll_back();
                "ROLLBACK"
            }
            Command::Commit => {
                self.commit();
                "COMMIT"
            }
            Command::Rollback => {
                self.roll_back();
                "ROLLBACK"
            }
            Command::Savepoint if self.transaction == Transaction::Open => {
                self.savepoint = Some(Savepoint {
                    settings: self.settings.clone(),
                    local: self.local.clone(),
                    temporary: self.temporary.clone(),
                    staged: self.staged.len(),
                });
                "SAVEPOINT"
            }
            Command::RollbackTo if self.savepoint.is_some() => {
                self.roll_back_to_savepoint();
                "ROLLBACK"
            }
            Command::Release if self.savepoint.take().is_some() => "RELEASE",
            Command::Savepoint | Command::RollbackTo | Command::Release => {
                return self.fail("25P01", "no transaction, or no savepoint in it", extended);
            }
            Command::Insert => {
                self.staged.push(tag.to_owned());
                "INSERT 0 1"
            }
            Command::CreateTemporary(text) => {
                if self.temporary.is_some() {
                    return self.fail("42P07", "relation \"tmp\" already exists", extended);
                }
                self.temporary = Some(text.clone());
                "SELECT 1"
            }
            Command::DropTemporary => {
                if self.temporary.take().is_none() {
                    return self.fail("42P01", "table \"tmp\" does not exist", extended);
                }
                "DROP TABLE"
            }
            Command::CopyIn => {
                put(&mut self.held, b'G', &[0, 0, 1, 0, 0]);
                self.flush();
                let hash = 0xcbf2_9ce4_8422_2325;
                self.copy = Some(CopyIn { statement: statement.clone(), extended, bytes: 0, hash });
                return;
            }
            Command::CopyOut => {
                put(&mut self.held, b'H', &[0, 0, 1, 0, 0]);
                for row in 0..statement.rows {
                    let mut line = format!("{tag}|{row}|");
                    let missing = statement.width.saturating_sub(line.len());
                    line.push_str(&"z".repeat(missing));
                    line.push('\n');
                    put(&mut self.held, b'd', line.as_bytes());
                }
                put(&mut self.held, b'c', b"");
                put_complete(&mut self.held, &format!("COPY {}", statement.rows));
                return;
            }
            Command::Listen => {
                self.listening = true;
                "LISTEN"
            }
            Command::Unlisten => {
                self.listening = false;
                "UNLISTEN"
            }
            Command::DiscardAll => {
                if self.transaction != Transaction::Idle || !self.queue.is_empty() {
                    return self.fail("25001", "DISCARD ALL cannot run inside a transaction block", extended);
                }
                self.discard_all();
                "DISCARD ALL"
            }
            Command::DiscardSequences => "DISCARD SEQUENCES",
            Command::DiscardPlans => "DISCARD PLANS",
            Command::DeallocateAll => {
                self.statements.clear();
                "DEALLOCATE ALL"
            }
            Command::Unknown => {
                self.unknown(statement);
                return self.fail("42601", "syntax error", extended);
            }
            _ => "OK",
        };
        put_complete(&mut self.held, complete);
    }
}

/// How Weir's questions about the catalogue begin.
const CATALOGUE: &str = "SELECT 'z', ";

/// How Weir's question begins whether BEGIN may wait.
const FACTS: &str = "SELECT 1 WHERE ";

/// What wide rows are filled with.
const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz";

fn value<'a>(settings: &'a Settings, name: &str) -> Option<&'a String> {
    if name.bytes().any(|b| b.is_ascii_uppercase()) {
        settings.get(&name.to_ascii_lowercase())
    } else {
        settings.get(name)
    }
}

fn columns(statement: &Statement) -> Vec<&'static str> {
    match &statement.command {
        Command::SetConfig(settings) => vec!["set_config"; settings.len()],
        Command::Left(asked) => vec!["v"; asked.len()],
        _ => vec!["v"],
    }
}

/// The SQLSTATE of an ErrorResponse's body.
pub fn code_of(body: &[u8]) -> String {
    field(body, b'C')
}
