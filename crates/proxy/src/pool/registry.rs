//! The process-wide list of pools.
//!
//! A worker uses it at a login, never while it serves. That is why a mutex is good enough here.

use super::auto::Bounds;
use super::{Cap, Health, PoolShared, Standing};
use crate::berths::Berths;
use crate::settings::PoolSpec;
use arc_swap::ArcSwap;
use std::collections::HashMap;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, PoisonError};
use weir_session::Protocol;
use weir_session::login::Changes;
use weir_sql::catalogue::Knowledge;

/// A pool's number in this process, the same on all workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PoolId(pub u32);

/// What all workers know of a pool. `X` is the wing's `Welcomes`.
#[derive(Debug)]
pub struct PoolEntry<X> {
    /// Its number.
    pub id: PoolId,
    /// The limit and who waits longest.
    pub shared: PoolShared,
    /// Whether its database can be reached.
    pub health: Health,
    /// Where its servers are, by the latest settings. Workers keep a copy of the pointer.
    spec: ArcSwap<PoolSpec>,
    /// What is known of the catalogue of its database.
    pub knowledge: Arc<Knowledge>,
    /// What clients are greeted with: what one worker has learnt, all know. Read and changed at logins of
    /// clients and servers only, and never in place.
    welcomes: ArcSwap<X>,
    /// Counted by servers; the same for all pools of a wing.
    pub changes: Changes,
}

impl<X> PoolEntry<X> {
    /// Where its servers are.
    pub fn spec(&self) -> Arc<PoolSpec> {
        self.spec.load_full()
    }

    /// Takes over what newer settings say of it. The settings of a worker that has not heard of a reload yet
    /// change nothing.
    pub fn renew(&self, spec: &PoolSpec) {
        let mut before = self.spec();
        loop {
            let newer_secret = spec.is_learnt_after(&before);
            let new = if spec.epoch > before.epoch {
                let servers_since =
                    if spec.has_servers_of(&before) { before.servers_since } else { spec.epoch };
                // Of a user who is not asked about any more, the newer settings know the password.
                let is_asked = spec.learnt.is_some();
                let of = if is_asked && before.is_learnt_after(spec) { &*before } else { spec };
                let (learnt, secret) = (of.learnt.clone(), of.secret.clone());
                PoolSpec { servers_since, learnt, secret, ..spec.clone() }
            } else if newer_secret {
                PoolSpec {
                    learnt: spec.learnt.clone(),
                    secret: spec.secret.clone(),
                    ..PoolSpec::clone(&before)
                }
            } else {
                return;
            };
            let new = Arc::new(new);
            let found = self.spec.compare_and_swap(&before, new);
            if Arc::ptr_eq(&found, &before) {
                break;
            }
            before = Arc::clone(&found);
        }
        let [database, user] = self.shared.caps();
        // A size that was found is still the best guess.
        let limit = spec.auto.map_or(spec.size, |bounds| self.shared.size().clamp(bounds.min, bounds.max));
        self.knowledge.set_unknown_code(spec.unknown_code);
        self.knowledge.set_pin_policies(spec.pins);
        self.shared.set_size(limit);
        self.shared.set_allowance(spec.pinned_size);
        self.shared.set_max_waiting(spec.max_waiting.unwrap_or(usize::MAX));
        database.set_limit(spec.max_of_database);
        user.set_limit(spec.max_of_user);
    }
}

impl<X> PoolEntry<X> {
    /// What it has under limits that several pools share, and what it is due.
    pub fn standing(&self) -> Standing {
        let spec = self.spec.load();
        Standing { opened: self.shared.opened(), share: spec.share, reserved: spec.reserved }
    }
}

impl<X: Clone> PoolEntry<X> {
    /// What clients are greeted with now.
    pub fn welcomes(&self) -> arc_swap::Guard<Arc<X>> {
        self.welcomes.load()
    }

    /// Learns something new about it; returns what `learn` returned, and what is known then. `learn` is
    /// called again when another worker learns at the same time; the last call counts.
    pub fn learn<R>(&self, mut learn: impl FnMut(&mut X) -> R) -> (R, Arc<X>) {
        let mut before = self.welcomes.load_full();
        loop {
            let mut known = X::clone(&before);
            let result = learn(&mut known);
            let known = Arc::new(known);
            let found = self.welcomes.compare_and_swap(&before, known.clone());
            if Arc::ptr_eq(&found, &before) {
                return (result, known);
            }
            before = Arc::clone(&found);
        }
    }
}

/// Database, user, variant.
type Identity = (String, String, u32);

/// All pools of one wing. They are made at the first login that needs them and live as long as anybody uses
/// them: where clients may name any database, their names must not fill the memory.
#[derive(Debug)]
pub struct Registry<X> {
    /// Workers from the start, workers there can be, and those that have begun have numbers below this.
    workers: (usize, usize, Arc<AtomicUsize>),
    changes: Changes,
    by_identity: Mutex<HashMap<Identity, Arc<PoolEntry<X>>>>,
    /// Oldest first. Read without the lock.
    all: ArcSwap<Vec<Arc<PoolEntry<X>>>>,
}

