//! Finds requests in a client's bytes.
//!
//! Owns: where a request begins and ends, what it needs, replies that need no server. Must not know: replies
//! of servers.

use super::{Extra, FileData, Front, Phase, Request, malformed};
use crate::frame::{HEADER_BYTES, Header};
use crate::message::ok::OkPacket;
use crate::message::{Capabilities, Command, ok, status};
use crate::prepared::{Execute, Text, statement_id};
use crate::reply::put_refusal;
use crate::rewrite::{self, Names, Rewritten};
use crate::says::{Says, Skipped};
use crate::session_state::{Flavour, OTHER_TRACKERS, Slot, changes_in, tracker_bit};
use crate::{error, frame, says};
use std::sync::Arc;
use weir_session::Front as _;
use weir_sql::{Class, Kill, Scope, Uses, Verb};
use weir_wire::{Fault, FaultKind, Found, Needs, Pin, Reader, limits};

/// With ER_MAX_PREPARED_STMT_COUNT_REACHED.
pub(crate) const NO_MORE_STATEMENTS: &str = "Can't create more prepared statements for this client";

/// ER_MALFORMED_PACKET.
const MALFORMED_PACKET: u16 = 1835;

/// ER_STMT_HAS_NO_OPEN_CURSOR.
pub(crate) const NO_CURSOR: u16 = 1421;

/// What leaves the same as KILL, and whose answer the client does not get.
const INSTEAD_OF_KILL: &[u8] = b"DO 0";

/// After so many refused logins on top of a session, MariaDB hears no more of them.
const REFUSED_LOGINS: u8 = 3;

impl Front {
    /// Looks at the start of the client's bytes.
    ///
    /// # Errors
    /// `ClientProtocol` and `ClientTooLarge`: close the client. `NotAllowed` when a request that was
    /// already sent in part turns out to be one that Weir cannot carry.
    pub(crate) fn find(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        match &mut self.phase {
            Phase::Greeting | Phase::Busy => Ok(Found::Incomplete),
            Phase::Idle if self.parting => Ok(Found::Goodbye),
            Phase::Idle => {
                let found = self.find_command(input, out);
                if found.is_err() {
                    // It waits for an answer: that is what it is about to get.
                    self.phase = Phase::Busy;
                }
                found
            }
            Phase::Long(_) => self.find_part(input, true, out),
            Phase::File(file) => {
                let (found, ended) = file.find(input);
                if ended {
                    self.phase = Phase::Busy;
                }
                Ok(found)
            }
        }
    }

    pub(super) fn find_command(&mut self, input: &[u8], out: &mut Vec<u8>) -> Result<Found, Fault> {
        let Some(header) = Header::read(input) else { return Ok(Found::Incomplete) };
        if header.seq != 0 || header.len == 0 {
            return Err(Fault::new(FaultKind::ClientProtocol, "a command with a wrong header"));
        }
        self.reply_seq = 1;
        if header.total() > limits::REQUEST_GATHER_BYTES {
            return self.begin_long(header, input, out);
        }
        let Some(payload) = input.get(HEADER_BYTES..header.total()) else { return Ok(Found::Incomplete) };
        let len = header.total();
        self.reply_begun = false;
        let code = payload.first().copied().unwrap_or_default();
        let Some(command) = Command::from_code(code) else { return Ok(self.unknown_command(len, out)) };
        self.request = Request::new(command);
        match command {
            Command::Quit => Ok(Found::Goodbye),
            Command::Query => Ok(self.find_query(payload, len, out)),
            Command::StmtPrepare => Ok(self.find_prepare(payload, len, out)),
            Command::StmtExecute
            | Command::StmtFetch
            | Command::StmtReset
            | Command::StmtClose
            | Command::StmtSendLongData => self.find_statement(command, payload, len, out),
            Command::Ping | Command::Statistics => Ok(self.request(len)),
            Command::InitDb
            | Command::FieldList
            | Command::Refresh
            | Command::ProcessInfo
            | Command::Debug => Ok(self.request(len)),
            Command::ProcessKill => {
                let mut r = Reader::new(payload.get(1..).unwrap_or_default());
                let target = r.u32_le().map_err(|_| malformed("COM_PROCESS_KILL"))?;
                Ok(self.kill(self.own_number(u64::from(target)), false, len))
            }
            Command::SetOption => Ok(self.set_option(payload, len, out)),
            Command::ResetConnection => Ok(self.find_reset(len, out)),
            Command::ChangeUser if self.refused_logins < REFUSED_LOGINS => Ok(Found::Login { len }),
            Command::ChangeUser => Ok(self.unknown_command(len, out)),
            Command::Shutdown
            | Command::BinlogDump
            | Command::BinlogDumpGtid
            | Command::RegisterReplica
            | Command::Clone
            | Command::SubscribeGroupReplication => Ok(self.not_allowed(len, out)),
            Command::Sleep
            | Command::CreateDb
            | Command::DropDb
            | Command::Connect
            | Command::Time
            | Command::DelayedInsert
            | Command::TableDump
            | Command::ConnectOut
            | Command::Daemon
            | Command::StmtBulkExecute => Ok(self.unknown_command(len, out)),
        }
    }

