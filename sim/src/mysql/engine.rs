//! A MySQL session as a pure machine: bytes in, bytes out.
//!
//! As in `postgres`, each run has two: one behind Weir, in a session of the model database, with time and
//! faults; and one beside each client, fed the same bytes at once, as if that client had the database for
//! itself.
//!
//! Owns: a session's state and the rules of the protocol. Must not know: connections, Weir.

use super::sql::{Command, Statement, VARIABLE, split};
use super::wire::{
    EOF, Ending, command, flag, packet, put, put_definition, put_definition_of, put_err, put_number,
    put_string, status, take, take_string, take_u8, take_u32,
};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// Values by name.
type Settings = Rc<BTreeMap<String, String>>;

/// Settings with a value of their own at the beginning; all others begin as 1.
const DEFAULTS: [(&str, &str); 5] = [
    ("time_zone", "SYSTEM"),
    ("sql_mode", "STRICT_TRANS_TABLES"),
    ("transaction_isolation", "REPEATABLE-READ"),
    ("lc_time_names", "en_US"),
    ("default_storage_engine", "InnoDB"),
];

/// Schemas there are.
pub const SCHEMAS: [&str; 3] = ["app0", "app1", "app2"];

#[derive(Debug, Clone)]
struct Prepared {
    statement: Statement,
    /// The schema it was prepared in.
    schema: Option<String>,
    /// Its parameter's type has been said.
    bound: bool,
    long: Option<Vec<u8>>,
}

#[derive(Debug, Clone)]
struct Running {
    statement: Statement,
    value: Option<String>,
    binary: bool,
    until_ns: u64,
    cancelled: bool,
}

/// What a session tells of its changes.
#[derive(Debug, Clone, Copy)]
struct Trackers {
    schema: bool,
    state: bool,
    transaction: bool,
}

const TRACKERS: Trackers = Trackers { schema: true, state: false, transaction: false };

/// A session.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Bytes that may go out.
    pub output: Vec<u8>,
    /// Entries that were committed, in order; taken out by the owner.
    pub committed: Vec<String>,
    /// Tags of statements that were begun, in order; taken out by the owner.
    pub begun: Vec<String>,
    /// A rule was broken.
    pub problem: Option<String>,
    /// COM_QUIT came.
    pub over: bool,
    /// Whose tags were seen last.
    pub client: Option<String>,
    /// Answers to the scramble of a COM_CHANGE_USER, for the owner to check.
    pub proofs: Vec<Vec<u8>>,
    /// Connections whose statements are to be ended, for the owner to pass on.
    pub kills: Vec<u32>,
    /// How long a statement takes beside what it says itself.
    pub pace_ns: u64,
    /// A transaction is open.
    pub in_transaction: bool,
    /// The next COM_PING is answered with an error.
    pub fails_ping: bool,
    id: u32,
    capabilities: u32,
    scramble: [u8; 20],
    awaits_proof: bool,
    input: Vec<u8>,
    seq: u8,
    autocommit: bool,
    settings: Settings,
    schema: Option<String>,
    trackers: Trackers,
    changes: Vec<u8>,
    variable: Option<String>,
    temporary: Option<String>,
    locked: bool,
    insert_id: u64,
    /// Rows of the last SELECT.
    found: usize,
    warnings: Vec<(u16, String)>,
    statements: BTreeMap<u32, Prepared>,
    last_statement: u32,
    /// What its statements are numbered from.
    first_statement: u32,
    staged: Vec<String>,
    /// Statements of a text that are still to run.
    queue: VecDeque<Statement>,
    /// When it began to work on the last statement.
    begun_ns: u64,
    running: Option<Running>,
    instant: bool,
    owner_of_state: Option<String>,
    /// Whose request was killed: what it had sent behind that runs all the same.
    cancelled: Option<String>,
}

/// The id that the INSERT of an entry makes: everybody can tell it.
fn insert_id_of(entry: &str) -> u64 {
    entry.bytes().fold(7, |id: u64, byte| (id * 31 + u64::from(byte)) % 1_000_003) + 1
}

