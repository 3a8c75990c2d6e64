//! Whether the last read of a catalogue is still valid.
//!
//! Every change of the catalogue that passes through Weir invalidates everything from the moment it is sent
//! until the catalogue has been read again after its end; changes by others are found by periodic queries
//! (with the caller's clock). All pools of one database share a [`Group`], since any of them may change it;
//! each has a [`Knowledge`] of its own, since users may see different parts of it.
//!
//! Invariant: [`Knowledge::state`] is not 0 only while no change is in progress and none has ended since the
//! current read began.

use super::Catalogue;
use arc_swap::ArcSwapOption;
use std::sync::Arc;
use std::sync::atomic::{
    AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst,
};
use weir_wire::PinPolicies;

/// How long clients wait for a server that meets a lock in the catalogue, in ms. A wait of a second ends;
/// what runs while nothing is known keeps its client's server for as long as that is connected.
const LOCK_PATIENCE_MS: u64 = 1_000;

/// The first pause after a question that has met a lock, in ms. Each lock in a row doubles it, up to
/// [`LOCK_DOUBLINGS`] times; the usual interval ends it in any case. A question that meets a lock takes a
/// server for 10 ms.
const LOCK_PAUSE_MS: u64 = 500;
const LOCK_DOUBLINGS: u32 = 6;

/// The pause between two questions is at least this many times what the first took.
const QUESTIONS_REST: u64 = 50;

/// The pause behind a reading before the next one that only tables have changed for, in times of what it
/// took. Who makes many tables, one after the other, would wait for a reading behind each.
const TABLES_REST: u64 = 4;

/// So many readings in a row may fail before nothing that was known counts any more. A moment without memory,
/// a full disk, a lock are over by then; a right that was taken away is not.
const FAILURES: usize = 10;

/// What becomes of a server on which code has run that nobody can read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum UnknownCode {
    /// Its client keeps it.
    #[default]
    Pin,
    /// It is reset before another client gets it.
    Reset,
    /// Nothing: what the code leaves there meets the next client.
    Pass,
}

/// What the pools of one database share.
#[derive(Debug, Default)]
pub struct Group {
    /// Changes that have begun or ended. 0 is never current.
    changes: AtomicU64,
    /// Those of them through Weir that may have changed code.
    code_changes: AtomicU64,
    /// Changes under way.
    under_way: AtomicUsize,
    /// Those of them that may change code.
    code_under_way: AtomicUsize,
    /// How often it was found that others had changed it.
    surprises: AtomicU64,
}

/// What one pool knows of its database.
#[derive(Debug, Default)]
pub struct Knowledge {
    number: Number,
    group: Arc<Group>,
    known: ArcSwapOption<Known>,
    /// `Known::changes` + 1; 0: nothing is known. What the data path asks several times for each request.
    known_state: AtomicU64,
    /// A server is reading it.
    reading: AtomicUsize,
    /// Clients of it ask what they have drawn from sequences by a request of its own.
    sequences_are_asked: AtomicBool,
    /// Settings with a dot in their names are known to servers of the pool.
    placeholders_are_known: AtomicBool,
    /// What a new session of its user would begin with, as it was told last.
    account: ArcSwapOption<Box<[u8]>>,
    /// How often it was found that the server's configuration had been loaded anew.
    reloads: AtomicU64,
    /// When it was last known to be right, by the caller's clock, in milliseconds; 0: never.
    checked_ms: AtomicU64,
    /// From when it is read again where only tables have changed.
    tables_from_ms: AtomicU64,
    /// Somebody else has changed it, or it could not be read, since it was known last.
    is_distrusted: AtomicBool,
    /// Readings that have failed since the last one that did not.
    failures: AtomicUsize,
    /// When the last of them did.
    failed_ms: AtomicU64,
    /// Questions in a row that have met a lock.
    locks: AtomicU32,
    /// From when on a server for which nobody waits asks again whether that is over; 0: none was met.
    unlocked_ms: AtomicU64,
    /// From when the interval to the next question counts where one has met a lock while changes were under
    /// way; 0: none has.
    locked_ms: AtomicU64,
    /// An [`UnknownCode`].
    unknown_code: AtomicU8,
    /// [`PinPolicies`].
    pin_policies: AtomicU64,
}

/// Tells one knowledge from all others of the process.
#[derive(Debug)]
struct Number(u64);

