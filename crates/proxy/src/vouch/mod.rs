//! Asks an LDAP server or PAM whether a client's password is right.
//!
//! Owns: a desk for each LDAP server and one for PAM, each with a queue and threads that are begun when they
//! are needed and end when they are not. Must not know: clients, and what an answer means for one.
//!
//! Invariants: no worker waits; one who is slow or dead keeps only those waiting who are asked of him;
//! whoever's time is over is asked nothing any more; the number of threads, of waiting logins and of desks is
//! bounded; a password is nowhere but in the question, and then, if it was right, in the answer.

mod ldap;
pub mod pam;

use crate::context::Ticket;
use crate::crypto::WorkDone;
use crate::panics::Panics;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_auth::Password;
use weir_config::{Learnt, Voucher};
use weir_net::Peer;
use weir_wire::limits::{ASKED_DATABASES, LDAP_QUESTIONS, LOGIN_JOBS, PAM_QUESTIONS};
use weir_wire::{Fault, FaultKind};

/// A thread that has nothing to ask for this time ends.
const IDLE: Duration = Duration::from_secs(30);

/// Time for an answer where logins have no limit.
const NO_LIMIT_MS: u64 = 60_000;

/// The same complaint is logged again after this time.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// A password, and who knows whether it is right.
#[derive(Debug, Clone)]
pub struct Vouching {
    /// Who is asked.
    pub voucher: Voucher,
    /// Whose password it is.
    pub user: String,
    /// The password.
    pub password: Password,
    /// Where the client is, as PAM is told: an address, `[local]`, or nothing.
    pub from: String,
    /// Longest wait for the answer.
    pub patience_ms: u64,
}

impl Vouching {
    /// `spent_ms` of the `most_ms` that a login may take are over; 0: it may take as long as it likes.
    pub fn new(
        voucher: Voucher,
        user: String,
        password: Password,
        from: &Peer,
        most_ms: u64,
        spent_ms: u64,
    ) -> Vouching {
        let from = match from {
            Peer::Tcp(address) => address.ip().to_canonical().to_string(),
            // PostgreSQL's word.
            Peer::Unix { .. } => "[local]".to_owned(),
            Peer::Unknown => String::new(),
        };
        let left_ms = if most_ms == 0 { NO_LIMIT_MS } else { most_ms.saturating_sub(spent_ms) };
        // The answer comes a little before the login's time is over, so that the reason is told.
        Vouching { voucher, user, password, from, patience_ms: left_ms - left_ms / 10 }
    }
}

/// What was said of a password: it is right, and what is learnt by that; or why the login fails.
pub type Vouched = Result<Option<Arc<Learnt>>, Fault>;

/// Why a password was not taken, in words for the log.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Refusal {
    /// Whoever was asked does not take it.
    Wrong(String),
    /// Nobody has said anything about it.
    Unanswered(String),
}

/// Brings an answer to whom it is for.
type Deliver = Arc<dyn Fn(Ticket, WorkDone) + Send + Sync>;

/// What makes two questions ones for the same desk.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Place {
    /// By the names of its hosts.
    Ldap(String),
    Pam,
}

impl Place {
    fn of(voucher: &Voucher) -> Place {
        match voucher {
            Voucher::Ldap { options, .. } => {
                let hosts: Vec<String> = options.hosts.iter().map(|host| options.url(host)).collect();
                Place::Ldap(hosts.join(" "))
            }
            Voucher::Pam(_) => Place::Pam,
        }
    }

    /// Threads at most.
    fn most(&self) -> usize {
        match self {
            Place::Ldap(_) => LDAP_QUESTIONS,
            Place::Pam => PAM_QUESTIONS,
        }
    }

    fn name(&self) -> &str {
        match self {
            Place::Ldap(urls) => urls,
            Place::Pam => "PAM",
        }
    }
}

/// Takes questions.
pub(crate) struct Vouchers {
    desks: Arc<Mutex<HashMap<Place, Arc<Desk>>>>,
    turn: Arc<AtomicU64>,
    deliver: Deliver,
    panics: Arc<Panics>,
}

/// Where one of those who know is asked.
struct Desk {
    place: Place,
    inbox: Mutex<Inbox>,
    bell: Condvar,
}

