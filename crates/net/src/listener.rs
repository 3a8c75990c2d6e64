//! Listeners: TCP and Unix sockets, one for each worker.
//!
//! Owns: binding, what a bind error means to the user, socket files. Must not know: who is let in.
//!
//! TCP: every worker has a socket of its own on the same port (SO_REUSEPORT; Linux and FreeBSD), and the
//! kernel spreads connections over them. Elsewhere, and for Unix sockets, workers share one socket by
//! duplicates: the quickest accepts. A connection that waits in a listener's own queue is reset when that
//! listener closes, so a worker that stops accepts the waiting connections before it closes.
//!
//! Sharing a port by SO_REUSEPORT would also let a second Weir of the same user listen there unnoticed.
//! Before the listeners are created, a probe without that option therefore checks that the port is free.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use socket2::{Domain, SockAddr, SockRef};

use crate::seam::{Peer, Target};
use crate::socket::{self, Socket, SocketOptions};

/// Whether each worker can have its own socket on one TCP port, with connections spread over them.
const PORT_PER_WORKER: bool = cfg!(any(target_os = "linux", target_os = "android", target_os = "freebsd"));

/// How to listen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenOptions {
    /// Connections that may wait to be accepted, for each listener. The system cuts it to its own maximum
    /// (net.core.somaxconn).
    pub backlog: u32,
    /// Permission bits of a Unix socket file. Abstract sockets have none.
    pub unix_mode: u32,
    /// Group of a Unix socket file; `None`: that of the process.
    pub unix_group: Option<u32>,
    /// Let another process that listens with SO_REUSEPORT stay: both get connections. For taking over from a
    /// running Weir.
    pub share_port: bool,
    /// Options of the accepted connections.
    pub sockets: SocketOptions,
}

impl Default for ListenOptions {
    fn default() -> Self {
        ListenOptions {
            backlog: 4096,
            unix_mode: 0o777,
            unix_group: None,
            share_port: false,
            sockets: SocketOptions::default(),
        }
    }
}

/// Listeners of one target, one for each worker.
#[derive(Debug)]
pub struct Bound {
    /// As many as there are workers.
    pub listeners: Vec<Listener>,
    /// Where they listen: the port is the real one if 0 was asked for.
    pub local: Target,
    /// The socket file, if there is one.
    pub file: Option<SocketFile>,
}

/// Why nothing listens there now.
#[derive(Debug)]
pub struct BindError {
    /// Where it should have listened.
    pub target: Target,
    /// What the system said.
    pub source: io::Error,
    /// What the user can do about it; a sentence.
    pub cure: String,
}

impl fmt::Display for BindError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on {}: {}. {}", self.target, self.source, self.cure)
    }
}

impl std::error::Error for BindError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// Binds `workers` listeners to one target.
///
/// # Errors
/// [`BindError`] names the target and the system's reason, such as an address in use.
pub fn bind(target: &Target, workers: usize, options: &ListenOptions) -> Result<Bound, BindError> {
    let outcome = match target {
        Target::Tcp(address) => bind_tcp(*address, workers, options),
        Target::Unix(path) => bind_unix(path, workers, options),
    };
    outcome.map_err(|source| BindError { target: target.clone(), cure: cure(target, &source), source })
}

fn bind_tcp(address: SocketAddr, workers: usize, options: &ListenOptions) -> io::Result<Bound> {
    if PORT_PER_WORKER && !options.share_port && address.port() != 0 {
        drop(tcp_socket(address, options, false)?);
    }
    let own_ports = PORT_PER_WORKER && (workers > 1 || options.share_port);
    let first = tcp_socket(address, options, own_ports)?;
    first.listen(backlog(options))?;
    let local = first.local_addr()?.as_socket().unwrap_or(address);
    let first = Listener { descriptor: first.into(), tcp: Some(options.sockets.clone()) };
    let mut listeners = vec![first];
    while listeners.len() < workers {
        let next = if own_ports {
            let socket = tcp_socket(local, options, true)?;
            socket.listen(backlog(options))?;
            Listener { descriptor: socket.into(), tcp: Some(options.sockets.clone()) }
        } else {
            listeners[0].duplicate()?
        };
        listeners.push(next);
    }
    Ok(Bound { listeners, local: Target::Tcp(local), file: None })
}