impl<X: Default> Registry<X> {
    /// An empty list for a process with this many workers.
    pub fn new(workers: usize) -> Self {
        Registry::growing(&Berths::fixed(workers))
    }

    /// The same for a process whose workers may become more.
    pub fn growing(berths: &Berths) -> Self {
        Registry {
            workers: (berths.first(), berths.most(), berths.roster()),
            changes: Changes::default(),
            by_identity: Mutex::default(),
            all: ArcSwap::default(),
        }
    }

    /// The pool for these servers, made if it is new. Of two specs of the same (database, user, variant) that
    /// of the newer settings counts.
    pub fn enter(&self, spec: PoolSpec) -> Arc<PoolEntry<X>> {
        let identity = (spec.database.clone(), spec.user.clone(), spec.variant);
        let mut pools = self.by_identity.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = pools.get(&identity) {
            let entry = entry.clone();
            drop(pools);
            entry.renew(&spec);
            return entry;
        }
        let mut all = Vec::clone(&self.all.load());
        let of_database = all.iter().find(|entry| entry.spec().database == spec.database);
        let of_user = all.iter().find(|entry| entry.spec().user == spec.user);
        let caps = [
            of_database.map_or_else(
                || Arc::new(Cap::new(spec.max_of_database)),
                |entry| entry.shared.caps()[0].clone(),
            ),
            of_user
                .map_or_else(|| Arc::new(Cap::new(spec.max_of_user)), |entry| entry.shared.caps()[1].clone()),
        ];
        let limit = spec.auto.map_or(spec.size, Bounds::start);
        let shared = {
            let (first, most, shown) = &self.workers;
            PoolShared::growing(limit, caps, *first, *most, shown.clone())
        };
        shared.set_max_waiting(spec.max_waiting.unwrap_or(usize::MAX));
        shared.set_allowance(spec.pinned_size);
        // Users may see different parts of a catalogue, but a change by any of them concerns all. What is one
        // server of MySQL's is not known here, so there all databases are together.
        let same = |other: &PoolSpec| match spec.protocol {
            Protocol::Postgres => other.server_database == spec.server_database,
            Protocol::Mysql => true,
        };
        let group = all.iter().find(|entry| same(&entry.spec()));
        let group = group.map_or_else(Arc::default, |entry| Arc::clone(entry.knowledge.group()));
        let spec = PoolSpec { servers_since: spec.epoch, ..spec };
        let knowledge = Knowledge::new(group);
        knowledge.set_unknown_code(spec.unknown_code);
        knowledge.set_pin_policies(spec.pins);
        let entry = Arc::new(PoolEntry {
            id: free_number(&all),
            shared,
            health: Health::default(),
            spec: ArcSwap::from_pointee(spec),
            knowledge: Arc::new(knowledge),
            welcomes: ArcSwap::default(),
            changes: self.changes.clone(),
        });
        pools.insert(identity, entry.clone());
        all.push(entry.clone());
        self.all.store(Arc::new(all));
        entry
    }

    /// Forgets those of `unused` that no worker has any more, and no message is about; returns which. Their
    /// numbers are given to other pools.
    pub fn forget(&self, unused: &[PoolId]) -> Vec<PoolId> {
        let mut pools = self.by_identity.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever wants one of them asks here, and waits; the two that are left have it for that.
        let all = self.all.load_full();
        let is_forgotten = |entry: &Arc<PoolEntry<X>>| {
            unused.contains(&entry.id) && Arc::strong_count(entry) == 2 && entry.shared.is_unused()
        };
        let (gone, left): (Vec<_>, Vec<_>) = all.iter().partition(|entry| is_forgotten(entry));
        if gone.is_empty() {
            return Vec::new();
        }
        let gone: Vec<PoolId> = gone.into_iter().map(|entry| entry.id).collect();
        self.all.store(Arc::new(left.into_iter().cloned().collect()));
        pools.retain(|_, entry| !gone.contains(&entry.id));
        gone
    }

    /// All pools, oldest first.
    pub fn all(&self) -> arc_swap::Guard<Arc<Vec<Arc<PoolEntry<X>>>>> {
        self.all.load()
    }
}

