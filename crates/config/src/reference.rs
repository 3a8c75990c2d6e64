//! The reference, from the tables: Markdown for the manual, a manual page, and how Weir treats each setting
//! of pgbouncer.ini.

use crate::entry::{ENTRY_KEYS, EntryKey, Table};
use crate::fate::{self, Fate};
use crate::registry::{Change, Files, Kind, SETTINGS, Setting};
use crate::toml_file::sections;
use std::fmt::Write;

/// The introduction of a section.
fn section_text(section: &str) -> &'static str {
    match section {
        "" => "At the top of the file, before the first section.",
        "databases" => {
            "One table for each database name that clients use. The name `*` matches every database without a table of its own."
        }
        "users" => {
            "Users that may log in. Without any user here or in `auth_file`, the user of each database's URL may log in with the URL's password; if the URL has no password, that user may log in without one, from this machine only."
        }
        "postgres" => "PostgreSQL clients.",
        "mysql" => "MySQL and MariaDB clients.",
        "http" => "The HTTP endpoint for monitoring. See [Dashboard](dashboard.md).",
        "pool" => {
            "Pools of server connections: sizes, modes and timeouts. Sizes and the mode can also be set for a database or a user."
        }
        "pins" => {
            "What happens to clients whose session state cannot move, by reason. Not in session mode. `error` refuses a statement whose text tells that it would pin (SQLSTATE 0A000, errno 1235). `pass` trusts the application: the client is not pinned, and what it leaves behind meets the next client, as behind PgBouncer; PostgreSQL only; for MySQL and MariaDB it means `warn`. See [What an operator decides](pins.md#what-an-operator-decides)."
        }
        "limits" => "Limits for clients.",
        "socket" => "Socket options, towards clients and servers.",
        "log" => "Logging.",
        "tls.client" => "TLS between clients and Weir. See [TLS](tls.md#with-clients).",
        "tls.server" => {
            "TLS between Weir and servers. A database's URL overrides these settings. See [TLS](tls.md#with-servers)."
        }
        _ => "",
    }
}

/// The settings of weir.toml, in Markdown.
pub fn markdown() -> String {
    let mut out = String::from(
        "<!-- Made from the table in crates/config by `weir generate reference`. Do not edit. -->\n\
         # Settings\n\n\
         Times are in seconds and may have a fraction, or are text with a unit: `\"500ms\"`, `\"5s\"`, `\"2min\"`, `\"1h\"`.\n\
         Every setting can be given on the command line too: `weir serve --set section.key=value`.\n\
         Values may contain environment variables: `listen = [\"${HOST}:6432\"]`, `url = \"${DATABASE_URL}\"`, `default_pool_size = \"${POOL}\"`. A missing variable is an error. `$${NAME}` is the text `${NAME}`.\n\
         A reload (SIGHUP) applies changes without closing clients. Settings marked *restart* take effect when Weir is started again; a reload names those that have changed.\n\n",
    );
    for section in std::iter::once("").chain(sections()) {
        let title = match section {
            "" => "Top of the file".to_owned(),
            "databases" | "users" => format!("[{section}.NAME]"),
            _ => format!("[{section}]"),
        };
        out.push_str(&format!("## {title}\n\n{}\n\n", section_text(section)));
        for setting in SETTINGS.iter().filter(|s| s.files == Files::All && s.section == section) {
            markdown_setting(&mut out, setting);
        }
        for key in ENTRY_KEYS.iter().filter(|k| k.toml && k.table.name() == section) {
            out.push_str(&format!(
                "### `{}`\n\n{}\n\n- Type: {}\n\n",
                key.name,
                key.text,
                kind_text(key.kind)
            ));
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn markdown_setting(out: &mut String, setting: &Setting) {
    let restart = if setting.change == Change::Restart { " · *restart*" } else { "" };
    out.push_str(&format!(
        "### `{}`\n\n{}\n\n- Type: {} · default: {}{restart}\n\n",
        setting.name,
        setting.text,
        kind_text(setting.kind),
        code_or_empty(setting.default),
    ));
}

fn code_or_empty(text: &str) -> String {
    if text.is_empty() { "empty".to_owned() } else { format!("`{text}`") }
}

fn kind_text(kind: Kind) -> String {
    match kind {
        Kind::Bool => "true or false".to_owned(),
        Kind::Count { min, max, unit: "" } => format!("number, {min} to {max}"),
        Kind::Count { min, max, unit } => format!("number of {unit}, {min} to {max}"),
        Kind::Size { max, unit } => format!("number of {unit}, 1 to {max}, or `auto`"),
        Kind::Seconds { .. } => "time".to_owned(),
        Kind::Mode => "permissions in octal, as text".to_owned(),
        Kind::Word(words) | Kind::Policy { words, .. } => {
            words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
        }
        Kind::Text => "text".to_owned(),
        Kind::Path => "file".to_owned(),
        Kind::Secret => "text that is never shown".to_owned(),
        Kind::List => "array of text".to_owned(),
    }
}

/// What becomes of each setting of pgbouncer.ini, in Markdown.
pub fn pgbouncer_markdown() -> String {
    let mut out = String::from(
        "<!-- Made from the tables in crates/config by `weir generate pgbouncer`. Do not edit. -->\n\
         # Settings of pgbouncer.ini\n\n\
         How Weir treats each setting of PgBouncer 1.26 in a pgbouncer.ini. `weir check-config pgbouncer.ini` lists what applies to your file.\n\n\
         ## Supported\n\n\
         Defaults and units are PgBouncer's. *same*: the meaning, also that of 0, is PgBouncer's.\n\n\
         | `[pgbouncer]` | default | unit | difference from PgBouncer | in weir.toml |\n|---|---|---|---|---|\n",
    );
    for setting in SETTINGS {
        let Some(alias) = setting.alias else { continue };
        let default = setting.pgbouncer_default.unwrap_or(setting.default);
        let there = match setting.files {
            Files::All => format!("`{}`", setting.full_name()),
            Files::PgbouncerOnly => "`postgres.listen`".to_owned(),
        };
        let unit = unit_of(setting.kind);
        row(&mut out, &[&format!("`{alias}`"), &code_or_empty(default), unit, beside(alias), &there]);
    }
    row(&mut out, &["`verbose`", "`0`", "", beside("verbose"), "`log.level`"]);
    out.push_str("\nSettings that only Weir has are written in `[pgbouncer]` with their full name, such as `http.listen`.\n");
    for (table, title) in [(Table::Databases, "[databases]"), (Table::Users, "[users]")] {
        let keys: Vec<_> = ENTRY_KEYS
            .iter()
            .filter(|k| k.table == table && k.ini)
            .map(|k: &EntryKey| format!("`{}`", k.name))
            .collect();
        let _ = write!(out, "\n`{title}`: {}.\n", keys.join(", "));
    }
    fates(
        &mut out,
        "Covered",
        "Accepted without a warning: Weir does the equivalent, whatever the value.",
        |fate| match fate {
            Fate::Covered(text) => Some(text.trim_end_matches('.').to_owned()),
            Fate::Missing(_) | Fate::Refused { .. } => None,
        },
    );
    fates(
        &mut out,
        "Not supported yet",
        "Accepted with a warning at the start, unless the value is empty or 0.",
        |fate| match fate {
            Fate::Missing(text) => Some(text.to_owned()),
            Fate::Covered(_) | Fate::Refused { .. } => None,
        },
    );
    fates(
        &mut out,
        "Refused",
        "Weir does not start with these: running without them would be less safe than the file demands.",
        |fate| match fate {
            Fate::Refused { harmless, why } => Some(format!("{why}. Accepted: {}", harmless.join(", "))),
            Fate::Covered(_) | Fate::Missing(_) => None,
        },
    );
    out
}

/// What a value without a unit counts; empty: it is no number.
fn unit_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Seconds { .. } => "seconds",
        Kind::Count { unit, .. } | Kind::Size { unit, .. } => unit,
        Kind::Mode => "octal",
        Kind::Bool
        | Kind::Word(_)
        | Kind::Policy { .. }
        | Kind::Text
        | Kind::Path
        | Kind::Secret
        | Kind::List => "",
    }
}

/// How a setting differs from PgBouncer's.
fn beside(alias: &str) -> &'static str {
    fate::DIFFERS.iter().find(|(name, _)| *name == alias).map_or("same", |(_, how)| how)
}

