//! Open files of the process: one descriptor for each connection.
//!
//! Weir raises its soft limit to the hard one, and where one descriptor table is too small each worker gets
//! its own (`unshare(CLONE_FILES)`, or close_range), so the limit holds for each worker. No other program
//! does that.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{count, round_up};
use crate::probe::Probe;
use crate::probe::limits::{Limit, shown};

const ID: &str = "open_files";

/// Descriptors of a program that are not connections: streams, log, epoll, libraries.
const OTHER_SPARE: u64 = 30;

/// The usual value that is enough for everything, and Linux's default bound (fs.nr_open).
const USUAL: u64 = 1 << 20;

pub fn check(probe: &Probe<'_>) -> Finding {
    let file = probe.process_file("limits");
    let limit = match probe.open_files() {
        Ok(limit) => limit,
        Err(error) => return Finding::unread(ID, &file, &error),
    };
    let value = format!("Max open files: soft {}, hard {}", shown(limit.soft), shown(limit.hard));
    let finding = if probe.ask.program.is_weir() { weir(probe, limit) } else { other(probe, limit) };
    finding.read(file, value)
}

/// A limit to propose for a number of sockets in one table.
pub fn proposed(sockets: u64) -> u64 {
    round_up(sockets.saturating_add(1000), USUAL)
}

fn weir(probe: &Probe<'_>, limit: Limit) -> Finding {
    let sockets = probe.ask.sockets();
    // A process that runs already has raised its limit itself.
    let plan = probe.table_plan(limit.hard);
    let one_table = limit.hard.saturating_sub(OTHER_SPARE);
    let finding = if !plan.enough {
        Finding::blocker(ID, plan.text.trim_start_matches("open files: "))
            .breaks_at(plan.capacity, "Weir's log", "cannot accept: Too many open files (os error 24)")
            .breaks_at(plan.capacity, "the client", "hangs in connect: the connection waits to be accepted")
            .breaks_at(plan.capacity, "weir bench", "refuses to start with the summary above")
    } else if plan.may_grow() {
        let words = format!(
            "the limit of {} is too small for {} connections in one table; when so many come, Weir starts up to {} more \
             workers with tables of their own: {} fit. No other program does that",
            count(limit.hard),
            count(sockets),
            plan.most - plan.workers,
            count(plan.capacity)
        );
        Finding::ok(ID, words)
    } else if plan.private {
        let words = format!(
            "the limit of {} is too small for {} connections in one table; Weir gives each of {} workers its own: {} fit. \
             No other program does that",
            count(limit.hard),
            count(sockets),
            plan.workers,
            count(plan.capacity)
        );
        Finding::ok(ID, words)
    } else {
        Finding::ok(
            ID,
            format!("{} are enough for {} connections in one table", count(limit.hard), count(sockets)),
        )
    };
    emfile(finding, one_table).cures_unless_ok([Cure::OpenFiles(proposed(sockets))])
}

fn other(probe: &Probe<'_>, limit: Limit) -> Finding {
    let (sockets, fitting) = (probe.ask.sockets(), limit.soft.saturating_sub(OTHER_SPARE));
    let state = if sockets > fitting { State::Blocker } else { State::Ok };
    let words = match state {
        State::Blocker if limit.hard.saturating_sub(OTHER_SPARE) >= sockets => format!(
            "{} connections, and the soft limit is {}; the hard limit of {} would do: ulimit -n {}",
            count(sockets),
            count(limit.soft),
            shown(limit.hard),
            shown(limit.hard)
        ),
        State::Blocker => format!("{} connections, and the limit is {}", count(sockets), count(limit.soft)),
        _ => format!("{} are enough for {} connections", count(limit.soft), count(sockets)),
    };
    emfile(Finding::judged(ID, state, words), fitting).cures_unless_ok([Cure::OpenFiles(proposed(sockets))])
}

/// What programs with one table say at the limit.
fn emfile(finding: Finding, at: u64) -> Finding {
    finding
        .breaks_at(at, "MySQL's client, sysbench", "ERROR 2004 (HY000): Can't create TCP/IP socket (24)")
        .breaks_at(at, "mysqld, mariadbd", "[ERROR] Error in accept: Too many open files")
        .breaks_at(at, "PgBouncer", "accept() failed: Too many open files")
        .breaks_at(at, "PostgreSQL", "out of file descriptors: Too many open files; release and retry")
        .breaks_at(at, "libpq, pgbench", "could not create socket: Too many open files")
}
