//! From a proxysql.cnf to a weir.toml.
//!
//! Owns: which lists and groups the file has, and in which order they are converted. Must not know: the
//! format (`libconfig.rs`).
//!
//! ProxySQL sends each statement to a hostgroup, by rules and by its user; Weir sends each client to a
//! database, by the name that the client gives. So the hostgroup of most users becomes the database `*`, and
//! each other one a database of its own.

mod rules;
mod servers;
mod users;
mod variables;

use super::document::Document;
use super::libconfig::{Item, Node, Setting, settings};
use super::{NoteKind, Notes};
use crate::Protocol;
use crate::problem::{Place, Problem, Problems};
use servers::Hostgroups;
use std::path::Path;

/// The document, and what was not carried into it.
///
/// # Errors
/// The file is not in libconfig's format, or has no servers.
pub(super) fn convert(file: &Path, text: &str) -> Result<(Document, Notes), Problems> {
    let settings = settings(file, text).map_err(|problem| Problems(vec![problem]))?;
    let document = Document {
        head: vec![
            format!("Converted from {} by `weir config convert`.", file.display()),
            "Check with `weir check-config FILE`, start with `weir serve --config FILE`.".to_owned(),
        ],
        ..Document::default()
    };
    let mut converter = Converter { document, notes: Notes::default() };
    for setting in &settings {
        converter.top(setting);
    }
    for family in [&MYSQL, &PGSQL] {
        converter.family(family, &settings);
    }
    if converter.document.databases.is_empty() {
        let text = format!(
            "{}: no server that is online in mysql_servers or pgsql_servers; those of ProxySQL's own database are not in the file",
            file.display()
        );
        return Err(Problems(vec![Problem { place: None, text }]));
    }
    Ok((converter.document, converter.notes))
}

/// What ProxySQL has twice: for MySQL and for PostgreSQL.
struct Family {
    /// Before the names of its lists.
    prefix: &'static str,
    protocol: Protocol,
    /// Of a URL.
    scheme: &'static str,
    /// Where ProxySQL listens unless it is told.
    listen: &'static str,
    /// A database that every server has.
    database: &'static str,
}

static MYSQL: Family = Family {
    prefix: "mysql",
    protocol: Protocol::Mysql,
    scheme: "mysql",
    listen: "0.0.0.0:6033",
    database: "information_schema",
};

static PGSQL: Family = Family {
    prefix: "pgsql",
    protocol: Protocol::Postgres,
    scheme: "postgres",
    listen: "0.0.0.0:6133",
    database: "postgres",
};

struct Converter {
    document: Document,
    notes: Notes,
}

/// One `{ ... }` of a list.
struct Row<'a> {
    settings: &'a [Setting],
    place: &'a Place,
}

impl<'a> Row<'a> {
    /// The setting of one of these names.
    fn get(&self, names: &[&str]) -> Option<&'a Setting> {
        self.settings.iter().find(|setting| names.contains(&setting.name.as_str()))
    }

    fn text(&self, names: &[&str]) -> Option<String> {
        self.get(names)?.item.scalar()
    }

    fn number(&self, names: &[&str]) -> Option<i64> {
        self.text(names)?.parse().ok()
    }

    /// A switch, which may also be a number.
    fn flag(&self, names: &[&str]) -> Option<bool> {
        match self.text(names)?.as_str() {
            "1" | "true" => Some(true),
            "0" | "false" => Some(false),
            _ => None,
        }
    }
}

/// Lists and groups that have no counterpart, and why.
const OTHERS: &[(&str, NoteKind, &str)] = &[
    ("datadir", NoteKind::NotNeeded, "Weir has no database of its own settings: what the file says holds"),
    ("uuid", NoteKind::NotNeeded, "Weir processes do not know each other"),
    ("restart_on_missing_heartbeats", NoteKind::NotNeeded, "a service manager restarts Weir"),
    ("execute_on_exit_failure", NoteKind::LeftOut, "a service manager does that"),
    ("scheduler", NoteKind::LeftOut, "Weir starts no programs; use cron or a timer of systemd"),
    (
        "proxysql_servers",
        NoteKind::LeftOut,
        "Weir processes do not share settings; give each of them the same weir.toml",
    ),
    (
        "mysql_group_replication_hostgroups",
        NoteKind::LeftOut,
        "Weir does not watch which server of a group may write; the url of a database names one server",
    ),
    (
        "mysql_galera_hostgroups",
        NoteKind::LeftOut,
        "Weir does not watch which server of a cluster may write; the url of a database names one server",
    ),
    (
        "mysql_aws_aurora_hostgroups",
        NoteKind::LeftOut,
        "Weir does not ask Aurora for its servers; put the name of the cluster's endpoint into the url",
    ),
    ("mysql_hostgroup_attributes", NoteKind::LeftOut, "a database has only what [databases.NAME] can say"),
    ("mysql_servers_ssl_params", NoteKind::LeftOut, "put ssl-ca, ssl-cert and ssl-key into the url"),
    ("mysql_firewall_whitelist_users", NoteKind::LeftOut, FIREWALL),
    ("mysql_firewall_whitelist_rules", NoteKind::LeftOut, FIREWALL),
    ("mysql_firewall_whitelist_sqli_fingerprints", NoteKind::LeftOut, FIREWALL),
    ("restapi_routes", NoteKind::LeftOut, "Weir runs no scripts over HTTP"),
    ("mysql_collations", NoteKind::NotNeeded, "the collations of clients and servers are theirs"),
];

