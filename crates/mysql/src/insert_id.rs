//! Moves LAST_INSERT_ID() with its client.
//!
//! An OK packet reports a generated id and an explicit one in the same way, but only a generated one changes
//! LAST_INSERT_ID(). Weir therefore asks the server for the value before the client leaves it. The answer is
//! the client's only if no other client's value is in the session when an INSERT runs: the value of a session
//! is either 0 or its client's own. A 0 after an INSERT then means that the INSERT generated no id, because
//! no row gets the id 0.
//!
//! Found on MariaDB 10.11 and MySQL 9.7, and relied on here: an INSERT or REPLACE without
//! LAST_INSERT_ID(expr) whose OK reports 0 has not changed the value; a LOAD DATA may have, because its OK
//! always reports 0; functions and triggers restore the value, procedures and views that set it do not.
//! `SELECT LAST_INSERT_ID(), LAST_INSERT_ID(0)` returns the value and sets it to 0.
//!
//! Owns: whose value a session holds, setting a client's value, asking for it. Must not know: other
//! questions.

use crate::back::Back;
use crate::front::{Front, Outcome, Request};
use crate::message::ok::ErrPacket;
use crate::message::{Command, lenenc, ok};
use crate::queue::{Ahead, Entry};
use crate::rewrite;
use crate::says::Says;
use crate::session_state::{Flavour, put_query};
use weir_sql::{Class, Uses, Verb};
use weir_wire::{Pin, Reader};

const ASK: &str = "SELECT LAST_INSERT_ID() LIMIT 1";
/// ... and the session is left with 0.
const ASK_AND_CLEAR: &str = "SELECT LAST_INSERT_ID(), LAST_INSERT_ID(0) LIMIT 1";
/// ER_QUERY_INTERRUPTED.
const QUERY_INTERRUPTED: u16 = 1317;

/// Whose value LAST_INSERT_ID() of a session gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum InsertId {
    /// It is 0.
    #[default]
    Zero,
    /// This client's, whatever that is.
    Of(u64),
    /// It was 0 before statements of this client: 0 stands for what the client had.
    Touched(u64),
    /// Somebody's.
    Foreign,
}

/// What a request has to do with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum InsertUse {
    #[default]
    Nothing,
    /// It may make an id, as an INSERT does.
    Makes,
    /// It may read the value, or change it in a way that does not show.
    Needs,
}

impl InsertUse {
    fn of(request: &Request, whole: bool) -> InsertUse {
        let class = &request.class;
        if !matches!(request.command, Command::Query | Command::StmtExecute) {
            return InsertUse::Nothing;
        }
        let unseen = Uses::BLOCK | Uses::EXECUTABLE_COMMENT | Uses::UNKNOWN_FUNCTION;
        // What lists variables shows last_insert_id and identity.
        let lists = Uses::TRACKERS | Uses::CODE_TRACKERS;
        let needs = class.uses.intersects(Uses::LAST_INSERT_ID | Uses::LAST_INSERT_ID_SET | unseen | lists);
        let sets = sets(class) || request.says.has(Says::SETS_INSERT_ID);
        if needs || !whole || class.doubtful || runs_unread(class) || sets {
            return InsertUse::Needs;
        }
        // MariaDB's ANALYZE runs the INSERT behind it.
        let makes =
            matches!(class.verb, Verb::Insert | Verb::Replace | Verb::Load | Verb::Create | Verb::Maintain);
        if makes || class.statements > 1 { InsertUse::Makes } else { InsertUse::Nothing }
    }
}

/// The number in the first column of a row. In UTF-16 and UTF-32 its digits stand among zeros: MariaDB writes
/// numbers in the character set of results.
pub(crate) fn first_number(row: &[u8]) -> Option<u64> {
    let text = lenenc::string(&mut Reader::new(row)).ok()?;
    let digits: Vec<u8> = text.iter().copied().filter(|&byte| byte != 0).collect();
    std::str::from_utf8(&digits).ok()?.parse().ok()
}

/// What it runs was not read, or is known to leave something.
fn runs_unread(class: &Class) -> bool {
    class.pins.contains(Pin::Unrecognised) || class.pins.contains(Pin::Code)
}

/// SET last_insert_id, or sql_auto_is_null, which makes later statements ask for it.
fn sets(class: &Class) -> bool {
    let names = ["last_insert_id", "identity", "sql_auto_is_null"];
    let is_it = |name: &str| names.iter().any(|it| name.rsplit('.').next() == Some(*it));
    let mut all = class.set().into_iter().chain(class.heads()).flat_map(|set| &set.assignments);
    all.any(|assignment| is_it(&assignment.name))
}

