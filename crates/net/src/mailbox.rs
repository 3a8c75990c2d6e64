//! Mailboxes between workers and the control thread.
//!
//! Owns: the queue of messages and when its reader has to be woken. Must not know: what a message means.
//!
//! Any thread may hold an [`Address`]; one thread holds the [`Mailbox`]. Sending is a push and, for the first
//! message since the reader last looked, one wake (one system call): a burst of messages is one wake.
//! Messages of one sender arrive in order.
//!
//! Invariants: when a message is in the queue, either a wake is under way that its reader has not answered
//! with [`Mailbox::drain`], or the reader is draining. At most `limit` messages wait (a few more when several
//! senders meet at the limit); over it, the sender gets its message back.

use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::sync::mpsc;

use crate::wake::Wake;

/// What both ends share.
struct Shared {
    wake: Arc<dyn Wake>,
    /// A wake is under way and has not been answered.
    woken: AtomicBool,
    /// Messages sent and not yet taken.
    waiting: AtomicUsize,
    limit: usize,
}

/// Where to send messages of type `M`.
pub struct Address<M> {
    sender: mpsc::Sender<M>,
    shared: Arc<Shared>,
}

impl<M> Clone for Address<M> {
    fn clone(&self) -> Self {
        Address { sender: self.sender.clone(), shared: Arc::clone(&self.shared) }
    }
}

impl<M> std::fmt::Debug for Address<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Address").field("waiting", &self.waiting()).finish()
    }
}

/// The message could not be sent; here it is again.
#[derive(Debug, PartialEq, Eq)]
pub enum Returned<M> {
    /// The reader is behind: `limit` messages wait already.
    Full(M),
    /// The mailbox has been dropped.
    Gone(M),
}

impl<M> Returned<M> {
    /// The message.
    pub fn into_message(self) -> M {
        match self {
            Returned::Full(message) | Returned::Gone(message) => message,
        }
    }
}

/// Where messages of type `M` arrive.
pub struct Mailbox<M> {
    receiver: mpsc::Receiver<M>,
    shared: Arc<Shared>,
}

impl<M> std::fmt::Debug for Mailbox<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").field("waiting", &self.shared.waiting.load(Ordering::Relaxed)).finish()
    }
}

/// A mailbox whose reader is woken by `wake`, for at most `limit` waiting messages. Several mailboxes may
/// share one wake: their reader then drains all of them when it is woken.
pub fn mailbox<M>(wake: Arc<dyn Wake>, limit: usize) -> (Address<M>, Mailbox<M>) {
    let (sender, receiver) = mpsc::channel();
    let shared =
        Arc::new(Shared { wake, woken: AtomicBool::new(false), waiting: AtomicUsize::new(0), limit });
    (Address { sender, shared: Arc::clone(&shared) }, Mailbox { receiver, shared })
}

impl<M> Address<M> {
    /// Puts a message into the mailbox and wakes its reader if nobody has yet. Never blocks.
    ///
    /// # Errors
    /// The message comes back: `Full` when as many wait as may, `Gone` when the reader is gone.
    pub fn send(&self, message: M) -> Result<(), Returned<M>> {
        if self.shared.waiting.fetch_add(1, Ordering::Relaxed) >= self.shared.limit {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Returned::Full(message));
        }
        if let Err(mpsc::SendError(message)) = self.sender.send(message) {
            self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
            return Err(Returned::Gone(message));
        }
        // Either this swap comes before the reader's and the reader sees the message, or it comes after and
        // wakes it. Both are read-modify-writes of one location, so one of the two is the case.
        if !self.shared.woken.swap(true, Ordering::AcqRel) {
            self.shared.wake.wake();
        }
        Ok(())
    }

    /// How many messages wait, more or less.
    pub fn waiting(&self) -> usize {
        self.shared.waiting.load(Ordering::Relaxed)
    }
}