    /// The request is whole and goes to a server.
    pub(crate) fn request(&mut self, len: usize) -> Found {
        self.phase = Phase::Busy;
        let quiet = self.status & (status::IN_TRANS | status::AUTOCOMMIT) == status::AUTOCOMMIT;
        // MySQL's flag says autocommit even where the session began without it (bug 66884).
        let commits = !self.traits.autocommit_off || self.state.setting(Slot::Autocommit) == Some("1");
        let shareable = quiet && commits && self.request.only_reads() && self.pins().is_empty();
        let fingerprint = self.request.class.fingerprint as u32;
        let lists = self.request.class.uses.contains(Uses::PROCESS_LIST)
            || self.request.command == Command::ProcessInfo;
        let alike = shareable && self.is_plain();
        Found::Request { len, needs: Needs { shareable, alike, fingerprint, lists, ..Needs::default() } }
    }

    pub(crate) fn find_query(&mut self, payload: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        let text = payload.get(1..).unwrap_or_default();
        let (class, state) = self.classify(text);
        self.reply_seq = self.shift.wrapping_add(1);
        if std::mem::take(&mut self.passes) {
            // Behind the KILL for the database there may be another.
            let first = text.iter().position(|byte| *byte == b';').map_or(text.len(), |at| at + 1);
            let behind = text.get(first..).unwrap_or_default();
            let of_behind = self.classify(behind).0;
            return match self.killing(&of_behind, behind) {
                Killing::None | Killing::Server => self.find_text(class, state, text, len, out),
                Killing::Here(target, query_only) | Killing::Among(target, query_only) => {
                    self.find_among(&Among::of(&of_behind, first), text, (target, query_only), len, out)
                }
                Killing::Refused => match self.kill_that_is_read(&of_behind, behind) {
                    Some((among, kill)) => self.find_among(&among.behind(first), text, kill, len, out),
                    None => self.not_allowed(len, out),
                },
            };
        }
        match self.killing(&class, text) {
            Killing::None | Killing::Server => self.find_text(class, state, text, len, out),
            Killing::Here(target, query_only) => self.kill(target, query_only, len),
            Killing::Refused => match self.kill_that_is_read(&class, text) {
                Some((among, kill)) => self.find_among(&among, text, kill, len, out),
                None => self.not_allowed(len, out),
            },
            Killing::Among(target, query_only) => {
                self.find_among(&Among::of(&class, 0), text, (target, query_only), len, out)
            }
        }
    }

    /// A text with a KILL among its statements: what stands before it is the request, then the hall kills,
    /// and what stands behind it is found next.
    fn find_among(
        &mut self,
        among: &Among,
        text: &[u8],
        kill: (u32, bool),
        len: usize,
        out: &mut Vec<u8>,
    ) -> Found {
        let behind = among.behind.map(|at| text.get(at..).unwrap_or_default().into());
        self.rare.get_or_insert_default().behind_kill = behind;
        let Some(start) = among.start else { return self.kill(kill.0, kill.1, len) };
        let before = text.get(..start).unwrap_or_default();
        let own = [before, INSTEAD_OF_KILL].concat();
        let (own_class, state) = self.classify(&own);
        let found = self.find_text(own_class, state, &own, len, out);
        let extra = self.request.extra.get_or_insert_default();
        extra.kill_behind = Some(kill);
        let mut sent: Rewritten = extra.text.take().unwrap_or_else(|| own.into());
        sent.text.truncate(sent.text.len() - INSTEAD_OF_KILL.len());
        let said = text.get(start..).unwrap_or_default();
        extra.text = Some(sent.ends_with(INSTEAD_OF_KILL, said));
        found
    }

