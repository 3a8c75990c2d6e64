//! The threads for slow work of logins: PBKDF2, RSA, and TLS handshakes.
//!
//! Owns: their queues and the maximum lengths of these. Must not know: what a result is for.
//!
//! Invariants: a client's work is refused when too much of it is queued; the work of Weir's own logins to
//! servers is always accepted and never waits for a client's. The threads for clients run at a lower priority
//! than everything else on the machine, and pause between handshakes when cores are short: clients that are
//! logged in come before those that log in.

use crate::ask::{Answer, Question};
use crate::context::Ticket;
use crate::ear::{News, Wish};
use crate::ids::Kind;
use crate::line::Handshake;
use crate::panics::{Panics, inject};
use crate::vouch::{Vouched, Vouching};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;
use weir_auth::{Job, JobDone};
use weir_net::priority::CoreWait;
use weir_wire::limits::LOGIN_JOBS;

/// Slow work.
pub enum Work {
    /// Of a login machine.
    Login(Job),
    /// A question for a database. It is no thread's of these: [`crate::ask`] takes it.
    Ask(Box<Question>),
    /// A password for whoever knows whether it is right: [`crate::vouch`] takes it.
    Vouch(Box<Vouching>),
    /// A wish for a client that listens: [`crate::ear`] takes it.
    Ear(Box<Wish>),
    /// A step of a client's handshake; whether others query meanwhile, who are to be spared.
    Handshake { step: Box<Handshake>, beside_queries: bool },
}

/// What [`Work`] gave.
pub enum WorkDone {
    /// To a login machine.
    Login(JobDone),
    /// What a database said of a user.
    Learnt(Answer),
    /// What was said of a client's password.
    Vouched(Vouched),
    /// What becomes of a client that listens.
    Ear(News),
    /// The handshake, a step further.
    Handshake(Box<Handshake>),
    /// Nothing: doing it has panicked.
    Nothing,
}

impl Work {
    /// Does it. Blocks for a fraction of a millisecond or some milliseconds.
    #[must_use]
    pub fn run(self) -> WorkDone {
        inject::here("crypto");
        match self {
            Work::Login(job) => WorkDone::Login(job.run()),
            Work::Ask(_) | Work::Vouch(_) | Work::Ear(_) => WorkDone::Nothing,
            Work::Handshake { step, .. } => WorkDone::Handshake(Box::new(step.run())),
        }
    }
}

/// Takes work, or gives it back.
pub type Submit = Box<dyn Fn(Ticket, Work) -> Result<(), Work> + Send + Sync>;

/// A rest is so many times what a handshake has waited for a core. Measured with 2 cores, 500 clients that
/// query and a storm of logins: from 8 times on the queries' p99 is what it is without the storm.
const REST_RATIO: u32 = 8;

/// A rest at most, however busy the machine is.
const REST_MAX: Duration = Duration::from_millis(2);

/// All rests together, until those who wait now are done with: their drivers give up after some seconds.
const RESTS_TOGETHER: Duration = Duration::from_millis(500);

/// Shorter ones are not worth a timer.
const REST_MIN: Duration = Duration::from_micros(100);

/// How a thread spares those who query where cores are short. That it is less urgent is not enough: behind
/// each handshake come a client, a worker and a server, which are not, so handshakes are fewer, in proportion
/// to how long they wait for a core themselves. Where cores are idle, nobody rests.
#[derive(Debug, Default)]
struct Pace {
    /// What a handshake has waited for a core lately.
    waited: Duration,
}

impl Pace {
    /// How long to rest after a handshake that has `waited` for a core, when `behind` others wait for this
    /// thread.
    fn rest(&mut self, waited: Duration, behind: usize) -> Duration {
        self.waited = (self.waited * 7 + waited.min(REST_MAX)) / 8;
        let together = RESTS_TOGETHER / u32::try_from(behind).unwrap_or(u32::MAX).max(1);
        let rest = (self.waited * REST_RATIO).min(REST_MAX).min(together);
        if rest < REST_MIN { Duration::ZERO } else { rest }
    }
}

