//! Asks a server what its client has left there: settings that the client has set and that no server reports,
//! so that they can move; locks, temporary objects, cursors and channels, so that their pins end when they
//! do.
//!
//! After a request that may have set some, as soon as its transaction is over, Weir asks the server for their
//! values, behind the client's own reply. They become the client's settings, and its pin ends. Until then the
//! pin (`setting`) keeps the server for this client. After a request that may have released something, the
//! same query asks whether the other reasons still hold.
//!
//! Owns: which settings can move this way, and the query. Must not know: how settings are sent to a server
//! (`session_state.rs`).
//!
//! Invariants: a value moves only if the server reads it as the same value when it is set again; in doubt the
//! pin stays. The names in the query were set by the client that holds the server.

use crate::back::Back;
use crate::effects::{Effects, Outcome, Traces};
use crate::front::{Front, names_temporary};
use crate::message::query::put_query;
use crate::prepared::ClientPrepared;
use crate::queue::{Internal, Owed};
use crate::role::{AUTHORIZATION, NO_ROLE, ROLE, WHO, Who, is_who};
use crate::session_state::{Reported, Settings, follows, put_literal};
use std::sync::Arc;
use weir_sql::{Clears, Touched};
use weir_wire::limits::SETTINGS_ASKED;
use weir_wire::{Boundary, Pin, Pins, Reader};

/// What a client has left on the server that it holds, as far as that server can be asked for it.
#[derive(Debug, Default)]
pub(crate) struct Questions {
    /// Settings to be asked for, in lower case.
    names: Vec<Box<str>>,
    /// A setting was set that is not known, or does not move.
    in_vain: bool,
    /// Something may have been freed.
    freed: bool,
    /// What was set may have been taken back, or have failed: which settings the session has is asked, too.
    doubtful: bool,
    /// By the last text that said anything of it.
    who: Who,
    /// What is being asked.
    asked: Option<Asked>,
}

/// A question on its way.
#[derive(Debug, Default)]
struct Asked {
    /// For so many settings.
    settings: usize,
    /// And for the names of those that the session has.
    named: bool,
    /// And whether the user that logged in might not be allowed to set one of them.
    rights: bool,
    /// See `Questions::who`.
    who: Who,
    /// Whether these are still there.
    rest: Pins,
    /// The answer.
    values: Vec<Option<Box<[u8]>>>,
}

/// Reasons for which a server can be asked whether they still are, with what is true as long as they are.
/// Every object in a schema depends on it (`pg_depend`; 2615 is the catalogue of schemas). At the end of a
/// transaction no lock of it is left.
const ASKED: [(Pin, &str); 5] = [
    (
        Pin::SessionLock,
        "EXISTS (SELECT FROM pg_catalog.pg_locks WHERE locktype OPERATOR(pg_catalog.=) 'advisory' \
         AND pid OPERATOR(pg_catalog.=) pg_catalog.pg_backend_pid())",
    ),
    (
        Pin::TemporaryTable,
        "EXISTS (SELECT FROM pg_catalog.pg_depend WHERE refclassid OPERATOR(pg_catalog.=) 2615::pg_catalog.oid \
         AND refobjid OPERATOR(pg_catalog.=) pg_catalog.pg_my_temp_schema())",
    ),
    (Pin::Cursor, "EXISTS (SELECT FROM pg_catalog.pg_cursors WHERE is_holdable)"),
    (Pin::Listen, "EXISTS (SELECT FROM pg_catalog.pg_listening_channels())"),
    (Pin::SqlPrepare, "EXISTS (SELECT FROM pg_catalog.pg_prepared_statements WHERE from_sql)"),
];

/// The names of what the session has set.
const OF_THE_SESSION: &str = "(SELECT pg_catalog.string_agg(pg_catalog.lower(name), ',') FROM pg_catalog.pg_settings \
                              WHERE source OPERATOR(pg_catalog.=) 'session')";

/// Where names are looked for.
const PATH: &str = "search_path";

