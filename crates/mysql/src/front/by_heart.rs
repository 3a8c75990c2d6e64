//! Answers a SET of values that every server accepts without a server, when none is free.
//!
//! A driver cancels through a second connection, on which it sends its usual SETs before the KILL. When all
//! servers of the pool are busy, only that KILL would free one: the SET must not wait for it. What it changes
//! moves with its client, so the next server is brought into that state.
//!
//! Owns: which values no server refuses, and the reply a server would have sent. Must not know: servers.
//!
//! Invariant: a statement answered here can neither fail nor warn on any server.

use super::{Front, Phase};
use crate::frame;
use crate::message::ok::{self, OkPacket};
use crate::message::{Capabilities, Command, lenenc, status};
use crate::session_state::{Changes, Flavour, Slot};
use crate::warnings::Kept;
use weir_session::Front as _;
use weir_sql::{Class, Uses, Verb};

impl Front {
    /// The request found last may be answered by [`Front::answer_by_heart`].
    pub(super) fn may_know_by_heart(&self) -> bool {
        let class = &self.request.class;
        let changes = self.request.extra.as_deref().and_then(|extra| extra.changes.as_ref());
        self.request.command == Command::Query
            && is_lone_set(class)
            && self.pins().is_empty()
            && !self.is_in_transaction()
            && !self.traits.autocommit_off
            && changes.is_some_and(|changes| is_certain(changes, self.traits.flavour))
    }

    /// Answers the SET under way as a server would. False, and nothing has changed, when only a server can.
    pub(crate) fn answer_by_heart(&mut self, out: &mut Vec<u8>) -> bool {
        if !matches!(self.phase, Phase::Busy) || !self.may_know_by_heart() {
            return false;
        }
        let Some(changes) = self.request.extra.as_deref_mut().and_then(|extra| extra.changes.take()) else {
            return false;
        };
        let told = if self.capabilities.has(Capabilities::SESSION_TRACK) {
            self.told_of(&changes)
        } else {
            Some(Vec::new())
        };
        let before = self.state.clone();
        let Some(told) = told.filter(|_| self.state.apply(changes.known.clone())) else {
            self.state = before;
            if let Some(extra) = self.request.extra.as_deref_mut() {
                extra.changes = Some(changes);
            }
            return false;
        };
        for (slot, value) in &changes.known {
            if *slot == Slot::Autocommit {
                self.status &= !status::AUTOCOMMIT;
                self.status |= if &**value == "1" { status::AUTOCOMMIT } else { 0 };
            }
        }
        let all = self.told_with(told);
        let status = self.status & !status::OF_THE_REPLY;
        let ok = OkPacket { status, changes: &all, ..OkPacket::default() };
        frame::put(out, self.reply_seq, |out| ok.write(ok::OK, self.capabilities, out));
        match (self.traits.flavour, self.warnings.as_deref_mut()) {
            (Flavour::MySql, _) => self.forget_warnings(),
            // It would be another read now.
            (Flavour::MariaDb, Some(Kept::Read(..))) => self.keep_warnings(Kept::Lost),
            (Flavour::MariaDb, Some(Kept::Answer(kept))) => {
                kept.is_shown_otherwise(&self.state, Flavour::MariaDb);
            }
            (Flavour::MariaDb, Some(Kept::Lost) | None) => {}
        }
        self.answered_here(0);
        self.forget_request();
        true
    }

    /// What a server tells of these changes with its OK; `None` where that is not known.
    fn told_of(&self, changes: &Changes) -> Option<Vec<u8>> {
        let tracked = self.state.setting(Slot::TrackedVariables);
        let tracked = tracked.or_else(|| self.state.based(Slot::TrackedVariables))?.trim_matches('\'');
        let tracked: Vec<&str> = tracked.split(',').map(str::trim).collect();
        if tracked.contains(&"*") {
            return None;
        }
        let mut told: Vec<(&str, &str)> = Vec::new();
        for (slot, value) in &changes.known {
            let value = value.split('\'').nth(1).unwrap_or(value);
            match slot {
                Slot::Names if tracked.contains(&"collation_connection") => return None,
                Slot::Names => {
                    let sets = ["character_set_client", "character_set_connection", "character_set_results"];
                    told.extend(sets.map(|name| (name, value)));
                }
                Slot::Autocommit => told.push(("autocommit", if value == "1" { "ON" } else { "OFF" })),
                Slot::TimeZone => told.push(("time_zone", value)),
                _ if tracked.contains(&slot.variable(self.traits.flavour)) => return None,
                _ => {}
            }
        }
        told.retain(|(name, _)| tracked.contains(name));
        // MariaDB's order is that of addresses in its memory.
        if self.traits.flavour == Flavour::MariaDb && told.len() > 1 {
            return None;
        }
        told.sort_unstable();
        let mut out = Vec::new();
        for (name, value) in told {
            let mut entry = Vec::new();
            lenenc::put_string(&mut entry, name.as_bytes());
            lenenc::put_string(&mut entry, value.as_bytes());
            out.push(0);
            lenenc::put_string(&mut out, &entry);
        }
        Some(out)
    }
}

/// One SET, of nothing but settings that move.
fn is_lone_set(class: &Class) -> bool {
    class.verb == Verb::Set
        && class.statements == 1
        && class.first_end == 0
        && !class.doubtful
        && !class.uses.intersects(Uses::EXECUTABLE_COMMENT | Uses::TRACKERS)
        && class.set().is_some_and(|set| set.complete && set.user_variables.is_empty())
}

/// Any server takes these values, without a warning.
fn is_certain(changes: &Changes, flavour: Flavour) -> bool {
    let takes = |slot: Slot, value: &str| match slot {
        Slot::Autocommit | Slot::ForeignKeyChecks | Slot::UniqueChecks => matches!(value, "0" | "1"),
        Slot::Names => match value.to_ascii_lowercase().as_str() {
            "'utf8mb4'"
            | "'latin1'"
            | "'utf8mb4' collate 'utf8mb4_general_ci'"
            | "'utf8mb4' collate 'utf8mb4_unicode_ci'"
            | "'utf8mb4' collate 'utf8mb4_bin'" => true,
            "'utf8mb4' collate 'utf8mb4_0900_ai_ci'" => flavour == Flavour::MySql,
            _ => false,
        },
        Slot::TimeZone => matches!(value, "'+00:00'" | "'SYSTEM'"),
        _ => false,
    };
    let known = &changes.known;
    changes.asked.is_empty() && !known.is_empty() && known.iter().all(|(slot, value)| takes(*slot, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_server_refuses_is_certain() {
        let of = |slot, value: &str, flavour| {
            is_certain(&Changes { known: vec![(slot, value.into())], asked: Vec::new() }, flavour)
        };
        assert!(of(Slot::Names, "'UTF8MB4'", Flavour::MariaDb));
        assert!(of(Slot::Names, "'utf8mb4' COLLATE 'utf8mb4_0900_ai_ci'", Flavour::MySql));
        assert!(!of(Slot::Names, "'utf8mb4' COLLATE 'utf8mb4_0900_ai_ci'", Flavour::MariaDb));
        // MySQL warns of it.
        assert!(!of(Slot::Names, "'utf8'", Flavour::MySql));
        assert!(!of(Slot::TimeZone, "'Europe/Berlin'", Flavour::MySql));
        assert!(!is_certain(&Changes::default(), Flavour::MySql));
        let asked = Changes { known: vec![(Slot::Autocommit, "1".into())], asked: vec![Slot::SqlMode] };
        assert!(!is_certain(&asked, Flavour::MySql));
    }
}
