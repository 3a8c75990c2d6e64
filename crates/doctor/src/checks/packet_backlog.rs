//! Packets that wait for a core, and those dropped there since the start.

use crate::cure::Cure;
use crate::finding::Finding;
use crate::numbers::count;
use crate::probe::Probe;

const ID: &str = "packet_backlog";
const BACKLOG: &str = "/proc/sys/net/core/netdev_max_backlog";
const STAT: &str = "/proc/net/softnet_stat";

/// What the experiments with 100,000 connections used.
const PROPOSED: u64 = 300_000;

/// One in so many is sent again without anybody noticing: a percentile as far out as p99.99 shows it no more.
const UNNOTICED: u64 = 10_000;

pub fn check(probe: &Probe<'_>) -> Finding {
    let stat = match probe.root.read(STAT) {
        Ok(stat) => stat,
        Err(error) => return Finding::unread(ID, STAT, &error),
    };
    // One line a core, in hexadecimal: packets, dropped, ran out of budget.
    let column = |n: usize| -> u64 {
        let values =
            stat.lines().filter_map(|line| u64::from_str_radix(line.split_whitespace().nth(n)?, 16).ok());
        values.fold(0, u64::saturating_add)
    };
    let (packets, dropped) = (column(0), column(1));
    let backlog = probe.root.number(BACKLOG).map_or("unknown".to_owned(), |n| n.to_string());
    let finding = if dropped > packets / UNNOTICED {
        Finding::warn(
            ID,
            format!(
                "{} of {} packets were dropped because a core had too many waiting",
                count(dropped),
                count(packets)
            ),
        )
        .breaks("clients", "single requests take 200 ms or 1 s longer: the packet is sent again")
    } else if dropped > 0 {
        Finding::ok(
            ID,
            format!(
                "{} of {} packets were dropped on their way to a core since the machine started, which nobody notices",
                count(dropped),
                count(packets)
            ),
        )
    } else {
        Finding::ok(ID, format!("no packet was dropped on its way to a core, of {}", count(packets)))
    };
    finding
        .read(STAT, format!("dropped {dropped}"))
        .read(BACKLOG, backlog)
        .cures_unless_ok([Cure::sysctl("net.core.netdev_max_backlog", PROPOSED)])
}
