//! Decides when a worker lets replies accumulate before it runs again.
//!
//! When requests are queued behind one another, a worker that wakes up for each reply spends most of its time
//! on waking up, and takes the core from the database each time. It then gives up its claim to a core at once
//! ([`weir_net::Net::gather`]): while other processes use their time slices more replies arrive, and one turn
//! handles them all. When no request is queued behind another, each reply is forwarded at once.
//!
//! Owns: the decision. Must not know: what a request is.

/// What the requests of a worker met.
#[derive(Debug, Clone, Copy, Default)]
pub struct Crowd {
    /// Requests that were answered.
    pub answered: u32,
    /// Requests that waited for a server, or stood behind another one on theirs.
    pub behind: u32,
}

impl std::ops::Add for Crowd {
    type Output = Crowd;

    fn add(self, other: Crowd) -> Crowd {
        Crowd {
            answered: self.answered.saturating_add(other.answered),
            behind: self.behind.saturating_add(other.behind),
        }
    }
}

/// How a worker wakes.
#[derive(Debug)]
pub(crate) struct Economy {
    crowd: Crowd,
    since_ns: u64,
    gathers: bool,
}

/// Interval between two looks.
const PERIOD_NS: u64 = 20_000_000;

/// With fewer requests in a period, wake-ups cost little: 2,000 a second.
const BUSY: u32 = 40;

impl Economy {
    pub(crate) fn new(now_ns: u64) -> Economy {
        Economy { crowd: Crowd::default(), since_ns: now_ns, gathers: false }
    }

    /// At the end of a turn. What is to change, if something is.
    pub(crate) fn turn_ends(&mut self, now_ns: u64, crowd: Crowd) -> Option<bool> {
        self.crowd = self.crowd + crowd;
        let passed_ns = now_ns.saturating_sub(self.since_ns);
        if passed_ns < PERIOD_NS {
            return None;
        }
        self.since_ns = now_ns;
        let Crowd { answered, behind } = std::mem::take(&mut self.crowd);
        // A worker that slept has had a longer period.
        let periods = u32::try_from(passed_ns / PERIOD_NS).unwrap_or(u32::MAX);
        let (answered, behind) = (answered / periods, behind / periods);
        // Half of them begin it, and less than a quarter ends it: the load is not the same in every period.
        let gathers = match self.gathers {
            false => answered >= BUSY && behind >= answered / 2,
            true => answered >= BUSY / 2 && behind >= answered / 4,
        };
        (std::mem::replace(&mut self.gathers, gathers) != gathers).then_some(gathers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(economy: &mut Economy, periods: u64, answered: u32, behind: u32) -> Option<bool> {
        let now_ns = economy.since_ns + periods * PERIOD_NS;
        economy.turn_ends(now_ns, Crowd { answered, behind })
    }

    #[test]
    fn replies_gather_while_requests_stand_behind_one_another() {
        let mut economy = Economy::new(5);
        assert_eq!(after(&mut economy, 1, 1000, 100), None);
        assert_eq!(after(&mut economy, 1, 1000, 500), Some(true));
        assert_eq!(after(&mut economy, 1, 1000, 300), None);
        assert_eq!(after(&mut economy, 1, 1000, 200), Some(false));
    }

    #[test]
    fn a_few_requests_are_answered_at_once() {
        let mut economy = Economy::new(5);
        assert_eq!(after(&mut economy, 1, 30, 30), None);
        assert_eq!(after(&mut economy, 1, 60, 60), Some(true));
        // It slept for a second, and was woken for one.
        assert_eq!(after(&mut economy, 50, 1, 1), Some(false));
    }

    #[test]
    fn nothing_changes_within_a_period() {
        let mut economy = Economy::new(0);
        assert_eq!(economy.turn_ends(PERIOD_NS / 2, Crowd { answered: 500, behind: 500 }), None);
        assert_eq!(economy.turn_ends(PERIOD_NS, Crowd::default()), Some(true));
    }
}
