//! The interval of the kernel's keepalive probes, compared with the time after which firewalls drop idle
//! connections.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::seconds;
use crate::probe::Probe;

const ID: &str = "keepalive";
const TIME: &str = "/proc/sys/net/ipv4/tcp_keepalive_time";
const PROBES: &str = "/proc/sys/net/ipv4/tcp_keepalive_probes";
const INTERVAL: &str = "/proc/sys/net/ipv4/tcp_keepalive_intvl";
const FORGOTTEN: &str = "/proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established";
const TRACKED: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

/// Below the 350 s after which common cloud load balancers forget an idle connection.
const PROPOSED_S: u64 = 300;

pub fn check(probe: &Probe<'_>) -> Finding {
    let time = match probe.root.number(TIME) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, TIME, &error),
    };
    let (probes, interval) =
        (probe.root.number(PROBES).unwrap_or(9), probe.root.number(INTERVAL).unwrap_or(75));
    let tracked = probe.root.number(TRACKED).unwrap_or(0) > 0;
    let forgotten = probe.root.number(FORGOTTEN).ok().filter(|_| tracked);
    let dead_s = time + probes * interval;
    let words = format!(
        "an idle connection is probed after {}; one whose other end has vanished is held {}",
        seconds(time as f64),
        seconds(dead_s as f64)
    );
    let finding = match forgotten {
        Some(limit) if limit <= time => Finding::warn(
            ID,
            format!("{words}, but the firewall here forgets it after {}", seconds(limit as f64)),
        ),
        _ => Finding::ok(ID, words),
    };
    let finding = finding
        .read(TIME, time)
        .read(PROBES, probes)
        .read(INTERVAL, interval)
        .breaks(
            "idle clients behind a load balancer that forgets them (often after 350 s)",
            "Connection reset by peer, or the next query hangs",
        )
        .breaks("MySQL's client", "ERROR 2013 (HY000): Lost connection to MySQL server during query");
    let finding = match forgotten {
        Some(limit) => finding.read(FORGOTTEN, limit),
        None => finding,
    };
    finding.cures_unless_ok([
        Cure::weir(format!("socket.tcp_keepidle = {PROPOSED_S}")),
        Cure::sysctl("net.ipv4.tcp_keepalive_time", PROPOSED_S),
    ])
}
