//! Checks at the start whether the databases can be reached, so that a wrong address is in the log before the
//! first client connects.
//!
//! PostgreSQL only: MySQL's servers are contacted for their greeting at the start anyway (`weir_proxy`), and
//! count connections that are closed without a login.

use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;
use weir_config::{Server, Snapshot};

/// One that does not answer in this time is told.
const WAIT: Duration = Duration::from_secs(5);

/// Looks on a thread of its own; the start does not wait for it.
pub fn look(snapshot: &Arc<Snapshot>) {
    let snapshot = snapshot.clone();
    let spawned = std::thread::Builder::new().name("reach".to_owned()).spawn(move || {
        let mut seen: Vec<&Server> = Vec::new();
        for database in snapshot.postgres.all_databases() {
            if seen.contains(&&database.server) {
                continue;
            }
            seen.push(&database.server);
            if let Err(error) = reach(&database.server) {
                let (name, server) = (&database.name, &database.server);
                tracing::warn!("postgres database {name} cannot be reached at {server}: {error}");
            }
        }
    });
    if let Err(error) = spawned {
        tracing::debug!("cannot check whether the databases can be reached: {error}");
    }
}

fn reach(server: &Server) -> std::io::Result<()> {
    if let Server::Unix(path) = server {
        // An abstract one is not a path.
        return if path.as_os_str().as_encoded_bytes().starts_with(b"@") {
            Ok(())
        } else {
            UnixStream::connect(path).map(drop)
        };
    }
    let mut last = Ok(());
    for address in server.resolve()? {
        match TcpStream::connect_timeout(&address, WAIT) {
            Ok(_) => return Ok(()),
            Err(error) => last = Err(error),
        }
    }
    last
}
