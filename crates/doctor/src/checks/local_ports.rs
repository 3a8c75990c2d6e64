//! Local ports: each connection from one address to one address and port uses one.

use super::reserved_ports;
use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::count;
use crate::probe::{Probe, sockets};
use crate::question::{Program, is_here};
use weir_net::Target;

const ID: &str = "local_ports";

/// Loopback addresses that `weir bench` spreads over at most.
const BENCH_ADDRESSES: u64 = 250;

/// The range to propose: what the experiments with 100,000 connections used. The ports below stay for
/// servers.
pub const WIDE: std::ops::RangeInclusive<u64> = 4000..=65_000;

pub fn check(probe: &Probe<'_>) -> Finding {
    let range = match sockets::port_range(probe.root) {
        Ok(range) => range,
        Err(error) => return Finding::unread(ID, sockets::RANGE_FILE, &error),
    };
    let ports = sockets::usable_ports(&range, &sockets::reserved_ports(probe.root));
    let targets = &probe.ask.targets;
    if !targets.is_empty() && targets.iter().all(|target| matches!(target, Target::Unix(_))) {
        return Finding::ok(ID, "connections to Unix sockets take no ports");
    }
    let needed = most_to_one_target(probe);
    let loopback = !targets.is_empty() && targets.iter().all(is_here);
    let (room, how) = room(probe, ports, loopback);
    let state = match needed {
        n if n > room => State::Blocker,
        n if n > room / 2 && !(probe.ask.program == Program::Bench && loopback) => State::Warn,
        _ => State::Ok,
    };
    let words = format!("{} connections to one address, {} local ports{how}", count(needed), count(ports));
    let finding = Finding::judged(ID, state, words)
        .read(sockets::RANGE_FILE, format!("{} {}", range.start(), range.end()))
        .breaks_at(room, "MySQL's client", "ERROR 2003 (HY000): Can't connect to MySQL server on 'HOST' (99)")
        .breaks_at(room, "libpq, PgBouncer, Weir", "Cannot assign requested address (os error 99)");
    if state == State::Ok { finding } else { cures(probe, finding, needed, ports, loopback) }
}

/// Connections to the target that gets most of them; they are dealt out evenly.
fn most_to_one_target(probe: &Probe<'_>) -> u64 {
    let targets = probe.ask.targets.iter().filter(|target| matches!(target, Target::Tcp(_))).count().max(1);
    probe.ask.outgoing().div_ceil(targets as u64)
}

/// Connections that the ports allow to one target, and how.
fn room(probe: &Probe<'_>, ports: u64, loopback: bool) -> (u64, String) {
    match probe.ask.program {
        Program::Bench if loopback => {
            let room = ports * BENCH_ADDRESSES;
            (room, format!("; weir bench spreads over up to {BENCH_ADDRESSES} addresses 127.0.0.x by itself"))
        }
        Program::Bench | Program::Serve | Program::Other => (ports, " from one address".to_owned()),
    }
}

fn cures(probe: &Probe<'_>, finding: Finding, needed: u64, ports: u64, loopback: bool) -> Finding {
    let wide = WIDE.end() - WIDE.start() + 1;
    let finding = if ports < wide {
        let finding = finding
            .cure(Cure::sysctl("net.ipv4.ip_local_port_range", format!("{} {}", WIDE.start(), WIDE.end())));
        // A widened range swallows ports that servers listen on.
        match reserved_ports::to_reserve(probe, &WIDE) {
            Some(list) => finding.cure(Cure::sysctl("net.ipv4.ip_local_reserved_ports", list)),
            None => finding,
        }
    } else {
        finding
    };
    if needed <= wide && !loopback {
        return finding;
    }
    let addresses = needed.div_ceil(wide.max(ports));
    match probe.ask.program {
        Program::Bench => finding.cure(Cure::advice(format!(
            "weir bench --source A,B,...: {addresses} source addresses of this machine (ip addr add), or as many addresses of the server"
        ))),
        Program::Serve => finding.cure(Cure::advice(
            "fewer server connections: a database runs best with a few for each core; or a Unix socket, or several \
             addresses of the database",
        )),
        Program::Other => finding.cure(Cure::advice(format!(
            "{addresses} source addresses, or as many addresses of the server: one pair of addresses has {} ports",
            count(ports.max(wide))
        ))),
    }
}
