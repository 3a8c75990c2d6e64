//! From the text of a `listen` setting to addresses.

use crate::url::{parse_port, postgres_socket, split_port};
use crate::{ListenAt, Listener, Protocol};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Bytes of a Unix socket's path, at most: `sun_path` has 108 on Linux and 104 on macOS, with its NUL.
const SOCKET_PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// What the file of a Unix socket is to be like.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnixFile {
    pub mode: u32,
    pub group: Option<u32>,
}

impl UnixFile {
    /// Such a socket.
    pub(crate) fn at(self, path: PathBuf) -> ListenAt {
        ListenAt::Unix { path, mode: self.mode, group: self.group }
    }
}

/// The listeners of one item: `HOST:PORT`, `*:PORT`, a host alone, `[v6]:PORT`, or a Unix socket: for
/// PostgreSQL its directory, as `DIR` or `DIR:PORT`, for MySQL the socket itself. Looks up names.
pub(crate) fn listeners(protocol: Protocol, item: &str, unix: UnixFile) -> Result<Vec<Listener>, String> {
    if item.starts_with(['/', '@']) {
        let at = unix.at(socket_path(protocol, item)?);
        return Ok(vec![Listener { protocol, at, optional: false }]);
    }
    let listener = |(at, optional)| Listener { protocol, at: ListenAt::Tcp(at), optional };
    Ok(tcp(item, protocol.listen_port())?.into_iter().map(listener).collect())
}

fn socket_path(protocol: Protocol, item: &str) -> Result<PathBuf, String> {
    let path = match protocol {
        Protocol::Mysql => PathBuf::from(item),
        Protocol::Postgres => match item.rsplit_once(':') {
            Some((directory, port)) => postgres_socket(directory, parse_port(port)?),
            None => postgres_socket(item, protocol.listen_port()),
        },
    };
    check_socket_path(&path)?;
    Ok(path)
}

/// The kernel's bound on a socket's path, told before the kernel does.
pub(crate) fn check_socket_path(path: &Path) -> Result<(), String> {
    let bytes = path.as_os_str().len();
    if bytes <= SOCKET_PATH_BYTES {
        return Ok(());
    }
    Err(format!(
        "makes the socket path {}, which has {bytes} bytes; the system allows {SOCKET_PATH_BYTES}",
        path.display()
    ))
}

/// TCP addresses of an item; true: may be left out where the system has no such family.
pub(crate) fn tcp(item: &str, default_port: u16) -> Result<Vec<(SocketAddr, bool)>, String> {
    let (host, port) = split_port(item)?;
    let port = match port {
        // The system chooses; the log says what.
        Some("0") => 0,
        Some(port) => parse_port(port)?,
        None => default_port,
    };
    tcp_on(host, port)
}

/// TCP addresses of a host: `*` is all of IPv4 and, if there is any, IPv6.
pub(crate) fn tcp_on(host: &str, port: u16) -> Result<Vec<(SocketAddr, bool)>, String> {
    if host.is_empty() {
        return Err("must name an address; * means all".to_owned());
    }
    if host == "*" {
        let all = [(IpAddr::from(Ipv4Addr::UNSPECIFIED), false), (IpAddr::from(Ipv6Addr::UNSPECIFIED), true)];
        return Ok(all.map(|(ip, optional)| (SocketAddr::new(ip, port), optional)).to_vec());
    }
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(vec![(SocketAddr::new(ip, port), false)]);
    }
    let found = crate::resolve(host, port)
        .map_err(|error| format!("names {host}, which cannot be looked up: {error}"))?;
    // `localhost` names both families in most hosts files, also where IPv6 is switched off.
    let has_v4 = found.iter().any(SocketAddr::is_ipv4);
    Ok(found.into_iter().map(|at| (at, has_v4 && at.is_ipv6())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items() {
        let show = |protocol, item| {
            listeners(protocol, item, UnixFile { mode: 0o777, group: None }).map(|found| {
                found
                    .iter()
                    .map(|l| match &l.at {
                        ListenAt::Tcp(at) => format!("{at}{}", if l.optional { "?" } else { "" }),
                        ListenAt::Unix { path, .. } => path.display().to_string(),
                    })
                    .collect::<Vec<_>>()
                    .join(" ")
            })
        };
        let postgres = |item| show(Protocol::Postgres, item);
        assert_eq!(postgres("127.0.0.1:7000").as_deref(), Ok("127.0.0.1:7000"));
        assert_eq!(postgres("10.0.0.1").as_deref(), Ok("10.0.0.1:6432"));
        assert_eq!(postgres("*:6432").as_deref(), Ok("0.0.0.0:6432 [::]:6432?"));
        assert_eq!(postgres("127.0.0.1:0").as_deref(), Ok("127.0.0.1:0"));
        assert_eq!(postgres("[::1]:1").as_deref(), Ok("[::1]:1"));
        assert_eq!(postgres("::1").as_deref(), Ok("[::1]:6432"));
        assert_eq!(postgres("/run/weir").as_deref(), Ok("/run/weir/.s.PGSQL.6432"));
        assert_eq!(postgres("/run/weir:5432").as_deref(), Ok("/run/weir/.s.PGSQL.5432"));
        assert_eq!(show(Protocol::Mysql, "/run/weir.sock").as_deref(), Ok("/run/weir.sock"));
        assert_eq!(show(Protocol::Mysql, "127.0.0.1").as_deref(), Ok("127.0.0.1:6033"));
        for (item, wanted) in [
            (":6432", "must name an address"),
            ("127.0.0.1:x", "port from 1 to 65535, not `x`"),
            ("127.0.0.1:65536", "port from 1 to 65535, not `65536`"),
        ] {
            assert!(postgres(item).is_err_and(|e| e.contains(wanted)), "{item}");
        }
        let long = format!("/{}", "x".repeat(120));
        assert!(postgres(&long).is_err_and(|e| e.contains("the system allows")));
    }
}
