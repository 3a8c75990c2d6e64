//! TCP settings of the kernel that are often asked about: two that must be on, and those that do not matter
//! for a pooler, with the reason.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::probe::Probe;

const ID: &str = "tcp_options";
const SACK: &str = "/proc/sys/net/ipv4/tcp_sack";
const TIMESTAMPS: &str = "/proc/sys/net/ipv4/tcp_timestamps";
const CONGESTION: &str = "/proc/sys/net/ipv4/tcp_congestion_control";
const MTU_PROBING: &str = "/proc/sys/net/ipv4/tcp_mtu_probing";
/// Containers do not show these before Linux 6.
const BUFFERS: [&str; 2] = ["/proc/sys/net/core/rmem_max", "/proc/sys/net/core/wmem_max"];

pub fn check(probe: &Probe<'_>) -> Finding {
    let (sack, timestamps) = match (probe.root.number(SACK), probe.root.number(TIMESTAMPS)) {
        (Ok(sack), Ok(timestamps)) => (sack, timestamps),
        (Err(error), _) => return Finding::unread(ID, SACK, &error),
        (_, Err(error)) => return Finding::unread(ID, TIMESTAMPS, &error),
    };
    let shown = |file| probe.root.read(file).unwrap_or_else(|_| "not shown here".to_owned());
    let congestion = shown(CONGESTION);
    let probing = probe.root.number(MTU_PROBING).ok();
    let mut off = Vec::new();
    if sack == 0 {
        off.push("tcp_sack");
    }
    if timestamps == 0 {
        off.push("tcp_timestamps");
    }
    let state = if off.is_empty() { State::Ok } else { State::Warn };
    let mut words = match off.as_slice() {
        [] => "tcp_sack and tcp_timestamps are on".to_owned(),
        names => format!("off, and should be on: {}", names.join(", ")),
    };
    words.push_str(&format!(
        "; rmem_max and wmem_max do not matter (they bound what programs set by hand, and neither Weir nor the databases do: \
         tcp_rmem and tcp_wmem count), nor does the congestion control, {congestion} (a request and its reply fit into the first \
         window)"
    ));
    if probing == Some(0) {
        words.push_str(
            "; tcp_mtu_probing is off, which only matters behind a tunnel whose routers drop ICMP: there small replies come and \
             large ones hang",
        );
    }
    let mut finding = Finding::judged(ID, state, words)
        .read(SACK, sack)
        .read(TIMESTAMPS, timestamps)
        .read(CONGESTION, congestion)
        .read(MTU_PROBING, probing.map_or("not shown here".to_owned(), |n| n.to_string()));
    for file in BUFFERS {
        finding = finding.read(file, shown(file));
    }
    let mut cures = Vec::new();
    if sack == 0 {
        finding = finding
            .breaks("clients over a network that loses packets", "a loss costs all that was sent behind it");
        cures.push(Cure::sysctl("net.ipv4.tcp_sack", 1));
    }
    if timestamps == 0 {
        finding = finding.breaks(
            "programs that open many connections to one address",
            "Cannot assign requested address (os error 99): without timestamps no port in TIME_WAIT is used again",
        );
        cures.push(Cure::sysctl("net.ipv4.tcp_timestamps", 1));
    }
    finding.cures_unless_ok(cures)
}
