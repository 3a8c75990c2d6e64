//! The warnings of the last statement, kept for its client.
//!
//! A statement that failed or warned leaves its messages on its server until the next statement. Its client
//! may ask for them, or never return, and a server must not wait for that. When nothing else keeps the
//! server, Weir therefore sends SHOW WARNINGS as soon as the reply is complete, keeps the answer here, and
//! releases the server. If another client's request is already queued behind it, that would be too late: Weir
//! keeps the text instead, and runs it again ahead of the client's own SHOW WARNINGS. Nothing can be kept of
//! a prepared statement: a client that asks gets an error, and from then on the statement does not share a
//! server.
//!
//! Where only a server can tell whether a statement has kept them (MariaDB), Weir leaves a marker in their
//! place.
//!
//! Owns: what is kept. Must not know: why it was asked for.

mod columns;
mod conditions;
mod states;

use self::columns::columns;
pub(crate) use self::conditions::{asks_wrongly, diagnostics, misses_condition};
use crate::frame;
use crate::message::ok::{self, ErrPacket, OkPacket};
use crate::message::{Capabilities, lenenc};
use crate::queue::Reworded;
use crate::says::Wanted;
use crate::session_state::{Flavour, State};
use weir_wire::limits::{WARNINGS_BYTES, WARNINGS_ROWS, WARNINGS_WITH_ROOM};
use weir_wire::{Reader, Short};

/// What is known of the warnings of a client's last statement, when they are not on its server.
#[derive(Debug)]
pub(crate) enum Kept {
    /// All of them.
    Answer(Warnings),
    /// The read that leaves them, for when its client asks, and how it ended.
    Read(Box<[u8]>, Left),
    /// Nothing.
    Lost,
}

/// What a reply says of warnings and errors. A read that ends otherwise when it is run again leaves others:
/// somebody has changed what it reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Left {
    pub error: u16,
    pub warnings: u16,
}

/// The answer to SHOW WARNINGS, payload by payload.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    columns: Vec<Box<[u8]>>,
    rows: Vec<Box<[u8]>>,
    bytes: usize,
    wanted: Option<u64>,
    /// The collation of its messages, by which they can be read; 0 where it is not known.
    collation: u16,
    /// The SQLSTATEs of errors among them, by their places, where a reply has said them.
    states: Vec<(usize, [u8; 5])>,
    /// Whose numbers tell the SQLSTATE of those that no reply has said; `None` where code may have raised
    /// them with another.
    numbered: Option<Flavour>,
    /// A server would show it in other columns: it is an error of Weir's own, or was asked for in another
    /// character set.
    own: bool,
}

/// How far the answer has been read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More of it must come.
    More,
    /// It is whole.
    Whole,
    /// It is whole and cannot be kept.
    Useless,
}

/// The message of Weir's mark.
const MARK: &str = "weir: what was here before";

/// A statement that leaves a mark where warnings of the last statement were: nobody is shown it.
pub(crate) fn mark() -> String {
    format!("SIGNAL SQLSTATE '01000' SET MESSAGE_TEXT='{MARK}'")
}

/// What is kept where there are no warnings.
static NONE: Warnings = Warnings {
    columns: Vec::new(),
    rows: Vec::new(),
    bytes: 0,
    wanted: None,
    collation: 0,
    states: Vec::new(),
    numbered: None,
    own: false,
};