    /// The text goes to a server, or is answered by what is known.
    pub(super) fn find_text(
        &mut self,
        class: Class,
        state: u64,
        text: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Found {
        let refuses_whole = self.refuses_whole(&class);
        if !refuses_whole {
            if class.uses.contains(Uses::EXPLAIN_CONNECTION) || rewrite::impossible(&class) {
                return self.not_allowed(len, out);
            }
            if let Some(found) = self.refuse_file(&class, len, out) {
                return found;
            }
        }
        if self.shows_warnings(&class, text, false, out) || self.misses_condition(&class, text, false, out) {
            return Found::Answered { len };
        }
        if let Some(found) = self.answer_head(&class, text, len, out) {
            return found;
        }
        let extra = Extra {
            changes: changes_in(&class, text, &self.state, self.traits.tracks_schema),
            text: rewrite::text(&class, text, &self.answers(), true).filter(|_| !refuses_whole),
            rereads: self.rereads(&class, text),
            ..Extra::default()
        };
        let words = self.for_words(text);
        self.note_trackers(&class, &words, extra.changes.is_some());
        self.note_uses(&class);
        self.request.changes_others = changes_others(&class, &words);
        self.request.act = self.act_of(&class, &words).boxed();
        self.request.shows = says::shows(&class, &words, self.traits.flavour);
        self.request.skipped = self.skipped(&class, &words);
        self.request.leaves = self.leaves(&class, &words);
        self.request.says = Says::of(&class, &words, self.traits.flavour);
        self.request.class = class;
        self.request.judged_by = state;
        if extra.changes.is_some() || extra.text.is_some() || extra.rereads {
            self.request.extra = Some(Box::new(extra));
        }
        // A semicolon in front of a statement is an error to servers.
        let by_heart = !text.contains(&b';') && self.may_know_by_heart();
        match self.request(len) {
            Found::Request { len, needs } if by_heart => {
                Found::Request { len, needs: Needs { prepares: true, ..needs } }
            }
            found => found,
        }
    }

    /// The server refuses the text and cites it: several statements where only one is allowed.
    pub(crate) fn refuses_whole(&self, class: &Class) -> bool {
        let unsure = class.doubtful || class.uses.contains(Uses::EXECUTABLE_COMMENT);
        class.statements > 1 && !self.state.multi_statements && !unsure
    }

    /// What a text has to do with the session's trackers and counters. `follows`: all that it sets moves with
    /// its client.
    fn note_trackers(&mut self, class: &Class, text: &[u8], follows: bool) {
        // Its own trackers are shown to it from now on.
        if class.uses.contains(Uses::TRACKERS) && class.pins.contains(Pin::Setting) {
            let sets = class.set().into_iter().chain(class.heads());
            let bits =
                sets.flat_map(|set| &set.assignments).fold(0, |bits, one| bits | tracker_bit(&one.name));
            let bits = if class.statements > 1 { bits | trackers_set_in(text) } else { bits };
            // One of Weir's is set to what it was.
            self.own_trackers |= if follows { bits & OTHER_TRACKERS } else { bits };
        }
        // That alone is no question about them.
        let only_sets = follows && class.statements == 1 && sets_all_it_names(class, text);
        self.request.asks_session =
            if only_sets { AsksSession::Nothing } else { AsksSession::of(class, text) };
        if class.uses.contains(Uses::SQL_PREPARE) {
            let prepared = self.rare.as_deref().is_some_and(|rare| rare.prepares_trackers);
            if prepared || names_trackers(text) {
                self.rare.get_or_insert_default().prepares_trackers = true;
                self.request.asks_session = AsksSession::Trackers;
            }
        }
    }

    /// LOAD DATA LOCAL among other statements, of a client that has not allowed it: a server would end there,
    /// but to servers Weir says that it allows it, so what follows would run. One alone is refused when its
    /// server asks for the file.
    fn refuse_file(&mut self, class: &Class, len: usize, out: &mut Vec<u8>) -> Option<Found> {
        let refused = class.statements > 1
            && class.uses.contains(Uses::LOAD_LOCAL)
            && !self.capabilities.has(Capabilities::LOCAL_FILES);
        if !refused {
            return None;
        }
        if class.verb != weir_sql::Verb::Load {
            return Some(self.not_allowed(len, out));
        }
        let mark = out.len();
        put_refusal(out, self.reply_seq, self.traits.flavour);
        self.forget_warnings();
        self.answered_by_error(out, mark);
        Some(Found::Answered { len })
    }

    /// Who carries out the KILL in a text. The numbers in it are Weir's, or those of servers that its client
    /// has seen; which server a client has, and which client a server, changes. So no server gets it, unless
    /// the number is of no server of Weir's, or stands for one request only.
    fn killing(&self, class: &Class, text: &[u8]) -> Killing {
        let whole = class.statements == 1;
        let of = |(target, query_only)| match whole {
            true => Killing::Here(target, query_only),
            false => Killing::Among(target, query_only),
        };
        match class.kill() {
            None if class.verb == Verb::Kill => Killing::Refused,
            // What cannot be read is searched by bytes.
            None if class.doubtful && self.state.multi_statements && kills(text).next().is_some() => {
                Killing::Refused
            }
            None => Killing::None,
            Some(_) if !whole && class.uses.contains(Uses::EXECUTABLE_COMMENT) => Killing::Refused,
            // It is refused as a whole.
            Some(_) if says::begins_with_none(text) => Killing::Server,
            Some(_) if !whole && !self.state.multi_statements => Killing::Server,
            Some(Kill::Id { id, query_only }) => of((self.own_number(id), query_only)),
            // The server refuses a parameter in a text.
            Some(Kill::QueryId | Kill::Parameter { .. }) => Killing::Server,
            Some(Kill::Other) => match rewrite::kill_self(class, text) {
                Some(query_only) => of((self.id.number(), query_only)),
                None => Killing::Refused,
            },
        }
    }

    /// The first KILL of a text that cannot be read for certain to its end, where it can up to the end of
    /// that statement: what stands behind it is found when its turn comes.
    fn kill_that_is_read(&self, class: &Class, text: &[u8]) -> Option<(Among, (u32, bool))> {
        /// Some may stand in strings.
        const LOOKED_AT: usize = 4;
        if !class.doubtful || !self.state.multi_statements {
            return None;
        }
        kills(text).take(LOOKED_AT).find_map(|word| {
            let end = word + text.get(word..)?.iter().position(|byte| *byte == b';')?;
            let read = text.get(..end)?;
            let class = self.classify(read).0;
            let is_last = class.kill_end() == 0;
            match self.killing(&class, read) {
                Killing::Here(target, query_only) | Killing::Among(target, query_only) if is_last => {
                    let among = Among { behind: Some(end + 1), ..Among::of(&class, 0) };
                    Some((among, (target, query_only)))
                }
                _ => None,
            }
        })
    }

    /// A number in KILL. Where this client has seen itself by a server's, it means itself.
    fn own_number(&self, id: u64) -> u32 {
        let listed_on = self.rare.as_deref().map_or(0, |rare| rare.listed_on);
        if id != 0 && id == listed_on { self.id.number() } else { u32::try_from(id).unwrap_or(0) }
    }

    pub(super) fn kill(&mut self, target: u32, query_only: bool, len: usize) -> Found {
        self.phase = Phase::Busy;
        self.request.number = target;
        self.request.query_only = query_only;
        Found::Kill { len, target, query_only }
    }

    /// Nobody here has the number: the KILL that asks the database, to be found next.
    pub(crate) fn pass_on(&mut self) -> Vec<u8> {
        let query = if self.request.query_only { "QUERY " } else { "" };
        let mut text = format!("KILL {query}{}", self.request.number).into_bytes();
        if let Some(behind) = self.take_behind_kill() {
            text.push(b';');
            text.extend_from_slice(&behind);
        }
        self.shift = self.reply_seq.wrapping_sub(1);
        self.forget_request();
        self.passes = true;
        query_of(&text)
    }

    /// What stands behind the KILL that was carried out last, to be found next.
    pub(super) fn take_behind_kill(&mut self) -> Option<Box<[u8]>> {
        self.rare.as_deref_mut()?.behind_kill.take()
    }

    /// The KILL behind the request that was finished last.
    pub(crate) fn take_kill(&mut self) -> Option<(u32, bool)> {
        let (target, query_only) = self.rare.as_deref_mut()?.owed_kill.take()?;
        self.phase = Phase::Busy;
        (self.request.number, self.request.query_only) = (target, query_only);
        Some((target, query_only))
    }

    pub(super) fn find_prepare(&mut self, payload: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        let text = payload.get(1..).unwrap_or_default();
        let (class, state) = self.classify(text);
        self.request.judged_by = state;
        if class.verb == Verb::Kill {
            return self.find_prepared_kill(class, text, len, out);
        }
        if class.uses.contains(Uses::EXPLAIN_CONNECTION) || rewrite::impossible(&class) {
            return self.not_allowed(len, out);
        }
        let rewritten = rewrite::text(&class, text, &self.answers(), false);
        let (text, names) = match rewritten {
            Some(Rewritten { text, names }) => (text.into(), names),
            None => (text.into(), Names::default()),
        };
        self.prepare(class, text, names, len, out)
    }

    /// A server prepares it; each execution is carried out here.
    fn find_prepared_kill(&mut self, class: Class, text: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        let kill = match (class.kill(), self.killing(&class, text)) {
            (Some(Kill::QueryId), _) => None,
            (Some(kill @ Kill::Parameter { .. }), _) => Some(kill),
            (_, Killing::Here(id, query_only)) => Some(Kill::Id { id: u64::from(id), query_only }),
            _ => Some(Kill::Other),
        };
        let found = self.prepare(class, text.into(), Names::default(), len, out);
        if let Some(extra) = self.request.extra.as_deref_mut() {
            extra.kills = kill;
        }
        found
    }

    /// The text is to be prepared.
    fn prepare(
        &mut self,
        class: Class,
        text: Box<[u8]>,
        names: Names,
        len: usize,
        out: &mut Vec<u8>,
    ) -> Found {
        if !self.take_unasked().is_empty() {
            // What it means depends on them.
            self.pins.insert(Pin::Setting);
        }
        let statements = self.statements.get_or_insert_default();
        statements.set_last(0);
        let Some(id) = statements.next_id(text.len()) else {
            error::put(out, 1, 1461, "42000", NO_MORE_STATEMENTS);
            return Found::Answered { len };
        };
        self.request.number = id;
        self.request.leaves = self.preparing_leaves(&class, &text);
        self.note_uses(&class);
        let variables = self.variables_of(&class);
        self.request.class = class;
        let text = self.tied(Text::new(self.state.shape(), variables, text, names));
        self.request.extra = Some(Box::new(Extra { prepare: Some(Arc::new(text)), ..Extra::default() }));
        let found = self.request(len);
        debug_assert!(!matches!(found, Found::Request { needs: Needs { shareable: true, .. }, .. }));
        found
    }

    /// The text of a statement that is prepared now.
    pub(crate) fn tied(&self, text: Text) -> Text {
        text.tied(self.pins().contains(Pin::Setting), self.id.unique(), self.request.number)
    }

    pub(super) fn find_statement(
        &mut self,
        command: Command,
        payload: &[u8],
        len: usize,
        out: &mut Vec<u8>,
    ) -> Result<Found, Fault> {
        let number = statement_id(payload).map_err(|_| malformed("a command about a statement"))?;
        let idle = self.status & !status::OF_THE_REPLY;
        let flavour = self.traits.flavour;
        let capabilities = self.capabilities;
        let kept = self.statements.as_deref().map_or(0, |all| all.ties().long_data_bytes);
        if self.statements.as_deref().and_then(|all| all.get(number)).is_none() {
            let answers = matches!(command, Command::StmtExecute | Command::StmtFetch | Command::StmtReset);
            // A server says it in the language that the client has chosen.
            let in_words =
                self.pins().contains(Pin::Setting) || self.state.setting(Slot::LcMessages).is_some();
            if answers && (in_words || self.adds_to_warnings_elsewhere()) {
                self.request.number = number;
                return Ok(self.request(len));
            }
            let mark = out.len();
            let found = unknown_statement(command, flavour, number, len, out);
            if out.len() > mark {
                self.answered_by_error(out, mark);
            }
            return Ok(found);
        }
        let adds = self.adds_to_warnings_elsewhere();
        let Some(statements) = self.statements.as_deref_mut() else { return Ok(Found::Incomplete) };
        self.request.number = statements.resolve(number);
        let Some(statement) = statements.get_mut(number) else { return Ok(Found::Incomplete) };
        match command {
            Command::StmtSendLongData if !statement.sent_ahead && kept + len <= limits::LONG_DATA_BYTES => {
                let header = Header { len: payload.len(), seq: 0 };
                header.write(&mut statement.long_data);
                statement.long_data.extend_from_slice(payload);
                return Ok(Found::Answered { len });
            }
            Command::StmtReset if !statement.cursor && !statement.sent_ahead => {
                statement.long_data = Vec::new();
                let untold = self.take_untold();
                let ok = OkPacket { status: idle, changes: &untold, ..OkPacket::default() };
                frame::put(out, 1, |out| ok.write(ok::OK, capabilities, out));
                self.answered_here(0);
                self.conditions = Some(0);
                return Ok(Found::Answered { len });
            }
            Command::StmtClose if !statement.cursor && !statement.sent_ahead => {
                statements.remove(number);
                return Ok(Found::Answered { len });
            }
            Command::StmtFetch if !statement.cursor && !adds => {
                let mark = out.len();
                error::put(out, 1, NO_CURSOR, "HY000", &has_no_cursor(number, flavour));
                self.answered_by_error(out, mark);
                return Ok(Found::Answered { len });
            }
            Command::StmtExecute => {
                let params = statement.params;
                let execute = crate::prepared::Execute::read(payload, params);
                let execute = execute.map_err(|_| malformed("COM_STMT_EXECUTE"))?;
                if execute.has_types {
                    statement.types = execute.types(payload, params).into();
                }
                let state = self.knowledge.state();
                if state == 0 || statement.judged_by != state {
                    // User code in it may be something else by now.
                    statement.judge(self.knowledge.proof());
                }
                if let Some(kill) = statement.kill {
                    // MySQL opens none for KILL; MariaDB goes on without.
                    if execute.cursor && flavour == Flavour::MySql {
                        let mark = out.len();
                        error::put(out, 1, 1210, "HY000", "Incorrect arguments to with cursor");
                        self.answered_by_error(out, mark);
                        return Ok(Found::Answered { len });
                    }
                    let id = match kill {
                        Kill::Id { id, .. } => Some(id),
                        Kill::Parameter { .. } => {
                            crate::binding::integer(payload, &execute, &statement.types)
                        }
                        Kill::QueryId | Kill::Other => None,
                    };
                    let query_only = matches!(
                        kill,
                        Kill::Id { query_only: true, .. } | Kill::Parameter { query_only: true }
                    );
                    let target = id.map(|id| self.own_number(id));
                    return Ok(match target {
                        Some(target) => self.kill(target, query_only, len),
                        None => self.not_allowed(len, out),
                    });
                }
                self.request.judged_by = statement.judged_by;
                self.request.class = (*statement.class).clone();
                // A server opens no cursor for it, whatever is asked for.
                let asks = Uses::WARNINGS | Uses::DIAGNOSTICS;
                if self.request.class.uses.intersects(asks) && params == 0 {
                    let (class, text) = (self.request.class.clone(), statement.text.clone());
                    let text = &text.text;
                    if self.shows_warnings(&class, text, true, out)
                        || self.misses_condition(&class, text, true, out)
                    {
                        return Ok(Found::Answered { len });
                    }
                }
                let Some(statement) = self.statements.as_deref().and_then(|all| all.get(number)) else {
                    return Ok(Found::Incomplete);
                };
                self.request.changes_others = changes_others(&statement.class, &statement.text.text);
                let on = self.traits.tracks_schema;
                if let Some(changes) = changes_in(&self.request.class, &statement.text.text, &self.state, on)
                {
                    self.request.extra = Some(Box::new(Extra { changes: Some(changes), ..Extra::default() }));
                }
                // A cursor belongs to its server, and so do warnings, and what has seen several types.
                if self.request.class.shareable {
                    let stays = execute.cursor || statement.cursor || statement.warned;
                    self.request.class.shareable = !stays && !statement.mixes(payload, &execute);
                }
                self.request.wants = statement.wanted(payload, &execute);
                // What was sent ahead of it is spent by it.
                self.request.only_once = statement.sent_ahead || !statement.long_data.is_empty();
                let text = statement.text.clone();
                let words = self.prepared_for_words(&text);
                self.request.shows = says::shows(&self.request.class, &words, flavour);
                self.request.act = self.act_of_execution(&words, number, payload, &execute).boxed();
                self.request.skipped = self.skipped(&self.request.class, &words);
                if let Skipped::Parameter { behind } = self.request.skipped {
                    let statement = self.statements.as_deref().and_then(|all| all.get(number));
                    let types = statement.map(|statement| statement.types.clone()).unwrap_or_default();
                    let sent_data = self.request.only_once;
                    self.request.skipped = match offset_in(payload, &execute, &types, behind, sent_data) {
                        Some(offset) => Skipped::Known(offset),
                        None => Skipped::Other,
                    };
                }
                let class = (self
                    .request
                    .class
                    .uses
                    .intersects(Uses::TRACKERS | Uses::CODE_TRACKERS | Uses::SQL_PREPARE)
                    || self.request.class.uses.contains(Uses::PROCESS_LIST)
                    || self.request.class.verb == Verb::Show)
                    .then(|| self.request.class.clone());
                if let Some(class) = class {
                    let follows = self.request.extra.as_deref().is_some_and(|extra| extra.changes.is_some());
                    self.note_trackers(&class, &words, follows);
                }
                self.request.leaves = self.leaves(&self.request.class, &words);
                self.request.says = Says::of(&self.request.class, &words, flavour);
            }
            _ => {}
        }
        Ok(self.request(len))
    }

    pub(super) fn set_option(&mut self, payload: &[u8], len: usize, out: &mut Vec<u8>) -> Found {
        let multi_statements = match payload.get(1..3) {
            Some([0, 0]) => true,
            Some([1, 0]) => false,
            // MariaDB reads on in what it had before.
            Some(_) | None if payload.len() > 2 || self.traits.flavour == Flavour::MariaDb => {
                return self.unknown_command(len, out);
            }
            Some(_) | None => {
                error::put(out, 1, MALFORMED_PACKET, "HY000", "Malformed communication packet.");
                return Found::Answered { len };
            }
        };
        // The server is told with the next request.
        self.state.multi_statements = multi_statements;
        self.put_ok(ok::EOF, out);
        let conditions = self.conditions;
        self.answered_here(-1);
        self.conditions = conditions;
        Found::Answered { len }
    }

    pub(super) fn find_reset(&mut self, len: usize, out: &mut Vec<u8>) -> Found {
        // Nothing of this client is on any server but what would be brought there anew. What a session begins
        // with may be something else by now: a server knows.
        let is_outdated = self.state.base.as_ref().is_some_and(|base| base.is_outdated());
        if self.pins().is_empty() && self.status & status::IN_TRANS == 0 && !is_outdated {
            self.reset_session();
            self.answered_here(0);
            self.put_ok(ok::OK, out);
            return Found::Answered { len };
        }
        self.request(len)
    }
}

/// What of the session itself a text asks for, that Weir has a hand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum AsksSession {
    /// Nothing.
    #[default]
    Nothing,
    /// Variables, among them the trackers that Weir sets.
    Trackers,
    /// Counters of what the session has done.
    Counters,
}

