//! Listening ports inside the range for outgoing connections.
//!
//! While a server is up its port is safe. When it restarts, an outgoing connection may have taken the port.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::probe::{Probe, sockets};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;

const ID: &str = "reserved_ports";

/// Ports that are named in the summary; the cure has all.
const NAMED: usize = 8;

pub fn check(probe: &Probe<'_>) -> Finding {
    let range = match sockets::port_range(probe.root) {
        Ok(range) => range,
        Err(error) => return Finding::unread(ID, sockets::RANGE_FILE, &error),
    };
    let listening = match sockets::listening_ports(probe.root) {
        Ok(ports) => ports,
        Err(error) => return Finding::unread(ID, "/proc/net/tcp", &error),
    };
    let reserved = sockets::reserved_ports(probe.root);
    let exposed: Vec<String> = exposed(probe, &listening, &range).iter().map(u64::to_string).collect();
    let finding = if exposed.is_empty() {
        Finding::ok(ID, format!("no listening port is inside {}-{} unreserved", range.start(), range.end()))
    } else {
        let mut named = exposed.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
        if exposed.len() > NAMED {
            named.push_str(&format!(" and {} more", exposed.len() - NAMED));
        }
        let words = format!(
            "listening inside {}-{}, where outgoing connections get their ports: {named}",
            range.start(),
            range.end()
        );
        Finding::warn(ID, words)
            .breaks("Weir, PgBouncer, at the next start", "Address already in use (os error 98)")
            .breaks(
                "PostgreSQL, at the next start",
                "could not bind IPv4 address \"0.0.0.0\": Address already in use",
            )
            .breaks(
                "mysqld, at the next start",
                "Can't start server: Bind on TCP/IP port: Address already in use",
            )
    };
    let list = to_reserve(probe, &range);
    finding
        .read(sockets::RANGE_FILE, format!("{} {}", range.start(), range.end()))
        .read(
            sockets::RESERVED_FILE,
            if reserved.is_empty() { "nothing".to_owned() } else { shown(&reserved) },
        )
        .read("/proc/net/tcp, /proc/net/tcp6", format!("{} listening ports", listening.len()))
        .cures_unless_ok(list.map(|list| Cure::sysctl("net.ipv4.ip_local_reserved_ports", list)))
}

/// Listening ports, and those the program will listen on, inside a range and not reserved.
fn exposed(probe: &Probe<'_>, listening: &BTreeSet<u64>, range: &RangeInclusive<u64>) -> BTreeSet<u64> {
    let reserved = sockets::reserved_ports(probe.root);
    let own = probe.ask.listen_ports.iter().map(|port| u64::from(*port));
    let all = listening.iter().copied().chain(own);
    all.filter(|port| range.contains(port) && !reserved.iter().any(|ports| ports.contains(port))).collect()
}

/// The value of ip_local_reserved_ports for a range: what is reserved already and what must be as well;
/// `None`: nothing is to be added.
pub fn to_reserve(probe: &Probe<'_>, range: &RangeInclusive<u64>) -> Option<String> {
    let listening = sockets::listening_ports(probe.root).unwrap_or_default();
    let exposed = exposed(probe, &listening, range);
    if exposed.is_empty() {
        return None;
    }
    let mut parts = sockets::reserved_ports(probe.root);
    parts.extend(exposed.into_iter().map(|port| port..=port));
    parts.sort_by_key(|ports| *ports.start());
    Some(shown(&parts))
}

fn shown(ranges: &[RangeInclusive<u64>]) -> String {
    let one = |ports: &RangeInclusive<u64>| match (ports.start(), ports.end()) {
        (first, last) if first == last => first.to_string(),
        (first, last) => format!("{first}-{last}"),
    };
    ranges.iter().map(one).collect::<Vec<_>>().join(",")
}
