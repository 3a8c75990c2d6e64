//! Reads a server's reply and forwards it.
//!
//! Owns: what is owed for a command, where the reply ends, what must be changed in it for this client. Must
//! not know: sockets, clocks, pools.
//!
//! Invariants: rows are never gathered, whatever their size; only the first bytes of a packet are inspected;
//! for a client with the capabilities that Weir has towards the server, runs of packets are forwarded
//! unchanged.
//!
//! Changes for a client without DEPRECATE_EOF: an EOF after the column definitions, an EOF instead of the OK
//! that ends rows, and sequence numbers that are higher by the number of inserted packets. Changes for a
//! client without SESSION_TRACK: OK packets. From a client with SESSION_TRACK, Weir hides what only Weir
//! asked to track (state change, transaction).
//!
//! Found on MariaDB 10.11 and MySQL 9.7 with DEPRECATE_EOF: a SELECT's last packet carries trackers and
//! status flags; `SELECT 1` outside a transaction carries none. state_change is raised by SET of variables
//! and user variables, text PREPARE, CREATE and DROP TEMPORARY TABLE, also inside CALL; it is not raised by
//! `SELECT @a := 1`, `INTO @a`, GET_LOCK and HANDLER. An open cursor is announced by one packet directly
//! after the column definitions. ERR carries neither flags nor trackers; the next COM_PING carries both and
//! keeps the warnings.

mod ahead;
mod ending;
mod file;
mod finish;
mod prepare;
mod result;

use self::file::FileShift;
pub(crate) use self::file::put_refusal;
pub(crate) use self::result::put_schema;
use crate::back::Back;
use crate::follow::Question;
use crate::frame::{self, HEADER_BYTES, Header};
use crate::front::Front;
use crate::message::ok::ErrPacket;
use crate::message::{Capabilities, Command};
use crate::queue::{Entry, PrepareAhead, Stage};
use crate::rewrite::Names;
use crate::session_state::Flavour;
use crate::warnings::Warnings;
use weir_session::Back as _;
use weir_wire::{Fault, FaultKind, INTERNAL, Step, limits};

/// What the next packet is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// The first of a result: OK, ERR, a request for a file, or the number of columns.
    First,
    /// Column definitions, and how many are left.
    Columns(u64),
    /// Rows, or their end. `fresh`: none was passed on, so an EOF may have to go before it.
    Rows { fresh: bool },
    /// A file is coming from the client.
    File,
    /// The server was told that there is no file; its answer is dropped. `undone`: so is that to the ROLLBACK
    /// of what it has begun for that.
    FileRefused { undone: bool },
    /// One packet, OK, EOF or ERR.
    One,
    /// One packet of text, or ERR.
    Text,
    /// The first packet of a reply to COM_STMT_PREPARE.
    Prepare,
    /// Definitions of parameters and columns.
    Definitions,
}

/// What is owed for one command.
#[derive(Debug)]
pub(crate) struct Reply {
    at: At,
    /// How much higher the client's sequence numbers are.
    shift: u8,
    /// Bytes of the packet under way that have not come.
    left: usize,
    /// The packet under way has a successor.
    continues: bool,
    /// The next packet is that successor.
    continuing: bool,
    /// Rows of the result under way.
    rows: u64,
    /// Sequence number of the next packet of a file, as the server counts.
    file_seq: u8,
    file: FileShift,
    prepare: Option<Box<PrepareAhead>>,
    /// Packets of the answer to a question of Weir's that have come.
    pub(crate) asked: u8,
    /// Columns of that answer.
    pub(crate) asked_columns: u8,
    /// What of its columns' names the client has said in other words.
    pub(crate) names: Option<Names>,
    /// Its rows are looked at: they tell what the request did.
    pub(crate) told: bool,
    /// The answer to SHOW WARNINGS as far as it has come.
    warnings: Option<Box<Warnings>>,
    /// The question about variables.
    variables: Option<Box<Question>>,
}

