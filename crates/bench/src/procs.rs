//! CPU time and memory of processes, from /proc.
//!
//! Where there is no /proc the readings are missing and the report leaves them out.

use serde::{Deserialize, Serialize};
use std::fs;

/// What a process has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// User and system CPU time since it began, in microseconds.
    pub cpu_us: u64,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
}

/// A process under a name, with its readings.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Watched {
    /// Name in reports.
    pub name: String,
    /// Process ids: the named one and, when asked for, its children.
    pub pid: u32,
    /// Before the first connect.
    pub before: Option<Usage>,
    /// When all were connected.
    pub connected: Option<Usage>,
    /// When recording began.
    pub begun: Option<Usage>,
    /// When recording ended.
    pub ended: Option<Usage>,
}

impl Watched {
    /// Takes the first reading.
    pub fn new(name: &str, pid: u32) -> Watched {
        let before = usage(pid);
        Watched { name: name.to_owned(), pid, before, connected: None, begun: None, ended: None }
    }

    /// CPU time while recording, in microseconds.
    pub fn cpu_us(&self) -> Option<u64> {
        Some(self.ended?.cpu_us.saturating_sub(self.begun?.cpu_us))
    }

    /// How much resident memory grew from before the first connect to the end of the run, in bytes: what
    /// all connections together cost while they work.
    pub fn growth_bytes(&self) -> Option<u64> {
        let last = self.ended.or(self.connected)?;
        Some(last.rss_bytes.saturating_sub(self.before?.rss_bytes))
    }
}

/// Fields of /proc/PID/stat that hold CPU time: user and system, then the same of children waited for.
const OWN: usize = 2;
const WITH_CHILDREN: usize = 4;

/// Reads a process and all processes below it (PostgreSQL has one for each connection); of this process only itself, for
/// what a laboratory starts below it is no part of the load generator.
pub fn usage(pid: u32) -> Option<Usage> {
    if pid == std::process::id() {
        return usage_of_one(pid, OWN);
    }
    let mut sum = usage_of_one(pid, WITH_CHILDREN)?;
    for child in children(pid) {
        if let Some(usage) = usage(child) {
            sum.cpu_us += usage.cpu_us;
            sum.rss_bytes += usage.rss_bytes;
        }
    }
    Some(sum)
}

fn usage_of_one(pid: u32, fields: usize) -> Option<Usage> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    Some(Usage { cpu_us: cpu_ticks(&stat, fields)? * tick_us, rss_bytes: rss_bytes(&status)? })
}

/// So many fields from the 14th on (utime, stime, and those of children waited for), counted behind the command name,
/// which may hold spaces and brackets.
fn cpu_ticks(stat: &str, fields: usize) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields = rest.split_whitespace().skip(11).take(fields);
    fields.map(|f| f.parse::<u64>().ok()).sum()
}

fn rss_bytes(status: &str) -> Option<u64> {
    // One that has ended and was not waited for yet has none.
    let Some(line) = status.lines().find_map(|line| line.strip_prefix("VmRSS:")) else { return Some(0) };
    let kilobytes: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kilobytes * 1024)
}

fn children(pid: u32) -> Vec<u32> {
    let mut found = Vec::new();
    let Ok(tasks) = fs::read_dir(format!("/proc/{pid}/task")) else { return found };
    for task in tasks.flatten() {
        if let Ok(text) = fs::read_to_string(task.path().join("children")) {
            found.extend(text.split_whitespace().filter_map(|word| word.parse::<u32>().ok()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_with_a_strange_name() {
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194304 500 0 0 0 30 12 3 4 20 0 1 0 100 0 0";
        assert_eq!((cpu_ticks(stat, OWN), cpu_ticks(stat, WITH_CHILDREN)), (Some(42), Some(49)));
        assert_eq!(cpu_ticks("12 (a", OWN), None);
    }

    #[test]
    fn status() {
        assert_eq!(rss_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(rss_bytes("Name:\tx\nState:\tZ (zombie)\n"), Some(0));
    }

    /// The load generator's clients leave before the last reading, and then the database's processes for them are ending.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_process_has_used_is_not_lost_when_it_has_ended_and_nobody_has_waited_for_it() {
        let work = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done";
        let mut child = std::process::Command::new("sh").args(["-c", work]).spawn().unwrap();
        while !fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap().contains(") Z ") {
            std::thread::yield_now();
        }
        let used = usage(child.id());
        child.wait().unwrap();
        assert!(used.is_some_and(|used| used.cpu_us > 0 && used.rss_bytes == 0), "{used:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_this_process_has_started_is_no_part_of_it() {
        // Enough work for some clock ticks.
        let work = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", work]).status().unwrap().success());
        let own = usage(std::process::id()).unwrap();
        let all = usage_of_one(std::process::id(), WITH_CHILDREN).unwrap();
        assert!(own.rss_bytes > 0 && own.cpu_us < all.cpu_us, "{own:?} {all:?}");
    }
}
