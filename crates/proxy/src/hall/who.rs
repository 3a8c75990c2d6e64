//! Names the client in a line of the log, so that an operator need not look for it elsewhere.
//!
//! Owns: nothing. Looks only when a line is written, so requests pay nothing for it.

use super::Hall;
use crate::client::Phase;
use crate::ids::Key;
use crate::wing::{Front, Wing};
use std::borrow::Cow;
use weir_net::{Net, Peer};
use weir_wire::limits::LOGGED_NAMES as NAMES_MAX;

/// A client in the words of the log.
pub(super) struct Who<'a> {
    /// Its number, which is also the one it was told.
    pub(super) client: u32,
    /// The user it logged in as, or says it is.
    pub(super) user: &'a str,
    /// The database it uses.
    pub(super) database: &'a str,
    /// Where it comes from.
    pub(super) address: &'a Peer,
    /// What it calls itself, where the protocol tells.
    pub(super) application_name: Option<Cow<'a, str>>,
}

/// Names of users by number, each once: a name for each of a hundred thousand clients would cost more than
/// the rest of a line's facts.
#[derive(Debug, Default)]
pub(super) struct Names {
    names: Vec<Box<str>>,
}

impl Names {
    /// The number of a name; 0, which stands for the pool's user, when there are too many.
    pub(super) fn number(&mut self, name: &str) -> u16 {
        let at = self.names.iter().position(|known| **known == *name).unwrap_or(self.names.len());
        if at >= NAMES_MAX {
            return 0;
        }
        if at == self.names.len() {
            self.names.push(name.into());
        }
        u16::try_from(at + 1).unwrap_or(0)
    }

    fn get(&self, number: u16) -> Option<&str> {
        let at = usize::from(number).checked_sub(1)?;
        self.names.get(at).map(|name| &**name)
    }
}

/// Logs at a level what happened to one client: `log_client!(info, hall, cx, key, "login")`.
macro_rules! log_client {
    ($level:ident, $hall:expr, $cx:expr, $key:expr, $($text:tt)+) => {
        if let Some(who) = $hall.who($cx.number($key), $key) {
            let $crate::hall::who::Who { client, user, database, address, application_name } = who;
            let application_name = application_name.as_deref();
            tracing::$level!(
                protocol = W::PROTOCOL.name(), client, user, database, %address, application_name, $($text)+
            );
        }
    };
}
pub(super) use log_client;

impl<W: Wing, N: Net> Hall<W, N> {
    /// Who a client is; empty where it has not said yet.
    pub(super) fn who(&self, number: u32, key: Key) -> Option<Who<'_>> {
        let client = self.clients.get(key)?;
        let pool = client.pool.and_then(|id| self.pools.get(id.0 as usize)?.as_deref());
        let login = match &client.phase {
            Phase::Login(phase) => phase.login.as_ref(),
            Phase::Session(_) | Phase::Closing => None,
        };
        let said = login.map(|login| (login.user.as_str(), login.database.as_deref().unwrap_or_default()));
        let of_pool = pool.map(|pool| (pool.spec.user.as_str(), pool.spec.database.as_str()));
        let (user, database) = said.or(of_pool).unwrap_or_default();
        let (schema, application_name) = match &client.phase {
            Phase::Session(front) => (front.schema(), front.application_name()),
            Phase::Login(_) | Phase::Closing => (None, None),
        };
        Some(Who {
            client: number,
            // The pool's user is the server's, which may be another one for all.
            user: self.names.get(client.user).unwrap_or(user),
            database: schema.unwrap_or(database),
            address: &client.peer,
            application_name,
        })
    }
}
