//! The greeting for MySQL clients: the same as that of the servers behind Weir.
//!
//! In the MySQL protocol the greeting comes before the client's name, so a client must be told the server's
//! version, default collation and capabilities before it has a pool. Every server that Weir logs in to
//! provides them; before the first login, Weir reads them at startup on a connection that it closes after the
//! greeting.
//!
//! Owns: what is known of that, and asking for it. Must not know: clients, pools.
//!
//! Invariant: no client is promised a capability that any server seen so far lacks.

use crate::panics::{Panics, inject};
use crate::settings::Targets;
use arc_swap::ArcSwap;
use std::io::{self, ErrorKind, Read};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use weir_mysql::frame;
use weir_mysql::message::greeting::{Greeting, before_any};
use weir_net::Target;
use weir_session::login::ServerGreeting;
use weir_wire::{FaultKind, limits};

/// The version before any server has said its own.
const VERSION: &str = "8.4.0";

/// Maximum time a start waits for greetings, for all servers together. One that answers at all does in
/// milliseconds.
const START_WAIT: Duration = Duration::from_secs(1);

/// While no server has answered, they are asked again after this time.
const ASK_AGAIN: Duration = Duration::from_millis(500);

/// What is known. Reading it takes no lock.
#[derive(Debug)]
pub struct Greetings {
    current: ArcSwap<ServerGreeting>,
    /// Some server has greeted.
    met: AtomicBool,
    /// The version that the settings ask for, whatever servers say.
    configured: Option<Arc<str>>,
}

impl Greetings {
    /// No server has greeted yet. `configured`: the version to give in any case; empty for the server's.
    pub fn new(configured: &str) -> Self {
        let configured = (!configured.is_empty()).then_some(configured);
        Greetings {
            current: ArcSwap::from_pointee(before_any(configured.unwrap_or(VERSION))),
            met: AtomicBool::new(false),
            configured: configured.map(Arc::from),
        }
    }

    /// How to greet the next client.
    pub fn current(&self) -> Arc<ServerGreeting> {
        self.current.load_full()
    }

    /// A server has greeted Weir: the next clients are greeted like that.
    pub fn learn(&self, said: &ServerGreeting) {
        let before = self.current.load();
        let others = if self.met.swap(true, Relaxed) { before.capabilities } else { u64::MAX };
        let next = ServerGreeting {
            version: self.configured.as_ref().unwrap_or(&said.version).clone(),
            collation: said.collation,
            capabilities: said.capabilities & others,
        };
        if **before != next {
            self.current.store(Arc::new(next));
        }
    }

    fn is_met(&self) -> bool {
        self.met.load(Relaxed)
    }

    /// Asks servers until each has greeted or the time for a start is over. Blocks. When none has, a thread
    /// goes on asking, for as long as anybody else has this.
    pub fn ask(self: &Arc<Self>, servers: Vec<Targets>, panics: &Arc<Panics>) {
        let end = Instant::now() + START_WAIT;
        self.ask_each(&servers, 0, end);
        if self.is_met() || servers.is_empty() {
            return;
        }
        let (weak, panics) = (Arc::downgrade(self), panics.clone());
        let body = move || {
            for turn in 1.. {
                std::thread::sleep(ASK_AGAIN);
                let Some(greetings) = weak.upgrade().filter(|greetings| !greetings.is_met()) else { return };
                let ask = || {
                    inject::here("greeting");
                    greetings.ask_each(&servers, turn, Instant::now() + START_WAIT);
                };
                // A server whose greeting cannot be read keeps no other from being asked.
                let _ = panics.guard("the thread that reads servers' greetings", ask);
            }
        };
        // Without it the first server that is logged in to tells.
        if let Err(error) = std::thread::Builder::new().name("greeting".to_owned()).spawn(body) {
            tracing::warn!("cannot start the thread that reads servers' greetings: {error}");
        }
    }