impl Back {
    /// A request that has to do with LAST_INSERT_ID() finds its client's value here, or 0.
    pub(super) fn bring_insert_id(&mut self, entry: &mut Entry, front: &mut Front, out: &mut Vec<u8>) {
        entry.insert_use = InsertUse::of(&front.request, entry.whole);
        if entry.insert_use == InsertUse::Nothing {
            return;
        }
        let (client, is_here) = (front.unique(), front.insert_server == self.server_id());
        match (self.insert_id, entry.insert_use) {
            (InsertId::Of(owner), _) if owner == client && is_here => {}
            (InsertId::Touched(owner), InsertUse::Makes) if owner == client && is_here => {}
            (InsertId::Touched(owner), _)
                if owner == client && is_here && front.insert_unknown && self.gives_found_rows(front) =>
            {
                // Nor may a question take away what else only this session knows.
                if front.insert_id != 0 {
                    put_query(out, &brought_to(front.insert_id));
                    entry.ahead.push_back(Ahead::State);
                }
                self.insert_id = InsertId::Of(client);
            }
            (InsertId::Touched(owner), _) if owner == client && is_here && front.insert_unknown => {
                // Only this session knows.
                let mariadb = self.session.flavour == Flavour::MariaDb;
                put_query(out, &ask_in_front(front.insert_id, mariadb));
                entry.ahead.push_back(Ahead::AskInsertId);
                (entry.reply.asked, entry.reply.asked_columns) = (0, 1);
                self.found_here = if mariadb { self.found_here } else { 0 };
            }
            (InsertId::Zero, InsertUse::Makes) => self.insert_id = InsertId::Touched(client),
            (InsertId::Zero, _) if front.insert_id == 0 => {
                self.insert_id = InsertId::Of(client);
                front.insert_server = self.server_id();
            }
            _ => {
                self.put_insert_id(front, out);
                entry.ahead.push_back(Ahead::State);
            }
        }
    }

    /// MySQL: the request asks for FOUND_ROWS(), which this session alone knows. A SELECT would make it 1;
    /// SET leaves it.
    fn gives_found_rows(&self, front: &Front) -> bool {
        self.session.flavour == Flavour::MySql
            && self.found_client == front.unique()
            && front.found_rows_are_on(self.server_id())
            && rewrite::asks_found_rows(&front.request.class)
    }

    fn put_insert_id(&mut self, front: &mut Front, out: &mut Vec<u8>) {
        put_query(out, &format!("SET last_insert_id={}", front.insert_id));
        self.insert_id = InsertId::Of(front.unique());
        front.insert_server = self.server_id();
    }

    /// The request is done.
    pub(super) fn finish_insert_id(&mut self, entry: &Entry, front: &mut Front) {
        let outcome = &entry.outcome;
        match entry.insert_use {
            InsertUse::Nothing => return,
            InsertUse::Makes if !self.may_have_made(&front.request.class, outcome) => {
                let fresh = !(front.insert_unknown && front.insert_server == self.server_id());
                if fresh && self.insert_id == InsertId::Touched(front.unique()) {
                    self.insert_id = InsertId::Zero;
                }
                return;
            }
            InsertUse::Needs if only_reads(&front.request.class) => return,
            // What was made is what the client has already, or it was given.
            InsertUse::Makes
                if outcome.insert_id == front.insert_id
                    && !front.request.class.uses.contains(Uses::LOAD)
                    && !front.insert_unknown
                    && front.request.class.statements == 1
                    && outcome.results == 1
                    && !outcome.failed
                    && outcome.affected_rows.is_some() =>
            {
                if self.insert_id == InsertId::Touched(front.unique()) {
                    self.insert_id = InsertId::Foreign;
                }
                return;
            }
            InsertUse::Makes | InsertUse::Needs => {}
        }
        front.insert_unknown = true;
        front.insert_server = self.server_id();
    }

    /// Statements that ended so may have made an id. Neither tells it of LOAD DATA, MariaDB not of an INSERT
    /// with RETURNING.
    fn may_have_made(&self, class: &Class, outcome: &Outcome) -> bool {
        // A comment behind it has an OK of its own.
        let several = class.statements > 1 || outcome.results > 1;
        let silent = outcome.affected_rows.is_none() || several;
        let silent = silent && self.session.flavour == Flavour::MariaDb;
        outcome.failed || outcome.insert_id != 0 || silent || class.uses.contains(Uses::LOAD)
    }

