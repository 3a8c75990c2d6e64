//! The administration console: PgBouncer's commands and Weir's own.
//!
//! Statements come from the hall, one at a time from each client ([`weir_proxy::console`]); a task of the
//! control thread answers each, from counters, from the list of pools, and from the lists that workers supply
//! on request.
//!
//! Owns: commands, their texts and errors. Must not know: sockets, protocols, how a worker executes an order.
//!
//! Invariants: an unsupported command is an error, never a pretended success; `stats_users` change nothing;
//! the size of a list, and the time it may take, are bounded.

mod commands;
mod grammar;
pub mod registry;
mod show;
mod source;
mod stats;
mod tables;
mod time;

use crate::live::Pulse;
use grammar::Parsed;
use registry::{Who, find};
pub(crate) use show::mode_name;
use stats::Stats;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};
use tokio::sync::{Semaphore, SemaphorePermit, mpsc, oneshot};
use weir_config::Snapshot;
use weir_proxy::Proxy;
use weir_proxy::console::{List, Part, Statement};
use weir_session::Protocol;
use weir_wire::console::{Answer, Column, Kind, Table};
use weir_wire::limits::{CONSOLE_ANSWERS_BYTES, CONSOLE_LISTS, CONSOLE_ROWS, CONSOLES};

/// How long the workers may take to list what they have. One that serves 100,000 clients needs a tenth of a
/// second.
const LIST_TIME: Duration = Duration::from_secs(10);
/// How often a command that waits looks again.
const LOOK_TIME: Duration = Duration::from_millis(20);
/// Statements under way at a time: those of clients that have gone are among them.
const STATEMENTS: usize = 2 * CONSOLES;

/// What the console asks of whoever runs the process. The answer is whether it was done.
pub enum Act {
    /// Read the configuration again; settings that SET has changed are as the file says.
    Reload(oneshot::Sender<bool>),
    /// Change a setting: its full name and value.
    Set(String, String, oneshot::Sender<bool>),
    /// Take no new clients, and stop when all have left.
    Leave,
    /// Take no new clients, let transactions end, stop.
    Drain,
    /// Stop now.
    Stop,
}

/// The console of a process.
pub struct Console {
    proxy: Arc<Proxy>,
    /// The settings in force.
    snapshot: RwLock<Arc<Snapshot>>,
    stats: Mutex<Stats>,
    /// The figures of `/api/live`.
    pulse: Mutex<Pulse>,
    acts: mpsc::UnboundedSender<Act>,
    version: &'static str,
    seats: Arc<Semaphore>,
    /// Room for answers, in kB.
    room: Arc<Semaphore>,
    /// Who makes a long list.
    lists: Semaphore,
}

/// What the workers have listed. The next long list is made when this has become an answer.
struct Listed<'a> {
    parts: Vec<Part>,
    _turn: Option<SemaphorePermit<'a>>,
}

impl std::ops::Deref for Listed<'_> {
    type Target = [Part];
    fn deref(&self) -> &[Part] {
        &self.parts
    }
}

/// A statement is not done: why.
struct Refusal(String);

impl From<&str> for Refusal {
    fn from(text: &str) -> Self {
        Refusal(text.to_owned())
    }
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Refusal(text)
    }
}

type Outcome = Result<Answer, Refusal>;

impl Console {
    /// Opens the console of a process. What it asks for comes by `acts`.
    pub fn open(
        proxy: &Arc<Proxy>,
        snapshot: Arc<Snapshot>,
        version: &'static str,
    ) -> (Arc<Console>, mpsc::UnboundedReceiver<Act>) {
        let (acts, asked) = mpsc::unbounded_channel();
        let console = Arc::new(Console {
            proxy: proxy.clone(),
            snapshot: RwLock::new(snapshot),
            stats: Mutex::new(Stats::new()),
            pulse: Mutex::new(Pulse::new()),
            acts,
            version,
            seats: Arc::new(Semaphore::new(STATEMENTS)),
            room: Arc::new(Semaphore::new(CONSOLE_ANSWERS_BYTES / 1024)),
            lists: Semaphore::new(CONSOLE_LISTS),
        });
        // Bounded by one for each client of the console.
        let (clerk, mut statements) = mpsc::unbounded_channel::<Statement>();
        proxy.open_console(Box::new(move |statement| drop(clerk.send(statement))));
        let serving = console.clone();
        tokio::spawn(async move {
            while let Some(statement) = statements.recv().await {
                serving.take(statement);
            }
        });
        let counting = console.clone();
        tokio::spawn(async move { counting.count().await });
        (console, asked)
    }

