//! Names of the system and names of the database: PgBouncer's and PostgreSQL's ident maps, and the accounts
//! of this machine.
//!
//! Owns: the form of `auth_ident_file` (`MAP SYSTEM-NAME DATABASE-NAME`, one a line, as PgBouncer reads it)
//! and of /etc/passwd and /etc/group. Must not know: who is at the door.

use crate::ini::read_quoted;
use crate::problem::{Findings, Place, WarningKind};
use std::path::Path;
use std::sync::Arc;

/// One map: which name of a certificate or of this machine may be which user.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct IdentMap {
    /// System name and user; `None`: any user.
    rows: Vec<(String, Option<String>)>,
}

impl IdentMap {
    /// The system names that may be this user.
    pub fn names_of(&self, user: &str) -> Arc<[String]> {
        let rows = self.rows.iter().filter(|(_, mapped)| mapped.as_deref().is_none_or(|name| name == user));
        rows.map(|(system, _)| system.clone()).collect()
    }

    /// This system name may be this user.
    pub fn allows(&self, system: &str, user: &str) -> bool {
        self.names_of(user).iter().any(|name| name == system)
    }
}

/// The map of this name. A line that cannot be read is a warning and allows nothing.
pub(crate) fn read_map(
    file: &Arc<Path>,
    text: &str,
    wanted: &str,
    findings: &mut Findings,
) -> Option<IdentMap> {
    let mut found = None;
    for (index, line) in text.lines().enumerate() {
        let start = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        match read_row(line) {
            Some((map, system, user)) if map == wanted => {
                found.get_or_insert_with(IdentMap::default).rows.push((system, user));
            }
            Some(_) => {}
            None => {
                let place = Place::File { file: file.clone(), line: index + 1, column: start + 1 };
                let text = "this line is ignored: it must be MAP SYSTEM-NAME DATABASE-NAME, without regular expressions";
                findings.warn(WarningKind::Doubtful, place, text);
            }
        }
    }
    found
}

/// Map, system name, user. `all` without quotes is any user.
fn read_row(line: &str) -> Option<(String, String, Option<String>)> {
    let (map, rest) = field(line)?;
    let (system, rest) = field(rest)?;
    let bare = !rest.trim_start().starts_with('"');
    let (user, rest) = field(rest)?;
    let ends = rest.trim_start().is_empty() || rest.trim_start().starts_with('#');
    let regular = system.starts_with('/') || user.starts_with(['/', '+', '@']);
    (ends && !regular).then(|| (map, system, Some(user).filter(|user| !(bare && user == "all"))))
}

/// A word, or a text in double quotes, and what follows it.
fn field(text: &str) -> Option<(String, &str)> {
    let text = text.trim_start();
    if text.starts_with('"') {
        let (word, used) = read_quoted(text)?;
        return Some((word, &text[used..]));
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    (end > 0).then(|| (text[..end].to_owned(), &text[end..]))
}

/// The accounts of /etc/passwd: number and name.
pub(crate) fn read_accounts(text: &str) -> Vec<(u32, String)> {
    let account = |line: &str| {
        let mut fields = line.split(':');
        let name = fields.next().filter(|name| !name.is_empty() && !name.starts_with(['+', '-', '#']))?;
        Some((fields.nth(1)?.parse().ok()?, name.to_owned()))
    };
    text.lines().filter_map(account).collect()
}

/// The number of a group, by its name in /etc/group or by itself.
pub(crate) fn group_number(group: &str, text: &str) -> Option<u32> {
    let listed = read_accounts(text).into_iter().find(|(_, name)| name == group).map(|(number, _)| number);
    listed.or_else(|| group.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_says_who_may_be_whom() {
        let text = "# comment\nops  ann  app\nops \"bob smith\" app # why\n  ops root all\nops eve \"all\"\nother ann admin\n\
                    ops /^(.*)$ app\nops ann\nops ann app more\n";
        let mut findings = Findings::default();
        let map = read_map(&Path::new("ident.conf").into(), text, "ops", &mut findings).unwrap();
        assert_eq!(map.names_of("app").join(","), "ann,bob smith,root");
        assert!(map.allows("root", "anybody") && map.allows("eve", "all") && map.allows("ann", "app"));
        assert!(!map.allows("eve", "app") && !map.allows("ann", "admin") && !map.allows("", "app"));
        let places: Vec<_> =
            findings.warnings.iter().map(|w| w.problem.place.clone().unwrap().to_string()).collect();
        assert_eq!(places, ["ident.conf:7:1", "ident.conf:8:1", "ident.conf:9:1"]);
        assert_eq!(read_map(&Path::new("ident.conf").into(), text, "none", &mut findings), None);
    }

    #[test]
    fn accounts_and_groups() {
        let text = "root:x:0:0:root:/root:/bin/bash\nann:x:1000:100::/home/ann:/bin/sh\n+nis::::::\nbroken\n";
        assert_eq!(read_accounts(text), [(0, "root".to_owned()), (1000, "ann".to_owned())]);
        let groups = "wheel:x:10:ann\n77:x:11:\n";
        assert_eq!(group_number("wheel", groups), Some(10));
        assert_eq!(group_number("77", groups), Some(11), "a name that is a number is a name");
        assert_eq!(group_number("12", groups), Some(12));
        assert_eq!(group_number("nobody", groups), None);
    }
}