/// Starts a thread for each worker, which cannot take the cores from queries where its priority is low, and
/// one for servers. They end with what is returned.
pub(crate) fn start(
    workers: usize,
    panics: Arc<Panics>,
    deliver: impl Fn(Ticket, WorkDone) + Send + Sync + 'static,
) -> std::io::Result<Submit> {
    // A panic costs the one login it was for.
    let whole = panics.clone();
    let deliver = Arc::new(move |ticket: Ticket, work: Work| {
        let done = panics.guard("a crypto thread", || work.run());
        deliver(ticket, done.unwrap_or(WorkDone::Nothing));
    });
    let waiting = Arc::new(AtomicUsize::new(0));
    let (clients, jobs) = mpsc::channel::<(Ticket, Work)>();
    let jobs = Arc::new(Mutex::new(jobs));
    for number in 0..workers {
        let (jobs, deliver, waiting) = (jobs.clone(), deliver.clone(), waiting.clone());
        let body = move || {
            weir_net::priority::lower();
            let mut wait = CoreWait::of_this_thread();
            let mut pace = Pace::default();
            loop {
                let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
                let Ok((ticket, job)) = next else { return };
                inject::here("crypto_thread");
                let behind = waiting.fetch_sub(1, Relaxed) / workers;
                let paced = matches!(job, Work::Handshake { beside_queries: true, .. });
                deliver(ticket, job);
                let waited = wait.take();
                if paced {
                    std::thread::sleep(pace.rest(waited, behind));
                }
            }
        };
        let panics = whole.clone();
        std::thread::Builder::new()
            .name(format!("crypto-{number}"))
            .spawn(move || panics.whole("a crypto thread", body))?;
    }
    let (servers, jobs) = mpsc::channel::<(Ticket, Work)>();
    std::thread::Builder::new().name("crypto-server".to_owned()).spawn(move || {
        whole.whole("the crypto thread for servers", || {
            for (ticket, job) in jobs {
                inject::here("crypto_thread");
                deliver(ticket, job);
            }
        });
    })?;
    // Sending fails only when the threads have gone, which is at the end of the process.
    Ok(Box::new(move |ticket, work| {
        if ticket.kind != Kind::Client {
            return servers.send((ticket, work)).map_err(|returned| returned.0.1);
        }
        if waiting.fetch_add(1, Relaxed) >= LOGIN_JOBS {
            waiting.fetch_sub(1, Relaxed);
            return Err(work);
        }
        clients.send((ticket, work)).map_err(|returned| returned.0.1)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::Arena;
    use weir_auth::Secret;

    #[test]
    fn handshakes_rest_where_cores_are_short_but_no_queue_is_held_up_for_long() {
        let mut pace = Pace::default();
        assert_eq!(pace.rest(Duration::ZERO, 0), Duration::ZERO, "a core was free");
        let us = Duration::from_micros;
        let rests: Vec<_> = (0..100).map(|_| pace.rest(us(100), 0)).collect();
        assert!(rests.is_sorted() && rests.iter().all(|&rest| rest <= us(800)), "{rests:?}");
        assert!(rests[99] > us(700), "eight times the wait in the end: {rests:?}");
        assert_eq!((0..100).map(|_| pace.rest(Duration::from_secs(9), 0)).max(), Some(REST_MAX));
        assert_eq!(pace.rest(Duration::from_secs(9), 1_000), us(500), "a thousand rest for half a second");
        assert_eq!(pace.rest(Duration::from_secs(9), LOGIN_JOBS), Duration::ZERO);
        for _ in 0..100 {
            pace.rest(Duration::ZERO, 0);
        }
        assert_eq!(pace.rest(Duration::ZERO, 0), Duration::ZERO, "a core is free again");
    }

    #[test]
    fn a_storm_of_logins_is_bounded_and_no_server_waits_for_it() {
        let (entered, inside) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let (released, entered) = (Mutex::new(released), Mutex::new(entered));
        let panics = Arc::new(Panics::new(weir_metrics::Metrics::new(1, &[]), || {}));
        let submit = start(1, panics, move |ticket: Ticket, _| {
            // Nobody hears what is still done when the test is over.
            let _ = entered.lock().unwrap().send(ticket.kind);
            if ticket.kind == Kind::Client {
                // The one thread for clients stands still until the test lets go.
                let _ = released.lock().unwrap().recv();
            }
        })
        .unwrap();
        let secret = Arc::new(Secret::from_userlist("md5ABCDEF00112233445566778899aabbcc"));
        let key = Arena::<()>::default().next_key();
        let give = |kind| {
            let ticket = Ticket { worker: 0, protocol: weir_session::Protocol::Postgres, kind, key };
            // A hash gives no keys, so the work itself takes no time.
            let job = Job::ScramKeys { secret: secret.clone(), salt: (*b"salt").into(), iterations: 1 };
            submit(ticket, Work::Login(job)).is_ok()
        };
        assert!(give(Kind::Client));
        assert_eq!(inside.recv(), Ok(Kind::Client));
        for waiting in 0..LOGIN_JOBS {
            assert!(give(Kind::Client), "{waiting} wait");
        }
        assert!(!give(Kind::Client), "one more is refused");
        assert!(give(Kind::Server));
        assert_eq!(inside.recv(), Ok(Kind::Server), "it waits for no client");
        release.send(()).unwrap();
        assert_eq!(inside.recv(), Ok(Kind::Client));
        assert!(give(Kind::Client), "there is room again");
    }
}
