//! Handing a connection from one worker to another.
//!
//! Owns: descriptors on their way. Must not know: what is connected, when to hand over.
//!
//! Workers that share one descriptor table hand over the descriptor itself: a [`Parcel`] holds it. Workers
//! with private tables (Linux) cannot: the number means nothing in another table. Each of these workers has a
//! *lane*, a socket pair created before the tables split, whose both ends are open in every table. The sender
//! puts the descriptor into the receiver's lane (SCM_RIGHTS) under a number; the parcel is that number. The
//! receiver takes descriptors out of its lane until it finds the number of the parcel in hand and keeps the
//! others for their own parcels. Parcels may therefore overtake one another in the mailbox, and no call ever
//! blocks.
//!
//! Invariants: a descriptor is in the lane before its parcel exists, so unpacking finds it. A dropped parcel
//! closes its connection: at once when it holds the descriptor, otherwise by the receiver, which is woken for
//! it and calls [`Inbox::sweep`]. When a receiver ends, its lane sleeps: its contents are closed, and nothing
//! can be sent there until the same worker starts again and takes a new inbox. A descriptor put there at that
//! very moment is closed with its parcel.
//!
//! Some workers may share the first table (the first of them, and the control thread) while others have
//! tables of their own: between those that share one, a parcel holds the descriptor.
//!
//! Bound: the capacity of the lane's socket buffer, some 280 descriptors under Linux's defaults (and never
//! more than the process may have open). Beyond it, sending is refused with `WouldBlock`.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};

use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sync::{Arc, Mutex, MutexGuard, PoisonError};
use crate::wake::Wake;

/// A connection on its way. It must be unpacked by the worker it was packed for; dropped, it closes.
#[derive(Debug)]
pub struct Parcel(Load);

#[derive(Debug)]
enum Load {
    /// All tables are one: this is the descriptor.
    Held(OwnedFd),
    /// The descriptor lies in the receiver's lane.
    InLane(Ticket),
}

/// The right to one descriptor in a lane.
struct Ticket {
    lanes: Arc<[Lane]>,
    to: usize,
    number: u64,
    used: bool,
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Ticket({} for worker {})", self.number, self.to)
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        if let (false, Some(lane)) = (self.used, self.lanes.get(self.to)) {
            lane.abandon(self.number);
        }
    }
}

/// The way to one worker.
struct Lane {
    entrance: OwnedFd,
    exit: OwnedFd,
    #[cfg_attr(not(any(target_os = "linux", target_os = "android")), allow(dead_code))]
    next_number: AtomicU64,
    /// Numbers of parcels that were dropped. Bounded by what the lane and the receiver's shelf hold.
    abandoned: Mutex<Vec<u64>>,
    has_abandoned: AtomicBool,
    /// Nobody receives. Changes under the lock of `abandoned`.
    sleeps: AtomicBool,
    wake: Arc<dyn Wake>,
}

