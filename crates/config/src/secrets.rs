//! Values from elsewhere: `${NAME}` from the environment, and passwords from a separate file
//! (`password_file`).
//!
//! In pgbouncer.ini a password is literal, as in PgBouncer. No message contains a password.

use crate::draft::Draft;
use crate::entry::Entry;
use crate::problem::{Findings, Place, read, relative_to};

/// The password that an entry or its URL gives, from wherever it is. What is wrong with it is a problem, and
/// there is none then.
pub(crate) fn password(draft: &mut Draft, entry: &Entry, from_url: Option<String>) -> Option<String> {
    let here = entry.text("password").map(str::to_owned);
    if entry.from_ini {
        return here.or(from_url);
    }
    if let Some(path) = entry.text("password_file") {
        let place = Some(entry.place_of("password_file"));
        if here.is_some() || from_url.is_some() {
            draft.findings.problem(place, "give a password or a password_file, not both");
            return None;
        }
        return line_of_file(draft, path, place, "a password");
    }
    let place = entry.place_of(if here.is_some() { "password" } else { "url" });
    let password = here.or(from_url)?;
    match variable(&password) {
        Some(name) => from_environment(name, Some(&place), &mut draft.findings),
        None if is_doubled(&password) => Some(password[1..].to_owned()),
        None => Some(password),
    }
}

/// `$${NAME}` and nothing else: the text `${NAME}`.
fn is_doubled(text: &str) -> bool {
    let dollars = text.len() - text.trim_start_matches('$').len();
    dollars > 1 && variable(&text[dollars - 1..]).is_some()
}

/// A password as weir.toml must have it, so that it is this one.
pub(crate) fn as_password(text: &str) -> String {
    if variable(text).is_some() || is_doubled(text) { format!("${text}") } else { text.to_owned() }
}

/// Text as weir.toml must have it, so that no variable is put in.
pub(crate) fn as_text(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let variable = rest[2..].split_once('}').filter(|(name, _)| is_name(name));
        // What stands where a URL has its password stays as it is.
        let stays = |behind: &str| out.trim_end_matches('$').ends_with(':') && behind.starts_with('@');
        let doubled = variable.is_some_and(|(_, behind)| !stays(behind));
        out.push_str(if doubled { "$${" } else { "${" });
        rest = &rest[2..];
    }
    out + rest
}

/// The name in `${NAME}`, when that is all there is.
fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix("${")?.strip_suffix('}')?;
    is_name(name).then_some(name)
}

/// Text of weir.toml with `${NAME}` replaced by the environment variable; `$${NAME}` is the text `${NAME}`.
/// What is no name stays, and so does the password of a URL: it is taken as it is later, whatever signs it
/// has.
pub(crate) fn with_variables(text: &str) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let Some((name, behind)) = from[2..].split_once('}').filter(|(name, _)| is_name(name)) else {
            out.push_str("${");
            rest = &from[2..];
            continue;
        };
        if out.trim_end_matches('$').ends_with(':') && behind.starts_with('@') {
            out.push_str(&from[..name.len() + 3]);
        } else if out.ends_with('$') {
            out.push_str(&from[1..name.len() + 3]);
        } else {
            out.push_str(&value_of(name)?);
        }
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// A URL of a command line, with the password of the environment where it says `${NAME}`: what is on a
/// command line is seen by all users of the machine.
///
/// # Errors
/// There is no such variable, or it is empty.
pub fn url_with_password(url: &str) -> Result<String, String> {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = start + url[start..].find('/').unwrap_or(url.len() - start);
    let login = url[start..end].rsplit_once('@').and_then(|(login, _)| login.split_once(':'));
    let Some((user, name)) = login.and_then(|(user, password)| Some((user, variable(password)?))) else {
        return Ok(url.to_owned());
    };
    let (before, behind) = (&url[..start + user.len() + 1], start + user.len() + 1 + name.len() + 3);
    Ok(format!("{before}{}{}", percent_encoded(&value_of(name)?), &url[behind..]))
}

