//! Names of accounts and names of users: PgBouncer's and PostgreSQL's ident maps, and the accounts of this
//! machine.
//!
//! Owns: the format of `auth_ident_file` (`MAP SYSTEM-NAME DATABASE-NAME`, one per line, as PgBouncer reads
//! it) and looking up accounts and groups: in the system's name service, so those of LDAP and SSSD are found.
//! Must not know: which client logs in.
//!
//! A look-up may use the network, so it is done when the configuration is read, never at a login.

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

    /// All system names of the map.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|(system, _)| system.as_str())
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

/// Number and name of those names that are accounts of this machine.
///
/// A number that several accounts share belongs to the one that the system names for it, as for PostgreSQL.
pub(crate) fn accounts<'a>(
    names: impl Iterator<Item = &'a str>,
    place: &Option<Place>,
    findings: &mut Findings,
) -> Vec<(u32, String)> {
    let mut found = Vec::new();
    for name in names {
        match account(name) {
            Ok(Some(number)) => found.push((number, name.to_owned())),
            Ok(None) => {}
            Err(error) => {
                let text =
                    format!("account {name} cannot be looked up and cannot log in until a reload: {error}");
                findings.warn(WarningKind::Doubtful, place.clone(), text);
            }
        }
    }
    found
}

/// The number of the account of this name, if the system gives that number this name.
fn account(name: &str) -> nix::Result<Option<u32>> {
    let Some(account) = known(nix::unistd::User::from_name(name))? else { return Ok(None) };
    let owner = known(nix::unistd::User::from_uid(account.uid))?;
    Ok(owner.is_some_and(|owner| owner.name == name).then(|| account.uid.as_raw()))
}

/// A machine without a file of accounts, as a bare container is, has none: getpwnam(3) lists these as "not
/// found".
fn known<T>(found: nix::Result<Option<T>>) -> nix::Result<Option<T>> {
    match found {
        Err(nix::Error::ENOENT | nix::Error::ESRCH) => Ok(None),
        other => other,
    }
}

/// The number of a group, by its name or by itself. `None`: there is no such group.
///
/// # Errors
/// The system's name service cannot tell.
pub(crate) fn group_number(group: &str) -> nix::Result<Option<u32>> {
    let listed = known(nix::unistd::Group::from_name(group))?;
    Ok(listed.map(|group| group.gid.as_raw()).or_else(|| group.parse().ok()))
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
        let mut findings = Findings::default();
        let names = ["root", "no such account", "nul\0", ""];
        assert_eq!(accounts(names.into_iter(), &None, &mut findings), [(0, "root".to_owned())]);
        assert!(findings.warnings.is_empty());
        assert_eq!(group_number("12"), Ok(Some(12)));
        assert_eq!(group_number("no such group"), Ok(None));
        let own = nix::unistd::Group::from_gid(nix::unistd::Gid::from_raw(0)).unwrap().unwrap();
        assert_eq!(group_number(&own.name), Ok(Some(0)));
    }
}
