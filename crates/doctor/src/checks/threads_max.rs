//! Threads of the whole machine.

use super::{LOADAVG, judge_threads, tasks_now};
use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::round_up;
use crate::probe::Probe;

const ID: &str = "threads_max";
const FILE: &str = "/proc/sys/kernel/threads-max";

pub fn check(probe: &Probe<'_>) -> Finding {
    let max = match probe.root.number(FILE) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let used = match tasks_now(probe.root) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, LOADAVG, &error),
    };
    let needed = probe.program_threads().saturating_add(probe.database_threads());
    judge_threads(probe, ID, "kernel.threads-max", max, used)
        .read(FILE, max)
        .read(LOADAVG, format!("{used} threads now"))
        .cures_unless_ok([Cure::sysctl("kernel.threads-max", round_up(needed.saturating_mul(2), 1 << 18))])
}