/// Session counters that clients read to learn about a statement of theirs; others count for the whole
/// server, or tell of the connection.
const COUNTERS: [&[u8]; 5] = [b"last_query", b"handler", b"created_tmp", b"select_", b"sort_"];

impl AsksSession {
    fn of(class: &Class, text: &[u8]) -> AsksSession {
        let has = |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
        let shows = class.verb == Verb::Show && class.statements == 1;
        let names = |words: &[&[u8]]| words.iter().any(|word| has(word));
        let read = !class.doubtful && !class.uses.contains(Uses::EXECUTABLE_COMMENT);
        let of_text = class.uses.contains(Uses::TRACKERS) && (!read || says::may_show_trackers(text));
        if of_text || class.uses.contains(Uses::CODE_TRACKERS) {
            AsksSession::Trackers
        } else if (shows || class.uses.contains(Uses::PROCESS_LIST))
            && has(b"status")
            && !has(b"global")
            && names(&COUNTERS)
        {
            AsksSession::Counters
        } else {
            AsksSession::Nothing
        }
    }
}

/// Where KILL stands where a statement may begin.
fn kills(text: &[u8]) -> impl Iterator<Item = usize> {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let begins = |before: &[u8]| {
        let before = before.trim_ascii_end();
        let number = before.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        let comment = before.get(..before.len() - number).unwrap_or_default();
        matches!(before.last(), None | Some(b';' | b'/')) || matches!(comment.last(), Some(b'!'))
    };
    let kills = move |at: &usize| {
        let (before, behind) = (text.get(..*at).unwrap_or_default(), text.get(at + 4));
        let found = text.get(*at..at + 4).is_some_and(|found| found.eq_ignore_ascii_case(b"KILL"));
        found && !behind.is_some_and(word) && begins(before)
    };
    (0..text.len()).filter(kills)
}

