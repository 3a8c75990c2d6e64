//! Workers that start when clients need them and end when their clients have gone; and the mail of all
//! workers.
//!
//! Owns: their threads, and the mailboxes that have no thread now. [`crate::berths`] decides when a worker is
//! due. Must not know: what a worker does.
//!
//! Invariant: no letter stays in the mailbox of a worker that has ended. A worker that closes puts its
//! mailbox back and empties it; a sender checks after sending whether the worker still exists, and otherwise
//! empties the mailbox itself. Both do so under the mailbox's lock, so one of the two sees the letter.

use crate::berths::Berths;
use crate::context::Shared;
use crate::control::MAIL_PER_TURN;
use crate::mail::{Kill, Mail, WingMail};
use crate::panics::inject;
use crate::wing::{MySql, Postgres, Wing};
use crate::worker::Worker;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::thread::JoinHandle;
use weir_net::fleet::{Fleet, Nursery, Seat};
use weir_net::{Address, Kernel, Mailbox, mailbox};
use weir_session::login::KillOutcome;
use weir_wire::limits::MAILBOX_MESSAGES;

/// The mailboxes of all workers.
pub(crate) struct Posts {
    berths: Arc<Berths>,
    addresses: Vec<Address<Mail<Kernel>>>,
    /// Of further workers that are not there now, by number less that of the first one.
    closed: Vec<Mutex<Option<Mailbox<Mail<Kernel>>>>>,
}

impl Posts {
    /// Mailboxes for all workers there can be; those of the first ones are returned.
    pub(crate) fn new(fleet: &Fleet, berths: Arc<Berths>) -> (Arc<Posts>, Vec<Mailbox<Mail<Kernel>>>) {
        let boxes = (0..berths.most()).map(|worker| mailbox(fleet.wake(worker), MAILBOX_MESSAGES));
        let (addresses, mut mailboxes): (Vec<_>, Vec<_>) = boxes.unzip();
        let further = mailboxes.split_off(berths.first());
        let closed = further.into_iter().map(|mailbox| Mutex::new(Some(mailbox))).collect();
        (Arc::new(Posts { berths, addresses, closed }), mailboxes)
    }

    /// Puts a message into a worker's mailbox. One that cannot be delivered (the worker has ended before the
    /// others) gives back what it holds.
    pub(crate) fn send(&self, worker: usize, mail: Mail<Kernel>) {
        let Some(address) = self.addresses.get(worker) else { return };
        let Some(beyond) = worker.checked_sub(self.berths.first()) else {
            return drop(address.send(mail));
        };
        if !self.berths.is_open(worker) {
            return self.undeliverable(worker, mail);
        }
        drop(address.send(mail));
        if !self.berths.is_open(worker) {
            self.empty(worker, beyond);
        }
    }

    /// This worker is not there. Who wants somebody killed is told so; all else gives back what it holds.
    fn undeliverable(&self, worker: usize, mail: Mail<Kernel>) {
        match mail {
            Mail::Postgres(WingMail::Kill(kill)) => self.return_kill::<Postgres>(worker, kill),
            Mail::MySql(WingMail::Kill(kill)) => self.return_kill::<MySql>(worker, kill),
            Mail::Postgres(_) | Mail::MySql(_) => {}
            Mail::Reload | Mail::Readdressed | Mail::Leave | Mail::Drain | Mail::Stop => {}
        }
    }

    fn return_kill<W: Wing>(&self, worker: usize, kill: Kill) {
        if kill.listed.is_some() {
            // It goes from worker to worker.
            return self.send(self.berths.behind(worker), W::mail(WingMail::Kill(kill)));
        }
        let (asker_worker, asker) = kill.asker;
        let outcome = KillOutcome::NoSuchThread;
        self.send(asker_worker, W::mail(WingMail::KillDone { asker, outcome }));
    }

    /// Empties the mailbox of a worker that is not there.
    fn empty(&self, worker: usize, beyond: usize) {
        let mut letters = Vec::new();
        {
            let mut closed = self.closed[beyond].lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(mailbox) = closed.as_mut() {
                while mailbox.drain(MAIL_PER_TURN, &mut letters) > 0 {}
            }
        }
        letters.into_iter().for_each(|letter| self.undeliverable(worker, letter));
    }

