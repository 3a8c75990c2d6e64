//! How many descriptors are available, and private descriptor tables where one is too small.
//!
//! Owns: the limit of open files and splitting off tables. Must not know: what the descriptors are for.
//!
//! The limit of open files (RLIMIT_NOFILE) limits the *numbers* of one descriptor table, and on Linux a
//! thread can have a table of its own: `unshare(CLONE_FILES)` needs no privilege. Where a container forbids
//! that call (Docker's default seccomp profile does), `close_range` with CLOSE_RANGE_UNSHARE does the same.
//! Workers can therefore hold as many connections as the limit allows *each*.
//!
//! The meaning of a private table: a descriptor opened before the split is open in both tables, one opened
//! after it only in the table of the thread that opened it, and the same number refers to different things in
//! different tables. Rust's `OwnedFd` is a number: with private tables it must not travel between threads,
//! except by [`crate::handover`]. A number that was open before the split and is not meant for this thread is
//! therefore not just closed but *blocked*: it stays taken by a descriptor on which every read and write
//! fails with EBADF. A stray use of it is then an error, and can never reach a client's connection that was
//! given the same number. This does not protect numbers that other tables open later; see [`crate::wake`] for
//! the rule. Threads that a worker starts share the worker's table.

use std::io;
use std::os::fd::RawFd;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors set aside in each table for what is not a connection: standard streams, log, event queue,
/// listeners, name resolution.
const SPARE_DESCRIPTORS: u64 = 64;
/// Descriptors that each worker costs every table: a wake and both ends of a lane.
const SHARED_PER_WORKER: u64 = 3;
/// More workers than this are not a cure.
const MOST_WORKERS: usize = 1024;
/// What a limit without a bound counts as: Linux's default maximum (fs.nr_open).
const UNBOUNDED: u64 = 1 << 20;

/// The limit of open files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenFiles {
    /// What applies now.
    pub soft: u64,
    /// What this process may raise it to without privilege.
    pub hard: u64,
}

/// The limit of open files as it is.
pub fn open_files() -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    OpenFiles { soft: limit.current.unwrap_or(UNBOUNDED), hard: limit.maximum.unwrap_or(UNBOUNDED) }
}

/// Raises the limit of open files as far as the system lets this process, and returns what it is then. To be
/// called once, before anything is counted.
pub fn raise_limit() -> OpenFiles {
    let limit = getrlimit(Resource::Nofile);
    // macOS reports no bound but accepts no more than OPEN_MAX, 10240.
    for wanted in [limit.maximum, Some(open_files().hard.min(10_240))] {
        if wanted.is_none() || wanted > limit.current {
            let raised = Rlimit { current: wanted, maximum: limit.maximum };
            if setrlimit(Resource::Nofile, raised).is_ok() {
                break;
            }
        }
    }
    open_files()
}

/// How the workers' descriptor tables are laid out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TablePlan {
    /// Each worker has its own table.
    pub private: bool,
    /// Workers from the start: at least as many as were asked for.
    pub workers: usize,
    /// Workers there can be. Those beyond [`TablePlan::workers`] have tables of their own and begin when
    /// connections have come for them; the others share one table then.
    pub most: usize,
    /// Connections that came from outside and that the table of the first workers has room for, where there
    /// can be more workers.
    pub first_room: u64,
    /// The same for each worker beyond.
    pub further_room: u64,
    /// Connections that fit, in all tables together.
    pub capacity: u64,
    /// Whether that is what was asked for.
    pub enough: bool,
    /// One sentence for the log.
    pub text: String,
}

impl TablePlan {
    /// Tables may be opened while the process runs.
    pub fn may_grow(&self) -> bool {
        self.most > self.workers
    }

    /// A plan for workers that all begin at once.
    fn fixed(private: bool, workers: usize, capacity: u64, enough: bool, text: String) -> TablePlan {
        let (first_room, further_room) = (capacity, 0);
        TablePlan { private, workers, most: workers, first_room, further_room, capacity, enough, text }
    }
}

