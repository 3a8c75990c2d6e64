//! systemd units: the files of one unit and its drop-ins, and the defaults of the manager.

use crate::root::Root;
use std::collections::BTreeMap;

/// Where units are, in the order in which systemd prefers them (systemd.unit(5)).
const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

/// The settings of a unit's [Service] section that limit it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    /// The unit's own file.
    pub file: String,
    /// Values and the files they come from, by key.
    values: BTreeMap<String, (String, String)>,
}

impl Unit {
    /// A value and the file it comes from.
    pub fn get(&self, key: &str) -> Option<(&str, &str)> {
        self.values.get(key).map(|(value, file)| (value.as_str(), file.as_str()))
    }
}

/// Reads a unit with its drop-ins; `None` when there is no such unit.
pub fn read(root: &Root, name: &str) -> Option<Unit> {
    let file = FOLDERS.iter().map(|folder| format!("{folder}/{name}")).find(|file| root.has(file))?;
    let mut values = BTreeMap::new();
    // The manager's defaults are the weakest; unit files replace them.
    for (default, key) in [("DefaultLimitNOFILE", "LimitNOFILE"), ("DefaultTasksMax", "TasksMax")] {
        for (config, text) in settings_of_manager(root) {
            if let Some(value) = last_of(&text, default) {
                values.insert(key.to_owned(), (value, config));
            }
        }
    }
    let mut files = vec![file.clone()];
    files.extend(drop_ins(root, &format!("{name}.d")));
    for path in files {
        let text = root.read(&path).unwrap_or_default();
        for (key, value) in pairs(&text) {
            values.insert(key.to_owned(), (value.to_owned(), path.clone()));
        }
    }
    Some(Unit { file, values })
}

fn settings_of_manager(root: &Root) -> Vec<(String, String)> {
    let mut files: Vec<String> = ["/etc/systemd/system.conf".to_owned()].into();
    for folder in ["/usr/lib/systemd/system.conf.d", "/etc/systemd/system.conf.d"] {
        files.extend(
            root.names(folder).into_iter().filter(|n| n.ends_with(".conf")).map(|n| format!("{folder}/{n}")),
        );
    }
    files.into_iter().filter_map(|file| Some((file.clone(), root.read(&file).ok()?))).collect()
}

/// Drop-ins of all folders by their names; a name counts once, in the folder that comes first.
fn drop_ins(root: &Root, folder: &str) -> Vec<String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for base in FOLDERS {
        for name in root.names(&format!("{base}/{folder}")) {
            if name.ends_with(".conf") {
                let path = format!("{base}/{folder}/{name}");
                found.entry(name).or_insert(path);
            }
        }
    }
    found.into_values().collect()
}

fn pairs(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';', '[']));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()))
}

fn last_of(text: &str, key: &str) -> Option<String> {
    pairs(text).filter(|(k, _)| *k == key).last().map(|(_, value)| value.to_owned())
}

/// The hard limit of `LimitNOFILE=`: a number, `soft:hard`, or `infinity`.
pub fn hard_limit(value: &str) -> Option<u64> {
    let hard = value.rsplit(':').next()?;
    if hard == "infinity" { Some(u64::MAX) } else { hard.parse().ok() }
}

/// Bytes of `MemoryMax=`: a number with K, M, G or T; `None` for no limit or a share of the machine.
pub fn bytes(value: &str) -> Option<u64> {
    let value = value.trim();
    let (digits, shift) = match value.chars().last()? {
        'K' => (&value[..value.len() - 1], 10),
        'M' => (&value[..value.len() - 1], 20),
        'G' => (&value[..value.len() - 1], 30),
        'T' => (&value[..value.len() - 1], 40),
        _ => (value, 0),
    };
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_units() {
        assert_eq!(hard_limit("1024:524288"), Some(524_288));
        assert_eq!((hard_limit("65536"), hard_limit("infinity")), (Some(65_536), Some(u64::MAX)));
        assert_eq!(hard_limit("many"), None);
        assert_eq!((bytes("2G"), bytes("512M"), bytes("4096")), (Some(2 << 30), Some(512 << 20), Some(4096)));
        assert_eq!((bytes("infinity"), bytes("50%"), bytes("")), (None, None, None));
    }
}
