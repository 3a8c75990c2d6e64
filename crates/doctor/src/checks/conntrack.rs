//! The table of the stateful firewall: every connection has an entry, on loopback too.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{count, round_up};
use crate::probe::Probe;

const ID: &str = "conntrack";
const MAX: &str = "/proc/sys/net/netfilter/nf_conntrack_max";
const COUNT: &str = "/proc/sys/net/netfilter/nf_conntrack_count";

pub fn check(probe: &Probe<'_>) -> Finding {
    let max = match probe.root.number(MAX) {
        Ok(n) => n,
        Err(_) if !probe.root.has("/proc/sys/net") => {
            return Finding::unread(ID, MAX, &crate::root::Unread("no such file".to_owned()));
        }
        Err(_) => return Finding::ok(ID, "no connection tracking on this machine").read(MAX, "no such file"),
    };
    let used = probe.root.number(COUNT).unwrap_or(0);
    let needed = probe.ask.sockets();
    let left = max.saturating_sub(used);
    // Loaded but with nothing in its table: no rule asks for it now.
    let (state, remark) = match (needed, used) {
        (n, 0) if n > left => (State::Warn, "; nothing is tracked now"),
        (n, _) if n > left => (State::Blocker, ""),
        (n, used) if n > left / 2 && used > 0 => (State::Warn, ""),
        _ => (State::Ok, ""),
    };
    let words = format!("the table has room for {} of {} connections{remark}", count(left), count(needed));
    let max_wanted = round_up((needed + used) * 2, 1 << 18);
    Finding::judged(ID, state, words)
        .read(MAX, max)
        .read(COUNT, used)
        .breaks_at(left, "the kernel's log", "nf_conntrack: nf_conntrack: table full, dropping packet")
        .breaks_at(left, "clients", "connects and established connections hang: packets are dropped without an answer")
        .cures_unless_ok([
            Cure::sysctl("net.netfilter.nf_conntrack_max", max_wanted),
            Cure::advice(format!(
                "a larger table wants more buckets: echo {} > /sys/module/nf_conntrack/parameters/hashsize; or do not track \
                 these ports (nft: `tcp dport {{ 6432, 6033 }} notrack` in a raw hook)",
                max_wanted / 4
            )),
        ])
}