/// Plans for `clients` connections that come and `servers` that may be opened in any table, on `workers`
/// workers, with more of them, `most` in all, only when so many clients have come. To be called after
/// [`raise_limit`].
pub fn plan_growing(clients: u64, servers: u64, workers: usize, most: usize) -> TablePlan {
    let limit = open_files().soft;
    if one_table(limit, workers) >= clients.saturating_add(servers) {
        return growing_within(limit, Ok(()), clients, servers, workers, most);
    }
    growing_within(limit, can_split(), clients, servers, workers, most)
}

/// The same for a limit of open files and an answer to [`can_split`] that are given.
pub fn growing_within(
    limit: u64,
    split: io::Result<()>,
    clients: u64,
    servers: u64,
    workers: usize,
    most: usize,
) -> TablePlan {
    let workers = workers.max(1);
    let needed = clients.saturating_add(servers);
    let one = one_table(limit, workers);
    if one >= needed || split.is_err() {
        return plan_within(limit, split, needed, workers);
    }
    let rooms = |count: usize| {
        let further = each_table(limit, count);
        // Servers may be anywhere, and must not take all.
        let servers = servers.min(further / 2);
        (further.saturating_sub(servers + 2 * workers as u64), further - servers)
    };
    let capacity = |count: usize| {
        let (first, further) = rooms(count);
        first + further * (count - workers) as u64
    };
    let fitting = (workers + 1..=most).find(|&count| capacity(count) >= clients);
    let best = (workers + 1..=most).max_by_key(|&count| capacity(count));
    let Some(count) = fitting.or(best).filter(|&count| capacity(count).saturating_add(servers) > one) else {
        let own = spread_over(limit, workers);
        let (private, capacity) = if own > one { (true, own) } else { (false, one) };
        let text = format!(
            "open files: the limit of {limit} is too small for {needed} connections: {capacity} fit. Raise the limit \
             (ulimit -n, LimitNOFILE)"
        );
        return TablePlan::fixed(private, workers, capacity, capacity >= needed, text);
    };
    let (first_room, further_room) = rooms(count);
    let capacity = capacity(count).saturating_add(servers);
    let mut text = format!(
        "open files: one descriptor table holds {one} connections by the limit of {limit}; when more come, up to {} more \
         workers begin, each with a table of its own: {capacity} connections fit",
        count - workers
    );
    if fitting.is_none() {
        text.push_str(". Raise the limit (ulimit -n, LimitNOFILE) for the rest");
    }
    let enough = fitting.is_some();
    TablePlan { private: false, workers, most: count, first_room, further_room, capacity, enough, text }
}

/// Plans for `needed` connections (clients and servers together) on at least `workers` workers, which all
/// begin at once. To be called after [`raise_limit`].
pub fn plan(needed: u64, workers: usize) -> TablePlan {
    let limit = open_files().soft;
    if one_table(limit, workers) >= needed {
        return plan_within(limit, Ok(()), needed, workers);
    }
    plan_within(limit, can_split(), needed, workers)
}

/// Connections that fit into one table that all workers share.
fn one_table(limit: u64, workers: usize) -> u64 {
    // A wake and an event queue for each.
    limit.saturating_sub(SPARE_DESCRIPTORS + 2 * workers as u64)
}

/// Connections that fit into each private table.
fn each_table(limit: u64, workers: usize) -> u64 {
    limit.saturating_sub(SPARE_DESCRIPTORS + SHARED_PER_WORKER * workers as u64)
}

/// Connections that fit into the tables of `workers` workers when the kernel spreads them by a hash: the
/// fullest table must not overflow, so four standard deviations are left free.
fn spread_over(limit: u64, workers: usize) -> u64 {
    let each = each_table(limit, workers);
    let free = if workers > 1 { 4 * each.isqrt() } else { 0 };
    each.saturating_sub(free) * workers as u64
}

