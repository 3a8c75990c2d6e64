//! tcp_mem: total pages for the buffers of all sockets.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{bytes, count, listed};
use crate::probe::{Probe, sockets};

const ID: &str = "tcp_memory";
const FILE: &str = "/proc/sys/net/ipv4/tcp_mem";
const PAGE_BYTES: u64 = 4096;
/// A connection with a small request and a small reply under way: a page on each side of its socket.
const PAGES_EACH: u64 = 2;

pub fn check(probe: &Probe<'_>) -> Finding {
    let (pressure, max) = match probe.root.numbers(FILE) {
        Ok(numbers) => match numbers.as_slice() {
            [_, pressure, max] => (*pressure, *max),
            other => {
                return Finding::judged(
                    ID,
                    State::Unknown,
                    format!("{FILE}: {} is not understood", listed(other)),
                );
            }
        },
        Err(error) => return Finding::unread_of_machine(ID, FILE, &error),
    };
    let used = sockets::sockstat(probe.root, "mem").unwrap_or(0);
    let text = probe.root.read("/proc/net/netstat").unwrap_or_default();
    let pressures = sockets::netstat(&text, "TcpExt", "TCPMemoryPressures");
    let ends = if probe.ask.has_local_target() { probe.ask.outgoing() } else { 0 };
    let needed = probe.ask.sockets().saturating_add(ends).saturating_mul(PAGES_EACH);
    let state = match needed {
        n if n > max.saturating_sub(used) => State::Blocker,
        n if n > pressure.saturating_sub(used) || pressures > 0 => State::Warn,
        _ => State::Ok,
    };
    let mut words = format!(
        "buffers may take {}; {} connections that are all busy take about {}",
        bytes(max * PAGE_BYTES),
        count(probe.ask.sockets()),
        bytes(needed * PAGE_BYTES)
    );
    if pressures > 0 {
        words.push_str(&format!("; the kernel was short of it {} times since the start", count(pressures)));
    }
    let at = max / PAGES_EACH;
    let wanted = needed.saturating_mul(2).max(max);
    Finding::judged(ID, state, words)
        .read(FILE, format!("pressure {pressure}, max {max} pages"))
        .read("/proc/net/sockstat", format!("TCP mem {used} pages"))
        .breaks_at(at, "the kernel's log", "TCP: out of memory -- consider tuning tcp_mem")
        .breaks_at(at, "clients", "throughput falls and replies stall: windows shrink, packets are dropped")
        .cures_unless_ok([Cure::sysctl(
            "net.ipv4.tcp_mem",
            format!("{} {} {wanted}", wanted / 2, wanted / 4 * 3),
        )])
}
