//! [`Net`] on the real kernel: epoll or kqueue by mio, edge-triggered.
//!
//! Owns: one thread's event queue. Must not know: what is connected or why.
//!
//! Invariants: every connection and listener is non-blocking and closed on exec; each is registered once, for
//! both directions; one receive or send is one system call; nothing here blocks but [`Net::wait`]. A
//! connection is closed by its last descriptor, which takes it out of the event queue as well, so closing
//! needs no deregistration; handing over does.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Poll};
use rustix::io::retry_on_intr;
use rustix::net::{RecvFlags, SendFlags, Shutdown};
use socket2::SockRef;

use crate::handover::{Exchange, Inbox, Parcel};
use crate::listener::Listener;
use crate::seam::{Event, Kept, Net, Peer, Target, Token};
use crate::socket::{self, Socket, SocketOptions};
use crate::wake::KernelWake;

/// The most events that one wait returns.
const EVENTS_PER_WAIT: usize = 1024;

// A token has 64 bits, and mio stores it in a `usize`.
const _: () = assert!(usize::BITS == 64, "Weir runs on 64-bit systems");

/// One thread's event loop on the real kernel.
#[derive(Debug)]
pub struct Kernel {
    poll: Poll,
    ready: mio::Events,
    now_ns: u64,
    wake: Arc<KernelWake>,
    exchange: Exchange,
    inbox: Inbox,
    options: SocketOptions,
}

impl Kernel {
    /// An event loop for the calling thread, which is worker number `worker` of the exchange. `wake` wakes
    /// it, `options` are for the connections it starts. With private descriptor tables the thread must have
    /// its table already ([`crate::fleet::Seat::enter`] sees to it).
    ///
    /// # Errors
    /// The system's error when it has no descriptor for the event loop (`EMFILE`, `ENFILE`, `ENOMEM`).
    pub fn new(
        wake: Arc<KernelWake>,
        exchange: Exchange,
        worker: usize,
        options: SocketOptions,
    ) -> io::Result<Kernel> {
        let poll = Poll::new()?;
        let token = mio::Token(Token::MAIL.0 as usize);
        let source = wake.as_fd().as_raw_fd();
        poll.registry().register(&mut SourceFd(&source), token, Interest::READABLE)?;
        let (inbox, exchange) = (exchange.inbox(worker), exchange.of(worker));
        let ready = mio::Events::with_capacity(EVENTS_PER_WAIT);
        Ok(Kernel { poll, ready, now_ns: monotonic_ns(), wake, exchange, inbox, options })
    }

    /// An event loop that stands alone: its own wake, one shared descriptor table.
    ///
    /// # Errors
    /// As [`Kernel::new`].
    pub fn alone(options: SocketOptions) -> io::Result<Kernel> {
        Kernel::new(Arc::new(KernelWake::new()?), Exchange::shared(), 0, options)
    }

    /// What wakes this event loop: for [`crate::mailbox::mailbox`].
    pub fn wake(&self) -> Arc<KernelWake> {
        Arc::clone(&self.wake)
    }

    /// Starts a TCP connection as [`Net::connect`] does, from a local address of the caller's choice (for
    /// example 127.0.0.7). Load generators need it: each pair of local address and target has its own 28,000
    /// ports. A Unix target ignores `source`.
    ///
    /// # Errors
    /// As [`Net::connect`]; `AddrNotAvailable` when `source` is not of this machine or has no port left.
    pub fn connect_from(&mut self, target: &Target, source: IpAddr) -> io::Result<Socket> {
        socket::connect(target, Some(source), &self.options)
    }

    /// Replaces the options for connections that are started from now on.
    pub fn set_options(&mut self, options: SocketOptions) {
        self.options = options;
    }

    /// Takes a listener that was packed for this worker.
    ///
    /// # Errors
    /// As [`Net::unpack`].
    pub fn unpack_listener(&mut self, parcel: Parcel) -> io::Result<Listener> {
        self.inbox.unpack(parcel).and_then(Listener::adopt)
    }

    fn watch(&self, descriptor: BorrowedFd<'_>, token: Token, interest: Interest) -> io::Result<()> {
        debug_assert!(token != Token::MAIL, "that token is the mailbox's");
        let raw = descriptor.as_raw_fd();
        self.poll.registry().register(&mut SourceFd(&raw), mio::Token(token.0 as usize), interest)
    }

