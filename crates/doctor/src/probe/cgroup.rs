//! Control groups, version 1 and 2: where the process is, and the limits from there up to the root.
//!
//! The tightest limit on the way up applies, so all levels are read. Version 2 and version 1 may be mounted
//! together ("hybrid"); a controller is then in one of them.

use super::Probe;
use crate::root::{NUMBER_MAX, Root, Unread};

/// The files of one level that say what is allowed and what is used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Level {
    /// The file with the limit.
    pub file: String,
    /// The limit; `None`: no limit at this level.
    pub max: Option<u64>,
    /// What is used, where it could be read.
    pub current: u64,
}

impl Level {
    /// What is left; `None`: no limit.
    pub fn left(&self) -> Option<u64> {
        self.max.map(|max| max.saturating_sub(self.current))
    }
}

/// Where one controller's files are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Hierarchy {
    v2: bool,
    mount: String,
    /// Below the mount; begins with `/` or is empty.
    path: String,
}

impl Hierarchy {
    /// Directories from the process's group up to the mount.
    fn levels(&self) -> Vec<String> {
        let mut path = self.path.trim_end_matches('/');
        let mut levels = vec![format!("{}{path}", self.mount)];
        while let Some((parent, _)) = path.rsplit_once('/') {
            path = parent;
            levels.push(format!("{}{path}", self.mount));
        }
        levels
    }
}

/// Limits of the `pids` controller, tightest group first.
///
/// # Errors
/// The process is in no group with this controller, or its files cannot be read.
pub fn pids(probe: &Probe<'_>) -> Result<Vec<Level>, Unread> {
    read(probe, "pids", |_| ("pids.max", "pids.current"))
}

/// Limits of the `memory` controller in bytes. What the kernel would drop at need (inactive file pages) does
/// not count as used.
///
/// # Errors
/// The process is in no group with this controller, or its files cannot be read.
pub fn memory(probe: &Probe<'_>) -> Result<Vec<Level>, Unread> {
    let names = |v2: bool| {
        if v2 { ("memory.max", "memory.current") } else { ("memory.limit_in_bytes", "memory.usage_in_bytes") }
    };
    let mut levels = read(probe, "memory", names)?;
    for level in &mut levels {
        let folder = level.file.rsplit_once('/').map_or("", |(folder, _)| folder);
        let stat = probe.root.read(&format!("{folder}/memory.stat")).unwrap_or_default();
        let inactive = stat.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            matches!(name, "inactive_file" | "total_inactive_file").then(|| value.parse::<u64>().ok())?
        });
        level.current = level.current.saturating_sub(inactive.unwrap_or(0));
    }
    Ok(levels)
}

/// A share of the cores, and how often it was used up.
#[derive(Debug, Clone, PartialEq)]
pub struct Quota {
    /// The file with the quota.
    pub file: String,
    /// What it said.
    pub value: String,
    /// Cores it comes to; `None`: no quota.
    pub cores: Option<f64>,
    /// Periods in which the group ran.
    pub periods: u64,
    /// Of them, periods in which it was stopped because the quota was used up.
    pub throttled: u64,
    /// Length of a period in microseconds.
    pub period_us: u64,
}

/// The tightest CPU quota.
///
/// # Errors
/// The process is in no group with this controller.
pub fn cpu(probe: &Probe<'_>) -> Result<Option<Quota>, Unread> {
    let hierarchy = hierarchy(probe, "cpu")?;
    let quotas = hierarchy.levels().into_iter().filter_map(|folder| quota(probe, &folder, hierarchy.v2));
    let cores = |quota: &Quota| quota.cores.unwrap_or(f64::MAX);
    Ok(quotas.min_by(|a, b| cores(a).total_cmp(&cores(b))))
}

/// Where the cores of the machine are listed.
pub const ONLINE: &str = "/sys/devices/system/cpu/online";

/// Cores of the machine.
pub fn online_cores(root: &Root) -> Option<u64> {
    cores_of_list(&root.read(ONLINE).ok()?)
}

/// Cores of a list such as `0-3,6`.
pub fn cores_of_list(list: &str) -> Option<u64> {
    let part = |part: &str| {
        let (first, last) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
        last.parse::<u64>().ok()?.min(NUMBER_MAX).checked_sub(first.parse().ok()?).map(|n| n + 1)
    };
    list.split(',').map(part).sum()
}