/// What SET SESSION CHARACTERISTICS sets.
const CHARACTERISTICS: [&str; 3] =
    ["default_transaction_deferrable", "default_transaction_isolation", "default_transaction_read_only"];

/// Not in the server's list of settings, or an extension's: that its value can be read is enough.
fn is_placeholder(name: &str) -> bool {
    name.contains('.')
}

/// A client that sets this takes its value along.
pub(crate) fn moves(name: &str) -> bool {
    const STAYS: [&str; 9] = [
        // Cannot be read.
        "seed",
        // The server would end for want of its client's requests.
        "idle_session_timeout",
        // Fixed by the first temporary table of a session.
        "temp_buffers",
        // Of one transaction.
        "transaction_deferrable",
        "transaction_isolation",
        "transaction_read_only",
        // Facts.
        "is_superuser",
        "in_hot_standby",
        "server_encoding",
    ];
    !STAYS.contains(&name)
}

/// A server that is given this value back has what it had.
fn is_whole(name: &str, value: &[u8]) -> bool {
    match name {
        // A question of Weir's own must not be cut off by it, nor wait for others.
        "statement_timeout" | "transaction_timeout" => is_long(value),
        "default_transaction_deferrable" => value == b"off",
        // Shown with six digits (`%g` of guc.c): there may have been more.
        _ => value.is_ascii() && !is_rounded(value),
    }
}

/// A time of a second or more, or none. PostgreSQL shows times in the largest unit that fits.
fn is_long(value: &[u8]) -> bool {
    value == b"0" || (value.is_ascii() && !value.ends_with(b"ms")) || {
        let digits = value.strip_suffix(b"ms").unwrap_or_default();
        digits.len() >= 4 && digits.iter().all(u8::is_ascii_digit)
    }
}

/// A number with a point or an exponent and as many digits as PostgreSQL shows.
fn is_rounded(value: &[u8]) -> bool {
    let number = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'-' | b'+' | b'e');
    let head = value.iter().take_while(|byte| number(byte)).count();
    let Some((number, unit)) = value.split_at_checked(head) else { return false };
    let mantissa = number.split(|&byte| byte == b'e').next().unwrap_or_default();
    let digits = mantissa.iter().filter(|byte| byte.is_ascii_digit());
    let significant = digits.skip_while(|&&byte| byte == b'0').count();
    (number.contains(&b'.') || number.contains(&b'e'))
        && unit.iter().all(u8::is_ascii_alphabetic)
        && significant >= 6
}

/// Code, or the end of a transaction, may have freed something. Names that were prepared outlive it.
fn is_askable(traces: &Traces) -> bool {
    ASKED.iter().any(|(pin, _)| *pin != Pin::SqlPrepare && traces.asks_for(*pin))
}

impl Effects {
    /// All that it may tie its client to a server by is settings that move. `reported`: servers report this
    /// one.
    pub(crate) fn only_moves(&self, reported: impl Fn(&str) -> bool) -> bool {
        if (self.role && !self.names_who())
            || self.seeds
            || self.temporary_path
            || self.pins != Pins::from(Pin::Setting)
        {
            return false;
        }
        let goes = |name: &str| reported(name) || moves(name);
        match (&self.names, self.touched.as_deref()) {
            (Some(names), _) => names.iter().filter(|set| !set.local).all(|set| goes(&set.name)),
            (None, Some(touched)) => {
                !touched.sets.is_empty() && !touched.sets.is_any() && touched.sets.iter().all(goes)
            }
            (None, None) => false,
        }
    }
}

