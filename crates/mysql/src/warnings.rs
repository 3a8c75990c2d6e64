//! The warnings of the last statement, kept for its client.
//!
//! A statement that failed or warned leaves its messages on its server, and only the next statement takes them
//! away. Its client may ask for them, or never come back. A server must not wait for that: so, when nothing
//! else keeps it, Weir asks SHOW WARNINGS itself as soon as the reply is through, keeps the answer here, and
//! lets the server go. Where the request of another stands behind it already, that would come too late: then the
//! text is kept, and is run again in front of the client's own SHOW WARNINGS. Of a prepared statement nothing can be
//! kept: its client is told so if it asks, and the statement does not stand among others again.
//!
//! Owns: what is kept. Must not know: why it was asked for.

use crate::frame;
use crate::message::ok::{self, OkPacket};
use crate::message::{Capabilities, lenenc};
use weir_wire::{Reader, Short};

/// Bytes of messages kept for one client. A longer list stays on its server, and the server with its client.
const WARNINGS_BYTES: usize = 64 * 1024;

/// What is known of the warnings of a client's last statement, when they are not on its server.
#[derive(Debug)]
pub(crate) enum Kept {
    /// All of them.
    Answer(Warnings),
    /// The read that leaves them, for when its client asks.
    Read(Box<[u8]>),
    /// Nothing.
    Lost,
}

/// The answer to SHOW WARNINGS, payload by payload.
#[derive(Debug, Default)]
pub(crate) struct Warnings {
    columns: Vec<Box<[u8]>>,
    rows: Vec<Box<[u8]>>,
    bytes: usize,
    wanted: Option<u64>,
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

impl Warnings {
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
            if of_columns { &mut self.columns } else { &mut self.rows }.push(payload.into());
        }
        Ok(Progress::More)
    }

    /// Writes it as a client with these capabilities reads it.
    pub(crate) fn put(&self, capabilities: Capabilities, status: u16, out: &mut Vec<u8>) {
        let mut seq = frame::put(out, 1, |out| lenenc::put_number(out, self.columns.len() as u64));
        for column in &self.columns {
            seq = frame::put_payload(out, seq, column);
        }
        let end = OkPacket { status, ..OkPacket::default() };
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
        for row in &self.rows {
            seq = frame::put_payload(out, seq, row);
        }
        eof(out, seq);
    }
}

/// The text asks for the warnings as they are, all of them.
pub(crate) fn is_show_warnings(text: &[u8]) -> bool {
    let text = text.trim_ascii();
    let text = text.strip_suffix(b";").unwrap_or(text);
    let mut words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let wanted = [&b"SHOW"[..], &b"WARNINGS"[..]];
    wanted.iter().all(|wanted| words.next().is_some_and(|word| word.eq_ignore_ascii_case(wanted)))
        && words.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_list_is_asked_for_by_show_warnings() {
        for text in [&b"SHOW WARNINGS"[..], b"  show\n warnings ; ", b"Show Warnings;"] {
            assert!(is_show_warnings(text));
        }
        for text in [&b"SHOW WARNINGS LIMIT 1"[..], b"SHOW COUNT(*) WARNINGS", b"SHOW ERRORS", b"SHOW", b""] {
            assert!(!is_show_warnings(text));
        }
    }

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