impl Reply {
    pub(crate) fn new(command: Command) -> Reply {
        let at = match command {
            Command::Query | Command::StmtExecute | Command::ProcessInfo => At::First,
            Command::StmtPrepare => At::Prepare,
            Command::StmtFetch | Command::FieldList => At::Rows { fresh: false },
            Command::Statistics => At::Text,
            Command::Quit
            | Command::InitDb
            | Command::Refresh
            | Command::Debug
            | Command::Ping
            | Command::ProcessKill
            | Command::ChangeUser
            | Command::ResetConnection
            | Command::SetOption
            | Command::StmtSendLongData
            | Command::StmtClose
            | Command::StmtReset => At::One,
            // None of these is sent to a server.
            Command::Sleep
            | Command::CreateDb
            | Command::DropDb
            | Command::Shutdown
            | Command::Connect
            | Command::Time
            | Command::DelayedInsert
            | Command::BinlogDump
            | Command::TableDump
            | Command::ConnectOut
            | Command::RegisterReplica
            | Command::Daemon
            | Command::BinlogDumpGtid
            | Command::Clone
            | Command::SubscribeGroupReplication
            | Command::StmtBulkExecute => At::One,
        };
        Reply {
            at,
            shift: 0,
            left: 0,
            continues: false,
            continuing: false,
            rows: 0,
            file_seq: 0,
            file: FileShift::default(),
            prepare: None,
            asked: 0,
            asked_columns: 1,
            told: false,
            names: None,
            warnings: None,
            variables: None,
        }
    }
}

impl Reply {
    /// It is the end of a longer one, of which the client has got so many packets.
    pub(crate) fn add_shift(&mut self, packets: u8) {
        self.shift = self.shift.wrapping_add(packets);
    }
}

/// Where the bytes of a reply go.
struct Way<'a> {
    front: Option<&'a mut Front>,
    to_client: &'a mut Vec<u8>,
    to_server: &'a mut Vec<u8>,
}

impl Way<'_> {
    fn capabilities(&self) -> Option<Capabilities> {
        self.front.as_deref().map(|front| front.capabilities)
    }

    /// Packets of rows go through as they are.
    fn is_verbatim(&self, shift: u8) -> bool {
        shift == 0 && self.capabilities().is_some_and(|c| c.has(Capabilities::DEPRECATE_EOF))
    }

    /// The client expects an EOF behind column definitions.
    fn needs_eof(&self) -> bool {
        self.capabilities().is_some_and(|c| !c.has(Capabilities::DEPRECATE_EOF))
    }

    fn put(&mut self, header: Header, shift: u8, write: impl FnOnce(&mut Vec<u8>, Capabilities)) {
        if let Some(front) = self.front.as_deref_mut() {
            front.reply_begun = true;
            let capabilities = front.capabilities;
            frame::put(self.to_client, header.seq.wrapping_add(shift), |out| write(out, capabilities));
        }
    }
}

/// What was done with some bytes.
enum Progress {
    /// So many bytes; with `verbatim` they go to the client as they are.
    Took { bytes: usize, verbatim: bool },
    /// Nothing more can be done.
    NeedMore,
    /// So many bytes, and with them the reply to the request itself is whole.
    Ended { bytes: usize, verbatim: bool },
}

impl Back {
    /// Looks at the start of the server's bytes.
    ///
    /// # Errors
    /// `ServerProtocol` and `ServerTooLarge` for what is no reply, `ServerLost` when the server speaks
    /// without being asked (it says goodbye). The connection is of no use after any of them.
    pub(crate) fn handle_reply(
        &mut self,
        front: Option<&mut Front>,
        input: &[u8],
        to_client: &mut Vec<u8>,
        to_server: &mut Vec<u8>,
    ) -> Result<Step, Fault> {
        let Some(mut entry) = self.queue.pop_front() else {
            return match input {
                [] => Ok(Step::Incomplete),
                _ => Err(Fault::new(FaultKind::ServerLost, goodbye(input))),
            };
        };
        let front = front.filter(|_| entry.owner != INTERNAL && !entry.gone);
        let mut way = Way { front, to_client, to_server };
        let step = self.advance(&mut entry, &mut way, input);
        if !matches!(step, Ok(Step::Done { .. })) {
            self.queue.push_front(entry);
        }
        step
    }