    /// The settings are others now.
    pub fn renew(&self, snapshot: Arc<Snapshot>) {
        *self.snapshot.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn stats(&self) -> MutexGuard<'_, Stats> {
        self.stats.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pulse(&self) -> MutexGuard<'_, Pulse> {
        self.pulse.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the counters often enough for no pool to come and go unseen, and ends periods.
    async fn count(&self) {
        let second = Duration::from_secs(1);
        let mut left = Duration::ZERO;
        loop {
            left = left.saturating_sub(second);
            if left.is_zero() {
                let period = self.snapshot().values.millis(weir_config::Key::StatsPeriod);
                left = Duration::from_millis(period).max(second);
                self.stats().turn(&self.proxy);
            } else {
                self.stats().note(&self.proxy);
            }
            self.pulse().tick(&self.proxy);
            self.look_at_statements().await;
            tokio::time::sleep(second).await;
        }
    }

    /// For whoever looks at the figures of this moment.
    async fn look_at_statements(&self) {
        if !self.pulse().is_watched(Instant::now()) {
            return;
        }
        // One that cannot be had is had a second later.
        let Ok(parts) = self.list(Wanted { rows: true, statements: true, ..Wanted::default() }).await else {
            return;
        };
        let sums = show::sum_statements(&parts, show::View::ALL);
        drop(parts);
        self.pulse().statements.note(Instant::now(), sums);
    }

    fn take(self: &Arc<Self>, statement: Statement) {
        let Ok(seat) = self.seats.clone().try_acquire_owned() else {
            statement.answer(Answer::Error("too many statements of the console are under way".to_owned()));
            return;
        };
        let console = self.clone();
        tokio::spawn(async move {
            if let Some(answer) = console.run(&statement).await {
                console.hand_over(statement, answer);
            } else {
                // The process ends; the connection stays until then, as PgBouncer's does.
                std::mem::forget(statement);
            }
            drop(seat);
        });
    }

    /// Answers a statement, if there is room for the answer until its client has taken it.
    fn hand_over(&self, statement: Statement, answer: Answer) {
        let kb = match &answer {
            Answer::Rows(table) => u32::try_from(table.bytes() / 1024).unwrap_or(u32::MAX),
            Answer::Done { .. } | Answer::Error(_) => 0,
        };
        match self.room.clone().try_acquire_many_owned(kb) {
            Ok(room) => statement.answer_holding(answer, Some(Box::new(room))),
            Err(_) => {
                let text = "too many long answers of the console are not read yet";
                statement.answer(Answer::Error(text.to_owned()));
            }
        }
    }

    /// `None`: it is not answered.
    async fn run(&self, statement: &Statement) -> Option<Answer> {
        let outcome = match grammar::parse(&statement.text) {
            _ if statement.protocol == Protocol::Mysql && small_talk(&statement.text).is_some() => {
                small_talk(&statement.text).ok_or_else(|| invalid(&statement.text))
            }
            Parsed::Command(name, argument) => self.command(statement, &name, argument).await,
            Parsed::Set(key, value) => self.set(statement, &key, &value).await,
            Parsed::TooLong => Err("bad arguments".into()),
            Parsed::Neither => Err(invalid(&statement.text)),
        };
        match outcome {
            Ok(Answer::Done { tag, .. }) if tag == commands::NEVER => None,
            Ok(answer) => Some(answer),
            Err(Refusal(text)) => Some(Answer::Error(text)),
        }
    }

    async fn command(&self, statement: &Statement, name: &str, argument: String) -> Outcome {
        // PgBouncer's console takes SELECT for SHOW.
        if name == "show" || name == "select" {
            if let Some(answer) = show::pretended(&argument) {
                return Ok(answer);
            }
            let full = format!("show {}", argument.to_ascii_lowercase());
            return match find(&full) {
                Some(row) => self.show(statement, row.name).await,
                None => Err(invalid(&statement.text)),
            };
        }
        match find(name) {
            Some(row) if row.name != "set" => {
                if row.who == Who::Admins && !statement.admin {
                    self.check_arguments(statement, row.name, &argument)?;
                    return Err("admin access needed".into());
                }
                self.check_arguments(statement, row.name, &argument)?;
                note(statement, row.name, &argument);
                self.order(statement, row.name, argument).await
            }
            Some(_) | None => Err(invalid(&statement.text)),
        }
    }

    /// RELOAD takes no argument.
    fn check_arguments(&self, statement: &Statement, name: &str, argument: &str) -> Result<(), Refusal> {
        if name == "reload" && !argument.is_empty() { Err(invalid(&statement.text)) } else { Ok(()) }
    }

    /// Asks the workers for a list.
    async fn list(&self, wanted: Wanted) -> Result<Listed<'_>, Refusal> {
        let turn = match wanted.rows {
            true => Some(self.lists.acquire().await.map_err(|_| Refusal::from("the console is closed"))?),
            false => None,
        };
        let (sink, mut parts) = mpsc::unbounded_channel();
        self.proxy.list(List {
            clients: wanted.clients,
            servers: wanted.servers,
            rows: wanted.rows,
            pinned: wanted.pinned,
            users: wanted.users,
            waiting: wanted.waiting,
            statements: wanted.statements,
            sink: Box::new(move |part| drop(sink.send(part))),
        });
        let gather = async {
            let (mut found, mut rows) = (Vec::new(), 0);
            while let Some(part) = parts.recv().await {
                rows += part.clients.len() + part.servers.len() + part.statements.len();
                if rows > CONSOLE_ROWS {
                    return Err(Refusal(format!("there are more than {CONSOLE_ROWS} rows to show")));
                }
                found.push(part);
            }
            Ok(found)
        };
        match tokio::time::timeout(LIST_TIME, gather).await {
            Ok(found) => Ok(Listed { parts: found?, _turn: turn }),
            Err(_) => Err("a worker has not answered in time".into()),
        }
    }
}

