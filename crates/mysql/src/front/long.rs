//! Requests above the gather bound: processed in parts while they arrive.
//!
//! Owns: how much of such a request has been read, and lexing its text as it passes. Must not know: replies.
//!
//! A text of up to [`limits::QUERY_GATHER_BYTES`] is gathered and processed like any other. A longer one is
//! classified when its end arrives, so the parts that would have to be rewritten (CONNECTION_ID(), KILL)
//! cannot be: Weir then abandons the request before its last part is sent, and disconnects the client.

use super::{Front, NO_MORE_STATEMENTS, Phase, Request, malformed};
use crate::error;
use crate::frame::{HEADER_BYTES, Header};
use crate::message::Command;
use crate::prepared::{Execute, Text, statement_id};
use crate::rewrite::{self, Names};
use weir_sql::{Scanner, Uses};
use weir_wire::{Fault, FaultKind, Found, Needs, Pin, Short, limits};

/// Bytes of a text to prepare at most: it is kept to be prepared again elsewhere.
const PREPARE_BYTES: usize = limits::SERVER_GATHER_BYTES;

/// A request found in parts.
#[derive(Debug)]
pub(crate) struct Long {
    scanner: Option<Scanner>,
    /// The text to prepare, as far as it came.
    text: Option<Vec<u8>>,
    /// Bytes of the packet under way that were not found yet.
    left: usize,
    /// The packet under way has a successor.
    continues: bool,
    /// Sequence number of the packet under way.
    seq: u8,
    /// The command byte was skipped.
    begun: bool,
    ended: bool,
    /// There is no room for it: it goes nowhere, and is answered with an error.
    refused: bool,
    /// Nothing of it is sent before all of it was found; `text` is the payload.
    gathers: bool,
}

impl Long {
    /// Reads what is there; returns how much that is.
    fn read(&mut self, input: &[u8]) -> Result<usize, Fault> {
        let mut pos = 0;
        loop {
            let rest = input.get(pos..).unwrap_or_default();
            if self.left > 0 {
                let mut piece = &rest[..self.left.min(rest.len())];
                if piece.is_empty() {
                    return Ok(pos);
                }
                self.left -= piece.len();
                pos += piece.len();
                if !self.begun {
                    self.begun = true;
                    piece = &piece[1..];
                }
                if let Some(scanner) = &mut self.scanner {
                    scanner.feed(piece);
                }
                if let Some(text) = &mut self.text {
                    text.extend_from_slice(piece);
                    if text.len() > PREPARE_BYTES.max(limits::QUERY_GATHER_BYTES) {
                        return Err(Fault::new(FaultKind::ClientTooLarge, "a text to prepare"));
                    }
                }
                continue;
            }
            if self.begun && !self.continues {
                self.ended = true;
                return Ok(pos);
            }
            let Some(header) = Header::read(rest) else { return Ok(pos) };
            self.left = header.len;
            self.seq = header.seq;
            self.continues = header.continues();
            pos += HEADER_BYTES;
        }
    }
}