/// Text as it stands in a part of a URL.
pub fn percent_encoded(text: &str) -> String {
    let as_it_is = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let written =
        |byte: u8| if as_it_is(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(written).collect()
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn from_environment(name: &str, place: Option<&Place>, findings: &mut Findings) -> Option<String> {
    value_of(name).map_err(|why| findings.problem(place.cloned(), why)).ok()
}

fn value_of(name: &str) -> Result<String, String> {
    match std::env::var(name) {
        Ok(value) if !value.is_empty() => Ok(value),
        Ok(_) => Err(format!("the environment variable {name} is empty")),
        Err(std::env::VarError::NotPresent) => Err(format!("the environment has no variable {name}")),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(format!("the environment variable {name} is not UTF-8 text"))
        }
    }
}

/// The only line of a file, which is to hold `what`. Its name may begin with a variable, as
/// `${CREDENTIALS_DIRECTORY}/app` of systemd does.
pub(crate) fn line_of_file(
    draft: &mut Draft,
    path: &str,
    place: Option<Place>,
    what: &str,
) -> Option<String> {
    let path = match path.strip_prefix("${").and_then(|rest| rest.split_once('}')) {
        Some((name, rest)) if is_name(name) => {
            format!("{}{rest}", from_environment(name, place.as_ref(), &mut draft.findings)?)
        }
        _ => path.to_owned(),
    };
    let path = relative_to(draft.folder.as_deref(), &path);
    let text = read(&path, place.clone(), &mut draft.findings)?;
    let line = text.strip_suffix('\n').unwrap_or(&text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() || line.contains('\n') {
        let wrong = if line.is_empty() { "is empty" } else { "has more than one line" };
        draft
            .findings
            .problem(place, format!("{} {wrong}; it must hold {what} and nothing else", path.display()));
        return None;
    }
    Some(line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_name_is_a_variable() {
        assert_eq!(variable("${APP_PASSWORD1}"), Some("APP_PASSWORD1"));
        for text in ["$APP", "${}", "${1A}", "x${A}", "${A}x", "${A-b}", "${A", "A}"] {
            assert_eq!(variable(text), None, "{text}");
        }
    }

    #[test]
    fn any_text_can_be_written() {
        for text in
            ["", "$", "${A}", "$${A}", "$$${A}", "x${A}y${1}${", "${A", "${A}${B}", "$${A}$", "a:${A}@"]
        {
            assert_eq!(with_variables(&as_text(text)), Ok(text.to_owned()), "{text}");
            let written = as_password(text);
            assert_eq!(variable(&written), None, "{text}");
            assert_eq!(if is_doubled(&written) { &written[1..] } else { &written }, text);
        }
    }

    #[test]
    fn the_password_of_a_url_on_a_command_line_may_be_a_variable() {
        // Cargo sets it for every test; it has a slash.
        let path = percent_encoded(env!("CARGO_MANIFEST_DIR"));
        assert!(path.starts_with("%2F") && !path.contains('/'), "{path}");
        let given = |text: &str| url_with_password(text);
        let full = "mysql://a:${CARGO_MANIFEST_DIR}@h:1/d?ssl-mode=REQUIRED";
        assert_eq!(given(full), Ok(format!("mysql://a:{path}@h:1/d?ssl-mode=REQUIRED")));
        assert_eq!(given("mysql://a:${CARGO_MANIFEST_DIR}@h"), Ok(format!("mysql://a:{path}@h")));
        for text in
            ["mysql://a:x${A}@h", "mysql://${A}@h", "mysql://h/${A}", "mysql://h:1/d@${A}", "${A}", ""]
        {
            assert_eq!(given(text), Ok(text.to_owned()), "{text}");
        }
        let missing = given("postgres://a:${NO_SUCH_WEIR}@h");
        assert_eq!(missing, Err("the environment has no variable NO_SUCH_WEIR".to_owned()));
    }

    #[test]
    fn variables_stand_anywhere_in_text() {
        // Cargo sets it for every test.
        let name = env!("CARGO_PKG_NAME");
        for (text, wanted) in [
            ("${CARGO_PKG_NAME}", name.to_owned()),
            ("a${CARGO_PKG_NAME}-${CARGO_PKG_NAME}b", format!("a{name}-{name}b")),
            (
                "postgres://u:${NO_SUCH}@${CARGO_PKG_NAME}:1/d",
                format!("postgres://u:${{NO_SUCH}}@{name}:1/d"),
            ),
            ("${}${1}$x${", "${}${1}$x${".to_owned()),
            ("a$${A}b$$${B}", "a${A}b$${B}".to_owned()),
            ("postgres://u:$${A}@h/d", "postgres://u:$${A}@h/d".to_owned()),
        ] {
            assert_eq!(with_variables(text), Ok(wanted), "{text}");
        }
        assert_eq!(
            with_variables("x${NO_SUCH_VARIABLE}"),
            Err("the environment has no variable NO_SUCH_VARIABLE".into())
        );
    }
}
