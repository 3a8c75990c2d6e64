//! /proc/PID/limits.

use super::Probe;
use crate::root::Unread;

/// A limit of a process. `u64::MAX` is unlimited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limit {
    /// What applies now.
    pub soft: u64,
    /// What the process may raise it to.
    pub hard: u64,
}

/// One line of /proc/PID/limits by its name, such as "Max open files".
///
/// # Errors
/// The file cannot be read or has no such line.
pub fn of_process(probe: &Probe<'_>, name: &str) -> Result<Limit, Unread> {
    let text = probe.root.read(&probe.process_file("limits"))?;
    parse(&text, name).ok_or_else(|| Unread(format!("no line `{name}`")))
}

fn parse(text: &str, name: &str) -> Option<Limit> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace().map(|word| match word {
        "unlimited" => Some(u64::MAX),
        number => number.parse().ok(),
    });
    Some(Limit { soft: words.next()??, hard: words.next()?? })
}

/// A limit as it is written in messages.
pub fn shown(limit: u64) -> String {
    if limit == u64::MAX { "unlimited".to_owned() } else { limit.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_kernel() {
        let text = "Limit                     Soft Limit           Hard Limit           Units     \n\
                    Max processes             96365                unlimited            processes \n\
                    Max open files            1024                 524288               files     ";
        assert_eq!(parse(text, "Max open files"), Some(Limit { soft: 1024, hard: 524_288 }));
        assert_eq!(parse(text, "Max processes"), Some(Limit { soft: 96_365, hard: u64::MAX }));
        assert_eq!(parse(text, "Max stack size"), None);
        assert_eq!(parse("Max open files x y", "Max open files"), None);
    }
}
