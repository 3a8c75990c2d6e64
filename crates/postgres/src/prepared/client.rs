//! What a client has prepared, under its own names, and a server that has the statements under these names.
//!
//! Owns: [`ClientPrepared`], [`OwnNames`]. Must not know: other clients.
//!
//! Invariant: both are bounded, by number and by bytes.

use super::{Key, Statement};
use crate::effects::{Draws, Effects};
use foldhash::fast::RandomState;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use weir_wire::limits::{self, CLIENT_PREPARED, CLIENT_PREPARED_BYTES, KEPT_REFUSAL_BYTES, PORTALS};

/// A client's names.
pub type Names = HashMap<Box<[u8]>, Arc<Statement>, RandomState>;

/// What a client has prepared.
#[derive(Debug, Default)]
pub struct ClientPrepared {
    named: Names,
    /// Of the texts of all of them, as if each were this client's alone.
    pub(super) bytes: usize,
    /// The unnamed statement, kept because a later batch may bind it: what it is if all that is under way
    /// succeeds.
    pub unnamed: Option<Arc<Statement>>,
    /// The same according to the replies that have come.
    pub answered: Option<Arc<Statement>>,
    /// The unnamed statement was too long to keep: it is on the server this client is pinned to.
    pub unnamed_is_raw: bool,
    /// What an Execute of the unnamed portal does.
    pub portal: Option<Arc<Effects>>,
    /// The same for named portals that do something; they end with the transaction.
    portals: Vec<(Box<[u8]>, Arc<Effects>)>,
    /// What those do for which there was no place: any portal of another name may be one of them.
    other_portals: Option<Arc<Effects>>,
    /// Names that are longer than what is kept of them, by that: errors show them as the client wrote them.
    long_names: Vec<Box<[u8]>>,
}

/// As much of a name as a server keeps (NAMEDATALEN of PostgreSQL's `pg_config_manual.h`, less one). Names
/// are ASCII here, so no character is cut.
fn kept(name: &[u8]) -> &[u8] {
    const BYTES: usize = 63;
    name.get(..BYTES).unwrap_or(name)
}

impl ClientPrepared {
    /// The statement of a name; the unnamed one for "".
    pub fn get(&self, name: &[u8]) -> Option<&Arc<Statement>> {
        if name.is_empty() { self.unnamed.as_ref() } else { self.named.get(kept(name)) }
    }

    /// Gives a name to a statement. False when the client has as many as Weir carries.
    pub fn insert(&mut self, whole: &[u8], statement: Arc<Statement>) -> bool {
        let name = kept(whole);
        if self.named.len() >= CLIENT_PREPARED && !self.named.contains_key(name) {
            return false;
        }
        self.long_names.retain(|long| kept(long) != name);
        let is_long = whole.len() > name.len() && whole.len() <= limits::LONG_NAME_BYTES;
        if is_long && self.long_names.len() < limits::LONG_NAMES {
            self.long_names.push(whole.into());
        }
        self.bytes += statement.content.len();
        let before = self.named.insert(name.into(), statement);
        self.bytes -= before.map_or(0, |before| before.content.len());
        true
    }

    /// There is room for another name.
    pub fn has_room(&self) -> bool {
        self.named.len() < CLIENT_PREPARED && self.bytes < CLIENT_PREPARED_BYTES
    }

    /// Forgets a name.
    pub fn remove(&mut self, name: &[u8]) -> Option<Arc<Statement>> {
        let statement = self.named.remove(kept(name))?;
        self.bytes -= statement.content.len();
        Some(statement)
    }

    /// Forgets a name if it still means this statement.
    pub fn remove_if(&mut self, name: &[u8], statement: &Arc<Statement>) {
        if self.named.get(kept(name)).is_some_and(|have| Arc::ptr_eq(have, statement)) {
            self.remove(name);
        }
    }

    /// Forgets the name of this statement.
    pub fn remove_statement(&mut self, statement: &Arc<Statement>) {
        let bytes = &mut self.bytes;
        self.named.retain(|_, have| {
            let stays = !Arc::ptr_eq(have, statement);
            *bytes -= if stays { 0 } else { have.content.len() };
            stays
        });
    }

    /// All names and what they stand for, in the order in which they were prepared.
    pub fn in_order(&self) -> Vec<(Box<[u8]>, Arc<Statement>)> {
        let mut all: Vec<_> = self.named.iter().map(|(name, s)| (name.clone(), Arc::clone(s))).collect();
        all.sort_unstable_by_key(|(_, statement)| statement.since.load(Ordering::Relaxed));
        all
    }

    /// Gives the names back that were taken by [`ClientPrepared::take_names`], unless they are in use again.
    pub fn restore_names(&mut self, names: Names) {
        for (name, statement) in names {
            if !self.named.contains_key(&name) {
                self.bytes += statement.content.len();
                self.named.insert(name, statement);
            }
        }
    }