/// The parameter behind which so many others stand, as a number of rows. `sent_data`: some came outside of
/// the packet.
fn offset_in(payload: &[u8], execute: &Execute, types: &[u8], behind: u8, sent_data: bool) -> Option<u32> {
    let index = (types.len() / 2).checked_sub(1 + usize::from(behind)).filter(|_| !sent_data)?;
    u32::try_from(crate::binding::integer_at(payload, execute, types, index)?).ok()
}

/// A COM_QUERY.
pub(super) fn query_of(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER_BYTES + 1 + text.len());
    frame::put(&mut out, 0, |out| {
        out.push(Command::Query as u8);
        out.extend_from_slice(text);
    });
    out
}

/// The trackers that this SET names, and tables of variables, are all on the left of its assignments.
fn sets_all_it_names(class: &Class, text: &[u8]) -> bool {
    let count = |text: &[u8], word: &[u8]| {
        text.windows(word.len()).filter(|window| window.eq_ignore_ascii_case(word)).count()
    };
    let targets = class.set().map_or(&[][..], |set| &set.assignments);
    [&b"session_track"[..], b"variables"].iter().all(|word| {
        count(text, word) == targets.iter().map(|one| count(one.name.as_bytes(), word)).sum::<usize>()
    })
}

/// A text that SQL prepares may ask for trackers.
fn names_trackers(text: &[u8]) -> bool {
    let has = |word: &[u8]| text.windows(word.len()).any(|window| window.eq_ignore_ascii_case(word));
    has(b"session_track") || has(b"variables")
}

