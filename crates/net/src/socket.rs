//! One connection as the kernel sees it: created, configured, named.
//!
//! Owns: socket options and addresses. Must not know: event loops, what the bytes mean.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, SockAddr, SockRef, TcpKeepalive, Type};

use crate::seam::Target;

/// An open connection. Dropping it closes it.
#[derive(Debug)]
pub struct Socket {
    pub(crate) descriptor: OwnedFd,
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl From<OwnedFd> for Socket {
    /// Adopts a connected stream socket, for example of another process. It is expected to be non-blocking
    /// and close-on-exec; [`prepare_adopted`] makes it so.
    fn from(descriptor: OwnedFd) -> Socket {
        Socket { descriptor }
    }
}

/// TCP keepalive: how a peer that has vanished is noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keepalive {
    /// Seconds without traffic before the first probe; 0 leaves the system's default.
    pub idle_s: u32,
    /// Seconds between probes; 0 leaves the system's default.
    pub interval_s: u32,
    /// Unanswered probes before the connection is given up; 0 leaves the system's default.
    pub count: u32,
}

/// Options of a TCP connection. TCP_NODELAY is always set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketOptions {
    /// Keepalive probes, if wanted.
    pub keepalive: Option<Keepalive>,
    /// Milliseconds that sent bytes may stay unacknowledged before the connection is given up
    /// (TCP_USER_TIMEOUT, Linux); 0 leaves the system's default.
    pub user_timeout_ms: u32,
    /// Bytes of the kernel's receive and of its send buffer; 0 leaves the system's default, which adapts
    /// itself.
    pub buffer_bytes: usize,
}

