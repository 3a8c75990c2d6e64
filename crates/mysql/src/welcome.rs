//! What the clients of one pool are told at the end of their login.
//!
//! Owns: which charsets the servers of this pool have accepted, and what clients may rely on there. Must not
//! know: sockets, queues.
//!
//! A client names a schema and, by the number of a collation, a charset. A server confirms both before the
//! login's final OK, once for all clients that name the same: errors 1049 and 1044 come from the server. A
//! number that the server does not support selects the server's default, as in a direct login.

use crate::back::Back;
use crate::frame;
use crate::front::{Front, Phase, Traits};
use crate::message::lenenc;
use crate::message::ok::{self, OkPacket};
use crate::session_state::{Base, Charset};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use weir_session::login::Changes;
use weir_wire::limits::GREETED_PAIRS;

/// What clients of one pool are greeted with.
#[derive(Debug, Clone, Default)]
pub struct Welcomes {
    version: String,
    traits: Option<Traits>,
    /// What sessions begin with.
    base: Option<Base>,
    /// Counts changes after which a server must be asked anew; and what it was when the last one logged in.
    changes: Changes,
    born: u64,
    good: HashMap<(Option<Arc<str>>, u16), Charset>,
}

/// In front of what vouches for a certificate.
const VOUCHES: &[u8] = b"\x01";

impl Welcomes {
    /// What this server says is the truth from now on.
    fn note(&mut self, back: &Back) {
        let traits = back.traits();
        let (changes, born) = back.changes();
        if self.traits != Some(traits) || self.version != back.version() || self.born < born {
            self.version = back.version().to_owned();
            self.traits = Some(traits);
            self.good.clear();
        }
        if self.born <= born {
            self.changes = changes.clone();
            self.born = born;
        }
        // One that says the same stays the same: clients are compared by it.
        match &self.base {
            Some(base) if *base == back.session.base => base.is_confirmed_by(&back.session.base),
            Some(_) | None => self.base = Some(back.session.base.clone()),
        }
    }

    fn put_ok(&self, front: &mut Front, out: &mut Vec<u8>) {
        let mut changes = Vec::new();
        // A server tells its clients the schema they begin in.
        if let Some(schema) = front.state.schema.as_deref() {
            changes.push(1);
            let mut name = Vec::new();
            lenenc::put_string(&mut name, schema.as_bytes());
            lenenc::put_string(&mut changes, &name);
        }
        front.status = front.traits.fresh_status();
        let vouch = front.login.as_deref_mut().and_then(|login| login.vouch.take());
        let info = vouch.map(|told| [VOUCHES, told.as_bytes()].concat()).unwrap_or_default();
        let ok = OkPacket { status: front.status, info: &info, changes: &changes, ..OkPacket::default() };
        frame::put(out, front.seq, |out| ok.write(ok::OK, front.capabilities, out));
        front.phase = Phase::Idle;
    }
}

impl weir_session::Welcomes for Welcomes {
    type Front = Front;
    type Back = Back;

    fn observe(&mut self, back: &mut Back) {
        self.note(back);
    }

    /// Ends the login of `front` if its schema and charset are known to be good; false when a server must be
    /// asked first.
    fn greet(&self, front: &mut Front, out: &mut Vec<u8>) -> bool {
        let Some(traits) = self.traits else { return false };
        // An account may be locked by now, a global setting another: only a new session tells.
        if !front.confirmed && !self.is_current() {
            return false;
        }
        let pair = (front.state.schema.clone(), front.login_collation());
        let Some(&charset) = self.good.get(&pair) else { return false };
        front.state.charset = charset;
        front.state.base = self.base.clone();
        front.login_charset = charset;
        front.traits = traits;
        self.put_ok(front, out);
        true
    }

    /// A server has logged in since accounts or global settings were changed last.
    fn is_current(&self) -> bool {
        self.changes.load(Relaxed) == self.born
    }

    fn record(&mut self, front: &mut Front, back: &Back) -> bool {
        self.note(back);
        if front.refused {
            return false;
        }
        if self.good.len() >= GREETED_PAIRS {
            self.good.clear();
        }
        front.confirmed = true;
        self.good.insert((front.state.schema.clone(), front.login_collation()), front.state.charset);
        true
    }

    /// Answers a SET that needs no server (`Needs::prepares`). The answer to COM_STMT_PREPARE describes
    /// columns, which only a server can do.
    fn answer(&self, front: &mut Front, _request: &[u8], out: &mut Vec<u8>) -> bool {
        front.answer_by_heart(out)
    }
}
