//! Sockets that one user may watch with epoll.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{count, round_up};
use crate::probe::Probe;

const ID: &str = "epoll_watches";
const FILE: &str = "/proc/sys/fs/epoll/max_user_watches";

pub fn check(probe: &Probe<'_>) -> Finding {
    let max = match probe.root.number(FILE) {
        Ok(n) => n,
        Err(error) => return Finding::unread(ID, FILE, &error),
    };
    let needed = probe.ask.sockets();
    let state = match needed {
        n if n > max => State::Blocker,
        n if n > max / 2 => State::Warn,
        _ => State::Ok,
    };
    Finding::judged(
        ID,
        state,
        format!("a user may watch {} sockets; {} are needed", count(max), count(needed)),
    )
    .read(FILE, max)
    .breaks_at(max, "Weir, PgBouncer, HAProxy", "No space left on device (os error 28), from epoll_ctl")
    .cures_unless_ok([Cure::sysctl("fs.epoll.max_user_watches", round_up(needed * 4, 1 << 20))])
}
