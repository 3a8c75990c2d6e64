//! Threads and processes of one user (RLIMIT_NPROC). Root is exempt.

use super::judge_threads;
use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::round_up;
use crate::probe::Probe;
use crate::probe::limits::{of_process, shown};

const ID: &str = "user_processes";

pub fn check(probe: &Probe<'_>) -> Finding {
    let file = probe.process_file("limits");
    let limit = match of_process(probe, "Max processes") {
        Ok(limit) => limit,
        Err(error) => return Finding::unread(ID, &file, &error),
    };
    let value = format!("Max processes: soft {}, hard {}", shown(limit.soft), shown(limit.hard));
    if limit.soft == u64::MAX {
        return Finding::ok(ID, "the user's processes are not limited").read(file, value);
    }
    let needed = probe.program_threads().saturating_add(probe.database_threads());
    judge_threads(probe, ID, "the user's limit of processes", limit.soft, 0)
        .read(file, value)
        .cures_unless_ok([Cure::Processes(round_up(needed.saturating_mul(2), 1 << 16))])
}
