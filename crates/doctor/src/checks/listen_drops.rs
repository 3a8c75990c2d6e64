//! Connections dropped at a full queue since the start, as counted by the kernel.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::count;
use crate::probe::{Probe, sockets};

const ID: &str = "listen_drops";
const FILE: &str = "/proc/net/netstat";

pub fn check(probe: &Probe<'_>) -> Finding {
    let text = match probe.root.read(FILE) {
        Ok(text) => text,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let of = |name| sockets::netstat(&text, "TcpExt", name);
    let (overflows, drops, refused) = (of("ListenOverflows"), of("ListenDrops"), of("TCPReqQFullDrop"));
    let finding = if overflows + drops + refused == 0 {
        Finding::ok(ID, "no connection was dropped at a full queue since the machine started")
    } else {
        let words = format!(
            "since the machine started {} connections met a full accept queue; {} SYNs or connections were dropped",
            count(overflows),
            count(drops.max(refused))
        );
        Finding::warn(ID, words)
            .breaks("the client", "connect takes 1, 3 or 7 s, or ends with ETIMEDOUT (110)")
            .cure(Cure::advice(
                "see which: ss -ltn (Recv-Q near Send-Q is a full queue). Then raise that program's backlog and \
                 net.core.somaxconn, or let clients reconnect more slowly",
            ))
            .cure(Cure::sysctl("net.core.somaxconn", 32_768))
    };
    finding.read(FILE, format!("ListenOverflows {overflows}, ListenDrops {drops}, TCPReqQFullDrop {refused}"))
}