fn quota(probe: &Probe<'_>, folder: &str, v2: bool) -> Option<Quota> {
    let (file, value, amount, period) = if v2 {
        let file = format!("{folder}/cpu.max");
        let value = probe.root.read(&file).ok()?;
        let (amount, period) = value.split_once(' ')?;
        let (amount, period) = (amount.parse::<u64>().ok(), period.parse().ok()?);
        (file, value, amount, period)
    } else {
        let file = format!("{folder}/cpu.cfs_quota_us");
        let value = probe.root.read(&file).ok()?;
        let period = probe.root.number(&format!("{folder}/cpu.cfs_period_us")).ok()?;
        // -1 is no quota.
        let amount = value.parse::<u64>().ok();
        (file, value, amount, period)
    };
    let stat = probe.root.read(&format!("{folder}/cpu.stat")).unwrap_or_default();
    let of = |name: &str| {
        let line = stat.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or(0)
    };
    let cores = amount.filter(|_| period > 0).map(|amount| amount as f64 / period as f64);
    Some(Quota {
        file,
        value,
        cores,
        periods: of("nr_periods"),
        throttled: of("nr_throttled"),
        period_us: period,
    })
}

fn read(
    probe: &Probe<'_>,
    controller: &str,
    names: impl Fn(bool) -> (&'static str, &'static str),
) -> Result<Vec<Level>, Unread> {
    let hierarchy = hierarchy(probe, controller)?;
    let (max, current) = names(hierarchy.v2);
    let mut levels = Vec::new();
    for folder in hierarchy.levels() {
        let file = format!("{folder}/{max}");
        // The root of version 2 has no such file, and the kernel gives version 1's root none for `pids`.
        let Ok(text) = probe.root.read(&file) else { continue };
        let current = probe.root.number(&format!("{folder}/{current}")).unwrap_or(0);
        // Version 1 writes "no limit" of memory as the largest number of pages.
        let max = text.parse::<u64>().ok().filter(|max| *max < NUMBER_MAX);
        levels.push(Level { file, max, current });
    }
    levels.sort_by_key(|level| level.left().unwrap_or(u64::MAX));
    Ok(levels)
}

fn hierarchy(probe: &Probe<'_>, controller: &str) -> Result<Hierarchy, Unread> {
    let groups = probe.root.read(&probe.process_file("cgroup"))?;
    let mounts = probe.root.read("/proc/self/mountinfo")?;
    find(&groups, &mounts, controller)
        .ok_or_else(|| Unread(format!("no control group with `{controller}` is mounted")))
}

/// proc_pid_cgroup(5): `ID:CONTROLLERS:PATH`; version 2 is `0::PATH`. proc_pid_mountinfo(5): the fourth field
/// is the directory of the hierarchy that is mounted, the fifth where; behind ` - ` stand type, source and
/// options.
fn find(groups: &str, mounts: &str, controller: &str) -> Option<Hierarchy> {
    let path_of = |wanted: &dyn Fn(&str, &str) -> bool| {
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (id, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            wanted(id, controllers).then(|| path.to_owned())
        })
    };
    let v1 = path_of(&|_, controllers| controllers.split(',').any(|name| name == controller));
    let (v2, path) = match v1 {
        Some(path) => (false, path),
        None => (true, path_of(&|id, controllers| id == "0" && controllers.is_empty())?),
    };
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut left = left.split(' ').skip(3);
        let (mounted, mount) = (left.next()?, left.next()?);
        let mut right = right.split(' ');
        let (kind, options) = (right.next()?, right.nth(1)?);
        let fits = match v2 {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').any(|option| option == controller),
        };
        // In a container the mount shows only the container's part, and the path may or may not begin with
        // it.
        let below = if mounted == "/" { Some(path.as_str()) } else { path.strip_prefix(mounted) };
        let path = below.unwrap_or_default().trim_end_matches('/').to_owned();
        fits.then(|| Hierarchy { v2, mount: mount.to_owned(), path })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HYBRID: &str = "31 22 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory\n\
        41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw";

    #[test]
    fn a_controller_is_in_one_of_both_versions() {
        let groups = "4:memory:/a/b\n0::/c";
        let memory = find(groups, HYBRID, "memory").unwrap();
        assert_eq!(
            (memory.v2, memory.levels()),
            (
                false,
                vec![
                    "/sys/fs/cgroup/memory/a/b".to_owned(),
                    "/sys/fs/cgroup/memory/a".to_owned(),
                    "/sys/fs/cgroup/memory".to_owned(),
                ]
            )
        );
        let pids = find(groups, HYBRID, "pids").unwrap();
        assert_eq!(
            (pids.v2, pids.levels().first().map(String::as_str)),
            (true, Some("/sys/fs/cgroup/unified/c"))
        );
        assert_eq!(find("4:memory:/a", HYBRID, "pids"), None);
    }

    #[test]
    fn lists_of_cores() {
        assert_eq!((cores_of_list("0-3"), cores_of_list("0,2-3,7")), (Some(4), Some(4)));
        assert_eq!((cores_of_list(""), cores_of_list("3-0"), cores_of_list("x")), (None, None, None));
    }

    #[test]
    fn a_container_sees_its_part_as_the_root() {
        let mounts = "40 30 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw";
        for path in ["/docker/abc", "/"] {
            let found = find(&format!("0::{path}"), mounts, "pids").unwrap();
            assert_eq!(found.levels(), ["/sys/fs/cgroup"], "{path}");
        }
    }
}
