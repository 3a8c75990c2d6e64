//! Prepared statements on two levels: the client's ids and the server's.
//!
//! Owns: what a statement is ([`Text`], [`Key`]), the replies and executions of one; the statements of a
//! client under Weir's own ids are in `client.rs`, those of a server with least-recently-used eviction in
//! `server.rs`. Must not know: queues, sockets.
//!
//! Invariants: a Prepare is answered from memory only while nothing can have changed since a server answered
//! it; there is one copy per server, text, shape of the session (schema, charset, sql_mode and whatever else
//! fixes a statement's meaning when it is prepared) and, on MySQL, kind of parameters it was executed with
//! (see [`crate::binding`]); a statement with an open cursor or with long data has a copy of its own, so that
//! no other statement of the same text closes or fills it; so has one that is executed in another mode than
//! it was prepared in, which takes over the copy that is there, so that it stays what it was made of; the
//! number of statements on a server never exceeds its bound.

mod client;
mod server;
#[cfg(test)]
mod tests;

pub(crate) use self::client::{ClientStatement, ClientStatements, Settled, Settles};
pub(crate) use self::server::ServerStatements;
use crate::binding::{self, Binding};
use crate::follow::Named;
use crate::frame;
use crate::message::Capabilities;
use crate::message::ok::{self, OkPacket};
use crate::rewrite::Names;
use crate::session_state::State;
use crate::words::Words;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use weir_wire::{Reader, Short, limits};

/// The number that means "the statement prepared last" (MariaDB's drivers prepare and execute in one go).
pub(crate) const LAST_PREPARED: u32 = u32::MAX;

/// What a statement is: its text and what fixes its meaning.
#[derive(Debug)]
pub(crate) struct Text {
    hash: u64,
    /// The client's state when it prepared, as far as it matters.
    pub shape: State,
    /// The user variables that it names, as they were then.
    pub variables: Option<Named>,
    /// The client and its statement, where the client had settings then that only its server knows: no other
    /// text means the same for certain.
    tied: Option<(u64, u32)>,
    /// As the server gets it.
    pub text: Box<[u8]>,
    /// What of it the client has said in other words.
    pub names: Names,
}

impl Text {
    pub(crate) fn new(shape: State, variables: Option<Named>, text: Box<[u8]>, names: Names) -> Text {
        let mut hasher = DefaultHasher::new();
        (&shape, &variables, &text).hash(&mut hasher);
        Text { hash: hasher.finish(), shape, variables, tied: None, text, names }
    }

    /// The same for this statement of a client only, if `tied`.
    pub(crate) fn tied(mut self, tied: bool, client: u64, number: u32) -> Text {
        if tied {
            self.tied = Some((client, number));
            self.hash ^= (client.rotate_left(32) ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        }
        self
    }
}

impl PartialEq for Text {
    fn eq(&self, other: &Text) -> bool {
        self.hash == other.hash
            && self.text == other.text
            && self.shape == other.shape
            && self.variables == other.variables
            && self.tied == other.tied
            && self.names == other.names
    }
}

impl Eq for Text {}

impl Hash for Text {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// What a server's copy is found by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub text: Arc<Text>,
    /// The client and its statement, if the copy is only for it.
    pub private: Option<(u64, u32)>,
    /// The parameters of every execution so far; `None` before the first, and where it does not matter.
    pub binding: Option<Binding>,
}

impl Key {
    /// A copy that nobody has executed, for any client.
    pub(crate) fn fresh(text: Arc<Text>) -> Key {
        Key { text, private: None, binding: None }
    }

    /// It was executed with nothing but NULL: whatever its parameters are, the server has not settled it.
    pub(crate) fn settles_nothing(&self) -> bool {
        self.binding.as_deref().is_some_and(|all| !all.is_empty() && all.iter().all(|byte| *byte == 0))
    }
}

/// The reply to a COM_STMT_PREPARE.
#[derive(Debug)]
pub(crate) struct PrepareReply {
    pub params: u16,
    pub columns: u16,
    pub warnings: u16,
    /// The definitions, packet by packet with the server's headers, parameters first.
    pub definitions: Box<[u8]>,
}

impl PrepareReply {
    /// The first packet: number of the statement and the reply without its definitions.
    pub(crate) fn read(payload: &[u8]) -> Result<(u32, PrepareReply), Short> {
        let mut r = Reader::new(payload);
        r.u8()?;
        let id = r.u32_le()?;
        let columns = r.u16_le()?;
        let params = r.u16_le()?;
        // Servers before 5.0 stop here.
        let warnings = if r.rest().len() >= 3 { Reader::new(&r.rest()[1..]).u16_le()? } else { 0 };
        Ok((id, PrepareReply { params, columns, warnings, definitions: Box::default() }))
    }