    fn take(&self, worker: usize) -> Option<Mailbox<Mail<Kernel>>> {
        let closed = self.closed.get(worker.checked_sub(self.berths.first())?)?;
        closed.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    fn put_back(&self, worker: usize, mailbox: Mailbox<Mail<Kernel>>) {
        let Some(beyond) = worker.checked_sub(self.berths.first()) else { return };
        *self.closed[beyond].lock().unwrap_or_else(PoisonError::into_inner) = Some(mailbox);
        if !self.berths.is_open(worker) {
            self.empty(worker, beyond);
        }
    }
}

/// The threads of further workers.
pub(crate) type Handles = Arc<Mutex<Vec<JoinHandle<()>>>>;

/// One of them.
pub(crate) fn next_handle(handles: &Handles) -> Option<JoinHandle<()>> {
    handles.lock().unwrap_or_else(PoisonError::into_inner).pop()
}

/// What a worker begins with; not kept alive by those who may begin some time.
type Start = OnceLock<(Weak<Shared<Kernel>>, Weak<Posts>)>;

/// Where further workers come from.
pub(crate) struct Further {
    nursery: Nursery,
    start: Arc<Start>,
    handles: Handles,
}

impl Further {
    /// To be called before anything else is opened. `None`: there cannot be further workers.
    pub(crate) fn prepare(fleet: &Fleet, berths: &Berths) -> std::io::Result<Option<Further>> {
        if berths.most() == berths.first() {
            return Ok(None);
        }
        let (start, handles) = (Arc::<Start>::default(), Handles::default());
        let (begins, begun) = (start.clone(), handles.clone());
        let nursery = fleet.nursery(move |worker, seat| {
            let Some((shared, posts)) = begins.get() else { return };
            if let (Some(shared), Some(posts)) = (shared.upgrade(), posts.upgrade()) {
                let (panics, berths) = (shared.panics.clone(), shared.berths.clone());
                let body = || {
                    inject::here("nursery");
                    begin(worker, seat, shared, posts, &begun);
                };
                if panics.guard("the thread that starts workers", body).is_none() {
                    berths.refused();
                }
            }
        })?;
        Ok(Some(Further { nursery, start, handles }))
    }

    /// From now on workers may be ordered.
    pub(crate) fn begin(self, shared: &Arc<Shared<Kernel>>, posts: &Arc<Posts>) -> Handles {
        let Further { nursery, start, handles } = self;
        drop(start.set((Arc::downgrade(shared), Arc::downgrade(posts))));
        shared.berths.set_order(move |worker| nursery.order(worker));
        handles
    }
}

fn begin(worker: usize, seat: Seat, shared: Arc<Shared<Kernel>>, posts: Arc<Posts>, handles: &Handles) {
    let mut handles = handles.lock().unwrap_or_else(PoisonError::into_inner);
    handles.retain(|handle| !handle.is_finished());
    // Who ends the process looks for threads after it has said so.
    if shared.berths.is_over() {
        return;
    }
    let berths = shared.berths.clone();
    let name = format!("worker {worker}");
    let body = move || shared.panics.whole(&name, || run(worker, seat, &shared, &posts));
    match std::thread::Builder::new().name(format!("worker-{worker}")).spawn(body) {
        Ok(handle) => handles.push(handle),
        Err(error) => refused(&berths, &error),
    }
}

fn refused(berths: &Berths, error: &std::io::Error) {
    tracing::warn!("cannot start another worker; the limit of open files limits the clients: {error}");
    berths.refused();
}

/// The life of a further worker.
fn run(worker: usize, seat: Seat, shared: &Arc<Shared<Kernel>>, posts: &Posts) {
    let berths = &shared.berths;
    let kernel = match seat.enter() {
        Ok((kernel, _)) => kernel,
        Err(error) => return refused(berths, &error),
    };
    let Some(mut mailbox) = posts.take(worker) else { return };
    if !berths.opens(worker) {
        // The others may have been told before it could hear.
        posts.send(worker, Mail::Drain);
    }
    tracing::info!("worker {worker} starts: the table of open files of the others is nearly full");
    let outcome = Worker::new(kernel, worker, shared.clone(), Vec::new()).and_then(|mut worker| {
        worker.run(|letters| {
            mailbox.drain(MAIL_PER_TURN, letters);
        })
    });
    if let Err(error) = outcome {
        shared.panics.fail(&format!("worker {worker} has ended: {error}"));
    }
    posts.put_back(worker, mailbox);
    berths.has_ended(worker);
    tracing::info!("worker {worker} ends: its clients have disconnected");
}