impl Engine {
    /// A session after its login. With `instant` statements take no time.
    pub fn new(
        id: u32,
        capabilities: u32,
        schema: Option<String>,
        scramble: [u8; 20],
        instant: bool,
    ) -> Self {
        let settings = DEFAULTS.map(|(name, value)| (name.to_owned(), value.to_owned()));
        Engine {
            output: Vec::new(),
            committed: Vec::new(),
            begun: Vec::new(),
            problem: None,
            over: false,
            client: None,
            proofs: Vec::new(),
            kills: Vec::new(),
            pace_ns: 0,
            in_transaction: false,
            fails_ping: false,
            id,
            capabilities,
            scramble,
            awaits_proof: false,
            input: Vec::new(),
            seq: 1,
            autocommit: true,
            settings: Rc::new(settings.into_iter().collect()),
            schema,
            trackers: TRACKERS,
            changes: Vec::new(),
            variable: None,
            temporary: None,
            locked: false,
            insert_id: 0,
            found: 0,
            warnings: Vec::new(),
            statements: BTreeMap::new(),
            last_statement: 0,
            // So that a number of a client's never means anything on a server.
            first_statement: if instant { 0 } else { 1_000 + id % 1_000 * 10 },
            staged: Vec::new(),
            queue: VecDeque::new(),
            begun_ns: 0,
            running: None,
            instant,
            owner_of_state: None,
            cancelled: None,
        }
    }

    /// The value of a setting.
    pub fn setting(&self, name: &str) -> &str {
        self.settings.get(name).map_or("1", String::as_str)
    }

    /// The default schema; empty for none.
    pub fn schema(&self) -> &str {
        self.schema.as_deref().unwrap_or_default()
    }

    /// The statements it has prepared.
    pub fn prepared(&self) -> impl Iterator<Item = (u32, usize)> {
        self.statements.iter().map(|(&id, prepared)| (id, prepared.statement.parameters()))
    }

    /// New bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Statements take time from now on, or none.
    pub fn become_instant(&mut self, instant: bool) {
        self.instant = instant;
        self.pace_ns = u64::from(!instant);
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
        self.input.is_empty() && self.running.is_none() && self.queue.is_empty() && !self.awaits_proof
    }

    /// The tag of what runs.
    pub fn running_tag(&self) -> Option<&str> {
        self.running.as_ref().and_then(|running| running.statement.tag.as_deref())
    }

    /// KILL QUERY. True when something ran.
    pub fn cancel(&mut self, now_ns: u64) -> bool {
        let Some(running) = &mut self.running else { return false };
        self.cancelled = self.client.clone();
        running.cancelled = true;
        running.until_ns = now_ns;
        true
    }