impl Warnings {
    /// Those of a statement that has left none, for GET DIAGNOSTICS.
    pub(crate) fn none() -> &'static Warnings {
        &NONE
    }

    /// Takes Weir's mark out of the list. True when nothing else was there.
    pub(crate) fn was_marked(&mut self) -> bool {
        let before = self.rows.len();
        self.states.clear();
        self.rows.retain(|row| !row.ends_with(MARK.as_bytes()));
        self.rows.is_empty() && before > 0
    }

    /// Takes the next packet of the answer.
    pub(crate) fn take(&mut self, payload: &[u8]) -> Result<Progress, Short> {
        if payload.first() == Some(&ok::ERR) {
            return Ok(Progress::Useless);
        }
        let Some(wanted) = self.wanted else {
            self.wanted = Some(lenenc::number(&mut Reader::new(payload))?);
            return Ok(Progress::More);
        };
        let ended = self.columns.len() as u64 == wanted && payload.first() == Some(&ok::EOF);
        if ended {
            return Ok(if self.bytes > WARNINGS_BYTES { Progress::Useless } else { Progress::Whole });
        }
        self.bytes += payload.len();
        if self.bytes <= WARNINGS_BYTES {
            let of_columns = (self.columns.len() as u64) < wanted;
            if of_columns {
                // That of the last one, the message.
                self.collation = conditions::collation_of(payload);
            }
            if of_columns { &mut self.columns } else { &mut self.rows }.push(payload.into());
        }
        Ok(Progress::More)
    }

    /// Nothing of the answer has come.
    pub(crate) fn is_untouched(&self) -> bool {
        self.wanted.is_none()
    }

    /// The list behind a request that Weir refused: that error.
    pub(crate) fn of_error(payload: &[u8], flavour: Flavour, extended: bool) -> Warnings {
        let mut warnings = Warnings { columns: columns(flavour, extended), own: true, ..Warnings::default() };
        if let Ok(err) = ErrPacket::read(payload) {
            warnings.states.extend(err.sqlstate.try_into().ok().map(|state| (0, state)));
            let mut row = Vec::new();
            for value in [&b"Error"[..], err.code.to_string().as_bytes(), err.message] {
                lenenc::put_string(&mut row, value);
            }
            warnings.rows.push(row.into());
        }
        warnings
    }

    /// Messages of Weir's text, in the words of its client's.
    pub(crate) fn reword(&mut self, Reworded { from, to, code }: &Reworded) {
        for row in &mut self.rows {
            let mut r = Reader::new(row);
            let values = [(); 3].map(|()| lenenc::string(&mut r).ok());
            let [Some(level), Some(_), Some(message)] = values else { continue };
            if message == &**from {
                let mut own = Vec::with_capacity(row.len());
                let code = code.to_string();
                [level, code.as_bytes(), to].iter().for_each(|value| lenenc::put_string(&mut own, value));
                *row = own.into();
            }
        }
    }

    /// The character set of results is another one now: a server would show them with that.
    pub(crate) fn is_shown_otherwise(&mut self, state: &State, flavour: Flavour) {
        self.own = true;
        self.show_in(state, flavour);
    }

    fn show_in(&mut self, state: &State, flavour: Flavour) {
        if self.rows.iter().all(|row| columns::is_ascii(row))
            && let Some(results) = columns::results_of(state, flavour)
        {
            self.columns.iter_mut().enumerate().for_each(|(at, column)| results.show(at, column));
        }
    }

    /// An error behind what is there already, as MySQL adds it.
    pub(crate) fn add_error(&mut self, payload: &[u8], state: &State) {
        let mut added = Warnings::of_error(payload, Flavour::MySql, false);
        self.collation = 0;
        let at = self.rows.len();
        self.states.extend(added.states.iter().map(|(_, state)| (at, *state)));
        if self.columns.is_empty() {
            self.columns = added.columns;
        }
        self.own = false;
        self.rows.append(&mut added.rows);
        self.rows.truncate(WARNINGS_ROWS);
        self.show_in(state, Flavour::MySql);
    }

    /// GET DIAGNOSTICS can add its own error to them.
    pub(crate) fn have_room(&self) -> bool {
        self.rows.len() < WARNINGS_WITH_ROOM
    }

    /// A server has raised them itself: their numbers tell their SQLSTATEs.
    pub(crate) fn are_of_server(&mut self, flavour: Flavour) {
        self.numbered = Some(flavour);
    }

    /// What GET DIAGNOSTICS adds that asks for a condition which is not there.
    pub(crate) fn add_missed(&mut self) {
        let mut row = Vec::new();
        let values = [&b"Error"[..], b"1758", b"Invalid condition number"];
        values.iter().for_each(|value| lenenc::put_string(&mut row, value));
        self.states.push((self.rows.len(), *b"35000"));
        self.rows.push(row.into());
    }

    /// The SQLSTATE of the condition at this place.
    fn state_at(&self, place: usize) -> Option<[u8; 5]> {
        self.states.iter().find(|(at, _)| *at == place).map(|(_, state)| *state)
    }

    /// A server would show them in other columns, and can be made to.
    pub(crate) fn is_better_shown(&self) -> bool {
        self.own && self.signal(false).is_some()
    }

    /// How many there are, and how many of them are errors.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let errors = self.rows.iter().filter(|row| is_error(row)).count();
        (self.rows.len() as u64, errors as u64)
    }

    /// Writes what is wanted of it, from packet `seq` on. Returns the number of the packet behind it.
    pub(crate) fn put(&self, wanted: Wanted, to: Shown<'_>, seq: u8, out: &mut Vec<u8>) -> u8 {
        let Shown { capabilities, status, changes, binary } = to;
        let mut seq = frame::put(out, seq, |out| lenenc::put_number(out, self.columns.len() as u64));
        for column in &self.columns {
            seq = frame::put_payload(out, seq, column);
        }
        let end = OkPacket { status, changes, ..OkPacket::default() };
        let eof = |out: &mut Vec<u8>, seq| {
            frame::put(out, seq, |out| {
                if capabilities.has(Capabilities::DEPRECATE_EOF) {
                    end.write(ok::EOF, capabilities, out);
                } else {
                    out.extend_from_slice(&[ok::EOF, 0, 0]);
                    out.extend_from_slice(&status.to_le_bytes());
                }
            })
        };
        if !capabilities.has(Capabilities::DEPRECATE_EOF) {
            seq = eof(out, seq);
        }
        let rows = self.rows.iter().filter(|row| !wanted.errors || is_error(row));
        let (skip, most) =
            [wanted.skip, wanted.most].map(|n| usize::try_from(n).unwrap_or(usize::MAX)).into();
        for row in rows.skip(skip).take(most) {
            match in_binary(row).filter(|_| binary) {
                Some(row) => seq = frame::put_payload(out, seq, &row),
                None => seq = frame::put_payload(out, seq, row),
            }
        }
        eof(out, seq)
    }
}