impl<M> Mailbox<M> {
    /// Moves up to `bound` messages to `messages`. To be called after each event of
    /// [`Token::MAIL`](crate::Token::MAIL). If some are left, the mailbox wakes its own reader, so that the
    /// rest comes in the next turn and connections are served in between. Returns how many were moved.
    pub fn drain(&mut self, bound: usize, messages: &mut Vec<M>) -> usize {
        self.shared.woken.swap(false, Ordering::AcqRel);
        let mut count = 0;
        while count < bound {
            let Ok(message) = self.receiver.try_recv() else { break };
            messages.push(message);
            count += 1;
        }
        let before = self.shared.waiting.fetch_sub(count, Ordering::Relaxed);
        // Only at the bound: a sender that has counted its message but not yet pushed it wakes by itself.
        if count == bound && before > count && !self.shared.woken.swap(true, Ordering::AcqRel) {
            self.shared.wake.wake();
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(&self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    fn counted(limit: usize) -> (Arc<Count>, Address<u32>, Mailbox<u32>) {
        let wakes = Arc::new(Count::default());
        let (address, mailbox) = mailbox(Arc::<Count>::clone(&wakes), limit);
        (wakes, address, mailbox)
    }

    #[test]
    fn a_burst_is_one_wake() {
        let (wakes, address, mut mailbox) = counted(1000);
        for n in 0..100 {
            address.send(n).expect("room");
        }
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        let mut messages = Vec::new();
        assert_eq!(mailbox.drain(1000, &mut messages), 100);
        assert_eq!(messages, (0..100).collect::<Vec<_>>());
        assert_eq!(wakes.0.load(Ordering::SeqCst), 1);
        address.send(7).expect("room");
        assert_eq!(wakes.0.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn what_the_bound_leaves_wakes_again() {
        let (wakes, address, mut mailbox) = counted(1000);
        for n in 0..10 {
            address.send(n).expect("room");
        }
        let mut messages = Vec::new();
        assert_eq!(mailbox.drain(4, &mut messages), 4);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 2);
        assert_eq!(mailbox.drain(4, &mut messages), 4);
        assert_eq!(mailbox.drain(4, &mut messages), 2);
        assert_eq!(wakes.0.load(Ordering::SeqCst), 3);
        assert_eq!(messages, (0..10).collect::<Vec<_>>());
    }

    #[test]
    fn a_full_or_dropped_mailbox_gives_the_message_back() {
        let (_, address, mut mailbox) = counted(2);
        address.send(1).expect("room");
        address.send(2).expect("room");
        assert_eq!(address.send(3), Err(Returned::Full(3)));
        mailbox.drain(1, &mut Vec::new());
        address.send(4).expect("room again");
        drop(mailbox);
        assert_eq!(address.clone().send(5).map_err(Returned::into_message), Err(5));
    }

    /// A reader that sleeps until woken gets every message of many racing senders: no wake is lost.
    #[test]
    fn no_wake_is_lost_between_racing_threads() {
        struct Park(std::thread::Thread);
        impl Wake for Park {
            fn wake(&self) {
                self.0.unpark();
            }
        }
        const EACH: u32 = 20_000;
        let (address, mut mailbox) = mailbox(Arc::new(Park(std::thread::current())), usize::MAX);
        let senders: Vec<_> = (0..4)
            .map(|sender| {
                let address = address.clone();
                std::thread::spawn(move || {
                    for n in 0..EACH {
                        address.send((sender, n)).expect("the reader lives");
                    }
                })
            })
            .collect();
        let mut next = [0; 4];
        let mut messages = Vec::new();
        while next.iter().sum::<u32>() < 4 * EACH {
            std::thread::park();
            mailbox.drain(64, &mut messages);
            for (sender, n) in messages.drain(..) {
                assert_eq!(n, next[sender], "in order");
                next[sender] += 1;
            }
        }
        for sender in senders {
            sender.join().expect("no panic");
        }
        assert_eq!(address.waiting(), 0);
    }
}
