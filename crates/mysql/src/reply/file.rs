//! LOAD DATA LOCAL: the server asks for a file, and Weir forwards the client's packets with the server's
//! sequence numbers.
//!
//! Owns: which clients may be asked, where a file's packets are. Must not know: other replies.

use super::result::pass;
use super::{At, Progress, Reply, Way};
use crate::back::Back;
use crate::error;
use crate::frame::{HEADER_BYTES, Header};
use crate::front::{FileData, Front, Phase};
use crate::message::{Capabilities, Command, ok};
use crate::queue::Entry;
use crate::session_state::{Flavour, put_query};
use weir_sql::{Uses, Verb};
use weir_wire::Fault;

/// What LOAD DATA may be refused with once its text is understood: a table or a column is not there, is
/// locked, may not be written or is none that can be.
const OF_TABLES: [u16; 17] =
    [1036, 1044, 1049, 1054, 1099, 1100, 1142, 1143, 1146, 1205, 1288, 1347, 1356, 1394, 1471, 1573, 1792];

/// Where a file's packets are, to change their sequence numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileShift {
    left: usize,
    header: [u8; HEADER_BYTES],
    header_len: usize,
}

impl Reply {
    pub(crate) fn wants_file(&self) -> bool {
        self.at == At::File
    }

    /// Passes on a piece of a file, with the server's sequence numbers.
    pub(crate) fn send_file(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        let mut rest = bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            let file = &mut self.file;
            if file.left > 0 {
                let (piece, tail) = rest.split_at(file.left.min(rest.len()));
                out.extend_from_slice(piece);
                file.left -= piece.len();
                rest = tail;
                continue;
            }
            file.header[file.header_len] = byte;
            file.header_len += 1;
            rest = tail;
            if file.header_len == HEADER_BYTES {
                let [a, b, c, _] = file.header;
                file.left = u32::from_le_bytes([a, b, c, 0]) as usize;
                file.header_len = 0;
                out.extend_from_slice(&[a, b, c, self.file_seq]);
                self.file_seq = self.file_seq.wrapping_add(1);
            }
        }
    }

    /// The empty packet has gone to the server.
    pub(crate) fn file_ended(&mut self) {
        self.at = At::First;
    }
}

impl Back {
    /// The server asks for a file: only the client whose statement said LOAD DATA LOCAL and who allowed it
    /// at login is asked.
    pub(super) fn read_file_request(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
    ) -> Progress {
        let shift = entry.reply.shift;
        let allowed = way.front.as_deref_mut().filter(|front| {
            front.capabilities.has(Capabilities::LOCAL_FILES)
                && front.request.class.uses.contains(Uses::LOAD_LOCAL)
        });
        let Some(front) = allowed else {
            Header { len: 0, seq: header.seq.wrapping_add(1) }.write(way.to_server);
            entry.reply.at = At::FileRefused { undone: false };
            // What the client gets instead is numbered as this packet.
            entry.reply.file_seq = header.seq;
            return Progress::Took { bytes: header.total(), verbatim: false };
        };
        front.phase = Phase::File(FileData::default());
        entry.reply.at = At::File;
        entry.reply.file_seq = header.seq.wrapping_add(1);
        entry.reply.file = FileShift::default();
        pass(way, shift, header, payload)
    }

    pub(super) fn read_file_refused(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        header: Header,
        payload: &[u8],
    ) -> Result<Progress, Fault> {
        let is_in = |way: &Way<'_>| way.front.as_deref().is_some_and(Front::is_in_transaction);
        let one_shot = way.front.as_deref().is_some_and(|front| front.one_shot);
        let was_in = is_in(way);
        if payload.first() != Some(&ok::ERR) {
            self.note_ok(entry, way, payload)?;
        }
        let first = entry.reply.at == At::FileRefused { undone: false };
        if first && is_in(way) && !was_in && !one_shot && !self.others_are_sent() {
            // With autocommit off a transaction begins with it, and not without it.
            put_query(way.to_server, "ROLLBACK");
            entry.reply.at = At::FileRefused { undone: true };
            return Ok(Progress::Took { bytes: header.total(), verbatim: false });
        }
        Ok(self.refuse_file(entry, way, Header { seq: entry.reply.file_seq, ..header }))
    }

    /// The client gets the refusal in the place of this packet.
    pub(super) fn refuse_file(&self, entry: &mut Entry, way: &mut Way<'_>, header: Header) -> Progress {
        entry.outcome.failed = true;
        entry.outcome.conditions = Some(1);
        let mut refusal = Vec::new();
        put_refusal(&mut refusal, header.seq.wrapping_add(entry.reply.shift), self.session.flavour);
        if way.front.is_some() {
            way.to_client.extend_from_slice(&refusal);
        }
        // No server knows of it.
        entry.refusal = refusal.get(HEADER_BYTES..).map(Into::into);
        Progress::Ended { bytes: header.total(), verbatim: false }
    }
}

/// The server has found this error in LOAD DATA LOCAL of a client that has not allowed files to be asked for,
/// which it would have refused before it looked at tables and columns. (MariaDB looks at tables when it
/// prepares one, and refuses it when it is executed.)
pub(super) fn looked_further(entry: &Entry, way: &Way<'_>, error: u16) -> bool {
    entry.outcome.results == 0
        && entry.command != Command::StmtPrepare
        && OF_TABLES.contains(&error)
        && way.front.as_deref().is_some_and(|front| {
            let class = &front.request.class;
            class.verb == Verb::Load
                && class.uses.contains(Uses::LOAD_LOCAL)
                && !front.capabilities.has(Capabilities::LOCAL_FILES)
        })
}

/// What a server says to a client that has not allowed files to be asked for.
pub(crate) fn put_refusal(out: &mut Vec<u8>, seq: u8, flavour: Flavour) {
    match flavour {
        Flavour::MySql => {
            let text =
                "Loading local data is disabled; this must be enabled on both the client and server sides";
            error::put(out, seq, 3948, "42000", text);
        }
        Flavour::MariaDb => {
            let text = "The used command is not allowed because the MariaDB server or client has disabled the \
                        local infile capability";
            error::put(out, seq, 4166, "HY000", text);
        }
    }
}
