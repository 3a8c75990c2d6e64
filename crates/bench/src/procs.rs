//! CPU time and memory of processes, from /proc.
//!
//! Without /proc the readings are missing and the report omits them.

use crate::clock;
use serde::{Deserialize, Serialize};
use std::fs;

/// What a process has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    /// User and system CPU time since it began, in microseconds.
    pub cpu_us: u64,
    /// Resident memory, in bytes.
    pub rss_bytes: u64,
    /// When it was read ([`clock::now_ns`]): the mean, for hundreds of processes on a busy machine take a
    /// second.
    #[serde(default)]
    pub at_ns: u64,
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

    /// CPU time while recording, in microseconds: what was used between the two readings, brought to the
    /// length of the recording.
    pub fn cpu_us(&self, recorded_ns: u64) -> Option<f64> {
        let (begun, ended) = (self.begun?, self.ended?);
        let used = ended.cpu_us.saturating_sub(begun.cpu_us) as f64;
        let between_ns = ended.at_ns.saturating_sub(begun.at_ns);
        Some(if between_ns > 0 { used * recorded_ns as f64 / between_ns as f64 } else { used })
    }

    /// How much resident memory grew from before the first connect to the end of the run, in bytes: what
    /// all connections together cost while they work.
    pub fn growth_bytes(&self) -> Option<u64> {
        let last = self.ended.or(self.connected)?;
        Some(last.rss_bytes.saturating_sub(self.before?.rss_bytes))
    }
}

/// Whose CPU time a reading holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Itself,
    /// And of children that have ended and were waited for.
    WithEnded,
}

/// Reads a process and all processes below it (PostgreSQL has one for each connection); of this process only
/// itself, for what a laboratory starts below it is no part of the load generator.
pub fn usage(pid: u32) -> Option<Usage> {
    let mut each = Vec::new();
    if pid == std::process::id() {
        each.push(usage_of_one(pid, Of::Itself)?);
    } else {
        each.push(usage_of_one(pid, Of::WithEnded)?);
        descendants(pid, &mut each);
    }
    let mean_ns =
        |first: u64| first + each.iter().map(|of| of.at_ns - first).sum::<u64>() / each.len() as u64;
    Some(Usage {
        cpu_us: each.iter().map(|of| of.cpu_us).sum(),
        rss_bytes: each.iter().map(|of| of.rss_bytes).sum(),
        at_ns: mean_ns(each.first()?.at_ns),
    })
}

fn descendants(pid: u32, each: &mut Vec<Usage>) {
    for child in children(pid) {
        each.extend(usage_of_one(child, Of::WithEnded));
        descendants(child, each);
    }
}

fn usage_of_one(pid: u32, of: Of) -> Option<Usage> {
    let at_ns = clock::now_ns();
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let times = Times::of(&stat)?;
    // Clock ticks are of 10 ms, in which one of hundreds of processes has hardly done anything: rounded down
    // in each, half of it would be lost. The scheduler says it in nanoseconds, of one thread.
    let exact_us = (times.threads == 1).then(|| exact_us(pid)).flatten();
    let tick_us = 1_000_000 / rustix::param::clock_ticks_per_second().max(1);
    let ended_us = if of == Of::WithEnded { times.ended * tick_us } else { 0 };
    let cpu_us = exact_us.unwrap_or(times.own * tick_us) + ended_us;
    Some(Usage { cpu_us, rss_bytes: rss_bytes(&status)?, at_ns })
}

/// First field: Documentation/scheduler/sched-stats.rst.
fn exact_us(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    Some(text.split_whitespace().next()?.parse::<u64>().ok()? / 1_000)
}

/// What /proc/PID/stat says of CPU time, in clock ticks (proc_pid_stat(5)).
#[derive(Debug, PartialEq, Eq)]
struct Times {
    own: u64,
    ended: u64,
    threads: u64,
}

impl Times {
    /// Fields 14 to 17 (utime, stime, and those of children waited for) and 20, counted behind the command
    /// name, which may hold spaces and brackets.
    fn of(stat: &str) -> Option<Times> {
        let (_, rest) = stat.rsplit_once(')')?;
        let mut fields = rest.split_whitespace().skip(11).map(|field| field.parse::<u64>().ok());
        let mut next = || fields.next().flatten();
        let (own, ended) = (next()? + next()?, next()? + next()?);
        Some(Times { own, ended, threads: fields.nth(2).flatten()? })
    }
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
        let stat = "12 (a) b (c)) S 1 12 12 0 -1 4194304 500 0 0 0 30 12 3 4 20 0 5 0 100 0 0";
        assert_eq!(Times::of(stat), Some(Times { own: 42, ended: 7, threads: 5 }));
        assert_eq!(Times::of("12 (a"), None);
    }

    #[test]
    fn what_was_used_is_brought_to_the_length_of_the_recording() {
        // The first reading took so long that it was taken a second late.
        let at = |at_ns, cpu_us| Some(Usage { cpu_us, rss_bytes: 0, at_ns });
        let mut watched = Watched::new("x", std::process::id());
        (watched.begun, watched.ended) = (at(6_000_000_000, 1_000_000), at(9_000_000_000, 4_000_000));
        assert_eq!(watched.cpu_us(4_000_000_000), Some(4_000_000.0));
    }

    #[test]
    fn status() {
        assert_eq!(rss_bytes("Name:\tx\nVmRSS:\t    2048 kB\n"), Some(2048 * 1024));
        assert_eq!(rss_bytes("Name:\tx\nState:\tZ (zombie)\n"), Some(0));
    }

    /// The load generator's clients leave before the last reading, and then the database's processes for them
    /// are ending.
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

    /// As behind a database that has a process for each client.
    #[cfg(target_os = "linux")]
    #[test]
    fn what_many_processes_have_used_for_less_than_a_clock_tick_counts() {
        let script = "for n in 1 2 3 4 5 6 7 8 9 10; do (n=0; while [ $n -lt 1000 ]; do n=$((n+1)); done; kill -STOP $BASHPID) & done; wait";
        let mut parent = std::process::Command::new("bash").args(["-c", script]).spawn().unwrap();
        let pid = parent.id();
        let stopped = |pid: &u32| {
            fs::read_to_string(format!("/proc/{pid}/stat")).is_ok_and(|stat| stat.contains(") T "))
        };
        while children(pid).iter().filter(|pid| stopped(pid)).count() < 10 {
            std::thread::yield_now();
        }
        let (sum, own) = (usage(pid).unwrap(), usage_of_one(pid, Of::WithEnded).unwrap());
        for child in children(pid) {
            assert!(exact_us(child).is_none_or(|used| used > 100), "{child}");
        }
        let (of_children_us, exact) = (sum.cpu_us - own.cpu_us, exact_us(pid).is_some());
        for child in children(pid) {
            let _ = std::process::Command::new("kill").args(["-KILL", &child.to_string()]).status();
        }
        parent.wait().unwrap();
        assert!(!exact || of_children_us > 1_000, "{of_children_us}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_this_process_has_started_is_no_part_of_it() {
        // Enough work for some clock ticks.
        let work = "n=0; while [ $n -lt 200000 ]; do n=$((n+1)); done";
        assert!(std::process::Command::new("sh").args(["-c", work]).status().unwrap().success());
        let own = usage(std::process::id()).unwrap();
        let all = usage_of_one(std::process::id(), Of::WithEnded).unwrap();
        assert!(own.rss_bytes > 0 && own.cpu_us < all.cpu_us, "{own:?} {all:?}");
    }
}