    /// What is left in it that another client must not meet.
    pub fn state_left(&self) -> Option<String> {
        let mut left = Vec::new();
        if self.in_transaction {
            left.push("a transaction");
        }
        if self.temporary.is_some() {
            left.push("a temporary table");
        }
        if self.locked {
            left.push("a lock");
        }
        (!left.is_empty()).then(|| left.join(", "))
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
            } else if let Some(statement) = self.queue.pop_front() {
                self.begin(statement, None, false, now_ns);
            } else if !self.next_packet(now_ns) {
                return;
            }
        }
    }

    fn next_packet(&mut self, now_ns: u64) -> bool {
        let input = std::mem::take(&mut self.input);
        let Some((seq, payload, total)) = packet(&input) else {
            self.input = input;
            return false;
        };
        if std::mem::take(&mut self.awaits_proof) {
            self.proofs.push(payload.to_vec());
            self.seq = seq.wrapping_add(1);
            self.reset();
            self.schema = None;
            self.ok(0, 0);
        } else if seq != 0 {
            self.problem = Some(format!("a command with number {seq}"));
        } else {
            self.seq = 1;
            if self.handle(payload, now_ns).is_none() {
                self.problem = Some(format!("a malformed command of {} bytes", payload.len()));
            }
        }
        self.input = input;
        self.input.drain(..total);
        true
    }

    fn handle(&mut self, payload: &[u8], now_ns: u64) -> Option<()> {
        let (&code, mut rest) = payload.split_first()?;
        match code {
            command::QUIT => self.over = true,
            command::PING if std::mem::take(&mut self.fails_ping) => {
                self.fail(1053, "08S01", "Server shutdown in progress");
            }
            command::PING => self.ok_of_command(),
            command::QUERY => self.query(std::str::from_utf8(rest).ok()?),
            command::INIT_DB => self.use_schema(std::str::from_utf8(rest).ok()?),
            command::PREPARE => self.prepare(std::str::from_utf8(rest).ok()?),
            command::EXECUTE => self.execute(rest, now_ns)?,
            command::LONG_DATA => {
                let id = take_u32(&mut rest)?;
                take(&mut rest, 2)?;
                if let Some(prepared) = self.statements.get_mut(&id) {
                    prepared.long.get_or_insert_default().extend_from_slice(rest);
                }
            }
            command::CLOSE => drop(self.statements.remove(&take_u32(&mut rest)?)),
            command::RESET => {
                let id = take_u32(&mut rest)?;
                match self.statements.get_mut(&id) {
                    Some(prepared) => {
                        prepared.long = None;
                        self.ok(0, 0);
                    }
                    None => self.unknown_statement(id),
                }
            }
            command::SET_OPTION => {
                self.capabilities = match take(&mut rest, 2)? {
                    [0, 0] => self.capabilities | flag::MULTI_STATEMENTS,
                    _ => self.capabilities & !flag::MULTI_STATEMENTS,
                };
                self.end_rows();
            }
            command::RESET_CONNECTION => {
                self.reset();
                self.ok(0, 0);
            }
            command::CHANGE_USER => {
                let request = [&[EOF], &b"mysql_native_password\0"[..], &self.scramble, &[0]].concat();
                self.seq = put(&mut self.output, self.seq, &request);
                self.awaits_proof = true;
            }
            _ => return None,
        }
        Some(())
    }

    /// All of the session but its schema begins anew.
    fn reset(&mut self) {
        let fresh = Engine::new(self.id, self.capabilities, self.schema.take(), self.scramble, self.instant);
        *self = Engine {
            output: std::mem::take(&mut self.output),
            committed: std::mem::take(&mut self.committed),
            begun: std::mem::take(&mut self.begun),
            problem: self.problem.take(),
            client: self.client.take(),
            proofs: std::mem::take(&mut self.proofs),
            kills: std::mem::take(&mut self.kills),
            pace_ns: self.pace_ns,
            seq: self.seq,
            cancelled: self.cancelled.take(),
            ..fresh
        };
    }

    // Answers.

    fn status(&self) -> u16 {
        let more = if self.queue.is_empty() { 0 } else { status::MORE_RESULTS };
        let autocommit = if self.autocommit { status::AUTOCOMMIT } else { 0 };
        more | autocommit | if self.in_transaction { status::IN_TRANS } else { 0 }
    }

    fn ending(&mut self) -> Ending {
        Ending { status: self.status(), changes: std::mem::take(&mut self.changes), ..Ending::default() }
    }

    fn ok(&mut self, affected: u64, insert_id: u64) {
        let ending = Ending { affected, insert_id, ..self.ending() };
        self.seq = ending.put(&mut self.output, self.seq, 0, self.capabilities);
    }

    /// COM_PING and COM_INIT_DB leave the warnings of the session alone, and MySQL counts them.
    fn ok_of_command(&mut self) {
        let ending = Ending { warnings: self.warnings.len() as u16, ..self.ending() };
        self.seq = ending.put(&mut self.output, self.seq, 0, self.capabilities);
    }

    /// What has changed is told with the next OK where an EOF packet has no room for it.
    fn end_rows(&mut self) {
        let mut ending = self.ending();
        if self.capabilities & flag::DEPRECATE_EOF == 0 {
            self.changes = std::mem::take(&mut ending.changes);
        }
        self.seq = ending.put(&mut self.output, self.seq, EOF, self.capabilities);
    }

    fn fail(&mut self, code: u16, state: &str, text: &str) {
        self.queue.clear();
        self.warnings = vec![(code, text.to_owned())];
        self.seq = put_err(&mut self.output, self.seq, code, state, text);
    }

    /// The error of a command joins what the session has; a text has cleared that.
    fn fail_as_well(&mut self, code: u16, state: &str, text: &str) {
        let mut warnings = std::mem::take(&mut self.warnings);
        self.fail(code, state, text);
        warnings.append(&mut self.warnings);
        self.warnings = warnings;
    }

    fn definitions(&mut self, names: &[String]) {
        for name in names {
            self.seq = match (name.as_str(), &self.variable) {
                (VARIABLE, Some(_)) => put_definition_of(&mut self.output, self.seq, name, 45, 1_020, 251),
                (VARIABLE, None) => put_definition_of(&mut self.output, self.seq, name, 63, 65_532, 253),
                _ => put_definition(&mut self.output, self.seq, name),
            };
        }
        if !names.is_empty() && self.capabilities & flag::DEPRECATE_EOF == 0 {
            let ending = Ending { status: self.status(), ..Ending::default() };
            self.seq = ending.put(&mut self.output, self.seq, EOF, 0);
        }
    }

    /// A whole result. `None` in a row is NULL.
    fn rows(&mut self, columns: &[String], rows: &[Vec<Option<String>>], binary: bool) {
        let mut count = Vec::new();
        put_number(&mut count, columns.len() as u64);
        self.seq = put(&mut self.output, self.seq, &count);
        self.definitions(columns);
        for row in rows {
            let mut payload = Vec::new();
            if binary {
                payload.push(0);
                payload.resize(1 + (columns.len() + 9) / 8, 0);
            }
            for cell in row {
                match cell {
                    Some(text) => put_string(&mut payload, text.as_bytes()),
                    None if binary => payload[1] |= 4,
                    None => payload.push(0xFB),
                }
            }
            self.seq = put(&mut self.output, self.seq, &payload);
        }
        self.end_rows();
    }

    fn changed(&mut self, kind: u8, text: Option<&str>) {
        let mut data = Vec::new();
        match text {
            Some(text) => put_string(&mut data, text.as_bytes()),
            None => data.push(b'1'),
        }
        self.forget_change(kind);
        self.changes.push(kind);
        put_string(&mut self.changes, &data);
    }

    /// What has changed twice is told once.
    fn forget_change(&mut self, kind: u8) {
        let mut kept = Vec::new();
        let mut rest = &self.changes[..];
        while let Some((&other, mut data)) = rest.split_first() {
            let Some(text) = take_string(&mut data) else { break };
            if other != kind {
                kept.push(other);
                put_string(&mut kept, text);
            }
            rest = data;
        }
        self.changes = kept;
    }

    fn state_changed(&mut self) {
        if self.trackers.state {
            self.changed(2, None);
        }
    }

    // Commands.

    fn query(&mut self, text: &str) {
        self.queue = split(text).iter().map(|text| Statement::read(text)).collect();
        if self.queue.is_empty() {
            self.fail(1065, "42000", "Query was empty");
        } else if self.queue.len() > 1 && self.capabilities & flag::MULTI_STATEMENTS == 0 {
            self.fail(1064, "42000", "You have an error in your SQL syntax");
        }
    }

    fn prepare(&mut self, text: &str) {
        let statement = Statement::read(text);
        self.warnings.clear();
        match statement.command {
            Command::Unknown => {
                self.problem = Some(format!("the model does not understand {text:?}"));
            }
            _ if split(text).len() != 1 => self.fail(1064, "42000", "You have an error in your SQL syntax"),
            _ => {
                self.last_statement = self.last_statement.max(self.first_statement) + 1;
                let (id, columns) = (self.last_statement, statement.columns());
                let parameters = vec!["?".to_owned(); statement.parameters()];
                let mut payload = vec![0];
                payload.extend_from_slice(&id.to_le_bytes());
                payload.extend_from_slice(&(columns.len() as u16).to_le_bytes());
                payload.extend_from_slice(&(parameters.len() as u16).to_le_bytes());
                payload.extend_from_slice(&[0, 0, 0]);
                self.seq = put(&mut self.output, self.seq, &payload);
                self.definitions(&parameters);
                self.definitions(&columns);
                let schema = self.schema.clone();
                self.statements.insert(id, Prepared { statement, schema, bound: false, long: None });
            }
        }
    }

    fn unknown_statement(&mut self, id: u32) {
        let text = format!("Unknown prepared statement handler ({id}) given to mysql_stmt_precheck");
        self.fail_as_well(1243, "HY000", &text);
    }

    fn execute(&mut self, mut rest: &[u8], now_ns: u64) -> Option<()> {
        let id = take_u32(&mut rest)?;
        take(&mut rest, 5)?;
        let Some(prepared) = self.statements.get_mut(&id) else {
            self.unknown_statement(id);
            return Some(());
        };
        let mut value = None;
        if prepared.statement.parameters() > 0 {
            take(&mut rest, 1)?;
            if take_u8(&mut rest)? == 1 {
                take(&mut rest, 2)?;
                prepared.bound = true;
            }
            if !prepared.bound {
                self.problem = Some(format!("statement {id} is executed and its types were never said"));
                return Some(());
            }
            let bytes = match prepared.long.take() {
                Some(long) => long,
                None => take_string(&mut rest)?.to_vec(),
            };
            value = Some(String::from_utf8(bytes).ok()?);
        }
        if !rest.is_empty() {
            return None;
        }
        let statement = prepared.statement.clone();
        if prepared.schema != self.schema && self.trackers.schema {
            // It runs in its own schema, or in none, and the session comes back from there, which the tracker
            // tells.
            let schema = self.schema.clone().unwrap_or_default();
            self.changed(1, Some(&schema));
        }
        self.begin(statement, value, true, now_ns);
        Some(())
    }

    // Running a statement.

    fn begin(&mut self, statement: Statement, value: Option<String>, binary: bool, now_ns: u64) {
        let tag = value.clone().or_else(|| statement.tag.clone());
        if let Some(tag) = tag {
            self.touch(&tag, &statement);
            self.begun.push(tag);
        }
        self.begun_ns = now_ns;
        let until_ns = now_ns + self.pace_ns + statement.sleep_us * 1_000;
        self.running = Some(Running { statement, value, binary, until_ns, cancelled: false });
    }

    /// A statement of this client runs here: it must meet nothing that another client left, and its own
    /// settings.
    fn touch(&mut self, tag: &str, statement: &Statement) {
        let client = tag.split('.').next().unwrap_or(tag).to_owned();
        if let (Some(owner), Some(left)) = (&self.owner_of_state, self.state_left())
            && *owner != client
        {
            self.problem = Some(format!("{tag} runs in a session where {owner} left {left}"));
        }
        let wanted = [(&statement.time_zone, self.setting("time_zone")), (&statement.schema, self.schema())];
        let other = wanted.into_iter().find_map(|(wanted, is)| {
            wanted.as_ref().filter(|wanted| *wanted != is).map(|wanted| format!("{is:?} and not {wanted:?}"))
        });
        if let Some(other) = other.filter(|_| self.cancelled.as_ref() != Some(&client)) {
            self.problem = Some(format!("{tag} runs under {other}"));
        }
        self.client = Some(client);
    }

    fn finish(&mut self, running: Running) {
        let Running { statement, value, binary, cancelled, .. } = running;
        if cancelled {
            return self.fail(1317, "70100", "Query execution was interrupted");
        }
        let tag = value.or_else(|| statement.tag.clone()).unwrap_or_default();
        let shows = matches!(statement.command, Command::ShowWarnings | Command::ShowNothing);
        if !shows {
            self.warnings.clear();
        }
        if statement.fails {
            return self.fail(1690, "22003", &format!("BIGINT value is out of range in '{tag}'"));
        }
        if let Some(zone) = &statement.sets {
            drop(Rc::make_mut(&mut self.settings).insert("time_zone".into(), zone.clone()));
            self.state_changed();
        }
        let columns = statement.columns();
        if columns.is_empty() {
            self.effect(&statement, &tag);
        } else {
            match self.cells(&statement, &tag) {
                Ok(rows) => {
                    if !shows {
                        self.found = rows.len();
                    }
                    self.rows(&names(&statement, columns), &rows, binary);
                }
                Err(name) => self.fail(1146, "42S02", &format!("Table '{name}' doesn't exist")),
            }
        }
        if self.state_left().is_some() {
            self.owner_of_state = self.client.clone();
        }
    }

    fn cells(&mut self, statement: &Statement, tag: &str) -> Result<Vec<Vec<Option<String>>>, &'static str> {
        let one = |text: String| vec![vec![Some(text)]];
        let shown = |text: &str| {
            let wide = |row: usize| {
                let mut cell = format!("{text}|{}|{row}|", statement.id);
                let missing = statement.width.saturating_sub(cell.len());
                cell.push_str(&"w".repeat(missing));
                vec![Some(cell)]
            };
            (0..statement.rows).map(wide).collect()
        };
        Ok(match &statement.command {
            Command::Literal(text) if text == crate::oracle::CLOCK => {
                shown(&crate::oracle::clock(self.begun_ns))
            }
            Command::Literal(text) => shown(text),
            Command::Parameter => shown(tag),
            Command::OwnRows => {
                self.touch_table();
                one(self.staged.join(","))
            }
            Command::Temporary => one(self.temporary.clone().ok_or("tmp")?),
            Command::ReadVariable => vec![vec![self.variable.clone()]],
            Command::VariableKind => Vec::new(),
            Command::VariableValue => {
                let hex = |text: &String| text.bytes().map(|byte| format!("{byte:02X}")).collect::<String>();
                let value = self.variable.as_ref().map(|text| format!("0{}", hex(text)));
                let collation = if value.is_some() { "utf8mb4_general_ci" } else { "binary" };
                vec![vec![Some(collation.to_owned()), value]]
            }
            Command::Settings(names) => {
                let value = |name: &String| match name.as_str() {
                    "CONNECTION_ID()" => self.id.to_string(),
                    "autocommit" => u8::from(self.autocommit).to_string(),
                    "global.init_connect<>''" => "0".to_owned(),
                    name => self.setting(name).to_owned(),
                };
                vec![names.iter().map(|name| name.as_ref().map(value)).collect()]
            }
            Command::ShowSchema => vec![vec![self.schema.clone()]],
            Command::Catalogue { whole } => {
                let text = if *whole { "0" } else { "0/0 0/0 0/0 0" };
                vec![vec![Some("z".to_owned()), Some(text.to_owned()), None, None, None]]
            }
            Command::ConnectionId(told) => one(told.unwrap_or(u64::from(self.id)).to_string()),
            Command::InsertId => one(self.insert_id.to_string()),
            Command::OwnInsertId(own) => {
                if self.insert_id == 0 {
                    self.insert_id = *own;
                }
                one(self.insert_id.to_string())
            }
            Command::TakeInsertId => {
                vec![vec![Some(std::mem::take(&mut self.insert_id).to_string()), Some("0".to_owned())]]
            }
            Command::FoundRows => one(self.found.to_string()),
            Command::Rows(rows) => (0..*rows).map(|row| vec![Some(row.to_string())]).collect(),
            Command::ShowWarnings => {
                let row = |(code, text): &(u16, String)| {
                    vec![Some("Error".to_owned()), Some(code.to_string()), Some(text.clone())]
                };
                self.warnings.iter().map(row).collect()
            }
            Command::Lock => {
                self.locked = true;
                one("1".to_owned())
            }
            Command::Unlock => one(u8::from(std::mem::take(&mut self.locked)).to_string()),
            _ => Vec::new(),
        })
    }

    /// With autocommit off the first statement that touches a table opens a transaction.
    fn touch_table(&mut self) {
        self.in_transaction |= !self.autocommit;
    }

    fn effect(&mut self, statement: &Statement, tag: &str) {
        match &statement.command {
            Command::Set(changes) => return self.set(changes),
            Command::SetVariable(text) => {
                self.variable = Some(text.clone());
                self.state_changed();
            }
            Command::Use(name) => return self.use_schema(name),
            Command::Begin => {
                self.commit();
                self.in_transaction = true;
                if self.trackers.transaction {
                    self.changed(4, Some("START TRANSACTION;"));
                }
            }
            Command::Commit => self.commit(),
            Command::Rollback => {
                self.staged.clear();
                self.end_transaction();
            }
            Command::Insert => {
                self.touch_table();
                self.staged.push(tag.to_owned());
                self.insert_id = insert_id_of(tag);
                if !self.in_transaction {
                    self.commit();
                }
                return self.ok(1, self.insert_id);
            }
            Command::CreateTemporary(text) => {
                if self.temporary.is_some() {
                    return self.fail(1050, "42S01", "Table 'tmp' already exists");
                }
                self.temporary = Some(text.clone());
                self.state_changed();
                return self.ok(1, 0);
            }
            Command::DropTemporary => {
                if self.temporary.take().is_none() {
                    return self.fail(1051, "42S02", "Unknown table 'tmp'");
                }
                self.state_changed();
            }
            Command::KillQuery(id) => self.kills.push(*id),
            Command::Unknown => {
                self.problem = Some(format!("the model does not understand {:?}", statement.text));
            }
            _ => {}
        }
        self.ok(0, 0);
    }

    fn set(&mut self, changes: &[(String, String)]) {
        if let Some((_, value)) = changes.iter().find(|(_, value)| value.starts_with("bad")) {
            return self.fail(1298, "HY000", &format!("Unknown or incorrect time zone: '{value}'"));
        }
        for (name, value) in changes {
            let on = matches!(value.to_ascii_uppercase().as_str(), "1" | "ON");
            match name.as_str() {
                "autocommit" => {
                    self.autocommit = on;
                    if on {
                        self.commit();
                    }
                }
                "last_insert_id" => self.insert_id = value.parse().unwrap_or(0),
                "session_track_schema" => self.trackers.schema = on,
                "session_track_state_change" => self.trackers.state = on,
                "session_track_transaction_info" => self.trackers.transaction = value == "CHARACTERISTICS",
                _ => drop(Rc::make_mut(&mut self.settings).insert(name.clone(), value.clone())),
            }
        }
        self.state_changed();
        self.ok(0, 0);
    }

    fn use_schema(&mut self, name: &str) {
        if !SCHEMAS.contains(&name) {
            return self.fail_as_well(1049, "42000", &format!("Unknown database '{name}'"));
        }
        self.schema = Some(name.to_owned());
        if self.trackers.schema {
            self.changed(1, Some(name));
        }
        self.state_changed();
        self.ok_of_command();
    }

    fn commit(&mut self) {
        self.committed.append(&mut self.staged);
        self.end_transaction();
    }

    fn end_transaction(&mut self) {
        if std::mem::take(&mut self.in_transaction) && self.trackers.transaction {
            self.changed(4, Some(""));
        }
    }
}