impl Default for Number {
    fn default() -> Number {
        static LAST: AtomicU64 = AtomicU64::new(0);
        Number(LAST.fetch_add(1, SeqCst) + 1)
    }
}

#[derive(Debug)]
struct Known {
    /// `Group::changes` when it began to be read.
    changes: u64,
    /// `Group::code_changes` then.
    code_changes: u64,
    catalogue: Arc<Catalogue>,
    /// What tells this state of the catalogue from others.
    fingerprint: Box<[u8]>,
}

/// A catalogue, with the number of the state it stands for.
#[derive(Debug, Clone)]
pub struct Proof {
    /// What the names stand for.
    pub catalogue: Arc<Catalogue>,
    /// Equal for equal states. 0: it does not hold any more. What it says of pins still counts, for nothing
    /// better is known; it proves nothing.
    pub state: u64,
    /// It was read behind the last change of code through Weir that has ended, and nobody else is known to
    /// have changed any since.
    pub current: bool,
    /// What code means that the catalogue does not explain.
    pub unknown_code: UnknownCode,
    /// The client has changed code, and nobody has read that yet: what the catalogue says of code of users
    /// does not hold for it.
    pub changed: bool,
}

impl Proof {
    /// The same for a client that has changed code in a transaction or a text that has not ended.
    pub fn changed(self) -> Proof {
        Proof { state: 0, current: false, changed: true, ..self }
    }
}

/// A change of the catalogue is under way as long as this lives.
#[derive(Debug)]
pub struct Unsettled {
    group: Arc<Group>,
    code: bool,
}

impl Unsettled {
    /// Code may do something else behind it.
    pub fn is_of_code(&self) -> bool {
        self.code
    }
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        self.group.code_changes.fetch_add(u64::from(self.code), SeqCst);
        self.group.changes.fetch_add(1, SeqCst);
        self.group.code_under_way.fetch_sub(usize::from(self.code), SeqCst);
        self.group.under_way.fetch_sub(1, SeqCst);
    }
}

impl Knowledge {
    /// Of a pool of this group's database; nothing is known yet.
    pub fn new(group: Arc<Group>) -> Knowledge {
        Knowledge { group, ..Knowledge::default() }
    }

    /// Of a database whose catalogue is known and never changes: for tests and models.
    pub fn settled(catalogue: Catalogue) -> Arc<Knowledge> {
        let knowledge = Knowledge::default();
        knowledge.learn((0, 0), catalogue, b"settled", u64::MAX);
        Arc::new(knowledge)
    }

    /// No other one of this process has this number.
    #[inline]
    pub fn number(&self) -> u64 {
        self.number.0
    }

    /// The group, for another pool of the same database.
    pub fn group(&self) -> &Arc<Group> {
        &self.group
    }

    /// The number of the state that is known and holds; 0 when none does.
    #[inline]
    pub fn state(&self) -> u64 {
        let state = self.known_state.load(SeqCst);
        let holds = state != 0 && self.holds(state - 1);
        if holds { state } else { 0 }
    }

    /// Another number for each catalogue that is known, whether it holds or not; 0: none is.
    pub fn edition(&self) -> u64 {
        self.known_state.load(SeqCst)
    }

    /// What was known last, and whether it holds. None before the first reading.
    #[inline]
    pub fn proof(&self) -> Option<Proof> {
        let known = self.known.load();
        let known = known.as_deref()?;
        let state = if self.holds(known.changes) { known.changes + 1 } else { 0 };
        let unknown_code = self.unknown_code();
        let is_last = self.group.code_changes.load(SeqCst) == known.code_changes;
        let current = state != 0 || is_last && !self.is_distrusted.load(SeqCst);
        Some(Proof { catalogue: Arc::clone(&known.catalogue), state, current, unknown_code, changed: false })
    }

    /// What code means that the catalogue does not explain.
    pub fn unknown_code(&self) -> UnknownCode {
        let policies = [UnknownCode::Pin, UnknownCode::Reset, UnknownCode::Pass];
        policies
            .into_iter()
            .find(|&policy| policy as u8 == self.unknown_code.load(SeqCst))
            .unwrap_or_default()
    }

    /// An operator says so. Texts that were judged by another policy are judged anew.
    pub fn set_unknown_code(&self, policy: UnknownCode) {
        if self.unknown_code.swap(policy as u8, SeqCst) != policy as u8 {
            self.group.changes.fetch_add(1, SeqCst);
        }
    }

