//! Transparent huge pages.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::probe::Probe;

const ID: &str = "huge_pages";
const FILE: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

pub fn check(probe: &Probe<'_>) -> Finding {
    let text = match probe.root.read(FILE) {
        Ok(text) => text,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let chosen = text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
        .map_or(text.as_str(), |(word, _)| word);
    let finding = if chosen == "always" {
        Finding::warn(ID, "transparent huge pages for everybody: memory of many small connections grows, and stalls while pages are moved")
            .breaks("MySQL, MariaDB", "resident memory grows beyond the buffer pool and does not come back")
            .breaks("clients", "rare stalls of tens of milliseconds while khugepaged or compaction runs")
            .cure(Cure::advice(format!("echo madvise > {FILE}; for good: transparent_hugepage=madvise on the kernel's command line")))
    } else {
        Finding::ok(ID, format!("transparent huge pages: {chosen}"))
    };
    finding.read(FILE, text)
}