/// Trackers to which one of several statements may assign, as [`tracker_bit`] has them.
fn trackers_set_in(text: &[u8]) -> u8 {
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    let mut bits = 0;
    let mut rest = text;
    while let Some(at) = rest.iter().position(word) {
        let end = rest[at..].iter().position(|b| !word(b)).map_or(rest.len(), |len| at + len);
        let name = String::from_utf8_lossy(&rest[at..end]).to_ascii_lowercase();
        rest = &rest[end..];
        let behind = rest.trim_ascii_start();
        if name.starts_with("session_track") && (behind.starts_with(b"=") || behind.starts_with(b":=")) {
            bits |= tracker_bit(&name);
        }
    }
    bits
}

/// Who carries out a KILL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killing {
    /// There is none.
    None,
    /// The hall: the target, and whether only its request is meant.
    Here(u32, bool),
    /// The hall, when all that stands before it has run.
    Among(u32, bool),
    /// The server, as it stands.
    Server,
    /// Nobody.
    Refused,
}

/// Where a KILL stands among the statements of a text.
#[derive(Debug, Clone, Copy)]
struct Among {
    /// Where it begins; `None` where nothing has to run first.
    start: Option<usize>,
    /// Where what follows it begins, if anything does.
    behind: Option<usize>,
}