impl Back {
    /// A text of these effects has succeeded, and pins its client for its settings: which those are.
    pub(crate) fn question(&mut self, front: &mut Front, effects: &Effects, outcome: Outcome) {
        let reported = &self.reported;
        let followed = |name: &str| follows(name) && reported.get(name).is_some();
        let mut names: Vec<&str> = Vec::new();
        let mut in_vain =
            (effects.role && !effects.names_who()) || effects.seeds || effects.sets_an_unknown_path();
        let (mut pins, mut by_code) = (false, false);
        if effects.sets_by_another() {
            front.rare.get_or_insert_default().sets_as_another = true;
        }
        if let Some(questions) = self.questions.as_deref_mut() {
            // What it had set may be gone by that, but for its role.
            questions.doubtful |= effects.clears.intersects(Clears::RESET_ALL);
            if outcome == Outcome::Settled && questions.forget(effects) {
                self.traces.unpin(Pin::Setting);
                front.traces.unpin(Pin::Setting);
            }
        }
        match (&effects.names, effects.touched.as_deref()) {
            (Some(sets), _) => {
                let may_return = outcome == Outcome::InTransaction;
                for set in sets.iter().filter(|set| !set.local && !followed(&set.name)) {
                    if !set.reset {
                        names.push(&set.name);
                    } else if (may_return && front.has_set(&set.name))
                        || (set.name.as_ref() == AUTHORIZATION && front.has_set(ROLE))
                    {
                        // A ROLLBACK brings back what it was; and whether a role goes with it, the server
                        // says.
                        pins = true;
                        names.push(&set.name);
                    }
                }
            }
            (None, _) if !effects.pins.contains(Pin::Setting) => {}
            (None, Some(touched)) if !touched.sets.is_empty() => {
                in_vain |= touched.sets.is_any();
                // Code may set it, and may not; and a name of code is no call of it.
                by_code = true;
                names.extend(touched.sets.iter().filter(|name| !followed(name)));
            }
            (None, _) => in_vain = true,
        }
        if names.iter().any(|name| is_who(name)) {
            names.extend(WHO);
        }
        let settings = Arc::clone(&front.settings);
        if outcome == Outcome::InTransaction && effects.clears.intersects(Clears::RESET_ALL) {
            let set = settings.iter().map(|(name, _)| name).filter(|name| !followed(name));
            names.extend(set.filter(|name| front.has_set(name)));
            pins |= !names.is_empty();
        }
        if pins {
            self.traces.pin(Pin::Setting);
            front.traces.pin(Pin::Setting);
        }
        let names_may_end = effects.executes.is_none() && self.traces.asks_for(Pin::SqlPrepare);
        let frees = effects.may_free && (names_may_end || is_askable(&self.traces));
        let who = effects.says_who().map(|who| {
            // What failed has taken nobody back.
            let is_nobody = outcome == Outcome::Doubtful && front.settings.get(ROLE) == Some(NO_ROLE);
            if is_nobody { Who::AsTold } else { who }
        });
        if let (Some(who), Some(questions)) = (who, self.questions.as_deref_mut()) {
            questions.who = who;
        }
        if !in_vain && !frees && names.is_empty() {
            return;
        }
        let questions = self.questions.get_or_insert_default();
        questions.who = who.unwrap_or(questions.who);
        questions.in_vain |= in_vain;
        questions.freed |= frees;
        questions.doubtful |= by_code || outcome != Outcome::Settled;
        for name in names {
            questions.add(name, &followed);
        }
    }

    /// A request of this client has ended, or a whole transaction (`ends`): something may have been freed.
    pub(crate) fn note_freed(&mut self, ends: bool) {
        if ends && is_askable(&self.traces) {
            self.questions.get_or_insert_default().freed = true;
        }
    }

    /// No statement may be left that SQL has prepared: the server is asked.
    pub(crate) fn note_names_may_be_gone(&mut self) {
        self.questions.get_or_insert_default().freed = true;
    }

    /// The server can be asked now what its client has left.
    fn may_ask(&self, front: &Front) -> bool {
        self.boundary == Boundary::Idle
            && self.queue.len() == 1
            && !(self.own.is_some() && front.is_at_home)
            && !(self.spoiled || self.skipping || self.needs_sync || self.copy_in)
            && self.held.is_none()
            && self.outgoing == 0
            && !self.traces.is_lasting()
            && !front.traces.is_lasting()
    }