const FIREWALL: &str = "Weir has no firewall for statements: those that it refuses will run";

/// Lists that [`Converter::family`] reads, behind `mysql_` and `pgsql_`.
const LISTS: [&str; 5] =
    ["servers", "users", "query_rules", "query_rules_fast_routing", "replication_hostgroups"];

impl Converter {
    /// What is no list of a family.
    fn top(&mut self, setting: &Setting) {
        let name = setting.name.as_str();
        let of_family = name.strip_prefix("mysql_").or_else(|| name.strip_prefix("pgsql_"));
        match (name, &setting.item.node) {
            ("mysql_variables", Node::Group(inside)) => self.variables(&MYSQL, inside),
            ("pgsql_variables", Node::Group(inside)) => self.variables(&PGSQL, inside),
            ("admin_variables", Node::Group(inside)) => self.admin_variables(inside),
            ("errorlog", Node::Text(_)) => self.error_log(setting),
            _ if of_family.is_some_and(|rest| LISTS.contains(&rest)) => {
                if !matches!(setting.item.node, Node::List(_)) {
                    let text = format!("{name} must be a list of groups: ( {{ ... }}, {{ ... }} )");
                    self.notes.left_out(setting.place.clone(), text);
                }
            }
            _ => {
                let known = OTHERS.iter().find(|(known, _, _)| *known == name);
                let (kind, why) =
                    known.map_or((NoteKind::LeftOut, variables::UNKNOWN), |(_, kind, why)| (*kind, *why));
                self.notes.add(kind, setting.place.clone(), format!("{name}: {why}"));
            }
        }
    }

    /// The rows of a list, by the end of its name.
    fn rows<'a>(&mut self, family: &Family, list: &str, settings: &'a [Setting]) -> Vec<Row<'a>> {
        let name = format!("{}_{list}", family.prefix);
        let mut rows = Vec::new();
        for setting in settings.iter().filter(|setting| setting.name == name) {
            let Node::List(items) = &setting.item.node else { continue };
            for Item { node, place } in items {
                match node {
                    Node::Group(inside) => rows.push(Row { settings: inside, place }),
                    _ => self.notes.left_out(place.clone(), format!("{name} must have groups: {{ ... }}")),
                }
            }
        }
        rows
    }

    /// Servers, users and rules of one protocol.
    fn family(&mut self, family: &Family, settings: &[Setting]) {
        let servers = self.rows(family, "servers", settings);
        let users = self.rows(family, "users", settings);
        let pairs = self.rows(family, "replication_hostgroups", settings);
        let mut rules = self.rows(family, "query_rules", settings);
        rules.extend(self.rows(family, "query_rules_fast_routing", settings));
        let Some(hostgroups) = Hostgroups::of(self, family, &servers, &users, &pairs) else {
            for row in servers.iter().chain(&users).chain(&pairs).chain(&rules) {
                let text = format!("{}_servers has no server that is online", family.prefix);
                self.notes.left_out(row.place.clone(), text);
            }
            return;
        };
        self.listen_by_default(family);
        self.databases(family, &hostgroups);
        self.users(family, &users, &hostgroups);
        self.rules(family, &rules, &hostgroups);
    }

    /// What a row says that no code reads, by line.
    fn rest_of_row(&mut self, row: &Row<'_>, known: &[&str], reasons: &[(&str, &str)]) {
        for setting in row.settings {
            let name = setting.name.as_str();
            if known.contains(&name) {
                continue;
            }
            let why = reasons.iter().find(|(known, _)| *known == name);
            let why = why.map_or(variables::UNKNOWN, |(_, why)| *why);
            // Zeros and empty text are what ProxySQL has for off.
            let is_off = setting.item.scalar().is_some_and(|v| matches!(v.as_str(), "" | "0" | "false"));
            let kind = if is_off { NoteKind::NotNeeded } else { NoteKind::LeftOut };
            let why = if is_off { "is off" } else { why };
            self.notes.add(kind, setting.place.clone(), format!("{name}: {why}"));
        }
    }
}
