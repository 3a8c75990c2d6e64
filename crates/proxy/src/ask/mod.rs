//! Asks databases for the passwords of users that no file lists (PgBouncer's auth_query).
//!
//! Owns: one thread for each database that is being asked, with a connection outside all pools, a queue, and
//! its latest answers. Must not know: clients, and what an answer means for one.
//!
//! Invariants: no worker waits; the query is sent after the login has asked, so an answer is never older than
//! the login it is for, except by `auth_query_cache_ttl`; waiting queries for the same user are merged into
//! one; nothing that a client chose reaches the server except a name, as a parameter. The queue, the cache
//! and the number of databases asked at a time are bounded.

mod line;

use crate::context::Ticket;
use crate::crypto::WorkDone;
use crate::panics::Panics;
use crate::settings::Targets;
use line::{Found, Line};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use weir_auth::Secret;
use weir_config::{Asked, Learnt, Server};
use weir_wire::limits::{ASKED_DATABASES, ASKED_USERS, LOGIN_JOBS};
use weir_wire::{Fault, FaultKind};

/// A connection that nobody asks over is closed after this time, and its thread ends.
const IDLE: Duration = Duration::from_secs(30);

/// Questions that go to the server in one packet.
const TOGETHER: usize = 256;

/// An answer that somebody did not fit is good for the next ones until then, so that wrong passwords alone
/// do not ask.
const DOUBT_AFTER: Duration = Duration::from_millis(250);

/// The same complaint is logged again after this time.
const COMPLAIN_EVERY: Duration = Duration::from_secs(10);

/// A question for a database.
#[derive(Debug, Clone)]
pub struct Question {
    /// Where, as whom, what.
    pub asked: Asked,
    /// Where that server is.
    pub targets: Targets,
    /// The settings it follows from.
    pub epoch: u64,
    /// The user in question.
    pub user: String,
    /// How old an answer may be.
    pub max_age: Duration,
    /// Longest wait for the server, each time that it has to answer; 0: 15 s.
    pub patience_ms: u64,
}

/// What a database said, or why it said nothing.
pub type Answer = Result<Arc<Learnt>, Fault>;

/// Brings an answer to whom it is for.
type Deliver = Arc<dyn Fn(Ticket, WorkDone) + Send + Sync>;

/// What makes two questions ones for the same connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Place {
    epoch: u64,
    entry: String,
    server: Server,
    database: String,
    asking: weir_config::Asking,
}

/// Takes questions.
pub(crate) struct Asker {
    places: Arc<Mutex<HashMap<Place, Arc<Desk>>>>,
    turn: Arc<AtomicU64>,
    deliver: Deliver,
    panics: Arc<Panics>,
}

/// One database that is being asked.
struct Desk {
    inbox: Mutex<Inbox>,
    bell: Condvar,
}

#[derive(Default)]
struct Inbox {
    waiting: Vec<(Question, Ticket)>,
    /// By user.
    known: HashMap<String, Known>,
}