    /// The client is about to leave this server, and only this server knows its LAST_INSERT_ID(): asks. Where
    /// the client is not in the habit of asking, the session is left with 0, so that the next client's INSERT
    /// needs nothing ahead.
    pub(crate) fn ask_insert_id(&mut self, entry: &mut Entry, front: &Front, out: &mut Vec<u8>) -> bool {
        if !front.insert_unknown || front.insert_server != self.server_id() {
            return false;
        }
        let (columns, text) = match front.asks_insert_id {
            true => (1, ASK),
            false => (2, ASK_AND_CLEAR),
        };
        entry.reply.asked_columns = columns;
        put_query(out, text);
        true
    }

    /// The question was hit by a KILL QUERY that was meant for the statement in front of it: it is asked
    /// again.
    pub(crate) fn ask_insert_id_again(
        &mut self,
        entry: &mut Entry,
        payload: &[u8],
        out: &mut Vec<u8>,
    ) -> bool {
        let interrupted = ErrPacket::read(payload).is_ok_and(|err| err.code == QUERY_INTERRUPTED);
        if interrupted {
            entry.reply.asked = 0;
            put_query(out, if entry.reply.asked_columns == 1 { ASK } else { ASK_AND_CLEAR });
        }
        interrupted
    }

    /// A packet of the answer; true when it was the last. `None` when it is malformed.
    pub(crate) fn take_insert_id(
        &mut self,
        entry: &mut Entry,
        front: Option<&mut Front>,
        payload: &[u8],
    ) -> Option<bool> {
        // Number of columns, definitions, row, end.
        let cleared = entry.reply.asked_columns == 2;
        let row_at = entry.reply.asked_columns + 1;
        let at = entry.reply.asked;
        entry.reply.asked += 1;
        if payload.first() == Some(&ok::ERR) {
            self.insert_id = InsertId::Foreign;
            if let Some(front) = front {
                // Nobody will know it any more, and with a server of its own it would have lost that, too.
                front.insert_unknown = false;
                front.part();
            }
            return Some(true);
        }
        if at == row_at {
            let number = first_number(payload)?;
            let owner = front.as_deref().map(Front::unique);
            let exact = owner.is_some_and(|owner| self.insert_id == InsertId::Of(owner));
            if let Some(front) = front {
                if exact || number != 0 {
                    front.insert_id = number;
                }
                front.insert_unknown = false;
            }
            self.insert_id = match owner {
                _ if cleared || number == 0 && !exact => InsertId::Zero,
                Some(owner) => InsertId::Of(owner),
                None => InsertId::Foreign,
            };
        }
        Some(at == row_at + 1)
    }

    /// The answer that a request waits for is there: what its client has is brought, if the session does not
    /// have it.
    pub(crate) fn bring_known_insert_id(&mut self, entry: &mut Entry, front: &mut Front, out: &mut Vec<u8>) {
        if self.insert_id == InsertId::Of(front.unique()) {
            return;
        }
        if front.insert_id == 0 && self.insert_id == InsertId::Zero {
            self.insert_id = InsertId::Of(front.unique());
            return;
        }
        self.put_insert_id(front, out);
        entry.ahead.push_back(Ahead::State);
    }
}

/// Gives a session whose statements have made no id its client's. MySQL takes no DECIMAL here, which IF()
/// makes of a signed and an unsigned number.
fn brought_to(own: u64) -> String {
    format!("SET last_insert_id=IF(@@last_insert_id=0,CAST({own} AS UNSIGNED),@@last_insert_id)")
}

/// The question in front of a request: a session whose statements have made no id gets its client's with it.
/// A SET behind the answer would come behind what else goes ahead, and take ROW_COUNT() away. On MariaDB the
/// question leaves FOUND_ROWS() as it is.
fn ask_in_front(own: u64, mariadb: bool) -> String {
    let value = match own {
        0 => "LAST_INSERT_ID()".to_owned(),
        _ => format!("LAST_INSERT_ID(IF(LAST_INSERT_ID()=0,{own},LAST_INSERT_ID()))"),
    };
    if mariadb { format!("VALUES ({value}) LIMIT 1") } else { format!("SELECT {value} LIMIT 1") }
}

/// It asks for the value and does nothing to it.
fn only_reads(class: &Class) -> bool {
    let changes = Uses::LAST_INSERT_ID_SET | Uses::BLOCK | Uses::EXECUTABLE_COMMENT;
    class.statements == 1
        && !class.doubtful
        && !runs_unread(class)
        && !class.uses.intersects(changes)
        && matches!(
            class.verb,
            Verb::Select | Verb::Values | Verb::Do | Verb::Update | Verb::Delete | Verb::Set
        )
        && !sets(class)
}