    fn ask_each(&self, servers: &[Targets], turn: usize, end: Instant) {
        for target in servers.iter().filter_map(|targets| targets.pick(turn)) {
            match greeting_of(&target, end) {
                Ok(greeting) => self.learn(&greeting),
                // Once aloud: this is the first that is known of a wrong address.
                Err(error) if turn == 0 => tracing::warn!("mysql server {target} sent no greeting: {error}"),
                Err(error) => tracing::debug!("mysql server {target} sent no greeting: {error}"),
            }
        }
    }
}

/// Connects, reads the greeting, and goes.
fn greeting_of(target: &Target, end: Instant) -> io::Result<ServerGreeting> {
    match target {
        Target::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, left(end)?)?;
            read_greeting(&stream, |left| stream.set_read_timeout(Some(left)), end)
        }
        Target::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            read_greeting(&stream, |left| stream.set_read_timeout(Some(left)), end)
        }
    }
}

fn left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(ErrorKind::TimedOut.into()) } else { Ok(left) }
}

fn read_greeting(
    mut stream: impl Read,
    bound: impl Fn(Duration) -> io::Result<()>,
    end: Instant,
) -> io::Result<ServerGreeting> {
    let mut input = Vec::new();
    let mut piece = [0; 512];
    loop {
        let whole = frame::whole(&input, limits::LOGIN_BYTES, FaultKind::ServerTooLarge);
        if let Some((_, payload)) = whole.map_err(io::Error::other)? {
            let greeting = Greeting::read(payload).ok().flatten();
            return greeting.map(|greeting| greeting.to_owned()).ok_or_else(|| ErrorKind::InvalidData.into());
        }
        bound(left(end)?)?;
        match stream.read(&mut piece)? {
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            n => input.extend_from_slice(&piece[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::TcpListener;
    use weir_mysql::message::Capabilities;

    fn said(version: &str, capabilities: Capabilities) -> ServerGreeting {
        ServerGreeting { version: version.into(), collation: 8, capabilities: capabilities.0 }
    }

    #[test]
    fn what_one_server_lacks_is_promised_to_nobody() {
        let greetings = Greetings::new("");
        assert_eq!(&*greetings.current().version, VERSION);
        let own = Capabilities::EXTENDED_METADATA.or(Capabilities::PROTOCOL_41);
        greetings.learn(&said("5.5.5-10.11.19-MariaDB", own));
        assert_eq!(*greetings.current(), said("5.5.5-10.11.19-MariaDB", own));
        greetings.learn(&said("9.7.4", Capabilities::PROTOCOL_41));
        greetings.learn(&said("5.5.5-10.11.19-MariaDB", own));
        assert_eq!(*greetings.current(), said("5.5.5-10.11.19-MariaDB", Capabilities::PROTOCOL_41));
    }

    #[test]
    fn a_configured_version_is_given_whatever_servers_say() {
        let greetings = Greetings::new("8.0.36");
        greetings.learn(&said("9.7.4", Capabilities::PROTOCOL_41));
        assert_eq!(*greetings.current(), said("8.0.36", Capabilities::PROTOCOL_41));
    }

    #[test]
    fn a_server_is_asked_at_the_start() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let target = Target::Tcp(listener.local_addr().unwrap());
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let greeting = Greeting {
                version: b"9.7.4",
                id: 1,
                scramble: [b'x'; 20],
                capabilities: Capabilities::PROTOCOL_41,
                collation: 8,
                status: 2,
                plugin: b"caching_sha2_password",
            };
            let mut out = Vec::new();
            frame::put(&mut out, 0, |out| greeting.write(out));
            // In two pieces.
            stream.write_all(&out[..7]).unwrap();
            stream.write_all(&out[7..]).unwrap();
        });
        let greetings = Arc::new(Greetings::new(""));
        let panics = Arc::new(Panics::new(weir_metrics::Metrics::new(1, &[]), || {}));
        greetings.ask(vec![Targets::fixed(Vec::new()), Targets::fixed(vec![target])], &panics);
        server.join().unwrap();
        assert_eq!(*greetings.current(), said("9.7.4", Capabilities::PROTOCOL_41));
    }
}
