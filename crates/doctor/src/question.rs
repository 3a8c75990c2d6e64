//! The question: how many connections, for which program, to which targets.

use std::net::IpAddr;
use weir_net::Target;

/// Whose limits are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// `weir serve`: raises its own soft limit, gives each worker a descriptor table when one is too small.
    Serve,
    /// `weir bench`: the same, and spreads over source addresses on loopback by itself.
    Bench,
    /// Any other program: one descriptor table, its soft limit, one source address, a thread for each
    /// connection (as sysbench and MySQL have; one that has fewer threads may ignore those findings).
    Other,
}

impl Program {
    /// The word on the command line and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Program::Serve => "serve",
            Program::Bench => "bench",
            Program::Other => "other",
        }
    }

    /// As a sentence names it.
    pub fn title(self) -> &'static str {
        match self {
            Program::Serve => "weir serve",
            Program::Bench => "weir bench",
            Program::Other => "a program with a thread for each connection",
        }
    }

    /// It is Weir, with Weir's private descriptor tables.
    pub fn is_weir(self) -> bool {
        self != Program::Other
    }
}

/// The most connections that may be asked about: more than anybody has had, and small enough for all sums.
pub const CONNECTIONS_MAX: u64 = 1_000_000_000;

/// The question every check answers.
#[derive(Debug, Clone)]
pub struct Question {
    /// Clients: connections that the program accepts; for `Bench`, that it opens. At most
    /// [`CONNECTIONS_MAX`].
    pub clients: u64,
    /// Server connections that the program opens to databases, at most [`CONNECTIONS_MAX`]. Not used for
    /// `Bench`.
    pub servers: u64,
    /// Whose limits.
    pub program: Program,
    /// Threads that carry traffic, as asked for.
    pub workers: usize,
    /// Where the program connects to. Empty: one address elsewhere.
    pub targets: Vec<Target>,
    /// Ports the program listens on.
    pub listen_ports: Vec<u16>,
    /// Connections that may wait to be accepted at each listener, as the program asks the kernel for.
    pub backlog: u64,
    /// The process whose limits count; `None`: one that is started from here.
    pub pid: Option<u32>,
    /// The systemd unit whose limits count as well.
    pub unit: String,
}

/// Weir's default `socket.listen_backlog`.
pub const LISTEN_BACKLOG: u64 = 4096;

impl Question {
    /// The question for `weir serve` with defaults for everything but the numbers.
    pub fn serve(clients: u64, servers: u64) -> Question {
        Question {
            clients: clients.min(CONNECTIONS_MAX),
            servers: servers.min(CONNECTIONS_MAX),
            program: Program::Serve,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            targets: Vec::new(),
            listen_ports: vec![6432, 6033],
            backlog: LISTEN_BACKLOG,
            pid: None,
            unit: "weir.service".to_owned(),
        }
    }

    /// The question for `weir bench` towards these servers.
    pub fn bench(clients: u64, targets: Vec<Target>) -> Question {
        Question {
            program: Program::Bench,
            servers: 0,
            listen_ports: Vec::new(),
            targets,
            ..Question::serve(clients, 0)
        }
    }

    /// Sockets of the program itself.
    pub fn sockets(&self) -> u64 {
        match self.program {
            Program::Bench => self.clients,
            Program::Serve | Program::Other => self.clients.saturating_add(self.servers),
        }
    }

    /// Connections that the program opens.
    pub fn outgoing(&self) -> u64 {
        match self.program {
            Program::Bench => self.clients,
            Program::Serve => self.servers,
            // As a load generator or a pooler: whichever is more.
            Program::Other => self.clients.max(self.servers),
        }
    }

    /// A server of the question is on this machine: both ends of its connections, and its threads, are here.
    pub fn has_local_target(&self) -> bool {
        self.targets.iter().any(is_here)
    }
}

/// The target is on this machine, by its address alone.
pub fn is_here(target: &Target) -> bool {
    match target {
        Target::Unix(_) => true,
        Target::Tcp(address) => match address.ip() {
            IpAddr::V4(ip) => ip.is_loopback(),
            IpAddr::V6(ip) => ip.is_loopback(),
        },
    }
}
