//! Free memory, and how much of it connections need.

use super::{Probe, cgroup};
use crate::question::{Program, Question};
use crate::root::{NUMBER_MAX, Root, Unread};

/// Kernel memory of both ends of a loopback connection. Measured: 5 to 7 kB a pair, 6.2 kB each with a
/// million of them.
pub const PAIR_BYTES: u64 = 7 * 1024;
/// Of one end, when the other is on another machine.
pub const END_BYTES: u64 = PAIR_BYTES / 2;
/// Weir's own memory for an idle client without TLS: about 0.5 kB.
pub const CLIENT_BYTES: u64 = 512;
/// A thread of a program that has one for each connection, as MySQL has: stack and buffers that are really
/// used.
pub const THREAD_BYTES: u64 = 256 * 1024;

/// One value of /proc/meminfo in bytes.
///
/// # Errors
/// The file cannot be read or has no such line.
pub fn meminfo(root: &Root, name: &str) -> Result<u64, Unread> {
    let text = root.read("/proc/meminfo")?;
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let kb = line.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    kb.map(|kb| kb.min(NUMBER_MAX >> 10) * 1024).ok_or_else(|| Unread(format!("no line `{name}`")))
}

/// What this process may have at most: the machine's memory, or what a control group allows of it. `None`: it
/// cannot be read.
pub fn of_this_process(root: &Root) -> Option<u64> {
    let ask = Question::serve(0, 0);
    let groups = cgroup::memory(&Probe::new(root, &ask)).unwrap_or_default();
    let allowed = groups.iter().filter_map(|level| level.max);
    allowed.chain(meminfo(root, "MemTotal").ok()).min()
}

/// Memory the connections of a question need on this machine. Clients of `weir serve` are taken to be
/// elsewhere.
pub fn needed(ask: &Question) -> u64 {
    let end = if ask.has_local_target() { PAIR_BYTES } else { END_BYTES };
    match ask.program {
        Program::Bench => ask.clients * (end + CLIENT_BYTES),
        Program::Serve => ask.clients * (END_BYTES + CLIENT_BYTES) + ask.servers * (end + CLIENT_BYTES),
        Program::Other => ask.sockets() * (end + THREAD_BYTES),
    }
}
