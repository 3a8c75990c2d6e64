//! Free memory of the machine, compared with what the connections need.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{bytes, count};
use crate::probe::{Probe, memory};

const ID: &str = "memory";
const FILE: &str = "/proc/meminfo";

pub fn check(probe: &Probe<'_>) -> Finding {
    let available = match memory::meminfo(probe.root, "MemAvailable") {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let needed = memory::needed(probe.ask);
    let each = needed / probe.ask.sockets().max(1);
    let state = match needed {
        n if n > available => State::Blocker,
        n if n > available / 2 => State::Warn,
        _ => State::Ok,
    };
    let words = format!(
        "about {} for {} connections, {} are available",
        bytes(needed),
        count(probe.ask.sockets()),
        bytes(available)
    );
    Finding::judged(ID, state, words)
        .read(FILE, format!("MemAvailable {}", bytes(available)))
        .breaks_at(available / each.max(1), "the kernel's log", "Out of memory: Killed process")
        .breaks_at(available / each.max(1), "programs", "Cannot allocate memory (os error 12)")
        .cures_unless_ok([Cure::advice(
            "a larger machine or fewer connections; idle clients cost an end 3.5 kB of the kernel and Weir 0.5 kB (10 kB with TLS)",
        )])
}
