//! The largest process number: threads count too.

use super::{LOADAVG, judge_threads, tasks_now};
use crate::cure::Cure;
use crate::finding::Finding;
use crate::probe::Probe;

const ID: &str = "pid_max";
const FILE: &str = "/proc/sys/kernel/pid_max";

/// The most a 64-bit kernel allows (PID_MAX_LIMIT).
const MOST: u64 = 4_194_304;

pub fn check(probe: &Probe<'_>) -> Finding {
    let max = match probe.root.number(FILE) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let used = match tasks_now(probe.root) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, LOADAVG, &error),
    };
    judge_threads(probe, ID, "kernel.pid_max", max, used)
        .read(FILE, max)
        .read(LOADAVG, format!("{used} threads now"))
        .cures_unless_ok([Cure::sysctl("kernel.pid_max", MOST)])
}