impl SocketOptions {
    /// Sets the options on a TCP socket, or on a listener for the connections it will accept.
    pub(crate) fn apply(&self, socket: &SockRef<'_>) -> io::Result<()> {
        socket.set_tcp_nodelay(true)?;
        if let Some(keepalive) = self.keepalive {
            let seconds = |n: u32| Duration::from_secs(u64::from(n));
            let mut probes = TcpKeepalive::new();
            if keepalive.idle_s > 0 {
                probes = probes.with_time(seconds(keepalive.idle_s));
            }
            if keepalive.interval_s > 0 {
                probes = probes.with_interval(seconds(keepalive.interval_s));
            }
            if keepalive.count > 0 {
                probes = probes.with_retries(keepalive.count);
            }
            socket.set_keepalive(true)?;
            socket.set_tcp_keepalive(&probes)?;
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if self.user_timeout_ms > 0 {
            socket.set_tcp_user_timeout(Some(Duration::from_millis(u64::from(self.user_timeout_ms))))?;
        }
        if self.buffer_bytes > 0 {
            socket.set_recv_buffer_size(self.buffer_bytes)?;
            socket.set_send_buffer_size(self.buffer_bytes)?;
        }
        Ok(())
    }
}

/// A stream socket: non-blocking, closed on exec, and no SIGPIPE where that is a property of the socket.
pub(crate) fn new_stream(domain: Domain) -> io::Result<socket2::Socket> {
    #[cfg(not(target_vendor = "apple"))]
    return socket2::Socket::new(domain, Type::STREAM.nonblocking(), None);
    #[cfg(target_vendor = "apple")]
    {
        let socket = socket2::Socket::new(domain, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    }
}

/// Gives a descriptor that came from elsewhere (another process, the service manager) what [`Socket`] and
/// the listeners expect: non-blocking, closed on exec.
///
/// # Errors
/// The system's error when the flags cannot be set.
pub fn prepare_adopted(descriptor: &OwnedFd) -> io::Result<()> {
    rustix::io::ioctl_fionbio(descriptor, true)?;
    let flags = rustix::io::fcntl_getfd(descriptor)?;
    rustix::io::fcntl_setfd(descriptor, flags | rustix::io::FdFlags::CLOEXEC)?;
    #[cfg(target_vendor = "apple")]
    SockRef::from(descriptor).set_nosigpipe(true)?;
    Ok(())
}

/// The kernel's form of a Unix socket path; `@name` is abstract (Linux only).
pub(crate) fn unix_address(path: &Path) -> io::Result<SockAddr> {
    use std::os::unix::ffi::OsStrExt;
    match path.as_os_str().as_bytes().split_first() {
        Some((b'@', name)) if cfg!(any(target_os = "linux", target_os = "android")) => {
            let mut bytes = vec![0];
            bytes.extend_from_slice(name);
            SockAddr::unix(std::ffi::OsStr::from_bytes(&bytes))
        }
        Some((b'@', _)) => Err(io::Error::new(
            io::ErrorKind::Unsupported,
            "abstract socket names (@...) exist on Linux only",
        )),
        Some(_) => SockAddr::unix(path),
        None => Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket path is empty")),
    }
}

/// Starts a connection, from `source` if one is given (TCP only).
pub(crate) fn connect(
    target: &Target,
    source: Option<IpAddr>,
    options: &SocketOptions,
) -> io::Result<Socket> {
    let (socket, address) = match target {
        Target::Tcp(address) => {
            let socket = new_stream(Domain::for_address(*address))?;
            options.apply(&SockRef::from(&socket))?;
            if let Some(source) = source {
                bind_source(&socket, source)?;
            }
            (socket, SockAddr::from(*address))
        }
        Target::Unix(path) => (new_stream(Domain::UNIX)?, unix_address(path)?),
    };
    match socket.connect(&address) {
        Ok(()) => {}
        Err(error) if is_under_way(&error) => {}
        Err(error) => return Err(error),
    }
    Ok(Socket { descriptor: socket.into() })
}

/// EINTR: connect(2) goes on without us, as with EINPROGRESS.
fn is_under_way(error: &io::Error) -> bool {
    let under_way = [Errno::INPROGRESS, Errno::INTR];
    error.raw_os_error().is_some_and(|code| under_way.iter().any(|errno| errno.raw_os_error() == code))
}

/// Chooses the local address and leaves the port to `connect`, so that a local port is only taken for one
/// remote address: a load generator then has 28,000 ports for each source address *and* target.
fn bind_source(socket: &socket2::Socket, source: IpAddr) -> io::Result<()> {
    #[cfg(any(target_os = "linux", target_os = "android"))]
    set_bind_address_no_port(socket)?;
    socket.bind(&SockAddr::from(SocketAddr::new(source, 0)))
}

#[cfg(any(target_os = "linux", target_os = "android"))]
fn set_bind_address_no_port(socket: &socket2::Socket) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let on: libc::c_int = 1;
    // SAFETY: the descriptor is open for the whole call, and the kernel reads `size_of::<c_int>()` bytes from
    // the address of a live `c_int`.
    let outcome = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_IP,
            libc::IP_BIND_ADDRESS_NO_PORT,
            (&raw const on).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// How a connect ended: `Ok(true)` connected, `Ok(false)` not yet.
pub(crate) fn connect_outcome(socket: &Socket) -> io::Result<bool> {
    match rustix::net::getpeername(socket) {
        Ok(peer) => {
            let peer = peer.and_then(|address| SocketAddr::try_from(address).ok());
            if peer.is_some_and(|peer| is_connected_to_itself(socket, peer)) {
                return Err(Errno::CONNREFUSED.into());
            }
            Ok(true)
        }
        // macOS says INVAL when the connection has been shut down already.
        Err(Errno::NOTCONN | Errno::INVAL) => {
            rustix::net::sockopt::socket_error(socket)??;
            Ok(false)
        }
        Err(errno) => Err(errno.into()),
    }
}

/// A connect to a port of this machine where nobody listens meets itself when the kernel happens to choose
/// that very port as the local one: TCP's simultaneous open. It would read back what it writes.
fn is_connected_to_itself(socket: &Socket, peer: SocketAddr) -> bool {
    let local = || SocketAddr::try_from(rustix::net::getsockname(socket).ok()?).ok();
    peer.ip().is_loopback() && local() == Some(peer)
}

/// The user id of this process.
pub fn own_uid() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The effective user id of a Unix socket's other end, as the kernel vouches for it.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn peer_uid(descriptor: BorrowedFd<'_>) -> Option<u32> {
    rustix::net::sockopt::socket_peercred(descriptor).ok().map(|credentials| credentials.uid.as_raw())
}

/// The effective user id of a Unix socket's other end, as the kernel vouches for it.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn peer_uid(descriptor: BorrowedFd<'_>) -> Option<u32> {
    use std::os::fd::AsRawFd;
    let (mut uid, mut gid) = (0, 0);
    // SAFETY: the descriptor is open for the whole call, and both addresses are of live integers of the type
    // that getpeereid(3) writes.
    let outcome = unsafe { libc::getpeereid(descriptor.as_raw_fd(), &raw mut uid, &raw mut gid) };
    (outcome == 0).then_some(uid)
}