fn fates(out: &mut String, title: &str, text: &str, what: impl Fn(Fate) -> Option<String>) {
    let _ = write!(out, "\n## {title}\n\n{text}\n\n| setting | what happens |\n|---|---|\n");
    for (section, table) in
        [("", fate::PGBOUNCER), ("[databases] ", fate::DATABASES), ("[users] ", fate::USERS)]
    {
        for (name, fate) in table {
            if let Some(what) = what(*fate) {
                row(out, &[&format!("{section}`{name}`"), &what]);
            }
        }
    }
}

fn row(out: &mut String, cells: &[&str]) {
    let _ = writeln!(out, "| {} |", cells.join(" | "));
}

/// weir.toml(5), in troff.
pub fn man_page() -> String {
    let mut out = String::from(
        ".TH WEIR.TOML 5\n.SH NAME\nweir.toml \\- settings of weir(1)\n.SH DESCRIPTION\n\
         A file in TOML. Times are in seconds and may have a fraction, or are text with a unit (ms, s, min, h).\n\
         An unknown key or a bad value is an error that names line and column.\n",
    );
    for section in std::iter::once("").chain(sections()) {
        let title = match section {
            "" => "TOP OF THE FILE".to_owned(),
            "databases" | "users" => format!("[{section}.NAME]"),
            _ => format!("[{section}]"),
        };
        let _ = write!(out, ".SH {title}\n{}\n", troff(section_text(section)));
        for setting in SETTINGS.iter().filter(|s| s.files == Files::All && s.section == section) {
            let default = if setting.default.is_empty() { "empty" } else { setting.default };
            let kind = kind_text(setting.kind).replace('`', "");
            let _ = write!(
                out,
                ".TP\n.B {}\n{} ({}; default {})\n",
                troff(setting.name),
                troff(setting.text),
                troff(&kind),
                troff(default)
            );
        }
        for key in ENTRY_KEYS.iter().filter(|k| k.toml && k.table.name() == section) {
            let kind = kind_text(key.kind).replace('`', "");
            let _ = write!(out, ".TP\n.B {}\n{} ({})\n", troff(key.name), troff(key.text), troff(&kind));
        }
    }
    out.push_str(".SH SEE ALSO\n.BR weir (1)\n");
    out
}

/// Text in troff: no line begins with a control character, a backslash and a hyphen are themselves. A
/// sentence that only links to another page of the manual is left out.
fn troff(text: &str) -> String {
    let text = text.find(" See [").map_or(text, |at| &text[..at]);
    let text = text.replace('\\', "\\\\").replace('-', "\\-").replace('`', "");
    if text.starts_with(['.', '\'']) { format!("\\&{text}") } else { text }
}
