//! What the clients of one pool are told at the end of their login: the ParameterStatus values of a real
//! server under the settings that the client named.
//!
//! Owns: [`Welcomes`], a bounded cache from settings to what a server reported under them; and what else a
//! client of the pool can be told without a server: that a statement can be prepared. Must not know: who
//! waits.
//!
//! Invariants: clients are told only what a server of this pool has reported; when a server reports something
//! else than before, everything older is discarded.

use crate::back::Back;
use crate::datestyle::{DATESTYLE, part_in};
use crate::front::Front;
use crate::late::Facts;
use crate::message::query::lone_parse;
use crate::message::reply::{PARSE_COMPLETE, put_key, put_parameter, put_ready};
use crate::prepared::known::KnownStatements;
use crate::prepared::{Origin, Statement};
use crate::session_state::{APPLICATION_NAME, Reported, Settings, follows, reported_application_name};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_session::Front as _;
use weir_session::login::Changes;
use weir_wire::Boundary;
use weir_wire::limits::WELCOMES;

/// Settings that clients have begun with, and what servers reported under them.
#[derive(Debug, Clone, Default)]
pub struct Welcomes {
    base: Option<Reported>,
    by_key: HashMap<u64, Arc<Welcome>>,
    order: Vec<u64>,
    /// What values of `DateStyle` come to that say one part of it, or neither: eight at most.
    datestyles: HashMap<Box<[u8]>, Box<[u8]>>,
    /// Counts changes of accounts, after which a server must be asked anew; and what it was when the last one
    /// logged in.
    changes: Changes,
    born: u64,
    /// What its servers have prepared.
    statements: Arc<KnownStatements>,
    /// Whether its servers let BEGIN wait.
    facts: Arc<Facts>,
}

#[derive(Debug)]
struct Welcome {
    /// As the client named them; `application_name` is left out.
    named: Settings,
    /// With the server's spelling of the values.
    settings: Arc<Settings>,
    reported: Reported,
}

impl Welcomes {
    /// A server of its own would have other values than these.
    fn differs(&self, startup: &Settings) -> bool {
        let has = |name: &str| self.base.as_ref().and_then(|base| base.get(name));
        startup.iter().any(|(name, value)| has(name) != Some(value))
    }

    /// What completes the `DateStyle` of this client, if it says a part.
    fn datestyle_for(&self, front: &Front) -> Option<&[u8]> {
        let part = part_in(&front.startup)?;
        let base = self.base.as_ref().filter(|_| self.facts.stores_no_datestyle());
        let whole = self.datestyles.get(part).map(|whole| &**whole);
        base.and_then(|base| base.get(DATESTYLE)).or(whole)
    }

    /// A client with an unusual `application_name` is greeted once, right after a server was asked for it.
    fn greet_exact(&self, front: &mut Front, out: &mut Vec<u8>) -> bool {
        let Some(reported) = front.rare.as_deref_mut().and_then(|rare| rare.asked.take()) else {
            return false;
        };
        let settings = Arc::new(spelt(&front.startup, &reported));
        self.give(front, settings, &reported);
        tell(front, &reported, None, out);
        true
    }

    /// A client begins with these settings, to which it goes back.
    fn give(&self, front: &mut Front, settings: Arc<Settings>, reported: &Reported) {
        front.settings = settings;
        front.startup = Arc::clone(&front.settings);
        front.startup_differs = self.differs(&front.startup);
        front.reports_path = reported.get("search_path").is_some();
    }

    fn insert(&mut self, named: Settings, settings: Arc<Settings>, reported: Reported) {
        let key = named.plan_key();
        if self.by_key.insert(key, Arc::new(Welcome { named, settings, reported })).is_none() {
            self.order.push(key);
        }
        if self.order.len() > WELCOMES {
            let oldest = self.order.remove(0);
            self.by_key.remove(&oldest);
        }
    }
}

/// What a client has named, as the server spells it where it reports that.
fn spelt(named: &Settings, reported: &Reported) -> Settings {
    let mut settings = named.clone();
    for (name, _) in named.iter() {
        if follows(name)
            && let Some(value) = reported.get(name)
            && let Ok(spelt) = settings.with(name, value)
        {
            settings = spelt;
        }
    }
    settings
}

impl weir_session::Welcomes for Welcomes {
    type Front = Front;
    type Back = Back;

    /// A server has logged in since accounts were changed last.
    fn is_current(&self) -> bool {
        self.changes.load(Relaxed) == self.born
    }

    fn observe(&mut self, back: &mut Back) {
        if back.own.is_some() {
            // What it reports is one client's, not the servers'.
            if let Some(base) = &self.base {
                back.base = base.clone();
            }
            return;
        }
        let (changes, born) = back.changes();
        let newer = self.born < born;
        if self.born <= born {
            (self.changes, self.born) = (changes.clone(), born);
        }
        let changed = newer || self.base.as_ref().is_some_and(|base| !same_facts(base, &back.base));
        if changed {
            self.by_key.clear();
            self.order.clear();
            self.datestyles.clear();
            self.statements = Arc::default();
        }
        back.facts = Arc::clone(&self.facts);
        back.prepared.known = Arc::clone(&self.statements);
        if changed || self.base.is_none() {
            self.base = Some(back.base.clone());
        }
        if back.applied.is_empty() && !self.by_key.contains_key(&0) {
            self.insert(Settings::default(), Arc::default(), back.base.clone());
        }
    }

