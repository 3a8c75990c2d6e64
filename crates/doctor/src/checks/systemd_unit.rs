//! The systemd unit that will start the program: the limits of a shell are not those of a service.

use super::open_files;
use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::{bytes, count};
use crate::probe::limits::shown;
use crate::probe::{Probe, memory, unit};

const ID: &str = "systemd_unit";

/// systemd's default when nobody sets LimitNOFILE (systemd 240 and newer: soft 1024, hard 524288).
const DEFAULT_HARD: u64 = 524_288;

pub fn check(probe: &Probe<'_>) -> Finding {
    let name = probe.ask.unit.as_str();
    let Some(unit) = unit::read(probe.root, name) else {
        return Finding::ok(ID, format!("no unit {name} on this machine"));
    };
    let limit = match unit.get("LimitNOFILE") {
        Some((value, file)) => match unit::hard_limit(value) {
            Some(limit) => (limit, file.to_owned(), format!("LimitNOFILE={value}")),
            None => {
                let words = format!("{file}: LimitNOFILE={value} is not understood");
                return Finding::judged(ID, crate::State::Unknown, words);
            }
        },
        None => {
            (DEFAULT_HARD, unit.file.clone(), format!("no LimitNOFILE: systemd's default, {DEFAULT_HARD}"))
        }
    };
    let (limit, file, value) = limit;
    let sockets = probe.ask.sockets();
    let plan = probe.table_plan(limit);
    let finding = if !plan.enough {
        Finding::blocker(ID, format!("{name}: {}", plan.text.trim_start_matches("open files: ")))
            .breaks_at(plan.capacity, "Weir's log", "cannot accept: Too many open files (os error 24)")
            .cure(Cure::OpenFiles(open_files::proposed(sockets)))
    } else {
        let (room, own) = (
            count(plan.capacity),
            if plan.private || plan.may_grow() { ", in several descriptor tables" } else { "" },
        );
        let words = format!("{name}: {} open files, {room} connections fit{own}", shown(limit));
        Finding::ok(ID, words)
    };
    let finding = finding.read(file, value);
    memory_max(probe, &unit, finding)
}

/// MemoryMax= of the unit, when it is too little.
fn memory_max(probe: &Probe<'_>, unit: &unit::Unit, finding: Finding) -> Finding {
    let Some((value, file)) = unit.get("MemoryMax") else { return finding };
    let finding = finding.read(file, format!("MemoryMax={value}"));
    let needed = memory::needed(probe.ask);
    match unit::bytes(value) {
        Some(max) if max < needed => {
            let words = format!("MemoryMax={value}, and the connections alone need {}", bytes(needed));
            let mut finding = finding.cure(Cure::Memory(needed * 2));
            finding.state = crate::State::Blocker;
            finding.summary = format!("{}; {words}", finding.summary);
            finding.breaks("the kernel's log", "Memory cgroup out of memory: Killed process")
        }
        _ => finding,
    }
}
