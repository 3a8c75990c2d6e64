//! Sockets, ports, addresses and counters from /proc/net.

use crate::numbers::listed;
use crate::root::{NUMBER_MAX, Root, Unread};
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::ops::RangeInclusive;

/// The kernel's range of ports for outgoing connections.
pub const RANGE_FILE: &str = "/proc/sys/net/ipv4/ip_local_port_range";
/// Ports of the range that are not given out.
pub const RESERVED_FILE: &str = "/proc/sys/net/ipv4/ip_local_reserved_ports";

/// First and last port for outgoing connections.
///
/// # Errors
/// The file cannot be read or holds no range of ports.
pub fn port_range(root: &Root) -> Result<RangeInclusive<u64>, Unread> {
    match root.numbers(RANGE_FILE)?.as_slice() {
        [first, last] if first <= last && *last <= u64::from(u16::MAX) => Ok(*first..=*last),
        other => Err(Unread(format!("not a range: {}", listed(other)))),
    }
}

/// Ports that are reserved. An unreadable file is an old kernel without the feature: none.
pub fn reserved_ports(root: &Root) -> Vec<RangeInclusive<u64>> {
    let text = root.read(RESERVED_FILE).unwrap_or_default();
    text.split(',')
        .filter_map(|part| {
            let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            Some(first.parse().ok()?..=last.parse().ok()?)
        })
        .collect()
}

/// Ports that one pair of addresses can use.
pub fn usable_ports(range: &RangeInclusive<u64>, reserved: &[RangeInclusive<u64>]) -> u64 {
    let all = range.end() - range.start() + 1;
    let taken = range.clone().filter(|port| reserved.iter().any(|ports| ports.contains(port))).count();
    all - (taken as u64).min(all)
}

/// Ports that somebody listens on with TCP, IPv4 and IPv6. The kernel lists listeners first; what comes
/// behind them may be a hundred thousand connections and is not read.
///
/// # Errors
/// /proc/net/tcp cannot be read.
pub fn listening_ports(root: &Root) -> Result<BTreeSet<u64>, Unread> {
    // include/net/tcp_states.h.
    const LISTEN: &str = "0A";
    let mut ports = BTreeSet::new();
    let mut gather = |line: &str| {
        let mut words = line.split_whitespace();
        let (number, local, state) = (words.next(), words.next(), words.nth(1));
        if number == Some("sl") {
            return true;
        }
        if state != Some(LISTEN) {
            return false;
        }
        let port = local.and_then(|local| u64::from_str_radix(local.rsplit_once(':')?.1, 16).ok());
        ports.extend(port);
        true
    };
    root.lines("/proc/net/tcp", &mut gather)?;
    // A machine without IPv6 has no such file.
    let _ = root.lines("/proc/net/tcp6", &mut gather);
    Ok(ports)
}

/// The machine's own IPv4 addresses, without loopback.
///
/// # Errors
/// /proc/net/fib_trie cannot be read.
pub fn local_addresses(root: &Root) -> Result<BTreeSet<Ipv4Addr>, Unread> {
    let text = root.read("/proc/net/fib_trie")?;
    let mut found = BTreeSet::new();
    let mut last: Option<Ipv4Addr> = None;
    for line in text.lines() {
        let line = line.trim();
        if let Some(address) = line.strip_prefix("|-- ") {
            last = address.parse().ok();
        } else if line.starts_with("/32 host LOCAL") {
            found.extend(last.filter(|address| !address.is_loopback()));
        }
    }
    Ok(found)
}

/// A counter of /proc/net/netstat, such as ("TcpExt", "ListenOverflows"); 0 when this kernel does not have
/// it.
pub fn netstat(text: &str, group: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(group)?.strip_prefix(':'));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let position = names.split_whitespace().position(|word| word == name);
    let value = position.and_then(|position| values.split_whitespace().nth(position));
    value.and_then(|value| value.parse::<u64>().ok()).unwrap_or(0).min(NUMBER_MAX)
}

/// A value of the TCP line of /proc/net/sockstat, such as "tw" or "mem".
///
/// # Errors
/// The file cannot be read or has no such value.
pub fn sockstat(root: &Root, name: &str) -> Result<u64, Unread> {
    let text = root.read("/proc/net/sockstat")?;
    let line = text.lines().find_map(|line| line.strip_prefix("TCP:"));
    let mut words = line.unwrap_or_default().split_whitespace();
    let found = words.find(|word| *word == name).and_then(|_| words.next()?.parse::<u64>().ok());
    found.map(|found: u64| found.min(NUMBER_MAX)).ok_or_else(|| Unread(format!("no TCP {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_ports_are_not_counted() {
        assert_eq!(usable_ports(&(32_768..=60_999), &[]), 28_232);
        assert_eq!(usable_ports(&(100..=109), &[1..=101, 105..=105, 200..=300]), 7);
        assert_eq!(usable_ports(&(1..=2), &[1..=9]), 0);
    }

    #[test]
    fn counters_by_name() {
        let text = "TcpExt: SyncookiesSent ListenOverflows\nTcpExt: 1 22\nIpExt: InNoRoutes\nIpExt: 7";
        assert_eq!(netstat(text, "TcpExt", "ListenOverflows"), 22);
        assert_eq!(netstat(text, "IpExt", "InNoRoutes"), 7);
        assert_eq!(netstat(text, "TcpExt", "NoSuch"), 0);
        assert_eq!(netstat("", "TcpExt", "ListenOverflows"), 0);
    }
}