    /// What is decided of reasons for pins.
    #[inline]
    pub fn pin_policies(&self) -> PinPolicies {
        PinPolicies::unpack(self.pin_policies.load(SeqCst))
    }

    /// An operator says so. Texts that were judged by others are judged anew.
    pub fn set_pin_policies(&self, policies: PinPolicies) {
        let packed = policies.pack();
        if self.pin_policies.swap(packed, SeqCst) != packed {
            self.group.changes.fetch_add(1, SeqCst);
        }
    }

    /// What was known last, whether it holds or not.
    pub fn last(&self) -> Option<Arc<Catalogue>> {
        self.known.load().as_deref().map(|known| Arc::clone(&known.catalogue))
    }

    /// What was read as of these changes is so still.
    fn holds(&self, changes: u64) -> bool {
        self.group.under_way.load(SeqCst) == 0 && self.group.changes.load(SeqCst) == changes
    }

    /// Replaces what is known, and then says which state that is: who sees the number finds the catalogue.
    fn replace(&self, by: impl Fn(&Option<Arc<Known>>) -> Option<Arc<Known>>) {
        self.known.rcu(by);
        let state = self.known.load().as_deref().map_or(0, |known| known.changes + 1);
        // Another server may have said a later one meanwhile.
        self.known_state.fetch_max(state, SeqCst);
    }

    /// A text that changes the catalogue, or may, is about to be sent. Nothing is known until what this
    /// returns is dropped and the catalogue has been read again. `code`: a routine, view, trigger or the like
    /// may do something else afterwards.
    pub fn unsettle(&self, code: bool) -> Unsettled {
        self.group.under_way.fetch_add(1, SeqCst);
        self.group.code_under_way.fetch_add(usize::from(code), SeqCst);
        self.group.changes.fetch_add(1, SeqCst);
        Unsettled { group: Arc::clone(&self.group), code }
    }

    /// What is known of code is from before a change through Weir: there is nothing to go by.
    fn is_of_other_code(&self) -> bool {
        let code_changes = self.group.code_changes.load(SeqCst);
        self.known.load().as_deref().is_none_or(|known| known.code_changes != code_changes)
    }

    /// A client of the pool has asked `currval` or `lastval` behind the request that drew: others will.
    pub fn note_sequences_asked(&self) {
        self.sequences_are_asked.store(true, Relaxed);
    }

    /// Clients of the pool ask so.
    #[inline]
    pub fn are_sequences_asked(&self) -> bool {
        self.sequences_are_asked.load(Relaxed)
    }

    /// A server of the pool knows a setting with a dot in its name.
    pub fn note_placeholders(&self) {
        self.placeholders_are_known.store(true, Relaxed);
    }

    /// Servers of the pool know such.
    #[inline]
    pub fn are_placeholders_known(&self) -> bool {
        self.placeholders_are_known.load(Relaxed)
    }

    /// It should be read, or asked whether it still holds: nothing is known, or the last time was before
    /// `since_ms`. Where only tables have changed, not so soon behind the last time: what is known of code
    /// still is, and until then nothing is proven.
    #[inline]
    pub fn is_due(&self, now_ms: u64, since_ms: u64) -> bool {
        let under_way = self.group.under_way.load(SeqCst);
        if under_way > 0 && self.known.load().is_none() {
            // Its end is worth waiting for, but somebody has to say what ties a client to its server.
            return true;
        }
        if self.failures.load(SeqCst) > 0 && self.failed_ms.load(SeqCst) >= since_ms {
            return false;
        }
        if under_way > 0 {
            // Somebody has to say so of code that has changed before, too: where many change theirs, or
            // tables, there is no end of it. Tables that are being changed may be locked for long.
            return self.is_of_other_code() && self.locked_ms.load(SeqCst) < since_ms.max(1);
        }
        if self.checked_ms.load(SeqCst) < since_ms {
            return true;
        }
        self.state() == 0 && (self.tables_from_ms.load(SeqCst) <= now_ms || self.is_doubtful())
    }

    /// What was read is not what is: of code, or nobody knows of what.
    fn is_doubtful(&self) -> bool {
        self.is_distrusted.load(SeqCst) || self.is_of_other_code()
    }

    /// The last question has met a lock, which may be gone by now: a server for which nobody waits should ask
    /// again.
    pub fn may_be_unlocked(&self, now_ms: u64) -> bool {
        let from_ms = self.unlocked_ms.load(SeqCst);
        from_ms != 0 && from_ms <= now_ms && self.group.under_way.load(SeqCst) == 0
    }