/// What a list is to hold.
#[derive(Debug, Clone, Copy, Default)]
struct Wanted {
    clients: bool,
    servers: bool,
    rows: bool,
    pinned: bool,
    users: bool,
    waiting: bool,
    statements: bool,
}

/// Writes to the log what was ordered, in PgBouncer's words, which tools look for.
fn note(statement: &Statement, name: &str, argument: &str) {
    let name = name.to_ascii_uppercase();
    let words = match argument.replace(char::is_control, " ") {
        none if none.is_empty() => name,
        mode if name == "SHUTDOWN" => format!("{name} {}", mode.to_ascii_uppercase()),
        argument => format!("{name} '{argument}'"),
    };
    tracing::info!(user = statement.user, "{words} command issued");
}

fn invalid(text: &str) -> Refusal {
    Refusal(format!("invalid command '{text}', use SHOW HELP;"))
}

/// What MySQL's programs say before anybody has asked them to.
fn small_talk(text: &str) -> Option<Answer> {
    let text = text.trim().trim_end_matches(';').trim_end();
    let lower = text.to_ascii_lowercase();
    let one = |name: &'static str, value: &str| {
        let mut table = Table::new(&[Column { name, kind: Kind::Text }]);
        table.text(value);
        Some(Answer::Rows(table))
    };
    let sets = [
        "set names ",
        "set autocommit",
        "set character",
        "set session ",
        "set @@",
        "set sql_mode",
        "set sql_",
    ];
    if sets.iter().any(|start| lower.starts_with(start)) {
        return Some(Answer::done("SET"));
    }
    match lower.as_str() {
        "select @@version_comment limit 1" => one("@@version_comment", "Weir, administration console"),
        "select database()" => one("DATABASE()", "weir"),
        "select 1" => one("1", "1"),
        "show warnings" => Some(Answer::Rows(Table::new(&[Column { name: "Message", kind: Kind::Text }]))),
        "commit" | "rollback" | "start transaction" | "begin" => Some(Answer::done("SET")),
        _ => None,
    }
}