impl Front {
    /// The first bytes of a request above the gather bound are there.
    pub(crate) fn begin_long(
        &mut self,
        header: Header,
        input: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Found, Fault> {
        if input.len() < limits::REQUEST_GATHER_BYTES {
            return Ok(Found::Incomplete);
        }
        let payload = input.get(HEADER_BYTES..input.len().min(header.total())).unwrap_or_default();
        let code = payload.first().copied().unwrap_or_default();
        let too_large =
            || Fault::new(FaultKind::ClientTooLarge, format!("command {code} of {} bytes", header.len));
        let command = Command::from_code(code).ok_or_else(too_large)?;
        let mut long = Long {
            scanner: None,
            text: None,
            left: 0,
            continues: false,
            seq: 0,
            begun: false,
            ended: false,
            refused: false,
            gathers: false,
        };
        let (mut number, mut judged_by) = (0, 0);
        let mut class = weir_sql::Class::default();
        match command {
            Command::Query if header.len <= limits::QUERY_GATHER_BYTES => {
                long.text = Some(vec![Command::Query as u8]);
                long.gathers = true;
            }
            Command::Query => long.scanner = Some(self.scanner(&mut judged_by)),
            Command::StmtPrepare => {
                let statements = self.statements.get_or_insert_default();
                statements.set_last(0);
                match statements.next_id(header.len) {
                    Some(id) => {
                        number = id;
                        long.scanner = Some(self.scanner(&mut judged_by));
                        long.text = Some(Vec::new());
                    }
                    None => long.refused = true,
                }
            }
            Command::StmtExecute | Command::StmtSendLongData => {
                let said = statement_id(payload).map_err(|_| malformed("a command about a statement"))?;
                let statements = self.statements.get_or_insert_default();
                number = statements.resolve(said);
                let unknown = || Fault::new(FaultKind::ClientProtocol, "long data of no statement");
                let statement = statements.get_mut(number).ok_or_else(unknown)?;
                if command == Command::StmtExecute {
                    match Execute::read(payload, statement.params) {
                        Ok(execute) if execute.has_types => {
                            statement.types = execute.types(payload, statement.params).into();
                        }
                        Ok(_) => {}
                        Err(Short) if input.len() < limits::CLIENT_INPUT_BYTES => {
                            return Ok(Found::Incomplete);
                        }
                        Err(Short) => return Err(too_large()),
                    }
                    class = (*statement.class).clone();
                    class.shareable = false;
                } else {
                    statement.sent_ahead = true;
                }
            }
            _ => return Err(too_large()),
        }
        self.request = Request { class, number, only_once: true, judged_by, ..Request::new(command) };
        self.reply_begun = false;
        self.phase = Phase::Long(Box::new(long));
        self.find_part(input, false, out)
    }

    pub(crate) fn find_part(
        &mut self,
        input: &[u8],
        continues: bool,
        out: &mut Vec<u8>,
    ) -> Result<Found, Fault> {
        let Phase::Long(long) = &mut self.phase else { return Ok(Found::Incomplete) };
        let len = long.read(input)?;
        self.reply_seq = long.seq.wrapping_add(1);
        let needs = Needs { lease: true, continues, ..Needs::default() };
        if long.refused {
            if !long.ended {
                return Ok(if len == 0 { Found::Incomplete } else { Found::Drop { len } });
            }
            error::put(out, self.reply_seq, 1461, "42000", NO_MORE_STATEMENTS);
            self.phase = Phase::Idle;
            return Ok(Found::Answered { len });
        }
        if !long.ended {
            return Ok(match (len, long.gathers) {
                (0, _) => Found::Incomplete,
                (_, true) => Found::Drop { len },
                (_, false) => Found::Part { len, needs },
            });
        }
        if long.gathers {
            return Ok(self.find_gathered(len, out));
        }
        let (scanner, text) = (long.scanner.take(), long.text.take());
        self.phase = Phase::Busy;
        if let Some(scanner) = scanner {
            let class = scanner.finish();
            let asks = Uses::CONNECTION_ID | Uses::EXPLAIN_CONNECTION;
            if class.uses.intersects(asks)
                || rewrite::impossible(&class)
                || rewrite::asks_in_first(&class)
                || class.verb == weir_sql::Verb::Kill
                || class.kill().is_some()
            {
                return Err(Fault::new(FaultKind::NotAllowed, "a long text with numbers of Weir's in it"));
            }
            self.note_uses(&class);
            if let Some(text) = text {
                let variables = self.variables_of(&class);
                let text = Text::new(self.state.shape(), variables, text.into(), Names::default());
                let text = self.tied(text);
                let prepare = Some(std::sync::Arc::new(text));
                self.request.extra =
                    Some(Box::new(crate::front::Extra { prepare, ..crate::front::Extra::default() }));
            } else if class.pins.contains(Pin::Setting) {
                // What it names nobody has kept.
                self.request.extra.get_or_insert_default().rereads = true;
            }
            self.request.class = class;
        }
        Ok(Found::Request { len, needs })
    }

    /// A long text was gathered whole: it is sent from there.
    fn find_gathered(&mut self, len: usize, out: &mut Vec<u8>) -> Found {
        let Phase::Long(long) = &mut self.phase else { return Found::Incomplete };
        let payload = long.text.take().unwrap_or_default();
        self.phase = Phase::Busy;
        self.request = Request { only_once: true, gathered: true, ..Request::new(Command::Query) };
        let found = self.find_query(&payload, len, out);
        if let Found::Request { len, needs } = found {
            let extra = self.request.extra.get_or_insert_default();
            extra.text.get_or_insert_with(|| payload.get(1..).unwrap_or_default().to_vec().into());
            return Found::Request { len, needs: Needs { shareable: false, ..needs } };
        }
        self.phase = if matches!(found, Found::Kill { .. }) { Phase::Busy } else { Phase::Idle };
        found
    }

    /// For a text that is read in parts.
    fn scanner(&self, judged_by: &mut u64) -> Scanner {
        let mut scanner = Scanner::new(self.dialect());
        *judged_by = self.knowledge.proof().map_or(0, |proof| scanner.watch(proof));
        scanner
    }
}