/// A bound TCP socket that does not listen yet.
fn tcp_socket(address: SocketAddr, options: &ListenOptions, own_port: bool) -> io::Result<socket2::Socket> {
    let socket = socket::new_stream(Domain::for_address(address))?;
    if address.is_ipv6() {
        // `[::]` and `0.0.0.0` are two addresses to listen on, on every system.
        socket.set_only_v6(true)?;
    }
    // Old connections of an earlier Weir, which the kernel keeps for a minute, do not hold the port.
    socket.set_reuse_address(true)?;
    if own_port {
        #[cfg(any(target_os = "linux", target_os = "android"))]
        socket.set_reuse_port(true)?;
        #[cfg(target_os = "freebsd")]
        socket.set_reuse_port_lb(true)?;
    }
    // Accepted connections inherit them (Linux).
    options.sockets.apply(&SockRef::from(&socket))?;
    socket.bind(&SockAddr::from(address))?;
    Ok(socket)
}

fn backlog(options: &ListenOptions) -> i32 {
    i32::try_from(options.backlog).unwrap_or(i32::MAX)
}

fn bind_unix(path: &Path, workers: usize, options: &ListenOptions) -> io::Result<Bound> {
    let address = socket::unix_address(path)?;
    let socket = socket::new_stream(Domain::UNIX)?;
    let is_file = path.as_os_str().as_bytes().first() != Some(&b'@');
    match socket.bind(&address) {
        Err(error) if is_file && error.kind() == io::ErrorKind::AddrInUse => {
            remove_stale(path, &address)?;
            socket.bind(&address)?;
        }
        outcome => outcome?,
    }
    let file = if is_file {
        // Nobody can connect before listen(2), so nobody gets in under a wider mode or by another group.
        if options.unix_group.is_some() {
            std::os::unix::fs::chown(path, None, options.unix_group)?;
        }
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(options.unix_mode))?;
        Some(SocketFile::of(path)?)
    } else {
        None
    };
    socket.listen(backlog(options))?;
    let first = Listener { descriptor: socket.into(), tcp: None };
    let mut listeners = vec![first];
    while listeners.len() < workers {
        let next = listeners[0].duplicate()?;
        listeners.push(next);
    }
    Ok(Bound { listeners, local: Target::Unix(path.to_path_buf()), file })
}

/// Removes a socket file that a dead process left behind: nobody answers a connect. Anything else stays.
fn remove_stale(path: &Path, address: &SockAddr) -> io::Result<()> {
    let in_use = || io::Error::from(Errno::ADDRINUSE);
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(in_use());
    }
    let caller = socket::new_stream(Domain::UNIX)?;
    match caller.connect(address) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => std::fs::remove_file(path),
        // Connected, or refused for another reason (its queue is full, no permission): somebody is there.
        _ => Err(in_use()),
    }
}

/// What the user can do about a port that is taken: by a listener, or only by a connection that goes out from
/// it.
pub fn cure_of_taken_port(address: SocketAddr) -> &'static str {
    // Other systems have no such files, and containers may hide them.
    let tables: Vec<String> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .collect();
    let states: Vec<bool> =
        tables.iter().flat_map(|table| table.lines()).filter_map(|line| listens_on(line, address)).collect();
    if !states.is_empty() && !states.contains(&true) {
        return "No program listens there, but a connection that goes out from this machine has the port: wait until it ends, \
                choose a port outside net.ipv4.ip_local_port_range, or keep this one free by net.ipv4.ip_local_reserved_ports.";
    }
    "Another program listens there: stop it, or choose another port."
}