/// The row as the answer to an execution: a zero, no NULLs, and the code as a number of 32 bits.
fn in_binary(row: &[u8]) -> Option<Vec<u8>> {
    let mut r = Reader::new(row);
    let [level, code, message] = [(); 3].map(|()| lenenc::string(&mut r).ok());
    let code: u32 = std::str::from_utf8(code?).ok()?.parse().ok()?;
    let mut out = vec![0, 0];
    lenenc::put_string(&mut out, level?);
    out.extend_from_slice(&code.to_le_bytes());
    lenenc::put_string(&mut out, message?);
    Some(out)
}

/// The first of its values, the level, says Error.
fn is_error(row: &[u8]) -> bool {
    lenenc::string(&mut Reader::new(row)).is_ok_and(|level| level.eq_ignore_ascii_case(b"Error"))
}

/// Whom they are shown, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shown<'a> {
    pub capabilities: Capabilities,
    /// Status flags of the end.
    pub status: u16,
    /// Changes of the session, told with the end.
    pub changes: &'a [u8],
    /// As the answer to an execution.
    pub binary: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_over_the_bound_is_not_kept() {
        let mut warnings = Warnings::default();
        assert_eq!(warnings.take(&[1]), Ok(Progress::More));
        assert_eq!(warnings.take(b"definition"), Ok(Progress::More));
        for _ in 0..WARNINGS_BYTES / 1000 + 1 {
            assert_eq!(warnings.take(&[b'x'; 1000]), Ok(Progress::More));
        }
        assert_eq!(warnings.take(&[ok::EOF, 0, 0, 2, 0, 0, 0]), Ok(Progress::Useless));
        assert!(warnings.rows.len() * 1000 <= WARNINGS_BYTES);
    }
}