    fn note_lock(&self, now_ms: u64) {
        let doublings = self.locks.fetch_add(1, SeqCst).min(LOCK_DOUBLINGS);
        self.unlocked_ms.store(now_ms.saturating_add(LOCK_PAUSE_MS << doublings).max(1), SeqCst);
    }

    fn forget_locks(&self) {
        self.locks.store(0, SeqCst);
        self.unlocked_ms.store(0, SeqCst);
    }

    /// A server is reading it, and the others need not.
    pub fn is_being_read(&self) -> bool {
        self.reading.load(SeqCst) > 0 && !self.is_of_other_code()
    }

    /// Takes the right to read it; none while another server does and there is something to go by.
    pub fn begin_reading(self: &Arc<Self>, now_ms: u64) -> Option<Reading> {
        // Before anything is known, and behind a change of code, every server reads it for itself before
        // anybody gets it: what is new would leave on it what nobody expects there.
        let others = self.reading.fetch_add(1, SeqCst);
        // That of code first: it is counted first, so that a later one is never taken for read.
        let code_changes = self.group.code_changes.load(SeqCst);
        let reading = Reading {
            changes: self.changes(),
            code_changes,
            started_ms: now_ms,
            first_ms: now_ms,
            whole: false,
            knowledge: Arc::clone(self),
        };
        (others == 0 || self.is_of_other_code()).then_some(reading)
    }

    /// Another number behind each beginning and end of a change through Weir, or one that others have made.
    pub fn changes(&self) -> u64 {
        self.group.changes.load(SeqCst)
    }

    /// Another number whenever it was found that others have changed it: what ran before that was judged by
    /// what was not so any more, and may have left anything.
    #[inline]
    pub fn surprises(&self) -> u64 {
        self.group.surprises.load(SeqCst)
    }

    /// What tells the state that was read last from others, whether it holds or not.
    pub fn fingerprint(&self) -> Option<Box<[u8]>> {
        self.known.load().as_deref().map(|known| known.fingerprint.clone())
    }

    /// What a new session of this pool's user would begin with, or whether there would be one, is not what it
    /// was when this was asked last.
    pub fn is_another_account(&self, now: &[u8]) -> bool {
        if self.account.load().as_deref().is_some_and(|before| **before == *now) {
            return false;
        }
        self.account.swap(Some(Arc::new(now.into()))).is_some_and(|before| **before != *now)
    }

    /// A session that is there goes back to something else than it did: somebody has reloaded the server's
    /// configuration. What those have now that are there may be neither.
    pub fn note_reload(&self) {
        self.reloads.fetch_add(1, SeqCst);
    }

    /// Another number whenever that was found.
    #[inline]
    pub fn reloads(&self) -> u64 {
        self.reloads.load(SeqCst)
    }

    /// What was known is so still, as of these changes.
    fn confirm(&self, (changes, code_changes): (u64, u64), fingerprint: &[u8], now_ms: u64) -> bool {
        let is_it = |known: &Known| *known.fingerprint == *fingerprint;
        if !self.known.load().as_deref().is_some_and(is_it) {
            return false;
        }
        self.replace(|known| match known.as_deref() {
            Some(known) if is_it(known) && (known.changes, known.code_changes) < (changes, code_changes) => {
                Some(Arc::new(Known {
                    changes,
                    code_changes,
                    catalogue: Arc::clone(&known.catalogue),
                    fingerprint: fingerprint.into(),
                }))
            }
            _ => known.clone(),
        });
        self.is_distrusted.store(false, SeqCst);
        self.checked_ms.store(now_ms.max(1), SeqCst);
        self.failures.store(0, SeqCst);
        self.forget_locks();
        true
    }

    /// Somebody has changed it: nothing is known until it has been read again.
    pub fn distrust(&self) {
        self.is_distrusted.store(true, SeqCst);
        self.group.changes.fetch_add(1, SeqCst);
    }

    fn learn(
        &self,
        (changes, code_changes): (u64, u64),
        catalogue: Catalogue,
        fingerprint: &[u8],
        now_ms: u64,
    ) {
        let fingerprint = fingerprint.into();
        let read = Known { changes, code_changes, catalogue: Arc::new(catalogue), fingerprint };
        let read = Some(Arc::new(read));
        // Another server may have read a later state meanwhile.
        self.replace(|known| match known {
            Some(later) if later.changes > changes => Some(Arc::clone(later)),
            _ => read.clone(),
        });
        self.is_distrusted.store(false, SeqCst);
        self.checked_ms.store(now_ms.max(1), SeqCst);
        self.failures.store(0, SeqCst);
        self.forget_locks();
    }
}

