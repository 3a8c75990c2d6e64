//! Open files of the whole machine.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{count, listed, round_up};
use crate::probe::Probe;

const ID: &str = "file_max";
const FILE: &str = "/proc/sys/fs/file-nr";

pub fn check(probe: &Probe<'_>) -> Finding {
    let (used, max) = match probe.root.numbers(FILE) {
        Ok(numbers) => match numbers.as_slice() {
            [used, _, max] => (*used, *max),
            other => {
                return Finding::judged(
                    ID,
                    State::Unknown,
                    format!("{FILE}: {} is not understood", listed(other)),
                );
            }
        },
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    // Both ends of a connection within the machine are open files of it.
    let ends = if probe.ask.has_local_target() { probe.ask.outgoing() } else { 0 };
    let needed = probe.ask.sockets().saturating_add(ends);
    let left = max.saturating_sub(used);
    let state = match needed {
        n if n > left => State::Blocker,
        n if n > left / 2 => State::Warn,
        _ => State::Ok,
    };
    let words =
        format!("{} of {} open files of the machine are left for {}", count(left), count(max), count(needed));
    Finding::judged(ID, state, words)
        .read(FILE, probe.root.read(FILE).unwrap_or_default().replace('\t', " "))
        .breaks_at(left, "the kernel's log", format!("VFS: file-max limit {max} reached"))
        .breaks_at(left, "every program", "Too many open files in system (os error 23)")
        .cures_unless_ok([Cure::sysctl("fs.file-max", round_up(max.max(needed + used) * 2, 1 << 20))])
}
