//! The reply to COM_STMT_PREPARE: gathered, stored, and sent to the client under its own id.
//!
//! Owns: that reply. Must not know: which copies exist.

use super::result::renamed;
use super::{At, Progress, Way, malformed};
use crate::back::Back;
use crate::binding::Binding;
use crate::frame::Header;
use crate::message::status;
use crate::prepared::{ClientStatement, Key, PrepareReply};
use crate::queue::{Entry, PrepareAhead};
use crate::session_state::Flavour;
use std::sync::Arc;
use weir_wire::{Fault, FaultKind, Pin, limits};

impl Back {
    /// Gathers the reply; when it is whole, remembers it and gives it to the client under its own number.
    pub(super) fn read_prepare(
        &mut self,
        entry: &mut Entry,
        way: &mut Way<'_>,
        payload: &[u8],
        bytes: usize,
    ) -> Result<Progress, Fault> {
        if entry.reply.prepare.is_none() {
            // A long text's key is known only now that all of it was found.
            let text = way.front.as_deref().and_then(|front| front.request.extra.as_deref()?.prepare.clone());
            let key = entry.key.clone().or_else(|| text.map(Key::fresh));
            let Some(key) = key.or_else(|| unknown_key(way)) else {
                return Err(malformed("a statement without a text"));
            };
            entry.key = Some(key.clone());
            entry.reply.prepare = Some(Box::new(PrepareAhead::new(key)));
        }
        let Some(prepare) = entry.reply.prepare.as_deref_mut() else { return Err(malformed("a definition")) };
        let flavour = self.session.flavour;
        let renamed = prepare.reply.as_ref().and_then(|_| renamed(payload, &prepare.key.text.names, flavour));
        let payload = renamed.as_deref().unwrap_or(payload);
        if !read_definition(prepare, payload)? {
            entry.reply.at = At::Definitions;
            return Ok(Progress::Took { bytes, verbatim: false });
        }
        let (key, id) = (prepare.key.clone(), prepare.id);
        let reply = Arc::new(take_reply(prepare));
        entry.reply.prepare = None;
        // Of what was changed meanwhile it may say the old or the new.
        let state = if self.knowledge.state() == entry.settled { entry.settled } else { 0 };
        self.statements.insert(key, id, reply, state, way.to_server);
        self.answer_prepare(entry, way);
        Ok(Progress::Ended { bytes, verbatim: false })
    }

    /// Gives a client the reply to its COM_STMT_PREPARE from what is known, and the statement its number.
    pub(super) fn answer_prepare(&mut self, entry: &mut Entry, way: &mut Way<'_>) {
        let Some(key) = entry.key.clone() else { return };
        let Some(reply) = self.statements.reply_to(&key.text) else { return };
        entry.outcome.any_ok = true;
        entry.outcome.warnings = reply.warnings;
        entry.outcome.warned |= reply.warnings > 0;
        entry.outcome.conditions = Some(reply.warnings);
        let Some(front) = way.front.as_deref_mut() else { return };
        let number = front.request.number;
        let kill = front.request.extra.as_deref().and_then(|extra| extra.kills);
        front.note_variables();
        let class = std::mem::take(&mut front.request.class);
        if class.lent_stays {
            // A hint holds for the preparation as well.
            front.pin(Pin::Setting);
        }
        let dialect = front.dialect();
        let statements = front.statements.get_or_insert_default();
        statements.insert(
            number,
            ClientStatement {
                text: key.text,
                class: Box::new(class),
                judged_by: front.request.judged_by,
                dialect,
                params: reply.params,
                kinds: if self.settles_types { reply.kinds() } else { Binding::default() },
                types: Box::default(),
                long_data: Vec::new(),
                sent_ahead: false,
                warned: false,
                cursor: false,
                kill,
                settled: None,
                mixed: false,
                before: None,
                doubt: None,
            },
        );
        if self.session.flavour == Flavour::MariaDb {
            statements.set_last(number);
        }
        front.reply_begun = true;
        reply.write(number, self.status & !status::OF_THE_REPLY, front.capabilities, way.to_client);
    }
}

/// Reads a packet of a reply to COM_STMT_PREPARE; true when it was the last.
pub(super) fn read_definition(prepare: &mut PrepareAhead, payload: &[u8]) -> Result<bool, Fault> {
    if prepare.reply.is_none() {
        let read = PrepareReply::read(payload).map_err(|_| malformed("malformed reply to a prepare"))?;
        let (id, reply) = read;
        prepare.id = id;
        prepare.left = usize::from(reply.params) + usize::from(reply.columns);
        prepare.reply = Some(reply);
        return Ok(prepare.left == 0);
    }
    if prepare.definitions.len() + payload.len() > limits::SERVER_GATHER_BYTES * 8 {
        return Err(Fault::new(FaultKind::ServerTooLarge, "the reply to a prepare"));
    }
    Header { len: payload.len(), seq: 0 }.write(&mut prepare.definitions);
    prepare.definitions.extend_from_slice(payload);
    prepare.left = prepare.left.saturating_sub(1);
    Ok(prepare.left == 0)
}

pub(super) fn take_reply(prepare: &mut PrepareAhead) -> PrepareReply {
    let definitions = std::mem::take(&mut prepare.definitions).into();
    match prepare.reply.take() {
        Some(reply) => PrepareReply { definitions, ..reply },
        None => PrepareReply { params: 0, columns: 0, warnings: 0, definitions },
    }
}

/// A statement whose client has gone before it was answered: its copy is kept under an empty text.
pub(super) fn unknown_key(way: &Way<'_>) -> Option<Key> {
    way.front.is_none().then(|| {
        let text = crate::prepared::Text::new(
            crate::session_state::State::new(0, true),
            None,
            Box::default(),
            crate::rewrite::Names::default(),
        );
        Key { private: Some((0, 0)), ..Key::fresh(Arc::new(text)) }
    })
}
