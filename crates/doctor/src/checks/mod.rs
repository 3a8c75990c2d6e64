//! The checks of the machine, one file each.
//!
//! A check reads through [`Probe`] and returns one [`Finding`]. It never fails: what it cannot read is a
//! finding whose state is `unknown`. The numbers it compares with come from the question; the numbers it
//! proposes have their reason in a comment.

mod accept_backlog;
mod cgroup_memory;
mod cgroup_pids;
mod clock_source;
mod conntrack;
mod cpu_quota;
mod epoll_watches;
mod file_max;
mod huge_pages;
mod keepalive;
mod listen_drops;
mod local_ports;
mod map_count;
mod memory;
mod nr_open;
mod open_files;
mod orphans;
mod overcommit;
mod packet_backlog;
mod pid_max;
mod reserved_ports;
mod source_addresses;
mod syn_backlog;
mod systemd_unit;
mod tcp_buffers;
mod tcp_memory;
mod tcp_options;
mod threads_max;
mod time_wait;
mod user_processes;

use crate::finding::Finding;
use crate::numbers::count;
use crate::probe::Probe;
use crate::root::{NUMBER_MAX, Root, Unread};

/// A check of the machine.
pub type Check = fn(&Probe<'_>) -> Finding;

/// When a check runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// Also when Weir starts: it is about the numbers that were asked for, and takes less than a millisecond.
    AtStart,
    /// When somebody asks.
    Asked,
}

/// All checks by their id, in the order of the output.
pub const CHECKS: &[(&str, When, Check)] = &[
    ("open_files", When::AtStart, open_files::check),
    ("systemd_unit", When::Asked, systemd_unit::check),
    ("file_max", When::AtStart, file_max::check),
    ("nr_open", When::Asked, nr_open::check),
    ("local_ports", When::AtStart, local_ports::check),
    ("source_addresses", When::Asked, source_addresses::check),
    ("reserved_ports", When::Asked, reserved_ports::check),
    ("accept_backlog", When::AtStart, accept_backlog::check),
    ("syn_backlog", When::Asked, syn_backlog::check),
    ("packet_backlog", When::Asked, packet_backlog::check),
    ("listen_drops", When::Asked, listen_drops::check),
    ("memory", When::AtStart, memory::check),
    ("cgroup_memory", When::AtStart, cgroup_memory::check),
    ("tcp_memory", When::Asked, tcp_memory::check),
    ("tcp_buffers", When::Asked, tcp_buffers::check),
    ("tcp_options", When::Asked, tcp_options::check),
    ("pid_max", When::AtStart, pid_max::check),
    ("threads_max", When::Asked, threads_max::check),
    ("user_processes", When::Asked, user_processes::check),
    ("cgroup_pids", When::Asked, cgroup_pids::check),
    ("map_count", When::Asked, map_count::check),
    ("overcommit", When::Asked, overcommit::check),
    ("epoll_watches", When::AtStart, epoll_watches::check),
    ("conntrack", When::AtStart, conntrack::check),
    ("time_wait", When::Asked, time_wait::check),
    ("orphans", When::Asked, orphans::check),
    ("keepalive", When::Asked, keepalive::check),
    ("cpu_quota", When::Asked, cpu_quota::check),
    ("clock_source", When::Asked, clock_source::check),
    ("huge_pages", When::Asked, huge_pages::check),
];

/// Runs all of them.
pub fn run(probe: &Probe<'_>) -> Vec<Finding> {
    CHECKS.iter().map(|(_, _, check)| check(probe)).collect()
}

/// Runs those for a start.
pub fn run_at_start(probe: &Probe<'_>) -> Vec<Finding> {
    let at_start = CHECKS.iter().filter(|(_, when, _)| *when == When::AtStart);
    at_start.map(|(_, _, check)| check(probe)).collect()
}

/// Where the number of threads and processes of the machine is read.
const LOADAVG: &str = "/proc/loadavg";

/// Threads and processes there are on the machine now (proc_loadavg(5): running/all).
fn tasks_now(root: &Root) -> Result<u64, Unread> {
    let text = root.read(LOADAVG)?;
    let all = text.split_whitespace().nth(3).and_then(|pair| pair.split_once('/')?.1.parse::<u64>().ok());
    all.map(|all| all.min(NUMBER_MAX)).ok_or_else(|| Unread(format!("not understood: {text}")))
}

/// What a thread-per-connection server says when it cannot have another thread (MySQL error 1135, the text of
/// 8.0 to 9.x and MariaDB).
const MYSQL_NO_THREAD: &str = "ERROR 1135 (HY000): Can't create a new thread (errno 11); if you are not out of available memory, \
                               you can consult the manual for a possible OS-dependent bug";
/// What PostgreSQL logs when it cannot have another process.
const POSTGRES_NO_FORK: &str = "could not fork new process for connection: Resource temporarily unavailable";

/// A finding about how many threads there may be: `limit` of them, of which `used` are taken.
fn judge_threads(probe: &Probe<'_>, id: &'static str, what: &str, limit: u64, used: u64) -> Finding {
    let (own, database) = (probe.program_threads(), probe.database_threads());
    let needed = own.saturating_add(database);
    let left = limit.saturating_sub(used);
    let title = probe.ask.program.title();
    let mut words = format!("{title} needs {} threads", count(own));
    if database > 0 {
        words.push_str(&format!(", the database on this machine up to {} more", count(database)));
    }
    let finding = if needed > left {
        Finding::blocker(id, format!("{words}; {what} leaves {}", count(left)))
    } else if needed > left / 2 {
        Finding::warn(id, format!("{words}: more than half of the {} that {what} leaves", count(left)))
    } else {
        Finding::ok(id, format!("{words}; {what} leaves {}", count(left)))
    };
    finding
        .breaks_at(left, "MySQL or MariaDB here, one thread a connection", MYSQL_NO_THREAD)
        .breaks_at(left, "PostgreSQL here", POSTGRES_NO_FORK)
        .breaks_at(left, "sysbench 0.5 here", "pthread_create() for thread #N failed. errno = 11")
}