/// Weir keeps the name of a column by an alias.
fn names(statement: &Statement, columns: Vec<String>) -> Vec<String> {
    match statement.command {
        Command::ConnectionId(Some(_)) => {
            vec![statement.text.split('`').nth(1).unwrap_or_default().to_owned()]
        }
        _ => columns,
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{error_of, put_command};
    use super::*;

    fn engine() -> Engine {
        Engine::new(7, flag::DEPRECATE_EOF | flag::MULTI_STATEMENTS, None, [1; 20], true)
    }

    /// The first byte of each packet of the answer.
    fn run(engine: &mut Engine, texts: &[&str]) -> Vec<u8> {
        let mut bytes = Vec::new();
        texts.iter().for_each(|text| put_command(&mut bytes, command::QUERY, text.as_bytes()));
        engine.feed(&bytes);
        engine.work(0);
        let output = std::mem::take(&mut engine.output);
        let mut rest = output.as_slice();
        let mut firsts = Vec::new();
        while let Some((_, payload, total)) = packet(rest) {
            firsts.push(payload[0]);
            rest = &rest[total..];
        }
        firsts
    }

    #[test]
    fn a_failed_statement_leaves_the_transaction_open() {
        let mut engine = engine();
        let texts = ["BEGIN", "INSERT INTO t /* tag=a.1 */", "SELECT 'x' /* tag=a.2 fail */", "COMMIT"];
        assert_eq!(run(&mut engine, &texts), [0, 0, 0xFF, 0]);
        assert_eq!(engine.committed, ["a.1"]);
        run(&mut engine, &["SET autocommit=0", "INSERT INTO t /* tag=a.3 */"]);
        assert!(engine.in_transaction && engine.committed.len() == 1);
        run(&mut engine, &["SET autocommit=1"]);
        assert_eq!(engine.committed, ["a.1", "a.3"]);
    }

    #[test]
    fn warnings_are_those_of_the_last_statement() {
        let mut engine = engine();
        run(&mut engine, &["SELECT 'x' /* tag=a.1 fail */"]);
        assert_eq!(run(&mut engine, &["SHOW WARNINGS"]), [3, 3, 3, 3, 5, 0xFE]);
        assert_eq!(run(&mut engine, &["DO (SELECT 1)", "SHOW WARNINGS"]), [0, 3, 3, 3, 3, 0xFE]);
    }

    #[test]
    fn another_clients_leavings_and_schema_are_noticed() {
        let mut engine = engine();
        run(&mut engine, &["CREATE TEMPORARY TABLE tmp AS SELECT 'x' AS v /* tag=a.1 */"]);
        run(&mut engine, &["SELECT 'y' /* tag=b.1 */"]);
        assert!(engine.problem.take().unwrap().contains("a temporary table"));
        put_command(&mut engine.input, command::RESET_CONNECTION, &[]);
        run(&mut engine, &["SELECT 'y' /* tag=b.1 */", "USE app1", "SELECT 'y' /* tag=b.1 db=app1 */"]);
        assert_eq!(engine.problem, None);
        run(&mut engine, &["SELECT 'y' /* tag=b.1 db=app2 */"]);
        assert!(engine.problem.unwrap().contains("app2"));
    }

    #[test]
    fn a_statement_whose_types_were_never_said_is_noticed() {
        let mut engine = engine();
        put_command(&mut engine.input, command::PREPARE, b"SELECT ? /* id=p */");
        put_command(&mut engine.input, command::EXECUTE, b"\x09\0\0\0\0\x01\0\0\0");
        put_command(&mut engine.input, command::EXECUTE, b"\x01\0\0\0\0\x01\0\0\0\0\x01\xfd\0\x03a.1");
        engine.work(0);
        assert!(engine.problem.is_none());
        let (_, payload, total) = packet(&engine.output).unwrap();
        assert_eq!(payload[..5], [0, 1, 0, 0, 0]);
        assert!(engine.output.len() > total);
        put_command(&mut engine.input, command::CLOSE, &[1, 0, 0, 0]);
        put_command(&mut engine.input, command::PREPARE, b"SELECT ? /* id=p */");
        put_command(&mut engine.input, command::EXECUTE, b"\x02\0\0\0\0\x01\0\0\0\0\0\x03a.2");
        engine.work(0);
        assert!(engine.problem.unwrap().contains("types"));
        let mut out = Vec::new();
        put_err(&mut out, 1, 1064, "42000", "no");
        assert_eq!(error_of(packet(&out).unwrap().1), (1064, "no".to_owned()));
    }
}