    /// All that keeps the client here are settings for which the server is asked, or will be.
    pub(crate) fn only_questions_keep(&self, front: &Front) -> bool {
        let only_settings =
            front.traces.firm_pins() == Pins::from(Pin::Setting) && !front.traces.is_lasting();
        let asks = |questions: &Questions| !questions.in_vain && !questions.names.is_empty();
        only_settings && self.questions.as_deref().is_some_and(asks)
    }

    /// A request has ended: the server is asked what its client has set, and whether what it has left is
    /// still there.
    pub(crate) fn ask_what_is_left(&mut self, front: &mut Front, out: &mut Vec<u8>) {
        // What may have been drawn from a sequence is no reason not to ask: the answer does not touch it.
        let pins = self.traces.firm_pins();
        let may_ask = self.may_ask(front);
        let with_path = self.temporary_path;
        let Some(questions) = self.questions.as_deref_mut() else { return };
        if !pins.contains(Pin::Setting) {
            // All of it was put back.
            questions.names.clear();
            questions.in_vain = false;
        }
        if !may_ask || questions.asked.is_some() {
            return;
        }
        // What was drawn last keeps the server for a moment only.
        let passes = |pin: Pin| {
            matches!(pin, Pin::Setting | Pin::LastResult) || ASKED.iter().any(|(asked, _)| *asked == pin)
        };
        let others = pins.iter().any(|pin| !passes(pin));
        let settings = !questions.in_vain && !questions.names.is_empty() && !others;
        if settings && with_path {
            questions.ask_path();
        }
        let mut rest = Pins::NONE;
        if std::mem::take(&mut questions.freed) {
            ASKED.iter().filter(|(pin, _)| self.traces.asks_for(*pin)).for_each(|(pin, _)| rest.insert(*pin));
        }
        if !settings && rest.is_empty() {
            return;
        }
        let settings = if settings { questions.names.len() } else { 0 };
        let mut text = Vec::new();
        for name in questions.names.iter().take(settings) {
            text.extend_from_slice(if text.is_empty() { b"SELECT " } else { b"," });
            put_value_of(&mut text, name);
        }
        let listed = questions.names.iter().take(settings).any(|name| !is_who(name) && !is_placeholder(name));
        let named = settings > 0 && std::mem::take(&mut questions.doubtful) && listed;
        if named {
            text.push(b',');
            text.extend_from_slice(OF_THE_SESSION.as_bytes());
        }
        let another = front.rare.as_deref().is_some_and(|rare| rare.sets_as_another);
        let others = questions.names.iter().take(settings).any(|name| !is_who(name));
        let rights = another && others && self.base.get("is_superuser") != Some(b"on");
        if rights {
            put_asks_rights(&mut text, questions.names.iter().take(settings));
        }
        for (pin, is_there) in &ASKED {
            if rest.contains(*pin) {
                text.extend_from_slice(if text.is_empty() { b"SELECT " } else { b"," });
                text.extend_from_slice(is_there.as_bytes());
                if *pin == Pin::SqlPrepare && self.own_names.is_some() {
                    let names = front.prepared.as_deref().map_or(0, ClientPrepared::len);
                    text.extend_from_slice(of_the_protocol(names).as_bytes());
                }
            }
        }
        let who = std::mem::take(&mut questions.who);
        questions.asked = Some(Asked { settings, named, rights, who, rest, values: Vec::new() });
        front.rare.get_or_insert_default().is_being_asked = true;
        put_query(out, &text);
        self.queue.push(Owed::Internal(Internal::Values));
        self.unnamed = None;
    }

    /// In front of the request at the end of the queue stands only a question of what its client has set.
    pub(crate) fn only_asks(&self) -> bool {
        let asks = matches!(self.queue.next(), Some(Owed::Internal(Internal::Values)));
        asks && self.queue.len() == 2 && self.queue.head().is_some_and(|entry| entry.items == 1)
    }

