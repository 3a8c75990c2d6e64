//! Memory limit of the control group: a container's or unit's. The kernel's memory for sockets counts towards
//! it.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{bytes, round_up};
use crate::probe::{Probe, cgroup, memory};

const ID: &str = "cgroup_memory";

pub fn check(probe: &Probe<'_>) -> Finding {
    let levels = match cgroup::memory(probe) {
        Ok(levels) => levels,
        Err(error) => return Finding::unread(ID, &probe.process_file("cgroup"), &error),
    };
    let Some((level, max)) = levels.iter().find_map(|level| Some((level, level.max?))) else {
        return Finding::ok(ID, "no memory limit in this control group")
            .read(levels.first().map_or("/sys/fs/cgroup", |level| level.file.as_str()), "no limit");
    };
    let needed = memory::needed(probe.ask);
    let left = max.saturating_sub(level.current);
    let each = (needed / probe.ask.sockets().max(1)).max(1);
    let state = match needed {
        n if n > left => State::Blocker,
        n if n > left / 2 => State::Warn,
        _ => State::Ok,
    };
    let words =
        format!("about {} for the connections, {} of {} are left", bytes(needed), bytes(left), bytes(max));
    Finding::judged(ID, state, words)
        .read(&level.file, format!("{max}, used {}", level.current))
        .breaks_at(left / each, "the kernel's log", "Memory cgroup out of memory: Killed process")
        .breaks_at(left / each, "docker inspect, kubectl describe pod", "OOMKilled, exit code 137")
        // Twice the need on top of what is used: buffers of busy connections come and go.
        .cures_unless_ok([Cure::Memory(round_up(level.current + 2 * needed, 1 << 28))])
}
