//! Facts that several checks need, read below a [`Root`].
//!
//! Owns: the formats of the files of /proc, /sys and systemd. Must not know: which values are sufficient.

pub mod cgroup;
pub mod limits;
pub mod memory;
pub mod sockets;
pub mod unit;

use crate::question::{Program, Question};
use crate::root::{Root, Unread};
use weir_net::tables::{TablePlan, growing_within, plan_within};

/// Threads of Weir beside its workers: the control thread, crypto threads, name resolution.
pub const WEIR_OTHER_THREADS: u64 = 16;

/// Workers that one process of `weir serve` can have.
const WEIR_MOST_WORKERS: usize = 64;

/// What the checks read from.
#[derive(Debug, Clone)]
pub struct Probe<'a> {
    /// Where the system is.
    pub root: &'a Root,
    /// What is asked.
    pub ask: &'a Question,
}

impl<'a> Probe<'a> {
    /// Reads below `root` for `ask`.
    pub fn new(root: &'a Root, ask: &'a Question) -> Self {
        Probe { root, ask }
    }

    /// A file of the process whose limits count: `/proc/self/NAME` or `/proc/PID/NAME`.
    pub fn process_file(&self, name: &str) -> String {
        match self.ask.pid {
            Some(pid) => format!("/proc/{pid}/{name}"),
            None => format!("/proc/self/{name}"),
        }
    }

    /// How Weir lays out its descriptor tables under a limit of open files. Asks whether tables can be
    /// private only if one is too small.
    pub fn table_plan(&self, limit: u64) -> TablePlan {
        let (needed, workers) = (self.ask.sockets(), self.ask.workers);
        let one = plan_within(limit, Err(std::io::ErrorKind::Unsupported.into()), needed, workers);
        match self.ask.program {
            _ if one.enough => one,
            Program::Serve => {
                let (clients, servers) = (self.ask.clients, self.ask.servers);
                growing_within(limit, self.root.can_split(), clients, servers, workers, WEIR_MOST_WORKERS)
            }
            Program::Bench | Program::Other => plan_within(limit, self.root.can_split(), needed, workers),
        }
    }

    /// Weir's workers from the start, and when all connections are there. A limit of open files that cannot
    /// be read counts as enough.
    pub fn weir_workers(&self) -> (u64, u64) {
        let plan = self.table_plan(self.open_files().map_or(u64::MAX, |limit| limit.hard));
        (plan.workers as u64, plan.most as u64)
    }

    /// Threads the program will have.
    pub fn program_threads(&self) -> u64 {
        match self.ask.program {
            Program::Other => self.ask.sockets(),
            Program::Serve | Program::Bench => self.weir_workers().1 + WEIR_OTHER_THREADS,
        }
    }

    /// Threads or processes that a database on this machine will have for the connections of the program.
    pub fn database_threads(&self) -> u64 {
        if self.ask.has_local_target() { self.ask.outgoing() } else { 0 }
    }

    /// The limit of open files of the process.
    ///
    /// # Errors
    /// /proc/PID/limits cannot be read or has no such line.
    pub fn open_files(&self) -> Result<limits::Limit, Unread> {
        limits::of_process(self, "Max open files")
    }
}
