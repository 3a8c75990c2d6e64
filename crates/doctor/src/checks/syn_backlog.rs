//! Connections that are half open.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::count;
use crate::probe::Probe;
use crate::question::Program;

const ID: &str = "syn_backlog";
const BACKLOG: &str = "/proc/sys/net/ipv4/tcp_max_syn_backlog";
const COOKIES: &str = "/proc/sys/net/ipv4/tcp_syncookies";

pub fn check(probe: &Probe<'_>) -> Finding {
    let backlog = match probe.root.number(BACKLOG) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, BACKLOG, &error),
    };
    let cookies = match probe.root.number(COOKIES) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, COOKIES, &error),
    };
    if probe.ask.program == Program::Bench {
        return Finding::ok(ID, "weir bench accepts no connections");
    }
    // Without cookies the kernel keeps the last quarter for peers it knows (tcp_conn_request).
    let room = backlog - backlog / 4;
    let finding = if cookies == 0 && probe.ask.clients > room {
        Finding::warn(
            ID,
            format!(
                "SYN cookies are off and {} connections may be half open: more SYNs are dropped",
                count(room)
            ),
        )
        .breaks_at(room, "the kernel's log", "Possible SYN flooding on port N. Dropping request.")
        .breaks_at(
            room,
            "clients that connect at once",
            "connect takes 1, 3 or 7 s longer, or ETIMEDOUT (110)",
        )
    } else {
        let words = if cookies == 0 { "and that is enough" } else { "and SYN cookies serve the rest" };
        Finding::ok(ID, format!("{} connections may be half open, {words}", count(backlog))).breaks(
            "the kernel's log, harmless in a storm",
            "Possible SYN flooding on port N. Sending cookies.",
        )
    };
    finding.read(BACKLOG, backlog).read(COOKIES, cookies).cures_unless_ok([
        Cure::sysctl("net.ipv4.tcp_syncookies", 1),
        Cure::sysctl("net.ipv4.tcp_max_syn_backlog", backlog.max(4096)),
    ])
}