impl Lane {
    fn abandon(&self, number: u64) {
        let mut abandoned = self.lock();
        if self.sleeps.load(Ordering::SeqCst) {
            // What lies there is nobody's, and a lane is open in all tables.
            return self.empty();
        }
        abandoned.push(number);
        drop(abandoned);
        if !self.has_abandoned.swap(true, Ordering::AcqRel) {
            self.wake.wake();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<u64>> {
        self.abandoned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes what lies in it.
    fn empty(&self) {
        while receive(self.exit.as_fd()).is_ok() {}
    }

    /// Its receiver comes.
    fn awake(&self) {
        let mut abandoned = self.lock();
        abandoned.clear();
        self.has_abandoned.store(false, Ordering::Release);
        self.sleeps.store(false, Ordering::SeqCst);
    }

    /// Its receiver goes.
    fn sleep(&self) {
        let _abandoned = self.lock();
        self.sleeps.store(true, Ordering::SeqCst);
        self.empty();
    }
}

/// Where workers put connections for one another.
#[derive(Clone)]
pub struct Exchange {
    /// `None`: all threads share one descriptor table.
    lanes: Option<Arc<[Lane]>>,
    /// Workers below this number share the first table.
    together: usize,
    /// This is the exchange of a thread with the first table.
    in_first: bool,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exchange({} lanes)", self.lanes.as_ref().map_or(0, |lanes| lanes.len()))
    }
}

impl Exchange {
    /// For threads that share one descriptor table.
    pub fn shared() -> Exchange {
        Exchange { lanes: None, together: 0, in_first: true }
    }

    /// For threads with private tables: one lane for each of `wakes`, which are the workers' own. The first
    /// `together` workers share the table of the calling thread. Must be called before any table splits off.
    ///
    /// # Errors
    /// The system's error when it has no descriptors left (`EMFILE`, `ENFILE`).
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn private(wakes: &[Arc<dyn Wake>], together: usize) -> io::Result<Exchange> {
        use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
        let mut lanes = Vec::with_capacity(wakes.len());
        for wake in wakes {
            // SEQPACKET keeps messages apart and, unlike DGRAM, is not limited to ten of them
            // (net.unix.max_dgram_qlen).
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (entrance, exit) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
            lanes.push(Lane {
                entrance,
                exit,
                next_number: AtomicU64::new(0),
                abandoned: Mutex::default(),
                has_abandoned: AtomicBool::new(false),
                sleeps: AtomicBool::new(false),
                wake: Arc::clone(wake),
            });
        }
        Ok(Exchange { lanes: Some(lanes.into()), together, in_first: true })
    }

    /// The exchange as worker number `worker` uses it.
    pub fn of(&self, worker: usize) -> Exchange {
        Exchange { in_first: worker < self.together, ..self.clone() }
    }

    /// Every descriptor number that has to stay open in all tables.
    pub fn descriptors(&self) -> Vec<RawFd> {
        use std::os::fd::AsRawFd;
        let lanes = self.lanes.iter().flat_map(|lanes| lanes.iter());
        lanes.flat_map(|lane| [lane.entrance.as_raw_fd(), lane.exit.as_raw_fd()]).collect()
    }

    /// Where worker number `worker` takes what was packed for it. One for each worker.
    pub fn inbox(&self, worker: usize) -> Inbox {
        let lanes = self.lanes.clone().filter(|lanes| worker < lanes.len());
        if let Some(lane) = lanes.as_ref().and_then(|lanes| lanes.get(worker)) {
            lane.awake();
        }
        Inbox { lane: lanes.map(|lanes| (lanes, worker)), shelf: HashMap::new() }
    }

    /// Packs a descriptor for worker number `to`.
    ///
    /// # Errors
    /// The descriptor comes back with `WouldBlock` when that worker's lane is full, `BrokenPipe` when the
    /// worker is gone, `InvalidInput` when there is no such worker.
    pub fn pack(&self, descriptor: OwnedFd, to: usize) -> Result<Parcel, (OwnedFd, io::Error)> {
        self.pack_watched(descriptor, to, |_| {})
    }

    /// Packs a descriptor that an event queue watches. `unwatch` is called once it is certain that it goes,
    /// while its number is still open here.
    pub(crate) fn pack_watched(
        &self,
        descriptor: OwnedFd,
        to: usize,
        unwatch: impl FnOnce(BorrowedFd<'_>),
    ) -> Result<Parcel, (OwnedFd, io::Error)> {
        let lanes = self.lanes.as_ref().filter(|_| !self.in_first || to >= self.together);
        let Some(lanes) = lanes else {
            unwatch(descriptor.as_fd());
            return Ok(Parcel(Load::Held(descriptor)));
        };
        match send(lanes, descriptor.as_fd(), to) {
            Ok(ticket) => {
                // The number is closed here; the lane's copy keeps the connection open, and would keep it in
                // the event queue too.
                unwatch(descriptor.as_fd());
                Ok(Parcel(Load::InLane(ticket)))
            }
            Err(error) => Err((descriptor, error)),
        }
    }
}

/// Where one worker takes what was packed for it.
pub struct Inbox {
    lane: Option<(Arc<[Lane]>, usize)>,
    /// Taken out of the lane before their parcels came. `None`: this table was full, so it is lost.
    shelf: HashMap<u64, Option<OwnedFd>>,
}

impl fmt::Debug for Inbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Inbox({} on the shelf)", self.shelf.len())
    }
}

impl Inbox {
    /// Takes the descriptor of a parcel.
    ///
    /// # Errors
    /// `EMFILE` when this table is full, `InvalidInput` when the parcel is for another worker. The descriptor
    /// is closed then.
    pub fn unpack(&mut self, parcel: Parcel) -> io::Result<OwnedFd> {
        match parcel.0 {
            Load::Held(descriptor) => Ok(descriptor),
            Load::InLane(mut ticket) => {
                let Some((lanes, worker)) = &self.lane else { return Err(misdirected()) };
                if !Arc::ptr_eq(lanes, &ticket.lanes) || *worker != ticket.to {
                    return Err(misdirected());
                }
                ticket.used = true;
                let number = ticket.number;
                self.take(number)
            }
        }
    }

