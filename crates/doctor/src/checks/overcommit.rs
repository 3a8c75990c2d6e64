//! Strict memory accounting, which charges every thread's whole stack.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::bytes;
use crate::probe::limits::of_process;
use crate::probe::{Probe, memory};

const ID: &str = "overcommit";
const FILE: &str = "/proc/sys/vm/overcommit_memory";
/// glibc's stack for a thread when the limit is unlimited, and Linux's usual limit: 8 MB.
const STACK_BYTES: u64 = 8 << 20;
/// Strict accounting (vm.overcommit_memory).
const STRICT: u64 = 2;

pub fn check(probe: &Probe<'_>) -> Finding {
    let mode = match probe.root.number(FILE) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    if mode != STRICT {
        return Finding::ok(ID, "memory is not accounted strictly: stacks cost what they use")
            .read(FILE, mode);
    }
    let of = |name| memory::meminfo(probe.root, name);
    let (limit, used) = match (of("CommitLimit"), of("Committed_AS")) {
        (Ok(limit), Ok(used)) => (limit, used),
        (Err(error), _) | (_, Err(error)) => return Finding::unread(ID, "/proc/meminfo", &error),
    };
    let stack = match of_process(probe, "Max stack size") {
        Ok(limit) if limit.soft != u64::MAX => limit.soft.max(1 << 16),
        _ => STACK_BYTES,
    };
    // PostgreSQL forks without threads: its processes share what they do not write, but their heaps count.
    let threads = probe.program_threads().saturating_add(probe.database_threads());
    let (needed, left) = (threads.saturating_mul(stack), limit.saturating_sub(used));
    let state = if needed > left { State::Blocker } else { State::Ok };
    let words = format!(
        "strict accounting leaves {}; {threads} stacks of {} take {}",
        bytes(left),
        bytes(stack),
        bytes(needed)
    );
    Finding::judged(ID, state, words)
        .read(FILE, mode)
        .read("/proc/meminfo", format!("CommitLimit {}, Committed_AS {}", bytes(limit), bytes(used)))
        .breaks_at(
            left / stack,
            "a program with a thread for each connection",
            "pthread_create() ... errno = 11 or 12",
        )
        .breaks_at(
            left / stack,
            "PostgreSQL",
            "could not fork new process for connection: Cannot allocate memory",
        )
        .cures_unless_ok([Cure::sysctl("vm.overcommit_memory", 0)])
}
