//! The mailboxes between workers, and the slow work of logins, with delays.
//!
//! Owns: letters in transit. Must not know: their contents.

use crate::dice::Dice;
use crate::net::{Shared, SimNet};
use std::sync::{Arc, Mutex, PoisonError};
use weir_proxy::context::Ticket;
use weir_proxy::crypto::Work;
use weir_proxy::mail::{Mail, WingMail};

/// The post office.
#[derive(Clone)]
pub struct Post {
    network: Shared,
    state: Arc<Mutex<State>>,
}

struct State {
    dice: Dice,
    boxes: Vec<Mailbox>,
    /// Longest time a letter is under way, in nanoseconds.
    slowest_ns: u64,
}

#[derive(Default)]
struct Mailbox {
    /// When it arrives, and the letter; in the order of arrival.
    letters: Vec<(u64, Mail<SimNet>)>,
    last_ns: u64,
    closed: bool,
}

impl Post {
    /// Empty mailboxes.
    pub fn new(network: &Shared, mut dice: Dice, workers: usize) -> Self {
        let slowest_ns = match network.lock().weather.still {
            true => 500,
            false => dice.spread(1_000, 5_000_000),
        };
        let boxes = (0..workers).map(|_| Mailbox::default()).collect();
        Post { network: network.clone(), state: Arc::new(Mutex::new(State { dice, boxes, slowest_ns })) }
    }

    /// Sends a letter. Letters to one worker arrive in the order they were sent.
    pub fn send(&self, worker: usize, mail: Mail<SimNet>) {
        self.deliver(worker, mail, true);
    }

    fn deliver(&self, worker: usize, mail: Mail<SimNet>, in_order: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let slowest_ns = state.slowest_ns;
        let delay_ns = state.dice.spread(500, slowest_ns);
        let mailbox = &mut state.boxes[worker];
        if mailbox.closed {
            drop(state);
            drop(mail);
            return;
        }
        let mut at_ns = self.network.lock().now_ns + delay_ns;
        if in_order {
            at_ns = at_ns.max(mailbox.last_ns);
            mailbox.last_ns = at_ns;
        }
        let place = mailbox.letters.partition_point(|&(other, _)| other <= at_ns);
        mailbox.letters.insert(place, (at_ns, mail));
        drop(state);
        self.network.lock().wake_worker(worker, at_ns);
    }

    /// Does slow work at once; its result takes its time.
    pub fn work(&self, ticket: Ticket, work: Work) {
        let done = work.run();
        let Ticket { worker, protocol, kind, key } = ticket;
        self.deliver(worker, Mail::job(protocol, kind, key, done), false);
    }

    /// What has arrived for a worker; wakes it for the rest.
    pub fn take(&self, worker: usize, letters: &mut Vec<Mail<SimNet>>) {
        let now_ns = self.network.lock().now_ns;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let mailbox = &mut state.boxes[worker];
        let arrived = mailbox.letters.partition_point(|&(at_ns, _)| at_ns <= now_ns);
        letters.extend(mailbox.letters.drain(..arrived).map(|(_, mail)| mail));
        let next_ns = mailbox.letters.first().map(|&(at_ns, _)| at_ns);
        drop(state);
        if let Some(at_ns) = next_ns {
            self.network.lock().wake_worker(worker, at_ns);
        }
    }

    /// Servers on their way between workers.
    pub fn transfers(&self) -> usize {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let is_transfer = |mail: &Mail<SimNet>| {
            matches!(mail, Mail::Postgres(WingMail::Server(_)) | Mail::MySql(WingMail::Server(_)))
        };
        state.boxes.iter().flat_map(|mailbox| &mailbox.letters).filter(|(_, mail)| is_transfer(mail)).count()
    }

    /// A worker has ended: its letters come back unread.
    pub fn close(&self, worker: usize) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.boxes[worker].closed = true;
        let letters = std::mem::take(&mut state.boxes[worker].letters);
        drop(state);
        drop(letters);
    }
}