/// An answer and when its question was put.
struct Known {
    learnt: Weak<Learnt>,
    /// Kept as long as it may be given to others.
    kept: Option<Arc<Learnt>>,
    since: Instant,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Asker {
    /// `turn` counts what is learnt of users, whoever says it.
    pub(crate) fn new(
        panics: Arc<Panics>,
        turn: Arc<AtomicU64>,
        deliver: impl Fn(Ticket, WorkDone) + Send + Sync + 'static,
    ) -> Asker {
        Asker { places: Arc::default(), turn, deliver: Arc::new(deliver), panics }
    }

    /// Takes a question, whose answer comes by mail. Given back: too many wait, or too many databases are
    /// asked.
    pub(crate) fn ask(&self, ticket: Ticket, question: Box<Question>) -> Result<(), Box<Question>> {
        let place = Place {
            epoch: question.epoch,
            entry: question.asked.entry.name.clone(),
            server: question.asked.entry.server.clone(),
            database: question.asked.database.clone(),
            asking: question.asked.asking.clone(),
        };
        let mut places = lock(&self.places);
        let desk = match places.get(&place) {
            Some(desk) => desk.clone(),
            None if places.len() >= ASKED_DATABASES => return Err(question),
            None => {
                let desk = Arc::new(Desk { inbox: Mutex::default(), bell: Condvar::new() });
                if !self.begin(&place, &desk) {
                    return Err(question);
                }
                places.insert(place, desk.clone());
                desk
            }
        };
        // Under both locks: a thread that ends looks into its inbox under both, too.
        let mut inbox = lock(&desk.inbox);
        if let Some(learnt) = inbox.fresh(&question) {
            drop(inbox);
            drop(places);
            (self.deliver)(ticket, WorkDone::Learnt(Ok(learnt)));
            return Ok(());
        }
        if inbox.waiting.len() >= LOGIN_JOBS {
            return Err(question);
        }
        inbox.waiting.push((*question, ticket));
        desk.bell.notify_one();
        Ok(())
    }

    fn begin(&self, place: &Place, desk: &Arc<Desk>) -> bool {
        let clerk = Clerk {
            place: place.clone(),
            places: self.places.clone(),
            desk: desk.clone(),
            turn: self.turn.clone(),
            deliver: self.deliver.clone(),
            line: None,
            alike: None,
            complained: None,
        };
        let (panics, places, place, desk) =
            (self.panics.clone(), self.places.clone(), place.clone(), desk.clone());
        let deliver = self.deliver.clone();
        let body = move || {
            if panics.guard("the thread for auth_query", || clerk.run()).is_some() {
                return;
            }
            // Who waits must not wait for nobody.
            lock(&places).remove(&place);
            for (_, ticket) in std::mem::take(&mut lock(&desk.inbox).waiting) {
                deliver(ticket, WorkDone::Nothing);
            }
        };
        let begun = std::thread::Builder::new().name("auth-query".to_owned()).spawn(body);
        if let Err(error) = &begun {
            tracing::error!("cannot start a thread for auth_query: {error}");
        }
        begun.is_ok()
    }
}

impl Inbox {
    /// What is known of a user, if it is new enough.
    fn fresh(&self, question: &Question) -> Option<Arc<Learnt>> {
        let known = self.known.get(&question.user)?;
        let learnt = known.kept.as_ref()?;
        let age = known.since.elapsed();
        let doubted = learnt.is_doubted() && age >= DOUBT_AFTER;
        (age < question.max_age && !doubted).then(|| learnt.clone())
    }

    /// Remembers an answer. Where the password is the same as before, the secret is too: with it stay the
    /// keys that its clients have shown.
    fn learn(&mut self, question: &Question, mut learnt: Learnt, since: Instant) -> Arc<Learnt> {
        let before = self.known.get(&question.user).and_then(|known| known.learnt.upgrade());
        if let Some(same) = before.and_then(|before| before.secret.clone())
            && learnt.secret.as_deref().is_some_and(|secret| secret.is_same(&same))
        {
            learnt.secret = Some(same);
        }
        let learnt = Arc::new(learnt);
        if self.known.len() >= ASKED_USERS {
            self.known.retain(|_, known| known.learnt.strong_count() > usize::from(known.kept.is_some()));
        }
        if self.known.len() >= ASKED_USERS {
            self.known.clear();
        }
        let kept = (!question.max_age.is_zero()).then(|| learnt.clone());
        let known = Known { learnt: Arc::downgrade(&learnt), kept, since };
        self.known.insert(question.user.clone(), known);
        learnt
    }
}

/// The thread that asks one database.
struct Clerk {
    place: Place,
    places: Arc<Mutex<HashMap<Place, Arc<Desk>>>>,
    desk: Arc<Desk>,
    turn: Arc<AtomicU64>,
    deliver: Deliver,
    line: Option<Line>,
    /// The first verifier that was seen: names that do not exist look like its user.
    alike: Option<Arc<Secret>>,
    complained: Option<(Instant, String)>,
}

impl Clerk {
    fn run(mut self) {
        while let Some(batch) = self.next() {
            // Those of one user are one question, with the newest settings of it.
            let mut users: Vec<Question> = Vec::new();
            let mut numbers: HashMap<&str, usize> = HashMap::new();
            for (question, _) in &batch {
                numbers.entry(&question.user).or_insert_with(|| {
                    users.push(question.clone());
                    users.len() - 1
                });
            }
            let answers = self.answers(&users);
            for (question, ticket) in &batch {
                let answer = match (&answers, numbers.get(question.user.as_str())) {
                    (Ok(answers), Some(&number)) => answers[number].clone(),
                    (Err(fault), _) => Err(fault.clone()),
                    (Ok(_), None) => Err(FaultKind::ServerUnavailable.into()),
                };
                (self.deliver)(*ticket, WorkDone::Learnt(answer));
            }
        }
    }

