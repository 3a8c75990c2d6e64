//! Connections that wait to be accepted: somaxconn limits what a program requests.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::count;
use crate::probe::Probe;
use crate::question::Program;

const ID: &str = "accept_backlog";
const SOMAXCONN: &str = "/proc/sys/net/core/somaxconn";
const ABORT: &str = "/proc/sys/net/ipv4/tcp_abort_on_overflow";

/// What the experiments with 100,000 connections used.
const PROPOSED: u64 = 32_768;
/// Of all clients one in so many may come at once, as when one of several applications restarts.
const AT_ONCE: u64 = 8;
/// A larger storm than this is accepted in its turn anyhow: it is more than half a second of accepting
/// (16,000 to 25,000 connections a second).
const STORM: u64 = 16_384;

pub fn check(probe: &Probe<'_>) -> Finding {
    if probe.ask.program == Program::Bench {
        return Finding::ok(ID, "weir bench accepts no connections; the server's backlog counts");
    }
    let somaxconn = match probe.root.number(SOMAXCONN) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, SOMAXCONN, &error),
    };
    let aborts = probe.root.number(ABORT).unwrap_or(0) != 0;
    // Weir has a listener for each worker.
    let listeners = if probe.ask.program.is_weir() { probe.weir_workers().0 } else { 1 };
    let each = probe.ask.backlog.min(somaxconn);
    let all = each * listeners;
    let storm = (probe.ask.clients / AT_ONCE).min(STORM);
    let cut = somaxconn < probe.ask.backlog && all < probe.ask.clients;
    let state = if aborts || cut || all < storm { State::Warn } else { State::Ok };
    let mut words = if listeners > 1 {
        format!(
            "{} connections may wait to be accepted, {} at each of {listeners} listeners",
            count(all),
            count(each)
        )
    } else {
        format!("{} connections may wait to be accepted", count(all))
    };
    if cut {
        words.push_str(&format!("; somaxconn cuts what was asked for, {}", count(probe.ask.backlog)));
    }
    if aborts {
        words.push_str("; tcp_abort_on_overflow resets those beyond");
    }
    let mut finding = Finding::judged(ID, state, words)
        .read(SOMAXCONN, somaxconn)
        .read(ABORT, u64::from(aborts))
        .breaks_at(
            all,
            "clients that connect at once",
            "connect takes 1, 3 or 7 s longer (the SYN is sent again)",
        )
        .breaks_at(all, "MySQL's client", "ERROR 2003 (HY000): Can't connect to MySQL server on 'HOST' (110)")
        .breaks_at(all, "netstat -s", "times the listen queue of a socket overflowed");
    if aborts {
        finding =
            finding.breaks_at(all, "clients that connect at once", "Connection reset by peer (os error 104)");
    }
    let mut cures = Vec::new();
    if somaxconn < PROPOSED {
        cures.push(Cure::sysctl("net.core.somaxconn", PROPOSED));
    }
    if aborts {
        cures.push(Cure::sysctl("net.ipv4.tcp_abort_on_overflow", 0));
    }
    if probe.ask.backlog < PROPOSED && probe.ask.program == Program::Serve {
        cures.push(Cure::weir(format!("socket.listen_backlog = {PROPOSED}")));
    }
    finding.cures_unless_ok(cures)
}
