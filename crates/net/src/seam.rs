//! The interface between a worker and the carrier of its bytes.
//!
//! Everything is non-blocking and edge-triggered: an [`Event`] says that something changed since the last
//! one, and a worker reads or writes until it gets `WouldBlock`. For `recv`, a read shorter than the buffer
//! may end the turn too, because on a stream socket it means that nothing is left *now*; but not when the
//! event said [`Event::read_closed`]: the end of the stream may already be behind the bytes just read, no
//! further edge will announce it, so the worker reads on until `Ok(0)`.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// What a worker gave at registration and gets back with each event. The worker packs a generation into
/// it, so that an event of a closed connection never reaches its slot's next tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

impl Token {
    /// Events of the worker's mailbox carry this token.
    pub const MAIL: Token = Token(u64::MAX);
}

/// Something changed on a socket, a listener or the mailbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The registration it belongs to.
    pub token: Token,
    /// There may be bytes, an end of stream or an error to read; or a connection to accept.
    pub readable: bool,
    /// There may be room to write, or a connect has ended.
    pub writable: bool,
    /// The peer has ended its direction (EPOLLRDHUP) or is gone: read until `Ok(0)` or an error, a short
    /// read is not the end of the turn.
    pub read_closed: bool,
    /// The peer has gone in both directions (EPOLLHUP, EPOLLERR). The read that follows tells why.
    pub hangup: bool,
}

/// Where a listener listens and where a server is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Target {
    /// A TCP address.
    Tcp(SocketAddr),
    /// A Unix socket path; one that starts with `@` is abstract (Linux).
    Unix(PathBuf),
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Target::Tcp(address) => address.fmt(f),
            Target::Unix(path) => path.display().fmt(f),
        }
    }
}

/// The other end of an accepted connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Peer {
    /// A TCP client.
    Tcp(SocketAddr),
    /// A Unix socket client with the user id the kernel vouches for.
    Unix {
        /// Effective user id of the peer, if the system tells.
        uid: Option<u32>,
    },
    /// Somebody behind a load balancer that does not say who. Nothing is believed of them.
    Unknown,
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Peer::Tcp(address) => address.fmt(f),
            Peer::Unix { uid: Some(uid) } => write!(f, "unix(uid={uid})"),
            Peer::Unix { uid: None } => f.write_str("unix"),
            Peer::Unknown => f.write_str("unknown"),
        }
    }
}

/// A connection that could not be packed. It is still registered and works as before.
#[derive(Debug)]
pub struct Kept<S> {
    /// The connection, unchanged.
    pub socket: S,
    /// Why. `WouldBlock`: too many parcels are under way to that worker, try again later.
    pub error: io::Error,
}

/// What carries a worker's bytes.
pub trait Net {
    /// An open connection. Dropping it closes it.
    type Socket;
    /// A listener that belongs to this worker.
    type Listener;
    /// A connection on its way to another worker (see [`Net::pack`]).
    type Parcel: Send + 'static;

    /// Nanoseconds of a monotonic clock, as it was when [`Net::wait`] last returned. Cheap: no system call.
    fn now_ns(&self) -> u64;

    /// This end's address of a TCP connection, if the system tells.
    fn local(&self, _socket: &Self::Socket) -> Option<std::net::SocketAddr> {
        None
    }

    /// Waits until something happened or `timeout` has passed, and fills `events` (cleared first). `None`
    /// waits until an event arrives. An interrupted wait returns no events.
    ///
    /// # Errors
    /// The event loop itself has failed; nothing can be waited for any more.
    fn wait(&mut self, events: &mut Vec<Event>, timeout: Option<Duration>) -> io::Result<()>;

    /// Whether the calling thread, when something happens, lets who is on a core finish its time slice first.
    /// More happens meanwhile, and one turn handles it all: fewer wake-ups for the same work, and each a
    /// little later. Where the system knows no such thing, nothing changes.
    fn gather(&mut self, _gathers: bool) {}

    /// Starts to watch a listener.
    ///
    /// # Errors
    /// The system's error when it cannot watch more descriptors (`ENOSPC`, `ENOMEM`).
    fn watch_listener(&mut self, listener: &Self::Listener, token: Token) -> io::Result<()>;

    /// Takes one waiting connection.
    ///
    /// # Errors
    /// `WouldBlock` when no connection waits; `EMFILE`, `ENFILE`, `ENOBUFS` and `ENOMEM` when the system has
    /// no room, so that the worker can back off.
    fn accept(&mut self, listener: &Self::Listener) -> io::Result<(Self::Socket, Peer)>;

    /// Starts a connection. It is under way when this returns; register it and wait for `writable`, then
    /// ask [`Net::connect_outcome`].
    ///
    /// # Errors
    /// The system's error when the connection cannot begin: no descriptor, no port (`AddrNotAvailable`), no
    /// route. `WouldBlock` for a Unix socket whose listener has no room.
    fn connect(&mut self, target: &Target) -> io::Result<Self::Socket>;

    /// How a connect ended. `Ok(false)`: not yet.
    ///
    /// # Errors
    /// Why the connect failed.
    fn connect_outcome(&mut self, socket: &Self::Socket) -> io::Result<bool>;

    /// Starts to watch a connection for reading and writing. Once per socket and worker.
    ///
    /// # Errors
    /// The system's error when it cannot watch more descriptors (`ENOSPC`, `ENOMEM`).
    fn register(&mut self, socket: &Self::Socket, token: Token) -> io::Result<()>;

    /// Reads what is there. `Ok(0)` is the end of the stream (`buf` is never empty).
    ///
    /// # Errors
    /// `WouldBlock` when nothing is there; else the connection is broken.
    fn recv(&mut self, socket: &Self::Socket, buf: &mut [u8]) -> io::Result<usize>;

    /// Writes what there is room for. A peer that has gone is an error, never a signal.
    ///
    /// # Errors
    /// `WouldBlock` when there is no room; else the connection is broken.
    fn send(&mut self, socket: &Self::Socket, bytes: &[u8]) -> io::Result<usize>;

    /// Tells the peer that nothing more will come.
    ///
    /// # Errors
    /// The connection is broken already.
    fn shutdown_write(&mut self, socket: &Self::Socket) -> io::Result<()>;

    /// Closes a connection. With `abort`, unread and unsent bytes are thrown away at once. Without, what was
    /// sent still goes out; but bytes of the peer that nobody has read make TCP reset the connection, and
    /// the peer may then lose the last bytes it was sent. Who wants an error message to arrive reads what
    /// is there before it closes.
    fn close(&mut self, socket: Self::Socket, abort: bool);

    /// Takes a registered connection out of this worker so that worker number `to` can have it. The parcel
    /// travels in a mailbox message to that worker and to no other. A parcel that is dropped closes its
    /// connection.
    ///
    /// # Errors
    /// The socket comes back, still of this worker, with the reason (see
    /// [`crate::handover::Exchange::pack`]).
    fn pack(&mut self, socket: Self::Socket, to: usize) -> Result<Self::Parcel, Kept<Self::Socket>>;

    /// Takes a connection that another worker packed for this one, and watches it. What can be read or
    /// written already is reported by an event of its own.
    ///
    /// # Errors
    /// The system's error; the connection is closed then.
    fn unpack(&mut self, parcel: Self::Parcel, token: Token) -> io::Result<Self::Socket>;
}