/// The lowest number that no pool has: workers keep their pools by number.
fn free_number<X>(all: &[Arc<PoolEntry<X>>]) -> PoolId {
    let mut taken = vec![false; all.len()];
    for entry in all {
        if let Some(taken) = taken.get_mut(entry.id.0 as usize) {
            *taken = true;
        }
    }
    PoolId(taken.iter().position(|taken| !taken).unwrap_or(all.len()) as u32)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::settings::{PoolMode, Targets};

    pub(crate) fn spec() -> PoolSpec {
        PoolSpec {
            epoch: 1,
            servers_since: 0,
            login: weir_session::Login { user: "me".into(), database: None, replication: false },
            learnt: None,
            protocol: Protocol::Postgres,
            database: "app".into(),
            user: "me".into(),
            secret: None,
            tls: None,
            trust: weir_session::login::Trust::default(),
            server_database: "app".into(),
            targets: Targets::default(),
            mode: PoolMode::Transaction,
            size: 1,
            auto: None,
            pinned_size: 0,
            max_waiting: None,
            share: 0,
            reserved: 0,
            max_of_database: 0,
            max_of_user: 0,
            min_size: 0,
            pipeline_depth: 1,
            late_begin: true,
            share_answers: true,
            unknown_code: weir_sql::catalogue::UnknownCode::Pin,
            pins: weir_wire::PinPolicies::default(),
            listen_linger_ms: None,
            variant: 0,
            max_prepared_statements: 0,
        }
    }

    #[test]
    fn what_one_worker_learns_all_know_and_nothing_learnt_at_the_same_time_is_lost() {
        const EACH: u32 = 200;
        let registry = Registry::<Vec<u32>>::new(4);
        std::thread::scope(|scope| {
            for worker in 0..4 {
                let entry = registry.enter(spec());
                scope.spawn(move || {
                    for n in 0..EACH {
                        let (added, known) = entry.learn(|known| {
                            known.push(worker * EACH + n);
                            worker * EACH + n
                        });
                        assert!(known.contains(&added));
                    }
                });
            }
        });
        let mut known = registry.enter(spec()).welcomes().to_vec();
        known.sort_unstable();
        assert_eq!(known, (0..4 * EACH).collect::<Vec<_>>());
    }

    #[test]
    fn what_nobody_uses_is_forgotten_and_its_number_is_free() {
        let registry = Registry::<()>::new(1);
        let named = |name: &str| registry.enter(PoolSpec { database: name.into(), ..spec() });
        let (first, second, third) = (named("first"), named("second"), named("third"));
        let ids = [first.id, second.id, third.id];
        assert_eq!(ids.map(|id| id.0), [0, 1, 2]);
        assert_eq!(registry.forget(&ids), [], "all are held");
        drop((first, third));
        assert_eq!(registry.forget(&ids[..1]), [ids[0]]);
        second.shared.publish_oldest(0, 5);
        drop(second);
        assert_eq!(registry.forget(&ids), [ids[2]], "somebody waits in the other");
        assert_eq!(registry.all().len(), 1);
        assert_eq!((named("fourth").id.0, named("fifth").id.0, named("second").id.0), (0, 2, 1));
    }

    #[test]
    fn newer_settings_count_and_only_changed_servers_are_replaced() {
        let registry = Registry::<()>::new(1);
        let entry = registry.enter(spec());
        let other = registry.enter(PoolSpec { user: "you".into(), ..spec() });
        assert!(Arc::ptr_eq(&entry.shared.caps()[0], &other.shared.caps()[0]), "the same database");
        assert!(!Arc::ptr_eq(&entry.shared.caps()[1], &other.shared.caps()[1]), "another user");
        let targets = entry.spec().targets.clone();
        let grown = PoolSpec { epoch: 2, size: 7, max_of_user: 3, targets: targets.clone(), ..spec() };
        assert!(Arc::ptr_eq(&registry.enter(grown), &entry));
        assert_eq!((entry.spec().servers_since, entry.shared.limit()), (1, 7));
        assert_eq!(entry.shared.caps()[1].figures(), (0, 3));
        entry.renew(&PoolSpec { size: 1, targets: targets.clone(), ..spec() });
        assert_eq!(entry.shared.limit(), 7, "a worker that is behind changes nothing");
        entry.renew(&PoolSpec { epoch: 3, max_prepared_statements: 5, targets, ..spec() });
        assert_eq!((entry.spec().servers_since, entry.shared.limit()), (3, 1));
    }

    #[test]
    fn a_password_changed_in_the_database_is_for_new_servers_and_an_older_answer_changes_nothing() {
        let registry = Registry::<()>::new(1);
        let targets = Targets::default();
        let answered = |epoch, turn, password: &str| {
            let secret = Some(Arc::new(weir_auth::Secret::plain(password)));
            let learnt = Some(Arc::new(weir_config::Learnt::new(secret.clone(), None, turn)));
            PoolSpec { epoch, secret, learnt, targets: targets.clone(), ..spec() }
        };
        let knows = |entry: &PoolEntry<()>, password: &str| {
            entry
                .spec()
                .secret
                .as_ref()
                .is_some_and(|secret| secret.is_same(&weir_auth::Secret::plain(password)))
        };
        let entry = registry.enter(answered(1, 5, "one"));
        registry.enter(answered(1, 4, "zero"));
        assert!(knows(&entry, "one"));
        registry.enter(answered(1, 6, "two"));
        assert!(knows(&entry, "two"));
        assert_eq!(entry.spec().servers_since, 1, "servers that are logged in stay");
        // A reload that has not heard of it yet.
        entry.renew(&answered(2, 5, "one"));
        assert!(knows(&entry, "two"));
        assert_eq!((entry.spec().epoch, entry.spec().servers_since), (2, 1));
        // One by which the user is listed.
        entry.renew(&PoolSpec { learnt: None, ..answered(3, 0, "listed") });
        assert!(knows(&entry, "listed"));
        assert_eq!(entry.spec().servers_since, 3, "servers log in by that password");
    }
}