    /// Ends the registration of a connection that lives on elsewhere. A connection that was never
    /// registered is fine too.
    fn unwatch(&self, descriptor: BorrowedFd<'_>) {
        let raw = descriptor.as_raw_fd();
        let outcome = self.poll.registry().deregister(&mut SourceFd(&raw));
        debug_assert!(
            !outcome.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::NotFound),
            "a descriptor that is open can be deregistered: {outcome:?}"
        );
    }
}

/// The monotonic clock. All workers read the same one, so that their waiting times can be compared.
pub fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

fn translate(event: &mio::event::Event) -> Event {
    // An error is both, so that whoever waits for either direction meets it.
    let (error, read_closed, write_closed) =
        (event.is_error(), event.is_read_closed(), event.is_write_closed());
    Event {
        token: Token(event.token().0 as u64),
        readable: event.is_readable() || read_closed || error,
        writable: event.is_writable() || write_closed || error,
        read_closed: read_closed || error,
        hangup: error || (read_closed && write_closed),
    }
}

impl Net for Kernel {
    type Socket = Socket;
    type Listener = Listener;
    type Parcel = Parcel;

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn local(&self, socket: &Socket) -> Option<std::net::SocketAddr> {
        std::net::SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok()
    }

    fn gather(&mut self, gathers: bool) {
        crate::priority::gather(gathers);
    }

    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let outcome = self.poll.poll(&mut self.ready, timeout);
        self.now_ns = monotonic_ns();
        match outcome {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            Err(error) => return Err(error),
        }
        events.extend(self.ready.iter().map(translate));
        if events.iter().any(|event| event.token == Token::MAIL) {
            // A pipe has to be emptied; an edge-triggered eventfd does not, which saves a system call.
            #[cfg(not(any(target_os = "linux", target_os = "android")))]
            self.wake.clear();
            self.inbox.sweep();
        }
        Ok(())
    }

    fn watch_listener(&mut self, listener: &Listener, token: Token) -> io::Result<()> {
        self.watch(listener.as_fd(), token, Interest::READABLE)
    }

    fn accept(&mut self, listener: &Listener) -> io::Result<(Socket, Peer)> {
        listener.accept()
    }

    fn connect(&mut self, target: &Target) -> io::Result<Socket> {
        socket::connect(target, None, &self.options)
    }

    fn connect_outcome(&mut self, socket: &Socket) -> io::Result<bool> {
        socket::connect_outcome(socket)
    }

    fn register(&mut self, socket: &Socket, token: Token) -> io::Result<()> {
        self.watch(socket.as_fd(), token, Interest::READABLE | Interest::WRITABLE)
    }

    fn recv(&mut self, socket: &Socket, buf: &mut [u8]) -> io::Result<usize> {
        debug_assert!(!buf.is_empty(), "an empty read looks like the end of the stream");
        let (count, _) = retry_on_intr(|| rustix::net::recv(socket, &mut *buf, RecvFlags::empty()))?;
        Ok(count)
    }

    fn send(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        // On Apple systems SO_NOSIGPIPE is set on the socket instead.
        #[cfg(not(target_vendor = "apple"))]
        let flags = SendFlags::NOSIGNAL;
        #[cfg(target_vendor = "apple")]
        let flags = SendFlags::empty();
        Ok(retry_on_intr(|| rustix::net::send(socket, bytes, flags))?)
    }

    fn shutdown_write(&mut self, socket: &Socket) -> io::Result<()> {
        Ok(rustix::net::shutdown(socket, Shutdown::Write)?)
    }

    fn close(&mut self, socket: Socket, abort: bool) {
        if abort {
            // TCP then resets; a Unix socket throws everything away by itself. If it cannot be set, the
            // connection is gone already.
            drop(SockRef::from(&socket).set_linger(Some(Duration::ZERO)));
        }
        drop(socket);
    }

    fn pack(&mut self, socket: Socket, to: usize) -> Result<Parcel, Kept<Socket>> {
        match self.exchange.pack_watched(socket.descriptor, to, |descriptor| self.unwatch(descriptor)) {
            Ok(parcel) => Ok(parcel),
            Err((descriptor, error)) => Err(Kept { socket: Socket { descriptor }, error }),
        }
    }

    fn unpack(&mut self, parcel: Parcel, token: Token) -> io::Result<Socket> {
        let socket = Socket { descriptor: self.inbox.unpack(parcel)? };
        self.register(&socket, token)?;
        Ok(socket)
    }
}