/// The right to read the catalogue for a [`Knowledge`]. It is free again when this is dropped, however the
/// reading ended.
#[derive(Debug)]
pub struct Reading {
    /// `Group::changes` before anything was asked.
    changes: u64,
    /// `Group::code_changes` then.
    code_changes: u64,
    /// When that was.
    started_ms: u64,
    /// When it was asked for the first time.
    first_ms: u64,
    /// What was known is not so any more.
    whole: bool,
    knowledge: Arc<Knowledge>,
}

impl Reading {
    /// This is what was read; `fingerprint` tells it from other states.
    pub fn learn(self, catalogue: Catalogue, fingerprint: &[u8], now_ms: u64) {
        let rest = now_ms.saturating_sub(self.started_ms).saturating_mul(TABLES_REST);
        self.knowledge.tables_from_ms.store(now_ms.saturating_add(rest), SeqCst);
        self.knowledge.learn(
            (self.changes, self.code_changes),
            catalogue,
            fingerprint,
            self.rested_ms(now_ms),
        );
    }

    /// The server has refused to answer. True: what was known before goes on to count as it does while a
    /// change is under way, and the question is asked again in its time. Else nothing can be known.
    pub(crate) fn fail(&self, now_ms: u64) -> bool {
        if !self.has_sight() || self.knowledge.failures.load(SeqCst) + 1 >= FAILURES {
            return false;
        }
        self.knowledge.failures.fetch_add(1, SeqCst);
        self.knowledge.forget_locks();
        self.put_off(now_ms);
        true
    }

    /// The server could not answer, because somebody has locked a part of the catalogue, for as long as that
    /// may be. What was known before counts on, however often that happens. Where there is nothing, or code
    /// has changed since, the right to read comes back, because nobody gets a server meanwhile; a lock that
    /// is held for longer than clients should wait leaves a database of which nothing is known. Either way it
    /// is asked again soon ([`Knowledge::may_be_unlocked`]), and then once each time: those who wait have
    /// waited.
    pub(crate) fn meet_lock(self, now_ms: u64) -> Option<Reading> {
        let knowledge = Arc::clone(&self.knowledge);
        let locks = knowledge.locks.load(SeqCst);
        if self.has_sight() && knowledge.group.under_way.load(SeqCst) > 0 {
            // As if it had not been asked: its end is worth waiting for.
            knowledge.locked_ms.store(self.rested_ms(now_ms).max(1), SeqCst);
            return None;
        }
        if !self.has_sight() || knowledge.is_of_other_code() {
            if locks == 0 && now_ms.saturating_sub(self.first_ms) < LOCK_PATIENCE_MS {
                return Some(self.again(now_ms));
            }
            self.learn(Catalogue::blind(), b"", now_ms);
        } else {
            knowledge.failures.fetch_max(1, SeqCst);
            self.put_off(now_ms);
        }
        knowledge.locks.store(locks, SeqCst);
        knowledge.note_lock(now_ms);
        None
    }

    /// There is something to go by.
    fn has_sight(&self) -> bool {
        self.knowledge.last().is_some_and(|last| !last.is_blind())
    }

    fn put_off(&self, now_ms: u64) {
        self.knowledge.failed_ms.store(self.rested_ms(now_ms), SeqCst);
        if self.knowledge.state() != 0 {
            self.knowledge.distrust();
        }
    }

    /// A fingerprint is known to compare with: everything need not be asked for.
    pub fn has_fingerprint(&self) -> bool {
        !self.whole && self.knowledge.fingerprint().is_some()
    }

    /// What was known is no more, by what went through Weir.
    pub fn is_behind_a_change(&self) -> bool {
        self.knowledge.state() == 0
    }