impl Among {
    /// `class` is that of the text from `from` on; what stands before that has to run.
    fn of(class: &Class, from: usize) -> Among {
        let runs_first = class.before_kill() > 0 || from > 0;
        let is_last = class.before_kill() + 1 >= class.statements;
        let end = match class.kill_end() {
            // Behind all of it.
            0 => usize::MAX,
            end => from + end as usize + 1,
        };
        Among {
            start: runs_first.then_some(from + class.kill_start() as usize),
            behind: (!is_last).then_some(end),
        }
    }

    /// The same in a text in which so much stands before what it was found in.
    fn behind(self, from: usize) -> Among {
        Among { start: Some(self.start.unwrap_or_default() + from), behind: self.behind.map(|at| at + from) }
    }
}

impl FileData {
    /// Finds what is there; true when the end of the file is among it.
    pub(super) fn find(&mut self, input: &[u8]) -> (Found, bool) {
        let mut pos = 0;
        let mut ended = false;
        while !ended {
            let rest = input.get(pos..).unwrap_or_default();
            if self.left > 0 {
                let n = self.left.min(rest.len());
                self.left -= n;
                pos += n;
                if self.left > 0 {
                    break;
                }
                continue;
            }
            let Some(header) = Header::read(rest) else { break };
            ended = header.len == 0 && !self.continuing;
            self.continuing = header.continues();
            self.left = header.len;
            pos += HEADER_BYTES;
        }
        let needs = Needs { lease: true, continues: true, ..Needs::default() };
        match (pos, ended) {
            (0, _) => (Found::Incomplete, false),
            (len, true) => (Found::Request { len, needs }, true),
            (len, false) => (Found::Part { len, needs }, false),
        }
    }
}