    /// Only the server knows what this setting has come to; it will be asked, or its client stays.
    pub(crate) fn is_to_be_asked(&self, name: &str) -> bool {
        self.questions
            .as_deref()
            .is_some_and(|questions| questions.in_vain || questions.names.iter().any(|one| **one == *name))
    }

    /// Such a question is on its way.
    pub(crate) fn asks_for_values(&self) -> bool {
        self.questions.as_deref().is_some_and(|questions| questions.asked.is_some())
    }

    /// It is this: the body of a DataRow.
    pub(crate) fn values_row(&mut self, body: &[u8]) {
        let asked = self.questions.as_deref_mut().and_then(|questions| questions.asked.as_mut());
        if let Some(asked) = asked {
            asked.values = read_values(body).unwrap_or_default();
        }
    }

    /// It has been told, or was refused.
    pub(crate) fn values_done(&mut self, front: Option<&mut Front>) {
        let mut front = front;
        if let Some(rare) = front.as_deref_mut().and_then(|front| front.rare.as_deref_mut()) {
            rare.is_being_asked = false;
        }
        let Some(mut questions) = self.questions.take() else { return };
        let Some(asked) = questions.asked.take() else { return };
        let Asked { settings, named, rights, who, rest, values } = asked;
        let asked: Vec<Pin> = ASKED.iter().map(|(pin, _)| *pin).filter(|pin| rest.contains(*pin)).collect();
        // Set again behind the question: that is asked for by itself.
        let names: Vec<_> = questions.names.drain(..settings.min(questions.names.len())).collect();
        let expected = settings + usize::from(named) + usize::from(rights) + asked.len();
        let answered = values.len() == expected;
        let (values, is_there) = values.split_at_checked(settings).unwrap_or_default();
        let (of_session, is_there) = is_there.split_at_checked(usize::from(named)).unwrap_or_default();
        let of_session = of_session.first().map(|names| names.as_deref().unwrap_or_default());
        let (needs_rights, is_there) = is_there.split_at_checked(usize::from(rights)).unwrap_or_default();
        let anybodys = needs_rights.first().is_none_or(|needs| needs.as_deref() == Some(b"f"));
        let moved = match front.as_deref_mut().filter(|_| answered) {
            Some(front) => {
                for (pin, _) in
                    asked.iter().zip(is_there).filter(|(_, is_there)| is_there.as_deref() == Some(b"f"))
                {
                    if *pin == Pin::SqlPrepare {
                        questions.freed |= !self.no_name_is_left(front);
                        continue;
                    }
                    front.traces.unpin(*pin);
                    self.traces.unpin(*pin);
                }
                let all = questions.names.is_empty();
                settings == 0
                    || (anybodys && self.take_along(front, &names, values, who, of_session, all).is_some())
            }
            None => settings == 0,
        };
        questions.in_vain |= !moved;
        if questions.in_vain || questions.freed || !questions.names.is_empty() {
            self.questions = Some(questions);
        }
        if let Some(front) = front {
            self.keep_own(front);
        }
    }