/// Whether a line of /proc/net/tcp is of a listener; `None` when it has another port or address.
fn listens_on(line: &str, address: SocketAddr) -> Option<bool> {
    const LISTEN: &str = "0A";
    let mut fields = line.split_whitespace().skip(1);
    let (ip, port) = fields.next()?.split_once(':')?;
    let state = fields.nth(1)?;
    let ip = kernel_address(ip)?.to_canonical();
    let wanted = address.ip().to_canonical();
    let meets = ip == wanted || ip.is_unspecified() || wanted.is_unspecified();
    (u16::from_str_radix(port, 16) == Ok(address.port()) && meets).then_some(state == LISTEN)
}

/// An address as the kernel writes it: words of 32 bits in the machine's order.
fn kernel_address(hex: &str) -> Option<IpAddr> {
    let words: Option<Vec<[u8; 4]>> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| Some(u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?.to_ne_bytes()))
        .collect();
    match words?.concat().as_slice() {
        [a, b, c, d] => Some(IpAddr::from([*a, *b, *c, *d])),
        all => <[u8; 16]>::try_from(all).ok().map(IpAddr::from),
    }
}

/// What the user can do about a bind error.
fn cure(target: &Target, error: &io::Error) -> String {
    match (target, error.kind()) {
        (Target::Tcp(address), io::ErrorKind::AddrInUse) => cure_of_taken_port(*address).into(),
        (Target::Tcp(address), io::ErrorKind::PermissionDenied) if address.port() < 1024 => {
            "Ports below 1024 need root or the capability CAP_NET_BIND_SERVICE: choose a higher port.".into()
        }
        (Target::Tcp(_), io::ErrorKind::AddrNotAvailable) => {
            "No interface of this machine has this address: use one it has, or 0.0.0.0 or [::] for all."
                .into()
        }
        (Target::Unix(path), io::ErrorKind::AddrInUse) => match std::fs::symlink_metadata(path) {
            Ok(found) if !found.file_type().is_socket() => {
                "A file that is not a socket has this name: remove it, or choose another path.".into()
            }
            _ => "Another program answers there: stop it, or choose another path.".into(),
        },
        (Target::Unix(path), io::ErrorKind::NotFound) => {
            let directory = path.parent().unwrap_or(Path::new("/"));
            format!("Create the directory {} first.", directory.display())
        }
        (Target::Unix(path), io::ErrorKind::PermissionDenied) => {
            let directory = path.parent().unwrap_or(Path::new("/"));
            format!("The user Weir runs as must be allowed to write to {}.", directory.display())
        }
        (Target::Unix(_), io::ErrorKind::InvalidInput) => {
            "A socket path has at most 107 bytes (103 on macOS): choose a shorter one.".into()
        }
        _ if crate::backoff::is_exhaustion(error) => {
            "Raise the limit of open files (ulimit -n, LimitNOFILE) or the memory for sockets.".into()
        }
        _ => "Choose another address.".into(),
    }
}

/// A socket that accepts connections for one worker.
#[derive(Debug)]
pub struct Listener {
    descriptor: OwnedFd,
    /// Options for accepted connections; `None` for a Unix socket.
    tcp: Option<SocketOptions>,
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

impl From<Listener> for OwnedFd {
    fn from(listener: Listener) -> OwnedFd {
        listener.descriptor
    }
}

impl Listener {
    /// Takes over a socket that listens already: from the service manager, from an earlier process, or from
    /// another thread's table. Keeps the options that the socket has.
    ///
    /// # Errors
    /// The system's error when the descriptor is no socket or its flags cannot be set.
    pub fn adopt(descriptor: OwnedFd) -> io::Result<Listener> {
        socket::prepare_adopted(&descriptor)?;
        let is_tcp = SockRef::from(&descriptor).local_addr()?.as_socket().is_some();
        Ok(Listener { descriptor, tcp: is_tcp.then(SocketOptions::default) })
    }