#[derive(Default)]
struct Inbox {
    waiting: VecDeque<(Vouching, Ticket, Instant)>,
    /// Threads there are, and those of them that wait for a question.
    threads: usize,
    idle: usize,
    complained: Option<(Instant, String)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Vouchers {
    /// `turn` counts what is learnt of users, whoever says it.
    pub(crate) fn new(
        panics: Arc<Panics>,
        turn: Arc<AtomicU64>,
        deliver: impl Fn(Ticket, WorkDone) + Send + Sync + 'static,
    ) -> Vouchers {
        Vouchers { desks: Arc::default(), turn, deliver: Arc::new(deliver), panics }
    }

    /// Takes a question, whose answer comes by mail. Given back: too many wait.
    pub(crate) fn ask(&self, ticket: Ticket, vouching: Box<Vouching>) -> Result<(), Box<Vouching>> {
        let place = Place::of(&vouching.voucher);
        let until = Instant::now() + Duration::from_millis(vouching.patience_ms);
        let mut desks = lock(&self.desks);
        let desk = match desks.get(&place) {
            Some(desk) => desk.clone(),
            None if desks.len() >= ASKED_DATABASES => return Err(vouching),
            None => {
                let desk =
                    Arc::new(Desk { place: place.clone(), inbox: Mutex::default(), bell: Condvar::new() });
                desks.insert(place, desk.clone());
                desk
            }
        };
        // Under both locks: a thread that ends takes its desk away under both, too.
        let mut inbox = lock(&desk.inbox);
        if inbox.waiting.len() >= LOGIN_JOBS {
            return Err(vouching);
        }
        if inbox.waiting.len() >= inbox.idle && inbox.threads < desk.place.most() {
            if self.begin(&desk) {
                inbox.threads += 1;
            } else if inbox.threads == 0 {
                return Err(vouching);
            }
        }
        inbox.waiting.push_back((*vouching, ticket, until));
        desk.bell.notify_one();
        Ok(())
    }

    fn begin(&self, desk: &Arc<Desk>) -> bool {
        let clerk = Clerk {
            desk: desk.clone(),
            desks: self.desks.clone(),
            turn: self.turn.clone(),
            deliver: self.deliver.clone(),
            panics: self.panics.clone(),
            helper: pam::Helper::default(),
        };
        let name = match desk.place {
            Place::Ldap(_) => "ldap",
            Place::Pam => "pam",
        };
        let panics = self.panics.clone();
        let body = move || panics.whole("a thread that asks about passwords", || clerk.run());
        let begun = std::thread::Builder::new().name(name.to_owned()).spawn(body);
        if let Err(error) = &begun {
            tracing::error!("cannot start a thread to ask about passwords: {error}");
        }
        begun.is_ok()
    }
}

/// A thread that asks.
struct Clerk {
    desk: Arc<Desk>,
    desks: Arc<Mutex<HashMap<Place, Arc<Desk>>>>,
    turn: Arc<AtomicU64>,
    deliver: Deliver,
    panics: Arc<Panics>,
    helper: pam::Helper,
}

impl Clerk {
    fn run(mut self) {
        while let Some((vouching, ticket, until)) = self.next() {
            // A panic costs the one login it was for.
            let panics = self.panics.clone();
            let answer = panics.guard("a thread that asks about passwords", || self.answer(&vouching, until));
            (self.deliver)(ticket, answer.map_or(WorkDone::Nothing, WorkDone::Vouched));
        }
    }

    /// What waits longest. `None`: nothing has come for long.
    fn next(&mut self) -> Option<(Vouching, Ticket, Instant)> {
        let begun = Instant::now();
        let mut inbox = lock(&self.desk.inbox);
        inbox.idle += 1;
        loop {
            if let Some(next) = inbox.waiting.pop_front() {
                inbox.idle -= 1;
                return Some(next);
            }
            let Some(left) = IDLE.checked_sub(begun.elapsed()) else { break };
            inbox = self.desk.bell.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(inbox);
        let mut desks = lock(&self.desks);
        let mut inbox = lock(&self.desk.inbox);
        inbox.idle -= 1;
        if let Some(next) = inbox.waiting.pop_front() {
            return Some(next);
        }
        inbox.threads -= 1;
        if inbox.threads == 0 {
            desks.remove(&self.desk.place);
        }
        None
    }

    fn answer(&mut self, vouching: &Vouching, until: Instant) -> Vouched {
        let asked = if Instant::now() >= until {
            Err(Refusal::Unanswered("too many logins wait for an answer".to_owned()))
        } else {
            match &vouching.voucher {
                Voucher::Ldap { options, tls } => ldap::ask(options, tls.as_ref(), vouching, until),
                Voucher::Pam(service) => self.helper.ask(service, vouching, until),
            }
        };
        match asked {
            Ok(()) => {
                let turn = self.turn.fetch_add(1, Relaxed) + 1;
                let secret = vouching.password.secret();
                Ok(secret.map(|secret| Arc::new(Learnt::vouched(secret, turn))))
            }
            Err(Refusal::Wrong(why)) => {
                Err(Fault::new(FaultKind::LoginFailed, format!("{}: {why}", self.desk.place.name())))
            }
            Err(Refusal::Unanswered(why)) => {
                self.complain(&why);
                Err(Fault::new(FaultKind::LoginUnanswered, why))
            }
        }
    }

    /// Tells the operator: what clients are told says nothing of it.
    fn complain(&self, why: &str) {
        let mut inbox = lock(&self.desk.inbox);
        let said = inbox.complained.as_ref();
        if said.is_some_and(|(when, text)| text == why && when.elapsed() < COMPLAIN_EVERY) {
            return;
        }
        inbox.complained = Some((Instant::now(), why.to_owned()));
        drop(inbox);
        let method = match self.desk.place {
            Place::Ldap(_) => "LDAP",
            Place::Pam => "PAM",
        };
        tracing::warn!("{method} authentication is not possible, so its users cannot log in: {why}");
    }
}

#[cfg(test)]
mod tests;
