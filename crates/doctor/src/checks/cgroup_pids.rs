//! Threads and processes of the control group: TasksMax of systemd, --pids-limit of Docker, podPidsLimit.

use super::judge_threads;
use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::round_up;
use crate::probe::{Probe, cgroup};

const ID: &str = "cgroup_pids";

pub fn check(probe: &Probe<'_>) -> Finding {
    let levels = match cgroup::pids(probe) {
        Ok(levels) => levels,
        Err(error) => return Finding::unread(ID, &probe.process_file("cgroup"), &error),
    };
    let Some((level, max)) = levels.iter().find_map(|level| Some((level, level.max?))) else {
        return Finding::ok(ID, "this control group does not limit its threads")
            .read(levels.first().map_or("/sys/fs/cgroup", |level| level.file.as_str()), "no limit");
    };
    let needed = probe.program_threads().saturating_add(probe.database_threads());
    let group = level.file.trim_end_matches("/pids.max").rsplit_once('/').map_or("/", |(_, path)| path);
    judge_threads(probe, ID, "the control group", max, level.current)
        .read(&level.file, format!("{max}, used {}", level.current))
        .breaks("the kernel's log", format!("cgroup: fork rejected by pids controller in /{group}"))
        .cures_unless_ok([Cure::Tasks(round_up(level.current + needed.saturating_mul(2), 1 << 16))])
}
