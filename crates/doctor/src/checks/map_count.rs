//! Memory maps of one process: every thread's stack takes two.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{count, round_up};
use crate::probe::Probe;

const ID: &str = "map_count";
const FILE: &str = "/proc/sys/vm/max_map_count";

/// A stack and the guard page below it.
const MAPS_EACH: u64 = 2;
/// Libraries, heap, buffer pool of a database server.
const OTHER_MAPS: u64 = 800;

pub fn check(probe: &Probe<'_>) -> Finding {
    let max = match probe.root.number(FILE) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let room = max.saturating_sub(OTHER_MAPS) / MAPS_EACH;
    // The program and the database are two processes: the one with more threads counts.
    let threads = probe.program_threads().max(probe.database_threads());
    let state = match threads {
        n if n > room => State::Blocker,
        n if n > room / 2 => State::Warn,
        _ => State::Ok,
    };
    let words = format!(
        "a process may have about {} threads by its memory maps; {} are needed",
        count(room),
        count(threads)
    );
    Finding::judged(ID, state, words)
        .read(FILE, max)
        .breaks_at(room, "sysbench 0.5", "pthread_create() for thread #32352 failed. errno = 12")
        .breaks_at(
            room,
            "MySQL or MariaDB, one thread a connection",
            super::MYSQL_NO_THREAD.replace("errno 11", "errno 11 or 12"),
        )
        .cures_unless_ok([Cure::sysctl("vm.max_map_count", round_up(threads.saturating_mul(4), 1 << 18))])
}