    /// What waits now. `None`: nobody has asked for long, and nobody will ask here any more.
    fn next(&mut self) -> Option<Vec<(Question, Ticket)>> {
        let mut inbox = lock(&self.desk.inbox);
        let begun = Instant::now();
        loop {
            if !inbox.waiting.is_empty() {
                let now = inbox.waiting.len().min(TOGETHER);
                let rest = inbox.waiting.split_off(now);
                return Some(std::mem::replace(&mut inbox.waiting, rest));
            }
            let Some(left) = IDLE.checked_sub(begun.elapsed()) else { break };
            inbox = self.desk.bell.wait_timeout(inbox, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        drop(inbox);
        let mut places = lock(&self.places);
        let inbox = lock(&self.desk.inbox);
        if inbox.waiting.is_empty() {
            places.remove(&self.place);
            return None;
        }
        drop(inbox);
        drop(places);
        self.next()
    }

    /// An answer for each of these, or why there is none.
    fn answers(&mut self, questions: &[Question]) -> Result<Vec<Answer>, Fault> {
        let Some(first) = questions.first() else { return Ok(Vec::new()) };
        let since = Instant::now();
        let names: Vec<&str> = questions.iter().map(|question| question.user.as_str()).collect();
        let found = self.look_up(first, &names).inspect_err(|fault| self.complain(fault))?;
        for secret in found.iter().filter_map(|found| found.as_ref().ok()?.as_ref()) {
            if self.alike.is_none() && secret.is_verifier() {
                self.alike = Some(secret.clone());
            }
        }
        let mut inbox = lock(&self.desk.inbox);
        let mut answers = Vec::with_capacity(questions.len());
        let mut complaint = None;
        for (question, found) in questions.iter().zip(found) {
            answers.push(match found {
                Ok(secret) => {
                    let turn = self.turn.fetch_add(1, Relaxed) + 1;
                    Ok(inbox.learn(question, Learnt::new(secret, self.alike.clone(), turn), since))
                }
                Err(fault) => {
                    complaint = Some(fault.clone());
                    Err(fault)
                }
            });
        }
        drop(inbox);
        if let Some(fault) = complaint {
            self.complain(&fault);
        }
        Ok(answers)
    }

    /// The secrets of these users; `None`: cannot log in. A connection that has been idle may have been
    /// closed meanwhile: then another is opened, once.
    fn look_up(&mut self, question: &Question, names: &[&str]) -> Result<Vec<Found>, Fault> {
        if let Some(mut line) = self.line.take()
            && let Ok(found) = line.look_up(names)
        {
            self.line = Some(line);
            return Ok(found);
        }
        let mut line = Line::open(question)?;
        if self.alike.is_none() {
            // Who asks is a user, too, and has what users have there.
            let own = line.look_up(&[&self.place.asking.user])?.into_iter().next();
            self.alike = own.and_then(Result::ok).flatten().filter(|secret| secret.is_verifier());
        }
        let found = line.look_up(names)?;
        self.line = Some(line);
        Ok(found)
    }

    /// Tells the operator: what clients are told says nothing of it.
    fn complain(&mut self, fault: &Fault) {
        let said = self
            .complained
            .as_ref()
            .is_some_and(|(when, text)| *text == fault.detail && when.elapsed() < COMPLAIN_EVERY);
        if said {
            return;
        }
        self.complained = Some((Instant::now(), fault.detail.to_string()));
        let (database, user) = (&self.place.database, &self.place.asking.user);
        tracing::warn!(
            database,
            user,
            "auth_query failed, so users who are not listed cannot log in: {fault}"
        );
    }
}

#[cfg(test)]
mod tests;