    /// What the parameters are to the server that has prepared the statement, as a [`Binding`].
    pub(crate) fn kinds(&self) -> Binding {
        let mut rest = &*self.definitions;
        let mut kinds = Vec::with_capacity(2 * usize::from(self.params));
        for _ in 0..self.params {
            let Some(header) = frame::Header::read(rest) else { break };
            let definition = rest.get(frame::HEADER_BYTES..header.total()).unwrap_or_default();
            kinds.extend(binding::kind_in(definition).unwrap_or_default());
            rest = rest.get(header.total()..).unwrap_or_default();
        }
        kinds.into()
    }

    /// Appends the whole reply for a client that calls the statement `id`.
    pub(crate) fn write(&self, id: u32, status: u16, capabilities: Capabilities, out: &mut Vec<u8>) {
        let mut seq = frame::put(out, 1, |out| {
            out.push(ok::OK);
            out.extend_from_slice(&id.to_le_bytes());
            out.extend_from_slice(&self.columns.to_le_bytes());
            out.extend_from_slice(&self.params.to_le_bytes());
            out.push(0);
            out.extend_from_slice(&self.warnings.to_le_bytes());
        });
        let mut rest = &*self.definitions;
        for count in [self.params, self.columns] {
            for _ in 0..count {
                let Some(header) = frame::Header::read(rest) else { return };
                let Some(payload) = rest.get(frame::HEADER_BYTES..header.total()) else { return };
                seq = frame::put(out, seq, |out| out.extend_from_slice(payload));
                rest = &rest[header.total()..];
            }
            if count > 0 && !capabilities.has(Capabilities::DEPRECATE_EOF) {
                let end = OkPacket { status, ..OkPacket::default() };
                seq = frame::put(out, seq, |out| end.write(ok::EOF, capabilities, out));
            }
        }
    }
}

/// The fixed part of COM_STMT_EXECUTE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Execute {
    pub id: u32,
    /// A cursor is wanted.
    pub cursor: bool,
    /// Where the flag "types follow" stands in the payload; `None` without parameters.
    pub types_flag_at: Option<usize>,
    /// Types follow.
    pub has_types: bool,
}

/// Bytes before the NULL bitmap of COM_STMT_EXECUTE: command, number, flags, iterations.
pub(crate) const EXECUTE_FIXED_BYTES: usize = 10;

impl Execute {
    /// Reads the payload, or its start if that holds all but the values.
    pub(crate) fn read(payload: &[u8], params: u16) -> Result<Execute, Short> {
        let mut r = Reader::new(payload);
        r.u8()?;
        let id = r.u32_le()?;
        let flags = r.u8()?;
        r.u32_le()?;
        let mut execute = Execute { id, cursor: flags & 0x07 != 0, types_flag_at: None, has_types: false };
        if params > 0 {
            let bitmap = usize::from(params).div_ceil(8);
            r.take(bitmap)?;
            execute.types_flag_at = Some(EXECUTE_FIXED_BYTES + bitmap);
            execute.has_types = r.u8()? == 1;
            if execute.has_types {
                r.take(usize::from(params) * 2)?;
            }
        }
        Ok(execute)
    }

    /// The types that follow.
    pub(crate) fn types<'a>(&self, payload: &'a [u8], params: u16) -> &'a [u8] {
        let start = self.types_flag_at.filter(|_| self.has_types).map(|at| at + 1);
        start.and_then(|start| payload.get(start..start + usize::from(params) * 2)).unwrap_or_default()
    }
}

impl Execute {
    /// The execution with its types in it, for another copy; `None` if it is long.
    pub(crate) fn with_types(&self, payload: &[u8], types: &[u8]) -> Option<Box<[u8]>> {
        let at = self.types_flag_at.filter(|_| payload.len() + types.len() <= limits::EXECUTION_BYTES)?;
        if self.has_types {
            return Some(payload.into());
        }
        let (before, values) = (payload.get(..at)?, payload.get(at + 1..)?);
        Some([before, &[1], types, values].concat().into())
    }
}

/// The text of a statement with these in the places of its parameters; `None` if it has not so many.
pub(crate) fn text_with(text: &[u8], literals: &[String]) -> Option<Box<[u8]>> {
    let places: Vec<usize> = Words::new(text).filter(|piece| piece.is(b"?")).map(|p| p.start()).collect();
    // What a backslash does depends on `sql_mode`.
    if places.len() != literals.len() || text.contains(&b'\\') {
        return None;
    }
    let (mut out, mut at) = (Vec::with_capacity(text.len()), 0);
    for (place, literal) in places.iter().zip(literals) {
        out.extend_from_slice(text.get(at..*place)?);
        // Not `--5`.
        if literal.starts_with('-') {
            out.push(b' ');
        }
        out.extend_from_slice(literal.as_bytes());
        at = place + 1;
    }
    out.extend_from_slice(text.get(at..)?);
    Some(out.into())
}

/// The number in the payload of COM_STMT_EXECUTE, _FETCH, _RESET, _CLOSE and _SEND_LONG_DATA.
pub(crate) fn statement_id(payload: &[u8]) -> Result<u32, Short> {
    let mut r = Reader::new(payload);
    r.u8()?;
    r.u32_le()
}