    fn advance(&mut self, entry: &mut Entry, way: &mut Way<'_>, input: &[u8]) -> Result<Step, Fault> {
        loop {
            match entry.stage {
                Stage::Waiting => {
                    let Some(front) = way.front.as_deref_mut() else {
                        // It never reached the server.
                        entry.leaves_trace = false;
                        entry.taints = false;
                        entry.stage = Stage::Finished;
                        continue;
                    };
                    let request = std::mem::take(&mut entry.held);
                    self.start(entry, front, &request, way.to_server)?;
                }
                Stage::Local => {
                    self.answer_prepare(entry, way);
                    if self.session.flavour == Flavour::MySql {
                        // It would have forgotten them.
                        self.warned_client = 0;
                    }
                    entry.stage = Stage::Finished;
                }
                Stage::Ahead => match self.read_ahead(entry, way, input)? {
                    0 if entry.stage == Stage::Ahead && !entry.ahead.is_empty() => {
                        return Ok(Step::Incomplete);
                    }
                    bytes => return Ok(Step::Consumed(bytes)),
                },
                Stage::Ping => {
                    let bytes = self.read_ping(entry, way, input)?;
                    return Ok(if bytes == 0 { Step::Incomplete } else { Step::Consumed(bytes) });
                }
                Stage::Sent if entry.studies => {
                    let bytes = self.read_catalogue(entry, input)?;
                    return Ok(if bytes == 0 { Step::Incomplete } else { Step::Consumed(bytes) });
                }
                Stage::Sent => {
                    let (bytes, verbatim) = match self.read_reply(entry, way, input)? {
                        Progress::NeedMore => return Ok(Step::Incomplete),
                        Progress::Took { bytes, verbatim } => (bytes, verbatim),
                        Progress::Ended { bytes, verbatim } => {
                            self.reply_ended(entry, way);
                            (bytes, verbatim)
                        }
                    };
                    return Ok(if verbatim { Step::Forward(bytes) } else { Step::Consumed(bytes) });
                }
                Stage::Refused if !entry.whole => return Ok(Step::Incomplete),
                Stage::Refused => {
                    if let (Some(front), Some(error)) = (way.front.as_deref_mut(), entry.ahead_error.take()) {
                        Back::put_error(front, false, &error, way.to_client);
                    }
                    entry.stage = Stage::Finished;
                }
                Stage::Torn => {
                    return Err(Fault::new(
                        FaultKind::ServerLost,
                        "the server ended a request before its client did",
                    ));
                }
                Stage::Finished => {
                    self.finish(entry, way.front.as_deref_mut());
                    entry.stage = self.next_question(entry, way);
                    if entry.stage != Stage::Answered {
                        return Ok(Step::Consumed(0));
                    }
                }
                Stage::AskWarnings
                | Stage::AskSettings
                | Stage::AskVariables
                | Stage::AskFoundRows
                | Stage::AskInsertId => {
                    let Some((header, payload)) = whole(input)? else { return Ok(Step::Incomplete) };
                    let over = match entry.stage {
                        Stage::AskWarnings => self.read_warnings(entry, way, payload)?,
                        Stage::AskFoundRows => self.read_found_rows(entry, way, payload)?,
                        Stage::AskSettings => self.read_settings(entry, way, payload),
                        Stage::AskVariables => self.read_variables(entry, way, payload),
                        _ => self.read_insert_id(entry, way, payload)?,
                    };
                    if over {
                        entry.stage = self.next_question(entry, way);
                    }
                    return Ok(Step::Consumed(header.total()));
                }
                Stage::Answered => {
                    return Ok(Step::Done { owner: entry.reader(), boundary: self.boundary() });
                }
            }
        }
    }
}

/// A packet that must be understood.
fn whole(input: &[u8]) -> Result<Option<(Header, &[u8])>, Fault> {
    frame::whole(input, limits::SERVER_GATHER_BYTES, FaultKind::ServerTooLarge)
}

/// What a server said without being asked.
fn goodbye(input: &[u8]) -> String {
    let payload = input.get(HEADER_BYTES..).unwrap_or_default();
    match ErrPacket::read(payload) {
        Ok(err) => format!("the server said {} {}", err.code, String::from_utf8_lossy(err.message)),
        Err(_) => "the server spoke without being asked".to_owned(),
    }
}

fn malformed(text: &'static str) -> Fault {
    Fault::new(FaultKind::ServerProtocol, text)
}
