//! Query rules. One has a meaning in Weir: a rule that sends all of a schema to a hostgroup.

use super::super::NoteKind;
use super::servers::Hostgroups;
use super::{Converter, Family, Row};
use std::collections::BTreeSet;

/// What does not make a rule another one.
const SILENT: [&str; 9] = [
    "rule_id",
    "active",
    "apply",
    "comment",
    "log",
    "flagIN",
    "schemaname",
    "destination_hostgroup",
    "username",
];

const NO_SPLIT: &str = "Weir has no read/write split and no query rules: all statements of a client go to the database that it has named";

/// What a rule does beyond choosing a hostgroup, and what becomes of it; the first that fits is said.
const ACTIONS: [(&str, &str); 12] = [
    ("error_msg", "it refuses statements, and Weir has no firewall: they will run"),
    ("OK_msg", "it answers statements itself, and Weir sends them to the server"),
    ("replace_pattern", "it changes statements, and Weir sends them as they are"),
    ("mirror_hostgroup", "Weir sends each statement once"),
    ("mirror_flagOUT", "Weir sends each statement once"),
    ("cache_ttl", "Weir has no cache of results"),
    ("proxy_port", "Weir does not choose a database by the port; clients name the database"),
    ("proxy_addr", "Weir does not choose a database by the address; clients name the database"),
    ("timeout", "pool.query_timeout is that of all statements"),
    ("delay", "Weir delays no statements"),
    ("multiplex", "Weir finds out by itself when a client must keep its server connection"),
    ("sticky_conn", "Weir finds out by itself when a client must keep its server connection"),
];

impl Converter {
    pub(super) fn rules(&mut self, family: &Family, rules: &[Row<'_>], hostgroups: &Hostgroups) {
        // The first rule that fits decides.
        let mut seen = BTreeSet::new();
        for row in rules {
            let name = match row.text(&["rule_id"]) {
                Some(number) => format!("query rule {number}"),
                None => "query rule".to_owned(),
            };
            let place = row.place.clone();
            if row.flag(&["active"]) == Some(false) {
                self.notes.add(NoteKind::NotNeeded, place, format!("{name} is not active"));
                continue;
            }
            let Some((schema, number)) = of_schema(row) else {
                self.notes.left_out(place, format!("{name}: {}", why_not(row, hostgroups)));
                continue;
            };
            if !seen.insert(schema.clone()) {
                let text = format!("{name}: a rule above it is for the same schema");
                self.notes.left_out(place, text);
                continue;
            }
            match hostgroups.url(family, number, &schema) {
                _ if hostgroups.is_main(number) => {
                    let text = format!("{name}: the database * has the server of hostgroup {number}");
                    self.notes.add(NoteKind::NotNeeded, place, text);
                }
                Some(url) => {
                    let text = format!(
                        "{name}: clients that log in to schema {schema} go to hostgroup {number}; those that choose it later stay where they are"
                    );
                    self.notes.add(NoteKind::Differs, place.clone(), text);
                    self.schema_of_rule(&schema, url, family, &place);
                }
                None => {
                    let text = format!("{name}: hostgroup {number} has no server that is online");
                    self.notes.left_out(place, text);
                }
            }
        }
    }
}

/// The schema and the hostgroup of a rule that says nothing else.
fn of_schema(row: &Row<'_>) -> Option<(String, i64)> {
    let is_silent = |name: &str| SILENT.contains(&name);
    let says = |name: &str| row.text(&[name]).filter(|value| !matches!(value.as_str(), "" | "0"));
    let others =
        row.settings.iter().any(|setting| !is_silent(&setting.name) && says(&setting.name).is_some());
    if others || says("username").is_some() || says("flagIN").is_some() {
        return None;
    }
    Some((says("schemaname")?, row.number(&["destination_hostgroup"])?))
}

fn why_not(row: &Row<'_>, hostgroups: &Hostgroups) -> String {
    let says = |name: &str| row.text(&[name]).is_some_and(|value| !value.is_empty());
    if let Some((_, why)) = ACTIONS.iter().find(|(name, _)| says(name)) {
        return (*why).to_owned();
    }
    let number = row.number(&["destination_hostgroup"]);
    let database = number.and_then(|number| hostgroups.name(number)).filter(|name| name != "*");
    let instead = database.map_or_else(String::new, |database| {
        format!(
            "; an application that reads from hostgroup {} names the database {database}",
            number.unwrap_or(0)
        )
    });
    format!("{NO_SPLIT}{instead}")
}
