//! Waking a thread that waits in [`crate::Net::wait`].
//!
//! Owns: the descriptor that wakes. Must not know: why the thread is woken.
//!
//! **With private descriptor tables** (see [`crate::tables`]) a descriptor is a number that every thread
//! looks up in its own table. A [`KernelWake`] works from every thread only because it is created before any
//! table splits off, keeps its number in all of them, and is never closed while they live. Therefore create
//! every wake before the first worker starts; [`crate::fleet`] does. For the same reason a thread with a
//! private table must never wake a foreign event loop (tokio's `Notify`, `oneshot` or `mpsc` write to a
//! descriptor number of *their* table): it sends to a mailbox whose wake is a `KernelWake`, and the control
//! thread watches [`KernelWake::as_fd`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};

/// Makes a waiting thread return from its wait. Called from any thread; must not block. The simulator has
/// its own.
pub trait Wake: Send + Sync {
    /// Wakes. If the thread is not waiting, its next wait returns at once.
    fn wake(&self);
}

/// Wakes a thread that waits in epoll or kqueue: an eventfd (Linux) or a pipe. One write is one system call.
#[derive(Debug)]
pub struct KernelWake {
    /// The descriptor to wait for.
    source: OwnedFd,
    /// The other end of the pipe; an eventfd has none.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    sink: OwnedFd,
}

impl KernelWake {
    /// Makes the descriptor. It is open in the calling thread's table and in those that split off later.
    ///
    /// # Errors
    /// `EMFILE` or `ENFILE` when there are no descriptors left.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    pub fn new() -> io::Result<KernelWake> {
        use rustix::event::{EventfdFlags, eventfd};
        Ok(KernelWake { source: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    /// Makes the pipe.
    ///
    /// # Errors
    /// The process has no descriptors left.
    #[cfg(not(any(target_os = "linux", target_os = "android")))]
    pub fn new() -> io::Result<KernelWake> {
        // The standard library's pipe closes on exec.
        let (source, sink) = io::pipe()?;
        let (source, sink) = (OwnedFd::from(source), OwnedFd::from(sink));
        rustix::io::ioctl_fionbio(&source, true)?;
        rustix::io::ioctl_fionbio(&sink, true)?;
        Ok(KernelWake { source, sink })
    }

    /// Every descriptor number that has to stay open in all tables.
    pub fn descriptors(&self) -> Vec<RawFd> {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        return vec![self.source.as_raw_fd()];
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        return vec![self.source.as_raw_fd(), self.sink.as_raw_fd()];
    }

    /// Takes back all wakes so far, for a level-triggered wait. An edge-triggered wait on an eventfd does not
    /// need it: every write is an edge, and the counter cannot overflow in centuries.
    pub fn clear(&self) {
        let mut bytes = [0; 64];
        // Ends with WouldBlock; an eventfd is empty after one read.
        while rustix::io::read(&self.source, &mut bytes).is_ok_and(|count| count == bytes.len()) {}
    }
}

impl Wake for KernelWake {
    fn wake(&self) {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        let sink = &self.source;
        #[cfg(not(any(target_os = "linux", target_os = "android")))]
        let sink = &self.sink;
        // A full pipe (WouldBlock) already wakes; nothing else can go wrong with a descriptor that is ours.
        let outcome = rustix::io::retry_on_intr(|| rustix::io::write(sink, &1u64.to_ne_bytes()));
        debug_assert!(
            matches!(outcome, Ok(8) | Err(rustix::io::Errno::AGAIN)),
            "the wake descriptor is not open in this thread's table: {outcome:?}"
        );
    }
}

impl AsFd for KernelWake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.source.as_fd()
    }
}