    /// The client takes these values along; `all`: there are no others. `of_session`: the names of those that
    /// the session has, if that is in doubt. `None` if one of them must stay.
    fn take_along(
        &mut self,
        front: &mut Front,
        names: &[Box<str>],
        values: &[Option<Box<[u8]>>],
        acts: Who,
        of_session: Option<&[u8]>,
        all: bool,
    ) -> Option<()> {
        let (mut settings, mut applied) = (Settings::clone(&front.settings), Settings::clone(&self.applied));
        let has = |name: &str| {
            is_placeholder(name)
                || of_session
                    .is_none_or(|names| names.split(|&b| b == b',').any(|one| one == name.as_bytes()))
        };
        for (name, value) in names.iter().zip(values) {
            if is_who(name) {
                let value = value.as_deref();
                let at_start = front.startup.get(name);
                settings = match at_start.filter(|_| acts == Who::OfTheStart) {
                    // The server has gone back further, to who logged in.
                    Some(at_start) if value.is_none_or(|value| self.base.get(name) == Some(value)) => {
                        settings.with(name, at_start).ok()?
                    }
                    _ => who(settings, at_start, name, value, &self.base)?,
                };
                applied = who(applied, None, name, value, &self.base)?;
                continue;
            }
            match value.as_deref().filter(|_| has(name)) {
                // With it, every new table is a temporary one.
                Some(value) if name.as_ref() == PATH && self.temporary_path && names_temporary(value) => {
                    return None;
                }
                Some(value) if is_whole(name, value) => {
                    settings = settings.with(name, value).ok()?;
                    applied = applied.with(name, value).ok()?;
                }
                Some(_) => return None,
                // It was not set after all.
                None => {
                    settings = match front.startup.get(name) {
                        Some(value) => settings.with(name, value).ok()?,
                        None => settings.without(name),
                    };
                    applied = applied.without(name);
                }
            }
        }
        front.settings = Arc::new(settings);
        self.applied =
            if applied == *front.settings { Arc::clone(&front.settings) } else { Arc::new(applied) };
        if all {
            front.traces.unpin(Pin::Setting);
            self.traces.unpin(Pin::Setting);
            // What is sent behind the question may have set it again.
            self.temporary_path &= self.queue.len() > 1;
        }
        Some(())
    }
}

/// Behind whether SQL has left names: or whether those of the protocol are not so many any more. DEALLOCATE
/// in the midst of a text, or in code, takes them without a word, and only that server knows.
fn of_the_protocol(names: usize) -> String {
    format!(
        " OR (SELECT pg_catalog.count(*) FROM pg_catalog.pg_prepared_statements WHERE NOT from_sql) OPERATOR(pg_catalog.<>) {names}"
    )
}

/// Appends what shows the value of a setting. NULL: it is not set, or there is no role, which is so at the
/// beginning of a session unless another one was stored for it.
fn put_value_of(text: &mut Vec<u8>, name: &str) {
    const NONE: &[u8] =
        b"CASE WHEN pg_catalog.current_setting('role') OPERATOR(pg_catalog.=) 'none' AND NOT EXISTS \
          (SELECT FROM pg_catalog.pg_db_role_setting, pg_catalog.unnest(setconfig) stored \
          WHERE pg_catalog.starts_with(stored, 'role=')) THEN NULL ELSE ";
    if name == ROLE {
        text.extend_from_slice(NONE);
    }
    text.extend_from_slice(b"pg_catalog.current_setting(");
    put_literal(text, name.as_bytes());
    text.extend_from_slice(b",true)");
    if name == ROLE {
        text.extend_from_slice(b" END");
    }
}

/// Appends what asks whether one of these settings may be refused to a user and allowed to another.
fn put_asks_rights<'a>(text: &mut Vec<u8>, names: impl Iterator<Item = &'a Box<str>>) {
    text.extend_from_slice(
        b",EXISTS (SELECT FROM pg_catalog.pg_settings WHERE (context OPERATOR(pg_catalog.<>) 'user' OR \
          name OPERATOR(pg_catalog.=) ANY ('{temp_tablespaces,default_text_search_config}')) AND \
          source OPERATOR(pg_catalog.=) 'session' AND \
          pg_catalog.lower(name) OPERATOR(pg_catalog.=) ANY (ARRAY[''",
    );
    for name in names.filter(|name| !is_who(name)) {
        text.push(b',');
        put_literal(text, name.as_bytes());
    }
    text.extend_from_slice(b"]))");
}

/// These settings with the role, or the session authorization, that the server tells. `startup`: what the
/// client has named at its start.
fn who(
    settings: Settings,
    startup: Option<&[u8]>,
    name: &str,
    value: Option<&[u8]>,
    base: &Reported,
) -> Option<Settings> {
    match value {
        Some(value) if !is_whole(name, value) => None,
        // As it was when the server logged in.
        Some(value) if base.get(name) == Some(value) && startup.is_none() => Some(settings.without(name)),
        None if startup.is_none() => Some(settings.without(name)),
        value => settings.with(name, value.unwrap_or(NO_ROLE)).ok(),
    }
}

