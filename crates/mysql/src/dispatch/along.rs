//! Statements that are prepared ahead of a request because they would come to something else behind it.
//!
//! Owns: which, and in what state of the session. Must not know: replies.

use crate::back::Back;
use crate::follow::Named;
use crate::front::{Front, Unsettles};
use crate::prepared::{Key, Text};
use crate::queue::{Ahead, Entry};
use crate::session_state::State;
use std::sync::Arc;
use weir_session::Back as _;
use weir_session::Front as _;
use weir_sql::{Class, Uses};
use weir_wire::{Boundary, Pin, limits};

impl Back {
    /// The statements that go along with a request, if any do.
    pub(super) fn goes_along(&self, front: &Front, brings: bool) -> Option<Unsettles> {
        let reads = front.statements.as_deref()?.read_variables();
        let of_variables = (brings && reads).then_some(Unsettles::OfVariables);
        let of = front.request.unsettles().or(of_variables)?;
        let along_on = front.rare.as_deref().map_or(0, |rare| rare.along_on);
        // What it has prepared since, it has prepared here.
        (along_on != self.server_id() || !front.stays_here()).then_some(of)
    }

    /// Settings and variables that a request makes, and that tie its client to this server, may change what
    /// its statements come to when they are prepared behind it. Those that it has prepared elsewhere are
    /// prepared here in front of it. `brings`: its variables come here now, perhaps into a transaction, where
    /// nothing takes them away again.
    pub(super) fn prepare_along(
        &mut self,
        entry: &mut Entry,
        front: &mut Front,
        brings: bool,
        out: &mut Vec<u8>,
    ) {
        let Some(of) = self.goes_along(front, brings) else { return };
        if entry.lost_schema.is_some() {
            // They were prepared in a schema that is gone: no server can prepare them any more.
            return;
        }
        let asks = front.request.class.uses.intersects(Uses::WARNINGS | Uses::DIAGNOSTICS);
        if asks && front.warnings_are_on_server() {
            // What is prepared here takes away what it asks for.
            return;
        }
        let mut any = false;
        for text in texts_along(front, of) {
            any = true;
            let shaped = state_to_prepare(front, &text);
            let of_now = |text: &Named| !self.variables_are_in_the_way(&text.wanted, front);
            if self.can_go_along(&text, entry, front, &shaped) && text.variables.as_ref().is_none_or(of_now) {
                self.go_along(entry, &shaped, out);
                self.prepare_ahead(entry, front, &shaped, Key::fresh(text), out);
                if let Some(Ahead::Prepare(prepare)) = entry.ahead.back_mut() {
                    prepare.along = true;
                }
            }
        }
        if any {
            front.rare.get_or_insert_default().along_on = self.server_id();
        }
    }

    /// This statement is not here, and can be prepared in this session.
    fn can_go_along(&self, text: &Arc<Text>, entry: &Entry, front: &Front, shaped: &State) -> bool {
        let is_ahead = entry.key.as_ref().is_some_and(|key| key.text == *text);
        // No command leaves a schema for none.
        let stays = shaped.schema.is_some() == front.state.schema.is_some();
        !is_ahead && stays && !self.session.needs_new_login(shaped) && !self.statements.has_shared(text)
    }

    /// Variables of others are in the way of a statement that goes along with the request, and its client has
    /// nothing here that a reset would take away.
    pub(super) fn along_must_be_cleared(&self, entry: &Entry, front: &Front, brings: bool) -> bool {
        let free = self.variables.is_some() && self.boundary() == Boundary::Idle && front.pins().is_empty();
        let Some(of) = free.then(|| self.goes_along(front, brings)).flatten() else { return false };
        let is_in_the_way = |text: &Arc<Text>| {
            let shaped = state_to_prepare(front, text);
            let named = text.variables.as_ref().filter(|_| self.can_go_along(text, entry, front, &shaped));
            named.is_some_and(|named| self.variables_are_in_the_way(&named.wanted, front))
        };
        entry.lost_schema.is_none() && texts_along(front, of).any(|text| is_in_the_way(&text))
    }

    /// Brings this session to where a statement was prepared that the request can do without. Its schema may
    /// be gone.
    fn go_along(&mut self, entry: &mut Entry, shaped: &State, out: &mut Vec<u8>) {
        let goes = !self.session.is_in(shaped.schema.as_ref());
        let before = entry.ahead.len();
        self.move_ahead(entry, shaped, out);
        if let Some(schema) = shaped.schema.clone().filter(|_| goes)
            && entry.ahead.len() > before
            && let Some(last) = entry.ahead.back_mut()
        {
            *last = Ahead::Schema(schema);
        }
    }
}

/// A setting or code that nobody has read ties the client to its server: not all of its settings are known.
pub(super) fn has_unknown_settings(front: &Front) -> bool {
    front.pins().contains(Pin::Setting) || front.pins().contains(Pin::Code)
}

/// The state in which a statement of this client's is prepared. Where not all of its settings are known they
/// could not be brought back. Its schema is known.
pub(super) fn state_to_prepare(front: &Front, text: &Text) -> State {
    match has_unknown_settings(front) {
        true => State { schema: text.shape.schema.clone(), ..front.state.clone() },
        false => front.state.shaped(&text.shape),
    }
}

/// The texts of the statements that may go along with a request.
fn texts_along(front: &Front, of: Unsettles) -> impl Iterator<Item = Arc<Text>> {
    let wanted = move |class: &Class| match of {
        Unsettles::All => true,
        Unsettles::OfVariables => class.uses.contains(Uses::USER_VARIABLE_READ),
    };
    let texts = front.statements.as_deref().map(|all| all.texts(wanted));
    texts.into_iter().flatten().take(limits::PREPARED_ALONG)
}