    /// Forgets all names and hands them out. The unnamed statement has none and stays.
    pub fn take_names(&mut self) -> Names {
        self.bytes = 0;
        std::mem::take(&mut self.named)
    }

    /// A name as the client wrote it.
    fn whole<'a>(&'a self, name: &'a [u8]) -> &'a [u8] {
        self.long_names.iter().find(|long| kept(long) == name).map_or(name, |long| long)
    }

    /// The client's name for a statement of this key, for error texts.
    pub fn name_of(&self, key: &Key) -> Option<&[u8]> {
        self.named.iter().find(|(_, s)| s.key == *key).map(|(name, _)| self.whole(name))
    }

    /// The client's name for this very statement; with `same_text`, for any of its text.
    pub fn name_of_statement(&self, statement: &Arc<Statement>, same_text: bool) -> Option<&[u8]> {
        let fits = |have: &Arc<Statement>| {
            Arc::ptr_eq(have, statement) || (same_text && have.content == statement.content)
        };
        self.named.iter().find(|(_, have)| fits(have)).map(|(name, _)| self.whole(name))
    }

    /// A portal was bound.
    pub fn bind_portal(&mut self, portal: &[u8], effects: Option<Arc<Effects>>) {
        if portal.is_empty() {
            self.portal = effects;
            return;
        }
        self.portals.retain(|(name, _)| **name != *portal);
        if let Some(effects) = effects.filter(|e| !e.is_nothing() || e.controls || e.draws != Draws::No) {
            if self.portals.len() < PORTALS {
                self.portals.push((portal.into(), effects));
                return;
            }
            // Which of them runs is not known: nothing that one of them clears is believed.
            let mut other = match &self.other_portals {
                Some(other) => other.and(&effects),
                None => Effects::clone(&effects),
            };
            (other.releases, other.clears, other.frees) = Default::default();
            (other.names, other.deallocates, other.executes) = (None, None, None);
            self.other_portals = Some(Arc::new(other));
        }
    }

    /// What an Execute of this portal does, if anything.
    pub fn portal_effects(&self, portal: &[u8]) -> Option<Arc<Effects>> {
        if portal.is_empty() {
            return self.portal.clone();
        }
        let known = self.portals.iter().find(|(name, _)| **name == *portal);
        known.map(|(_, effects)| effects).or(self.other_portals.as_ref()).cloned()
    }

    /// The transaction has ended, and all portals with it.
    pub fn end_portals(&mut self) {
        self.portal = None;
        self.portals.clear();
        self.other_portals = None;
    }

    /// Statements prepared under a name.
    pub fn len(&self) -> usize {
        self.named.len()
    }

    /// No name is in use.
    pub fn is_empty(&self) -> bool {
        self.named.is_empty()
    }
}

/// A server on which one client's statements have that client's names.
#[derive(Debug, Default)]
pub struct OwnNames {
    /// They were put there for this request, and nothing had tied their client to the server by its names.
    pub taken_for: Option<u64>,
    /// Statements that were prepared elsewhere before, by their numbers, of which the server has not said yet
    /// that they are what their client was told.
    unproven: Vec<u64>,
    /// Those that could not be prepared under the settings of that moment, and why not, where that says more
    /// than that they are not there.
    lost: Vec<(u64, Option<Box<[u8]>>)>,
    /// Some were to be prepared behind an error that nobody knew of yet: the server has skipped them.
    pub(crate) missed: bool,
    /// The request that last gave a name.
    pub(crate) given_in: u64,
}

impl OwnNames {
    /// It was prepared here anew.
    pub fn brought(&mut self, statement: &Statement) {
        self.unproven.push(statement.id);
    }

    /// The server must say whether it has it, and of what columns it is, before it is used.
    pub fn must_ask(&self, statement: &Statement) -> bool {
        self.unproven.contains(&statement.id)
    }

    /// The statement of this number could not be prepared, by this error.
    pub fn lost(&mut self, id: u64, error: Option<&[u8]>) {
        let error = error.filter(|error| error.len() <= KEPT_REFUSAL_BYTES);
        self.lost.push((id, error.map(Into::into)));
    }

    /// It could not be prepared.
    pub fn is_lost(&self, statement: &Statement) -> bool {
        self.lost.iter().any(|(id, _)| *id == statement.id)
    }

    /// Why it is not there.
    pub fn why_lost(&self, statement: &Statement) -> Option<&[u8]> {
        self.lost.iter().find(|(id, _)| *id == statement.id)?.1.as_deref()
    }

    /// It could not be prepared; that is to be tried again.
    pub fn take_lost(&mut self, statement: &Statement) -> bool {
        let before = self.lost.len();
        self.lost.retain(|(id, _)| *id != statement.id);
        self.lost.len() < before
    }

    /// It is what its client was told.
    pub fn proven(&mut self, statement: &Statement) {
        self.unproven.retain(|&id| id != statement.id);
    }
}