/// The same for a limit of open files and an answer to [`can_split`] that are given: for whoever reasons
/// about another process or another machine.
pub fn plan_within(limit: u64, split: io::Result<()>, needed: u64, workers: usize) -> TablePlan {
    let workers = workers.max(1);
    let shared = one_table(limit, workers);
    if shared >= needed {
        let text = format!("open files: the limit of {limit} is enough for {needed} connections");
        return TablePlan::fixed(false, workers, shared, true, text);
    }
    if let Err(error) = split {
        let text = format!(
            "open files: the limit of {limit} is too small for {needed} connections, and workers cannot \
             have descriptor tables of their own here ({error}): {shared} connections fit. Raise the limit \
             (ulimit -n, LimitNOFILE)"
        );
        return TablePlan::fixed(false, workers, shared, false, text);
    }
    let fitting = (workers..=MOST_WORKERS).find(|&count| spread_over(limit, count) >= needed);
    let best = || (workers..=MOST_WORKERS.max(workers)).max_by_key(|&count| spread_over(limit, count));
    let count = fitting.or_else(best).unwrap_or(workers);
    let capacity = spread_over(limit, count);
    let mut text = format!(
        "open files: the limit of {limit} is too small for {needed} connections in one descriptor table, so \
         each of {count} workers has its own: {capacity} connections fit"
    );
    if count > workers {
        text.push_str(&format!(" ({workers} workers would have been too few)"));
    }
    if fitting.is_none() {
        text.push_str(". Raise the limit (ulimit -n, LimitNOFILE) for the rest");
    }
    TablePlan::fixed(true, count, capacity, fitting.is_some(), text)
}

/// Whether a thread of this process can have its own table. Asks a thread that ends at once.
///
/// # Errors
/// Why not: `EPERM` where a container forbids it, `Unsupported` on other systems than Linux.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub fn can_split() -> io::Result<()> {
    std::thread::Builder::new()
        .name("weir-probe".into())
        .spawn(split)?
        .join()
        .unwrap_or_else(|_| Err(io::Error::other("the probing thread panicked")))
}

/// Whether a thread of this process can have its own table: on Linux only.
///
/// # Errors
/// Always: only Linux has descriptor tables of threads.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub fn can_split() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, "only Linux can"))
}

/// Gives the calling thread its own descriptor table, a copy of the one it had.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn split() -> io::Result<()> {
    use rustix::thread::{UnshareFlags, unshare_unsafe};
    // SAFETY: what follows from it is the caller's to keep: no descriptor that another table opens later may
    // be used by this thread. The module documentation says how the crate keeps it: descriptors come into a
    // private table only by its own thread's calls and by `handover`, and what was inherited is blocked.
    match unsafe { unshare_unsafe(UnshareFlags::FILES) } {
        Ok(()) => Ok(()),
        Err(errno) => split_by_close_range().map_err(|_| errno.into()),
    }
}

/// The same by close_range(2), Linux 5.9, closing nothing.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn split_by_close_range() -> io::Result<()> {
    let none = libc::c_uint::MAX;
    // linux/close_range.h.
    let unshare: libc::c_uint = 1 << 1;
    // SAFETY: the call takes three integers and touches no memory of ours. The range holds no number that can
    // be open, so nothing is closed. For the split itself see `split`.
    let outcome = unsafe { libc::syscall(libc::SYS_close_range, none, none, unshare) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Gives the calling thread its own descriptor table, in which of all numbers that are open only those in
/// `keep` and the standard streams go on meaning what they meant; the others are blocked. Returns how many.
///
/// To be called first thing in a thread, before it opens anything: a descriptor that this thread has opened
/// itself and that is not in `keep` stops working too.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn enter_private(keep: &[RawFd]) -> io::Result<usize> {
    use rustix::fs::{Mode, OFlags, open};
    use std::os::fd::AsRawFd;
    split()?;
    let inherited = open_numbers()?;
    // A descriptor that only names a place: reading and writing it is EBADF (open(2), O_PATH).
    let blocker = open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let stays = |number: &RawFd| *number <= 2 || *number == blocker.as_raw_fd() || keep.contains(number);
    let mut blocked = 0;
    for number in inherited.into_iter().filter(|number| !stays(number)) {
        blocked += usize::from(block(number, &blocker)?);
    }
    Ok(blocked)
}