    /// From when the interval to the next question counts: a question that takes long is asked less often, so
    /// that asking never takes a server for more than a fiftieth of the time.
    fn rested_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_add(now_ms.saturating_sub(self.started_ms).saturating_mul(QUESTIONS_REST))
    }

    /// The same right, for a new question.
    pub(crate) fn again(mut self, now_ms: u64) -> Reading {
        self.started_ms = now_ms;
        self.code_changes = self.knowledge.group.code_changes.load(SeqCst);
        self.changes = self.knowledge.changes();
        self.whole = true;
        self
    }

    /// The catalogue was asked for its fingerprint only. True: it is what it was. False: everything must be
    /// read.
    pub fn confirm(&self, fingerprint: &[u8], now_ms: u64) -> bool {
        let holds =
            self.knowledge.confirm((self.changes, self.code_changes), fingerprint, self.rested_ms(now_ms));
        if !holds && self.knowledge.changes() == self.changes && self.knowledge.state() != 0 {
            // Others have changed it. Until it has been read nobody trusts what was known.
            self.knowledge.group.surprises.fetch_add(1, SeqCst);
            self.knowledge.distrust();
        }
        holds
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.knowledge.reading.fetch_sub(1, SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_known_while_a_change_is_under_way_nor_behind_it_until_it_is_read_again() {
        let knowledge = Knowledge::default();
        assert!(knowledge.proof().is_none() && knowledge.state() == 0 && knowledge.is_due(u64::MAX, 0));
        let before = knowledge.changes();
        knowledge.learn((before, 0), Catalogue::default(), b"1", 5);
        let state = knowledge.state();
        assert!(state != 0 && !knowledge.is_due(u64::MAX, 5) && knowledge.is_due(u64::MAX, 6));
        let change = knowledge.unsettle(true);
        assert_eq!(knowledge.state(), 0);
        assert!(!knowledge.is_due(u64::MAX, 9), "its end is worth waiting for");
        let during = knowledge.changes();
        knowledge.learn((during, 0), Catalogue::default(), b"2", 6);
        assert_eq!(knowledge.state(), 0);
        drop(change);
        assert_eq!(knowledge.state(), 0, "what was read while it was under way may miss it");
        assert_eq!(knowledge.proof().map(|proof| proof.state), Some(0));
        assert!(knowledge.is_due(u64::MAX, 0) && knowledge.fingerprint().is_some());
        knowledge.learn((knowledge.changes(), 0), Catalogue::default(), b"3", 7);
        assert_ne!(knowledge.state(), state);
        assert_eq!(knowledge.fingerprint().as_deref(), Some(&b"3"[..]));
    }

    #[test]
    fn code_that_has_changed_is_read_while_others_change_theirs_or_tables() {
        let knowledge = Arc::new(Knowledge::default());
        knowledge.begin_reading(1).expect("nothing is known").learn(Catalogue::default(), b"1", 1);
        let others = knowledge.unsettle(true);
        assert!(!knowledge.is_due(u64::MAX, 1), "its end is worth waiting for");
        drop(knowledge.unsettle(true));
        let table = knowledge.unsettle(false);
        assert!(knowledge.is_due(u64::MAX, 1));
        let reading = knowledge.begin_reading(1).expect("code has changed");
        assert!(reading.meet_lock(1).is_none(), "nobody waits for it");
        assert!(!knowledge.is_due(u64::MAX, 1) && knowledge.is_due(u64::MAX, 2), "it may be locked for long");
        assert!(
            knowledge.last().is_some_and(|last| !last.is_blind()) && !knowledge.may_be_unlocked(u64::MAX)
        );
        assert!(knowledge.proof().is_some_and(|proof| !proof.current));
        drop(table);
        assert!(
            !knowledge.is_due(u64::MAX, 1) && knowledge.is_due(u64::MAX, 2),
            "nor is it asked again and again"
        );
        knowledge.begin_reading(2).expect("code has changed").learn(Catalogue::default(), b"2", 2);
        assert!(!knowledge.is_due(u64::MAX, 1), "all that has changed was read");
        assert_eq!(knowledge.state(), 0, "nothing is proven");
        assert!(knowledge.proof().is_some_and(|proof| proof.current));
        knowledge.distrust();
        assert!(
            knowledge.proof().is_some_and(|proof| !proof.current),
            "what others have changed is not in it"
        );
        drop(others);
        assert!(knowledge.is_due(u64::MAX, 1));
    }

    #[test]
    fn who_makes_many_tables_does_not_wait_for_a_reading_behind_each() {
        let knowledge = Arc::new(Knowledge::default());
        let read = |from_ms, until_ms| {
            let reading = knowledge.begin_reading(from_ms).expect("nobody reads it");
            reading.learn(Catalogue::default(), b"1", until_ms);
        };
        read(100, 120);
        drop(knowledge.unsettle(false));
        assert!(!knowledge.is_due(121, 1) && knowledge.state() == 0, "nothing is proven, and nobody waits");
        assert!(!knowledge.is_due(199, 1) && knowledge.is_due(200, 1));
        read(200, 203);
        drop(knowledge.unsettle(false));
        assert!(!knowledge.is_due(214, 1) && knowledge.is_due(215, 1), "the pause follows what it takes");
        drop(knowledge.unsettle(true));
        assert!(knowledge.is_due(204, 1), "code has changed");
        read(204, 224);
        drop(knowledge.unsettle(false));
        knowledge.distrust();
        assert!(knowledge.is_due(225, 1), "others have changed it");
    }

    #[test]
    fn a_lock_that_is_held_for_long_keeps_nobody_waiting() {
        let knowledge = Arc::new(Knowledge::default());
        knowledge.begin_reading(1).expect("nothing is known").learn(Catalogue::default(), b"1", 1);
        drop(knowledge.unsettle(true));
        let reading = knowledge.begin_reading(10).expect("code has changed");
        let reading = reading.meet_lock(20).expect("it may be over soon").meet_lock(30).expect("still");
        assert!(reading.meet_lock(10 + LOCK_PATIENCE_MS).is_none());
        assert!(knowledge.last().is_some_and(|last| last.is_blind()) && knowledge.state() != 0);
        assert!(
            !knowledge.is_due(u64::MAX, 1) && knowledge.is_due(u64::MAX, 1_000_000),
            "it is asked again in its time"
        );
        let again = knowledge.begin_reading(1_000_000).expect("it is due");
        again.learn(Catalogue::default(), b"2", 1_000_001);
        assert!(knowledge.last().is_some_and(|last| !last.is_blind()));
    }

    #[test]
    fn a_catalogue_that_was_locked_is_asked_again_soon_and_each_time_later() {
        let knowledge = Arc::new(Knowledge::default());
        knowledge.begin_reading(1).expect("nothing is known").learn(Catalogue::default(), b"1", 1);
        assert!(!knowledge.may_be_unlocked(u64::MAX), "nothing was locked");
        drop(knowledge.unsettle(true));
        let mut now_ms = 10;
        let reading = knowledge.begin_reading(now_ms).expect("code has changed");
        now_ms += LOCK_PATIENCE_MS;
        assert!(reading.meet_lock(now_ms).is_none());
        for pause_ms in [500, 1000, 2000, 4000] {
            assert!(!knowledge.may_be_unlocked(now_ms + pause_ms - 1), "{pause_ms}");
            now_ms += pause_ms;
            assert!(knowledge.may_be_unlocked(now_ms), "{pause_ms}");
            let reading = knowledge.begin_reading(now_ms).expect("nobody reads");
            assert!(reading.meet_lock(now_ms).is_none(), "it is asked once");
            assert!(knowledge.last().is_some_and(|last| last.is_blind()));
        }
        let change = knowledge.unsettle(true);
        assert!(!knowledge.may_be_unlocked(u64::MAX), "its end is worth waiting for");
        drop(change);
        let reading = knowledge.begin_reading(now_ms).expect("code has changed");
        assert!(reading.meet_lock(now_ms).is_none(), "another change of code makes nobody wait again");
        let reading = knowledge.begin_reading(now_ms + 60_000).expect("nobody reads");
        reading.learn(Catalogue::default(), b"2", now_ms + 60_000);
        assert!(knowledge.state() != 0 && !knowledge.may_be_unlocked(u64::MAX));

        // Where there is something to go by, which is not proven meanwhile.
        let reading = knowledge.begin_reading(now_ms + 70_000).expect("nobody reads");
        assert!(reading.meet_lock(now_ms + 70_000).is_none() && knowledge.state() == 0);
        assert!(knowledge.last().is_some_and(|last| !last.is_blind()));
        assert!(knowledge.may_be_unlocked(now_ms + 70_500));
    }

    #[test]
    fn behind_a_change_of_code_every_server_reads_until_one_has() {
        let knowledge = Arc::new(Knowledge::default());
        let first = knowledge.begin_reading(1).expect("nothing is known");
        assert!(knowledge.begin_reading(1).is_some(), "nobody gets a server before");
        first.learn(Catalogue::default(), b"1", 1);
        for code in [false, true] {
            drop(knowledge.unsettle(code));
            let one = knowledge.begin_reading(2).expect("somebody must");
            assert_eq!(knowledge.begin_reading(2).is_some(), code);
            assert_eq!(knowledge.is_being_read(), !code, "that is enough where there is something to go by");
            assert!(one.has_fingerprint() && one.confirm(b"1", 2), "nothing has changed");
            assert!(knowledge.state() != 0 && knowledge.is_being_read());
        }
    }

    #[test]
    fn who_knows_nothing_reads_although_a_change_is_under_way() {
        let knowledge = Arc::new(Knowledge::default());
        let change = knowledge.unsettle(true);
        assert!(knowledge.is_due(u64::MAX, 0));
        knowledge.begin_reading(1).expect("nothing is known").learn(Catalogue::default(), b"1", 1);
        assert!(knowledge.last().is_some() && knowledge.state() == 0 && !knowledge.is_due(u64::MAX, 9));
        drop(change);
        assert!(knowledge.is_due(u64::MAX, 0));
    }

    #[test]
    fn a_change_through_one_pool_makes_the_others_doubt() {
        let one = Knowledge::default();
        let other = Knowledge::new(Arc::clone(one.group()));
        for knowledge in [&one, &other] {
            knowledge.learn((knowledge.changes(), 0), Catalogue::default(), b"", 1);
        }
        drop(one.unsettle(true));
        assert_eq!(other.state(), 0);
    }

    #[test]
    fn one_reads_at_a_time_and_a_change_seen_by_its_fingerprint_makes_doubt() {
        let knowledge = Arc::new(Knowledge::default());
        let reading = knowledge.begin_reading(1).unwrap();
        assert!(knowledge.begin_reading(1).is_some(), "nothing is known yet: each server reads for itself");
        reading.learn(Catalogue::default(), b"a", 1);
        let reading = knowledge.begin_reading(1).unwrap();
        assert!(knowledge.begin_reading(1).is_none() && knowledge.is_being_read());
        assert!(
            reading.confirm(b"a", 2)
                && knowledge.proof().is_some()
                && !knowledge.is_due(u64::MAX, 52)
                && knowledge.is_due(u64::MAX, 53)
        );
        let other = Knowledge::new(Arc::clone(knowledge.group()));
        assert_eq!((knowledge.surprises(), other.surprises()), (0, 0));
        assert!(!reading.confirm(b"b", 3) && knowledge.state() == 0);
        assert!(!reading.confirm(b"b", 3));
        assert_eq!(
            (knowledge.surprises(), other.surprises()),
            (1, 1),
            "once, and for all pools of the database"
        );
        drop(reading);
        assert!(knowledge.begin_reading(1).is_some());
    }

    #[test]
    fn what_was_known_counts_on_when_a_reading_fails_and_no_longer_when_ten_do() {
        use crate::catalogue::Answer;
        let knowledge = Arc::new(Knowledge::default());
        let ask = |now_ms, failed| {
            let reading = knowledge.begin_reading(now_ms).unwrap();
            let catalogue = if failed { Catalogue::blind() } else { Catalogue::default() };
            Answer { reading, catalogue: Some(catalogue), fingerprint: b"f".to_vec(), failed, locked: false }
                .conclude(now_ms);
        };
        let is_blind = || knowledge.last().unwrap().is_blind();
        ask(1000, false);
        assert!(knowledge.state() != 0);
        ask(2000, true);
        assert!(!is_blind(), "pins go by what was known");
        assert_eq!(knowledge.state(), 0, "and nothing is proven");
        assert!(!knowledge.is_due(u64::MAX, 1999), "it is not asked at once again");
        assert!(knowledge.is_due(u64::MAX, 2001));
        ask(3000, false);
        assert!(knowledge.state() != 0 && !is_blind());
        for n in 1..FAILURES as u64 {
            ask(3000 + n, true);
            assert!(!is_blind(), "{n}");
        }
        ask(4000, true);
        assert!(is_blind());
        ask(5000, false);
        assert!(!is_blind() && knowledge.state() != 0);

        // Of which nothing was ever known.
        let knowledge = Arc::new(Knowledge::default());
        let reading = knowledge.begin_reading(1).unwrap();
        Answer {
            reading,
            catalogue: Some(Catalogue::blind()),
            fingerprint: Vec::new(),
            failed: true,
            locked: false,
        }
        .conclude(1);
        assert!(knowledge.last().unwrap().is_blind());
    }
}