impl Effects {
    /// It may put `pg_temp` into the search path, and the server cannot be asked whether that is all that it
    /// has set.
    fn sets_an_unknown_path(&self) -> bool {
        let is_named = |touched: &Touched| !touched.sets.is_any() && touched.gives.contains(PATH);
        self.temporary_path && !self.touched.as_deref().is_some_and(is_named)
    }

    /// What it sets may be set by another user than the one that logged in.
    fn sets_by_another(&self) -> bool {
        self.role
            || self.names.is_none() && self.may_set
            || self.names.iter().flatten().any(|set| is_who(&set.name))
    }
}

impl Questions {
    /// These settings have gone back, for good, before the server was asked what they had come to: it would
    /// tell its own value, and a client goes back to what it named at its start. True: nothing else was set.
    fn forget(&mut self, effects: &Effects) -> bool {
        let had = !self.names.is_empty();
        let goes = |name: &str| !is_who(name) && effects.resets().any(|reset| reset == name);
        if self.asked.is_none() {
            self.names.retain(|name| !goes(name));
        }
        had && self.names.is_empty() && !self.in_vain
    }

    /// `pg_temp` may have come into the search path, for the transaction or for longer: what it is now.
    fn ask_path(&mut self) {
        if !self.names.iter().any(|name| **name == *PATH) {
            self.names.push(PATH.into());
            self.doubtful = true;
        }
    }

    fn add(&mut self, name: &str, followed: &impl Fn(&str) -> bool) {
        if name == "transaction characteristics" {
            // Only some of them have been set.
            self.doubtful = true;
            CHARACTERISTICS.iter().filter(|name| !followed(name)).for_each(|name| self.add(name, followed));
            return;
        }
        // What is being asked for may be told as it was before this.
        let asked = self.asked.as_ref().map_or(0, |asked| asked.settings);
        let waits = self.names.get(asked..).unwrap_or_default();
        if waits.iter().any(|known| **known == *name) {
            return;
        }
        self.in_vain |= !moves(name) || self.names.len() >= SETTINGS_ASKED;
        if !self.in_vain {
            self.names.push(name.into());
        }
    }
}

/// The columns of a DataRow (section 55.7).
pub(crate) fn read_values(body: &[u8]) -> Result<Vec<Option<Box<[u8]>>>, weir_wire::Short> {
    let mut cursor = Reader::new(body);
    let mut values = Vec::new();
    for _ in 0..cursor.u16_be()? {
        values.push(match cursor.u32_be()? {
            u32::MAX => None,
            length => Some(cursor.take(length as usize)?.into()),
        });
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_shown_rounded_stays() {
        for whole in [
            "4MB",
            "off",
            "1.5",
            "0.99999",
            "12345",
            "1234567",
            "\"$user\", public",
            "a.b.c.1234567",
            "5s",
            "",
        ] {
            assert!(is_whole("work_mem", whole.as_bytes()), "{whole}");
        }
        for rounded in ["0.333333", "1.23457e+10", "123.456", "0.0333333ms"] {
            assert!(!is_whole("seq_page_cost", rounded.as_bytes()), "{rounded}");
        }
        assert!(!is_whole("app.x", "\u{e9}".as_bytes()), "read in the client's encoding of that moment");
    }

    #[test]
    fn a_time_that_cuts_off_weir_s_own_questions_stays() {
        for long in ["0", "1s", "1500ms", "5min", "1d"] {
            assert!(is_whole("statement_timeout", long.as_bytes()), "{long}");
        }
        for short in ["1ms", "999ms"] {
            assert!(!is_whole("statement_timeout", short.as_bytes()), "{short}");
        }
        assert!(!is_whole("default_transaction_deferrable", b"on"));
    }
}