/// Elsewhere there are no private tables.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn enter_private(_keep: &[RawFd]) -> io::Result<usize> {
    can_split().map(|()| 0)
}

/// Puts the blocker in the place of a number of this thread's table. `false` if the number was not open.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn block(number: RawFd, blocker: &std::os::fd::OwnedFd) -> io::Result<bool> {
    use rustix::io::{DupFlags, dup3, fcntl_getfd};
    use std::mem::ManuallyDrop;
    use std::os::fd::{FromRawFd, OwnedFd};
    // SAFETY: it is never dropped, so it closes nothing that belongs to another. The number may be closed
    // (only the directory handle of `open_numbers` was); then nothing but fcntl sees it, which says so. That
    // other owners of the number exist is intended: they live in threads with other tables, where it goes
    // on meaning what it meant. In this thread, whose table was split off just now, none may use it any more,
    // and the blocker makes every try an error.
    let mut place = ManuallyDrop::new(unsafe { OwnedFd::from_raw_fd(number) });
    if fcntl_getfd(&*place).is_err() {
        return Ok(false);
    }
    dup3(blocker, &mut place, DupFlags::CLOEXEC)?;
    Ok(true)
}

/// The numbers that are open in the calling thread's table.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn open_numbers() -> io::Result<Vec<RawFd>> {
    // Not /proc/self: that is the table of the process's first thread.
    match std::fs::read_dir("/proc/thread-self/fd") {
        Ok(entries) => {
            let mut numbers = Vec::new();
            for entry in entries {
                numbers.extend(entry?.file_name().to_str().and_then(|name| name.parse::<RawFd>().ok()));
            }
            Ok(numbers)
        }
        // No /proc in this container: ask for every number there can be.
        Err(_) => Ok((0..open_files().soft.min(UNBOUNDED) as RawFd).collect()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forbidden() -> io::Result<()> {
        Err(rustix::io::Errno::PERM.into())
    }

    #[test]
    fn one_table_while_it_is_enough() {
        let plan = plan_within(20_000, Ok(()), 19_000, 2);
        assert!(!plan.private && plan.enough && plan.workers == 2 && plan.capacity >= 19_000, "{plan:?}");
        // Exactly full, and one more.
        let most = one_table(20_000, 2);
        assert!(!plan_within(20_000, Ok(()), most, 2).private);
        assert!(plan_within(20_000, Ok(()), most + 1, 2).private);
    }

    #[test]
    fn private_tables_and_more_workers_when_needed() {
        let plan = plan_within(20_000, Ok(()), 30_000, 2);
        assert!(plan.private && plan.enough && plan.workers == 2, "{plan:?}");
        let plan = plan_within(20_000, Ok(()), 100_000, 2);
        assert!(plan.private && plan.enough && plan.workers == 6, "{plan:?}");
        assert!(plan.text.contains("20000") && plan.text.contains("6 workers"), "{}", plan.text);
        let plan = plan_within(1_024, Ok(()), 30_000, 1);
        assert!(plan.private && plan.enough && plan.capacity >= 30_000, "{plan:?}");
    }

    /// However many clients may come, the workers at the start are those that were asked for.
    #[test]
    fn workers_beyond_the_first_only_begin_when_clients_come() {
        let plan = growing_within(20_000, Ok(()), 15_000, 100, 2, 64);
        assert!(!plan.private && !plan.may_grow() && plan.enough, "{plan:?}");
        for clients in [20_000, 200_000, 1_000_000] {
            let plan = growing_within(20_000, Ok(()), clients, 100, 2, 64);
            assert!(!plan.private && plan.workers == 2 && plan.may_grow() && plan.enough, "{plan:?}");
            let rooms = plan.first_room + plan.further_room * (plan.most - plan.workers) as u64;
            assert!(rooms >= clients && rooms - plan.further_room < clients, "{plan:?}");
            assert!(plan.further_room + 100 < 20_000, "{plan:?}");
        }
        let plan = growing_within(20_000, Ok(()), 16_000_000, 100, 2, 64);
        assert!(
            plan.workers == 2 && plan.most == 64 && !plan.enough && plan.text.contains("ulimit -n"),
            "{plan:?}"
        );
        // Servers take half of a table at most.
        let plan = growing_within(400, Ok(()), 1_500, 10_000, 2, 64);
        assert!(plan.enough && plan.first_room > 100, "{plan:?}");
        let plan = growing_within(400, forbidden(), 1_500, 100, 2, 64);
        assert!(!plan.may_grow() && !plan.private && !plan.enough, "{plan:?}");
        // So many cores that no worker can be added: each has a table of its own from the start.
        let plan = growing_within(20_000, Ok(()), 200_000, 100, 64, 64);
        assert!(plan.private && plan.workers == 64 && plan.enough, "{plan:?}");
        for limit in [0, 1, 64, 70, 100, 300] {
            let plan = growing_within(limit, Ok(()), 1_000, 100, 2, 64);
            assert!(plan.workers == 2 && plan.first_room <= limit && plan.further_room <= limit, "{plan:?}");
        }
    }

    #[test]
    fn says_so_when_it_is_not_enough() {
        let plan = plan_within(1_024, forbidden(), 30_000, 4);
        assert!(!plan.private && !plan.enough && plan.workers == 4 && plan.capacity < 1_024, "{plan:?}");
        assert!(plan.text.contains("ulimit -n"), "{}", plan.text);
        let plan = plan_within(128, Ok(()), 1_000_000, 2);
        assert!(plan.private && !plan.enough, "{plan:?}");
        assert!(plan.text.contains("ulimit -n"), "{}", plan.text);
        for limit in [0, 1, 3, 64, 70] {
            let plan = plan_within(limit, Ok(()), 10, 1);
            assert_eq!(plan.enough, plan.capacity >= 10, "{plan:?}");
        }
    }

    #[test]
    fn every_plan_fits_its_own_numbers() {
        for limit in [256, 1_024, 4_096, 20_000, 65_536, 1 << 20] {
            for needed in [1, 100, 1_000, 10_000, 30_000, 100_000, 1_000_000] {
                for workers in [1, 2, 3, 8, 64] {
                    let plan = plan_within(limit, Ok(()), needed, workers);
                    assert!(plan.workers >= workers);
                    assert_eq!(plan.enough, plan.capacity >= needed, "{plan:?}");
                    let numbers = plan.capacity.div_ceil(if plan.private { plan.workers as u64 } else { 1 });
                    assert!(plan.capacity == 0 || numbers < limit, "{plan:?}");
                }
            }
        }
    }

    /// The way for containers that forbid unshare.
    #[cfg(any(target_os = "linux", target_os = "android"))]
    #[test]
    fn close_range_splits_too() {
        use std::os::fd::{FromRawFd, OwnedFd};
        // A number far from what other tests open at the same time, opened in a private table only.
        let far: RawFd = 900;
        std::thread::spawn(move || {
            split_by_close_range().expect("Linux 5.9 or later");
            let file = OwnedFd::from(std::fs::File::open("/").expect("open"));
            // SAFETY: the number is free in this table, and what dup3 puts there is owned by `place` alone.
            let mut place = unsafe { OwnedFd::from_raw_fd(far) };
            rustix::io::dup3(&file, &mut place, rustix::io::DupFlags::CLOEXEC).expect("dup");
            assert!(open_numbers().expect("list").contains(&far));
            std::thread::spawn(move || assert!(open_numbers().expect("list").contains(&far)))
                .join()
                .expect("a thread of this thread shares its table");
        })
        .join()
        .expect("no panic");
        assert!(!open_numbers().expect("list").contains(&far), "the first table knows nothing of it");
    }
}
