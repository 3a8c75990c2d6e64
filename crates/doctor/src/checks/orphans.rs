//! Connections without an owner, which a process leaves to the kernel when it ends.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::{count, round_up};
use crate::probe::{Probe, sockets};

const ID: &str = "orphans";
const FILE: &str = "/proc/sys/net/ipv4/tcp_max_orphans";

pub fn check(probe: &Probe<'_>) -> Finding {
    let max = match probe.root.number(FILE) {
        Ok(n) => n,
        Err(error) => return Finding::unread_of_machine(ID, FILE, &error),
    };
    let now = sockets::sockstat(probe.root, "orphan").unwrap_or(0);
    let sockets = probe.ask.sockets();
    let words = format!(
        "{} connections may be without an owner; a restart leaves up to {} for a moment",
        count(max),
        count(sockets)
    );
    let finding = if sockets > max { Finding::warn(ID, words) } else { Finding::ok(ID, words) };
    finding
        .read(FILE, max)
        .read("/proc/net/sockstat", format!("TCP orphan {now}"))
        .breaks_at(max, "the kernel's log", "TCP: too many orphaned sockets")
        .breaks_at(max, "clients", "Connection reset by peer instead of an orderly end")
        .cures_unless_ok([Cure::sysctl("net.ipv4.tcp_max_orphans", round_up(sockets, 1 << 17))])
}