    /// Ends the login of `front` if its settings are known to be good; false when a server must be asked
    /// first (`Back::dispatch_welcome`).
    fn greet(&self, front: &mut Front, out: &mut Vec<u8>) -> bool {
        // The account may be locked by now, or what is set for it another: only a new session tells.
        if !front.confirmed && !self.is_current() {
            return false;
        }
        if let Some(has) = self.datestyle_for(front) {
            front.complete_datestyle(has);
        }
        let name = match front.startup.get(APPLICATION_NAME) {
            None => None,
            Some(value) => match reported_application_name(value) {
                Some(name) => Some(name.to_vec()),
                // Only the server knows how it spells such a name.
                None => return self.greet_exact(front, out),
            },
        };
        let Some(welcome) = self.by_key.get(&front.startup.plan_key()).cloned() else { return false };
        if !welcome.named.same_but_application_name(&front.startup) {
            return false;
        }
        let settings = match &name {
            None => Arc::clone(&welcome.settings),
            Some(name) => match welcome.settings.with(APPLICATION_NAME, name) {
                Ok(settings) => Arc::new(settings),
                Err(_) => Arc::clone(&front.settings),
            },
        };
        self.give(front, settings, &welcome.reported);
        tell(front, &welcome.reported, name.as_deref(), out);
        true
    }

    fn record(&mut self, front: &mut Front, back: &Back) -> bool {
        if front.welcome_refused {
            return false;
        }
        front.confirmed = true;
        if let (Some(part), Some(whole)) =
            (back.own.as_deref().and_then(part_in), back.reported.get(DATESTYLE))
        {
            self.datestyles.insert(part.into(), whole.into());
        }
        let named = front.startup.without(APPLICATION_NAME);
        let settings = spelt(&named, &back.reported);
        let unusual =
            front.startup.get(APPLICATION_NAME).filter(|name| reported_application_name(name).is_none());
        if unusual.is_some() {
            front.rare.get_or_insert_default().asked = Some(back.reported.clone());
        }
        let mut reported = back.reported.clone();
        if let Some(base) = back.base.get(APPLICATION_NAME) {
            reported.set(APPLICATION_NAME, base);
        }
        self.insert(named, Arc::new(settings), reported);
        true
    }

    /// Answers a request that only prepares (`Needs::prepares`), when a server of this pool has taken the
    /// same statement; or one that begins a transaction or ends an empty one (`Needs::late`). False: a server
    /// must be asked.
    ///
    /// A program with one thread and several connections waits for this answer before it goes on with its
    /// other transactions, and these may hold all servers.
    fn answer(&self, front: &mut Front, request: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(parse) = lone_parse(request) else { return front.answer_late(request, &self.facts, out) };
        let origin = Origin { plan_key: front.settings.plan_key(), ..Origin::default() };
        let state = front.judge().state();
        let prepared = front.prepared_mut();
        if !prepared.has_room()
            || prepared.get(parse.name).is_some()
            || !self.statements.contains(&Statement::key_of(parse.content, origin), state)
        {
            return false;
        }
        let effects = match front.next_text() {
            Some(effects) => effects,
            None => front.judge().text(parse.text).0,
        };
        let statement = Statement::by_heart(parse.content, origin, effects, state).under(&front.settings);
        front.prepared_mut().insert(parse.name, statement);
        out.extend_from_slice(PARSE_COMPLETE);
        put_ready(out, Boundary::Idle);
        true
    }
}

/// ParameterStatus for all, BackendKeyData, ReadyForQuery.
fn tell(front: &mut Front, reported: &Reported, application_name: Option<&[u8]>, out: &mut Vec<u8>) {
    front.observe_all(reported);
    for (name, value) in reported.iter() {
        let own = application_name.filter(|_| name.eq_ignore_ascii_case(APPLICATION_NAME));
        put_parameter(out, name, own.unwrap_or(value));
    }
    put_key(out, front.id(), front.key().bytes());
    put_ready(out, Boundary::Idle);
}

/// The servers say the same of themselves. Whether one is in recovery changes with a failover and is no
/// reason to ask all clients' settings anew.
fn same_facts(a: &Reported, b: &Reported) -> bool {
    const CHANGES_WITH_ROLE: [&str; 2] = ["in_hot_standby", "default_transaction_read_only"];
    let fits = |a: &Reported, b: &Reported| {
        a.iter().all(|(name, value)| CHANGES_WITH_ROLE.contains(&name) || b.get(name) == Some(value))
    };
    fits(a, b) && fits(b, a)
}

#[cfg(test)]
mod tests;