    /// Where it listens.
    ///
    /// # Errors
    /// The system's error when it does not tell the address.
    pub fn local(&self) -> io::Result<Target> {
        let address = SockRef::from(&self.descriptor).local_addr()?;
        if let Some(address) = address.as_socket() {
            return Ok(Target::Tcp(address));
        }
        if let Some(path) = address.as_pathname() {
            return Ok(Target::Unix(path.to_path_buf()));
        }
        #[cfg(any(target_os = "linux", target_os = "android"))]
        if let Some(name) = address.as_abstract_namespace() {
            let mut path = std::ffi::OsString::from("@");
            path.push(OsStr::from_bytes(name));
            return Ok(Target::Unix(path.into()));
        }
        Ok(Target::Unix(PathBuf::from(OsStr::new(""))))
    }

    /// Another descriptor of the same socket, for another worker.
    ///
    /// # Errors
    /// `EMFILE` or `ENFILE` when there are no descriptors left.
    pub fn duplicate(&self) -> io::Result<Listener> {
        Ok(Listener { descriptor: self.descriptor.try_clone()?, tcp: self.tcp.clone() })
    }

    /// Takes one waiting connection; see [`crate::Net::accept`]. A connection that ended while it waited is
    /// passed over.
    pub(crate) fn accept(&self) -> io::Result<(Socket, Peer)> {
        loop {
            match accept_once(self.as_fd()) {
                Ok((descriptor, address)) => {
                    let Some(options) = &self.tcp else {
                        let uid = socket::peer_uid(descriptor.as_fd());
                        return Ok((Socket { descriptor }, Peer::Unix { uid }));
                    };
                    // macOS gives no address for a connection that has been reset already.
                    let Some(address) = address else { continue };
                    if !INHERITS_OPTIONS {
                        options.apply(&SockRef::from(&descriptor))?;
                    }
                    return Ok((Socket { descriptor }, Peer::Tcp(address)));
                }
                // accept(2): these concern the connection, which is gone now, not the listener.
                Err(Errno::CONNABORTED | Errno::INTR | Errno::PROTO) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
    }
}

/// Whether a connection has the options of its listener: saves four system calls for each.
const INHERITS_OPTIONS: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// One accept(2): non-blocking and closed on exec from the start.
#[cfg(not(target_vendor = "apple"))]
fn accept_once(listener: BorrowedFd<'_>) -> rustix::io::Result<(OwnedFd, Option<SocketAddr>)> {
    use rustix::net::{SocketFlags, acceptfrom_with};
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let (descriptor, address) = acceptfrom_with(listener, flags)?;
    Ok((descriptor, address.and_then(|address| SocketAddr::try_from(address).ok())))
}

/// accept(2), then what accept4(2) does elsewhere.
#[cfg(target_vendor = "apple")]
fn accept_once(listener: BorrowedFd<'_>) -> rustix::io::Result<(OwnedFd, Option<SocketAddr>)> {
    let (descriptor, address) = rustix::net::acceptfrom(listener)?;
    // Fails only for a connection that has ended.
    socket::prepare_adopted(&descriptor).map_err(|_| Errno::CONNABORTED)?;
    Ok((descriptor, address.and_then(|address| SocketAddr::try_from(address).ok())))
}

/// A socket file that this process made. It stays when this is dropped (another process may have taken the
/// listener over); [`SocketFile::remove`] removes it. Call that before the listeners close: while they
/// answer, no other process puts its own file there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SocketFile {
    path: PathBuf,
    device: u64,
    inode: u64,
    /// File systems give the number of a removed file to the next one.
    made: (i64, i64),
}

impl SocketFile {
    fn of(path: &Path) -> io::Result<SocketFile> {
        let found = std::fs::symlink_metadata(path)?;
        let made = (found.mtime(), found.mtime_nsec());
        Ok(SocketFile { path: path.to_path_buf(), device: found.dev(), inode: found.ino(), made })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes the file, unless somebody has put another one in its place. Returns whether it was removed.
    pub fn remove(&self) -> bool {
        SocketFile::of(&self.path).is_ok_and(|found| found == *self)
            && std::fs::remove_file(&self.path).is_ok()
    }
}
