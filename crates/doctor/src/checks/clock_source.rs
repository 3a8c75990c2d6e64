//! The kernel's clock: some are read in 20 ns, some take a system call and a slow device.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::probe::Probe;

const ID: &str = "clock_source";
const CURRENT: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const AVAILABLE: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// Clocks that a program reads without entering the kernel (vDSO).
const QUICK: [&str; 6] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter", "timebase", "tod"];

pub fn check(probe: &Probe<'_>) -> Finding {
    let current = match probe.root.read(CURRENT) {
        Ok(name) => name,
        Err(error) => return Finding::unread(ID, CURRENT, &error),
    };
    let available = probe.root.read(AVAILABLE).unwrap_or_default();
    if QUICK.contains(&current.as_str()) {
        return Finding::ok(ID, format!("{current}: the time is read without entering the kernel"))
            .read(CURRENT, current);
    }
    let better = available.split_whitespace().find(|name| QUICK.contains(name));
    let finding = Finding::warn(
        ID,
        format!("{current}: every look at the time is a system call and a slow read"),
    )
    .read(CURRENT, &current)
    .read(AVAILABLE, &available)
    .breaks("perf top", "read_hpet, acpi_pm_read or clock_gettime near the top")
    .breaks(
        "everything",
        "databases and proxies read the time several times a query: throughput falls by a third or more",
    );
    match better {
        Some(name) => finding.cure(Cure::advice(format!(
            "echo {name} > {CURRENT}; for good: clocksource={name} on the kernel's command line"
        ))),
        None => finding.cure(Cure::advice("ask who runs the hypervisor for a stable TSC")),
    }
}
