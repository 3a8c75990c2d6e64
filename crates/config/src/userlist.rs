//! PgBouncer's auth_file (userlist.txt): `"user" "password"`, one per line.

use crate::ini::read_quoted;
use crate::problem::{Findings, Place, WarningKind};
use std::path::Path;
use std::sync::Arc;
use weir_auth::Secret;

/// The users of a file. A line that cannot be read is a warning and nobody's password.
pub(crate) fn read_userlist(
    file: &Arc<Path>,
    text: &str,
    findings: &mut Findings,
) -> Vec<(String, Option<Arc<Secret>>)> {
    let mut users = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let start = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.is_empty() || line.starts_with([';', '#']) {
            continue;
        }
        match read_user(line) {
            Some((name, password)) if password.is_empty() => users.push((name, None)),
            Some((name, password)) => users.push((name, Some(Arc::new(Secret::from_userlist(&password))))),
            None => {
                let place = Place::File { file: file.clone(), line: index + 1, column: start + 1 };
                let text =
                    "this line is ignored: it must be \"user\" \"password\", with \"\" for a quote inside";
                findings.warn(WarningKind::Doubtful, place, text);
            }
        }
    }
    users
}

/// The first two fields of a line; PgBouncer does not look at the rest.
fn read_user(line: &str) -> Option<(String, String)> {
    let quoted = |text: &str| if text.starts_with('"') { read_quoted(text) } else { None };
    let (name, used) = quoted(line)?;
    let (password, _) = quoted(line[used..].trim_start())?;
    Some((name, password))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_auth::secret::SecretKind;

    #[test]
    fn users_and_broken_lines() {
        let text = "; comment\n\"ann\" \"secret\"\n  \"q\"\"uote\" \"pa\"\"ss\" rest of the line\n\"none\" \"\"\n\
                    \"hash\" \"md545f2603610af569b6155c45067268c6b\"\nbob secret\n\"open\n\"one\"\n";
        let mut findings = Findings::default();
        let users = read_userlist(&Path::new("users.txt").into(), text, &mut findings);
        let found: Vec<_> = users
            .iter()
            .map(|(name, secret)| {
                let secret = match secret.as_deref().map(Secret::kind) {
                    None => "-".to_owned(),
                    Some(SecretKind::Plain(password)) => password.to_string(),
                    Some(_) => "hash".to_owned(),
                };
                (name.as_str(), secret)
            })
            .collect();
        let wanted = [("ann", "secret"), ("q\"uote", "pa\"ss"), ("none", "-"), ("hash", "hash")];
        assert_eq!(found, wanted.map(|(name, secret)| (name, secret.to_owned())));
        let places: Vec<_> =
            findings.warnings.iter().map(|w| w.problem.place.clone().unwrap().to_string()).collect();
        assert_eq!(places, ["users.txt:6:1", "users.txt:7:1", "users.txt:8:1"]);
    }
}