/// It may change accounts or global settings. Words that only look so cost a few logins at the server.
fn changes_others(class: &Class, text: &[u8]) -> bool {
    let words: &[&[u8]] = match class.verb {
        _ if class.statements > 1 && !class.shareable => &[
            b"grant",
            b"revoke",
            b"user",
            b"role",
            b"password",
            b"global",
            b"persist",
            b"persist_only",
            b"privileges",
        ],
        Verb::Set if class.ddl => return true,
        Verb::Set => match class.set() {
            Some(set) => return set.assignments.iter().any(|one| one.scope == Scope::Global),
            None => &[b"global", b"persist", b"persist_only"],
        },
        Verb::Create | Verb::Alter | Verb::Drop => &[b"user", b"role"],
        Verb::Catalogue => &[b"grant", b"revoke", b"user"],
        Verb::Flush => &[b"privileges"],
        _ => return false,
    };
    let word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
    text.split(|b| !word(b)).any(|found| words.iter().any(|wanted| found.eq_ignore_ascii_case(wanted)))
}

/// The message of [`NO_CURSOR`].
pub(crate) fn has_no_cursor(number: u32, flavour: Flavour) -> String {
    let stop = if flavour == Flavour::MySql { "." } else { "" };
    format!("The statement ({number}) has no open cursor{stop}")
}

pub(super) fn unknown_statement(
    command: Command,
    flavour: Flavour,
    number: u32,
    len: usize,
    out: &mut Vec<u8>,
) -> Found {
    let name = match command {
        // These two are never answered.
        Command::StmtClose | Command::StmtSendLongData => return Found::Answered { len },
        _ if flavour == Flavour::MySql => "mysql_stmt_precheck",
        Command::StmtFetch => "mysqld_stmt_fetch",
        Command::StmtReset => "mysqld_stmt_reset",
        _ => "mysqld_stmt_execute",
    };
    let text = format!("Unknown prepared statement handler ({number}) given to {name}");
    error::put(out, 1, 1243, "HY000", &text);
    Found::Answered { len }
}
