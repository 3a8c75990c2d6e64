//! The maximum value of a limit of open files.

use super::open_files::proposed;
use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::count;
use crate::probe::Probe;

const ID: &str = "nr_open";
const FILE: &str = "/proc/sys/fs/nr_open";

pub fn check(probe: &Probe<'_>) -> Finding {
    let most = match probe.root.number(FILE) {
        Ok(most) => most,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let sockets = probe.ask.sockets();
    let words = format!("a limit of open files may be {} at most", count(most));
    let finding = if sockets < most.saturating_sub(1000) {
        Finding::ok(ID, words)
    } else if probe.ask.program.is_weir() && probe.table_plan(most).enough {
        Finding::ok(ID, format!("{words}; Weir's workers have tables of their own"))
    } else {
        Finding::blocker(ID, format!("{words}, which is too little for {} connections", count(sockets)))
    };
    finding
        .read(FILE, most)
        .breaks("the shell", "ulimit: open files: cannot modify limit: Operation not permitted")
        .cures_unless_ok([Cure::sysctl("fs.nr_open", proposed(sockets))])
}
