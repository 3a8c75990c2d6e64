//! Closed connections that still hold their ports, for clients that connect and disconnect all the time.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::count;
use crate::probe::{Probe, sockets};

const ID: &str = "time_wait";
const REUSE: &str = "/proc/sys/net/ipv4/tcp_tw_reuse";
const BUCKETS: &str = "/proc/sys/net/ipv4/tcp_max_tw_buckets";
/// How long a closed connection is kept (TCP_TIMEWAIT_LEN; no setting changes it, tcp_fin_timeout neither).
const TIME_WAIT_S: u64 = 60;

pub fn check(probe: &Probe<'_>) -> Finding {
    let reuse = match probe.root.number(REUSE) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, REUSE, &error),
    };
    let range = match sockets::port_range(probe.root) {
        Ok(range) => range,
        Err(error) => return Finding::unread(ID, sockets::RANGE_FILE, &error),
    };
    let (buckets, waiting) =
        (probe.root.number(BUCKETS).unwrap_or(u64::MAX), sockets::sockstat(probe.root, "tw").unwrap_or(0));
    let ports = sockets::usable_ports(&range, &sockets::reserved_ports(probe.root));
    let rate = ports / TIME_WAIT_S;
    let crowded = waiting > ports / 2 || waiting > buckets / 2;
    let free_again = match reuse {
        0 => format!("{} new connections a second to one address", count(rate)),
        1 => format!(
            "their ports are used again after 1 s: {} new connections a second to one address",
            count(ports)
        ),
        _ => format!("{} new connections a second to one address (more on loopback)", count(rate)),
    };
    let words =
        format!("{} connections were closed in the last {TIME_WAIT_S} s; {free_again}", count(waiting));
    let state = if crowded { State::Warn } else { State::Ok };
    Finding::judged(ID, state, words)
        .read("/proc/net/sockstat", format!("TCP tw {waiting}"))
        .read(REUSE, reuse)
        .read(BUCKETS, buckets)
        .breaks("MySQL's client", "ERROR 2003 (HY000): Can't connect to MySQL server on 'HOST' (99)")
        .breaks("the kernel's log", "TCP: time wait bucket table overflow")
        .cures_unless_ok([
            Cure::sysctl("net.ipv4.tcp_tw_reuse", 1),
            Cure::advice("keep connections open in the application, or connect to Weir by a Unix socket"),
        ])
}