    /// Closes the connections whose parcels were dropped. Costs nothing when there are none. To be called
    /// after each wake.
    pub fn sweep(&mut self) {
        let Some((lanes, worker)) = &self.lane else { return };
        let Some(lane) = lanes.get(*worker) else { return };
        if !lane.has_abandoned.swap(false, Ordering::AcqRel) {
            return;
        }
        let numbers = std::mem::take(&mut *lane.lock());
        for number in numbers {
            // Taking it closes it. If that fails, it is closed all the same.
            drop(self.take(number));
        }
    }

    /// Takes one number from the shelf or out of the lane.
    fn take(&mut self, number: u64) -> io::Result<OwnedFd> {
        let lost = || io::Error::from(rustix::io::Errno::MFILE);
        if let Some(descriptor) = self.shelf.remove(&number) {
            return descriptor.ok_or_else(lost);
        }
        let Some((lanes, worker)) = &self.lane else { return Err(misdirected()) };
        let Some(lane) = lanes.get(*worker) else { return Err(misdirected()) };
        loop {
            let (found, descriptor) = receive(lane.exit.as_fd())?;
            if found == number {
                return descriptor.ok_or_else(lost);
            }
            self.shelf.insert(found, descriptor);
        }
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        let Some((lanes, worker)) = &self.lane else { return };
        let Some(lane) = lanes.get(*worker) else { return };
        lane.sleep();
    }
}

fn misdirected() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the parcel was packed for another worker")
}

/// Puts a copy of the descriptor into the lane of worker `to`.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn send(lanes: &Arc<[Lane]>, descriptor: BorrowedFd<'_>, to: usize) -> io::Result<Ticket> {
    use rustix::io::Errno;
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
    use std::mem::MaybeUninit;

    let Some(lane) = lanes.get(to) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "there is no such worker"));
    };
    if lane.sleeps.load(Ordering::SeqCst) {
        return Err(io::ErrorKind::BrokenPipe.into());
    }
    let number = lane.next_number.fetch_add(1, Ordering::Relaxed);
    let descriptors = [descriptor];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fits = control.push(SendAncillaryMessage::ScmRights(&descriptors));
    debug_assert!(fits, "the space was measured for one descriptor");
    let payload = number.to_ne_bytes();
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let sent = rustix::io::retry_on_intr(|| {
        sendmsg(&lane.entrance, &[io::IoSlice::new(&payload)], &mut control, flags)
    });
    match sent {
        Ok(_) => Ok(Ticket { lanes: Arc::clone(lanes), to, number, used: false }),
        // Too many descriptors of this user are under way, or no memory for one more: later it may work.
        Err(Errno::TOOMANYREFS | Errno::NOBUFS | Errno::NOMEM) => Err(io::ErrorKind::WouldBlock.into()),
        Err(errno) => Err(errno.into()),
    }
}

/// Takes the next number out of a lane, with its descriptor; without, if this table was full and the kernel
/// has closed it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn receive(exit: BorrowedFd<'_>) -> io::Result<(u64, Option<OwnedFd>)> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
    use std::mem::MaybeUninit;

    let mut payload = [0; size_of::<u64>()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    let received = rustix::io::retry_on_intr(|| {
        recvmsg(exit, &mut [io::IoSliceMut::new(&mut payload)], &mut control, flags)
    })?;
    if received.bytes != payload.len() {
        // The other end is closed: nobody sends any more.
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let descriptor = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok((u64::from_ne_bytes(payload), descriptor))
}

// Elsewhere tables are never private, so there are no lanes and nothing calls these.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn send(_lanes: &Arc<[Lane]>, _descriptor: BorrowedFd<'_>, _to: usize) -> io::Result<Ticket> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn receive(_exit: BorrowedFd<'_>) -> io::Result<(u64, Option<OwnedFd>)> {
    Err(io::ErrorKind::Unsupported.into())
}
