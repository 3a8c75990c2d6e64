//! Host names to addresses. Blocks: for the control thread only.

use crate::Server;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};

/// The addresses of a host, in the order the system gives them, without repetitions. Asks the system's
/// resolver and may block for seconds; an address in numbers is not looked up.
///
/// # Errors
/// The resolver's error; `NotFound` when it knows the name and has no address for it.
pub fn resolve(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    let mut found: Vec<SocketAddr> = Vec::new();
    for address in (host, port).to_socket_addrs()? {
        if !found.contains(&address) {
            found.push(address);
        }
    }
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("no address for {host}")));
    }
    Ok(found)
}

impl Server {
    /// The addresses of a TCP server; none for a Unix socket.
    ///
    /// # Errors
    /// The resolver's error; `NotFound` when it knows the name and has no address for it.
    pub fn resolve(&self) -> io::Result<Vec<SocketAddr>> {
        match self {
            Server::Tcp { host, port } => resolve(host, *port),
            Server::Unix(_) => Ok(Vec::new()),
        }
    }
}

impl std::fmt::Display for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Server::Tcp { host, port } if host.contains(':') => write!(f, "[{host}]:{port}"),
            Server::Tcp { host, port } => write!(f, "{host}:{port}"),
            Server::Unix(path) => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_not_looked_up() {
        assert_eq!(resolve("127.0.0.1", 5432).unwrap(), ["127.0.0.1:5432".parse().unwrap()]);
        assert_eq!(resolve("::1", 1).unwrap(), ["[::1]:1".parse().unwrap()]);
        let server = Server::Tcp { host: "::1".into(), port: 5432 };
        assert_eq!(server.to_string(), "[::1]:5432");
        assert!(Server::Unix("/tmp/.s.PGSQL.5432".into()).resolve().unwrap().is_empty());
    }
}
