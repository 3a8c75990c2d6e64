//! tcp_rmem and tcp_wmem: initial and maximum buffer size of one socket.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{bytes, listed};
use crate::probe::Probe;

const ID: &str = "tcp_buffers";
const FILES: [(&str, &str); 2] = [
    ("net.ipv4.tcp_rmem", "/proc/sys/net/ipv4/tcp_rmem"),
    ("net.ipv4.tcp_wmem", "/proc/sys/net/ipv4/tcp_wmem"),
];

/// A start value above this is somebody's tuning for few, fast connections, and not for many.
const START_MAX: u64 = 1 << 20;
/// Below this a socket cannot hold one full packet and its bookkeeping.
const START_MIN: u64 = 4096;

pub fn check(probe: &Probe<'_>) -> Finding {
    let mut finding = Finding::ok(ID, String::new());
    let mut starts = Vec::new();
    for (key, file) in FILES {
        let numbers = match probe.root.numbers(file) {
            Ok(numbers) => numbers,
            Err(error) => return Finding::unread(ID, file, &error),
        };
        let [min, start, max] = numbers.as_slice() else {
            return Finding::judged(
                ID,
                State::Unknown,
                format!("{file}: {} is not understood", listed(&numbers)),
            );
        };
        finding = finding.read(file, format!("{min} {start} {max}"));
        starts.push(*start);
        if *start > START_MAX || *start < START_MIN {
            finding.state = State::Warn;
            let proposed = if key.ends_with("rmem") { 87_380 } else { 16_384 };
            finding = finding.cure(Cure::sysctl(key, format!("4096 {proposed} {}", (*max).max(proposed))));
        }
    }
    let total = starts.iter().sum::<u64>().saturating_mul(probe.ask.sockets());
    finding.summary = match finding.state {
        State::Warn => {
            format!("a socket starts with {}: for many connections that is not usual", starts_shown(&starts))
        }
        _ => format!("a socket starts with {} and uses of it what it needs", starts_shown(&starts)),
    };
    finding.breaks(
        "if every client stops reading",
        format!("up to {} of kernel memory fill before senders wait", bytes(total)),
    )
}

fn starts_shown(starts: &[u64]) -> String {
    let words: Vec<_> = starts
        .iter()
        .zip(["to receive", "to send"])
        .map(|(n, what)| format!("{} {what}", bytes(*n)))
        .collect();
    words.join(" and ")
}
