//! CPU quota of the control group: a container that has used its share is stopped until the period ends.

use crate::cure::Cure;
use crate::finding::{Finding, State};
use crate::numbers::{count, seconds};
use crate::probe::cgroup::ONLINE;
use crate::probe::{Probe, cgroup};

const ID: &str = "cpu_quota";

/// A group stopped in more periods than one in a hundred is felt in p99.
const THROTTLED_SHARE: u64 = 100;

pub fn check(probe: &Probe<'_>) -> Finding {
    let cores = cgroup::online_cores(probe.root);
    let quota = match cgroup::cpu(probe) {
        Ok(quota) => quota,
        Err(error) => return Finding::unread(ID, &probe.process_file("cgroup"), &error),
    };
    let of_machine = cores.map_or("an unknown number of".to_owned(), |n| n.to_string());
    let Some((quota, share)) = quota.and_then(|quota| quota.cores.map(|share| (quota, share))) else {
        return Finding::ok(ID, format!("no quota: {of_machine} cores")).read(ONLINE, of_machine);
    };
    let often = quota.throttled > 0 && quota.throttled.saturating_mul(THROTTLED_SHARE) >= quota.periods;
    let state = if share < 1.0 || often { State::Warn } else { State::Ok };
    let mut words = format!("a quota of {share:.1} of {of_machine} cores");
    if quota.throttled > 0 {
        words.push_str(&format!(
            "; used up in {} of {} periods",
            count(quota.throttled),
            count(quota.periods)
        ));
    }
    let pause = seconds(quota.period_us as f64 / 1e6);
    let wanted = (share.ceil() as u64).saturating_add(1);
    Finding::judged(ID, state, words)
        .read(&quota.file, &quota.value)
        .read(ONLINE, of_machine)
        .breaks("clients", format!("p99 near {pause}: the whole process is stopped until the period ends"))
        .cures_unless_ok([
            Cure::Cores(wanted),
            Cure::weir(format!(
                "workers = {}   # no more threads than the quota has cores",
                (share.floor() as u64).max(1)
            )),
        ])
}
