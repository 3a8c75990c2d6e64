//! Hostgroups: a database for each, and one for each further server.

use super::super::NoteKind;
use super::super::document::{Named, encoded, host};
use super::{Converter, Family, Row};
use crate::Protocol;
use crate::problem::Place;
use crate::values::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A server that is online.
pub(super) struct Server {
    address: String,
    port: i64,
    weight: i64,
    max_connections: Option<u64>,
    tls: bool,
    place: Place,
}

/// The hostgroups of one protocol.
pub(super) struct Hostgroups {
    /// Never empty, and no group is empty; heavier servers first.
    groups: BTreeMap<i64, Vec<Server>>,
    /// The one that most users have.
    main: i64,
    /// Those that a pair calls readers.
    readers: BTreeSet<i64>,
    /// The schema in which clients of other databases than `*` start.
    schema: String,
}

const KNOWN: [&str; 9] = [
    "hostgroup",
    "hostgroup_id",
    "address",
    "hostname",
    "port",
    "status",
    "weight",
    "max_connections",
    "use_ssl",
];

const REASONS: [(&str, &str); 5] = [
    ("compression", "Weir does not compress"),
    ("max_replication_lag", "Weir does not measure the lag of replicas"),
    ("max_latency_ms", "Weir does not choose among servers"),
    ("gtid_port", "Weir does not follow GTIDs"),
    ("comment", "comments are not carried"),
];

impl Hostgroups {
    /// `None`: there is no server.
    pub(super) fn of(
        converter: &mut Converter,
        family: &Family,
        servers: &[Row<'_>],
        users: &[Row<'_>],
        pairs: &[Row<'_>],
    ) -> Option<Hostgroups> {
        let mut groups: BTreeMap<i64, Vec<Server>> = BTreeMap::new();
        for row in servers {
            if let Some(server) = converter.server(family, row) {
                let number = row.number(&["hostgroup", "hostgroup_id"]).unwrap_or(0);
                groups.entry(number).or_default().push(server);
            }
        }
        for group in groups.values_mut() {
            group.sort_by_key(|server| std::cmp::Reverse(server.weight));
        }
        let mut readers = BTreeSet::new();
        let mut writers = Vec::new();
        for row in pairs {
            readers.extend(row.number(&["reader_hostgroup"]));
            writers.extend(row.number(&["writer_hostgroup"]));
            let text = format!(
                "{}_replication_hostgroups: Weir does not watch read_only and moves no servers: after a failover change the url, or let a name in DNS follow",
                family.prefix
            );
            converter.notes.left_out(row.place.clone(), text);
        }
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        let mut schemas = BTreeSet::new();
        for row in users.iter().filter(|row| row.flag(&["active"]) != Some(false)) {
            *counts.entry(row.number(&["default_hostgroup"]).unwrap_or(0)).or_default() += 1;
            schemas.extend(row.text(&["default_schema"]).filter(|schema| !schema.is_empty()));
        }
        let known = |number: &&i64| groups.contains_key(*number);
        // Of several with as many users, the first.
        let most = counts.iter().rev().filter(|(number, _)| known(number)).max_by_key(|(_, count)| **count);
        let most = most.map(|(number, _)| number).or_else(|| writers.iter().find(known));
        let main = *most.or_else(|| groups.keys().next())?;
        let single = schemas.len() == 1;
        let schema = schemas.pop_first().filter(|_| single).unwrap_or_else(|| family.database.to_owned());
        Some(Hostgroups { groups, main, readers, schema })
    }

    /// The name of a hostgroup's database; `None`: it has no server.
    pub(super) fn name(&self, number: i64) -> Option<String> {
        self.groups
            .contains_key(&number)
            .then(|| if number == self.main { "*".to_owned() } else { self.own_name(number) })
    }

    fn own_name(&self, number: i64) -> String {
        let what = if self.readers.contains(&number) { "reader" } else { "hostgroup" };
        format!("{what}_{number}")
    }

    pub(super) fn is_main(&self, number: i64) -> bool {
        number == self.main
    }

    /// The first server of a hostgroup as a URL with this database.
    pub(super) fn url(&self, family: &Family, number: i64, database: &str) -> Option<String> {
        Some(url(family, self.groups.get(&number)?.first()?, database))
    }
}

fn url(family: &Family, server: &Server, database: &str) -> String {
    let (scheme, port) = (family.scheme, server.port);
    let path = if database.is_empty() { String::new() } else { format!("/{}", encoded(database, "")) };
    let mut parameters = Vec::new();
    let authority = if server.address.starts_with('/') {
        let file = encoded(&server.address, "/");
        match family.protocol {
            Protocol::Mysql => parameters.push(format!("socket={file}")),
            Protocol::Postgres => parameters.push(format!("host={file}&port={port}")),
        }
        String::new()
    } else {
        format!("{}:{port}", host(&server.address))
    };
    if server.tls {
        parameters.push("sslmode=require".to_owned());
    }
    let path = if path.is_empty() && authority.is_empty() { "/".to_owned() } else { path };
    let query = if parameters.is_empty() { String::new() } else { format!("?{}", parameters.join("&")) };
    format!("{scheme}://{authority}{path}{query}")
}

impl Converter {
    fn server(&mut self, family: &Family, row: &Row<'_>) -> Option<Server> {
        self.rest_of_row(row, &KNOWN, &REASONS);
        let Some(address) = row.text(&["address", "hostname"]).filter(|address| !address.is_empty()) else {
            self.notes.left_out(row.place.clone(), "a server needs an address");
            return None;
        };
        let status = row.text(&["status"]).unwrap_or_default();
        if !matches!(status.to_ascii_uppercase().as_str(), "" | "ONLINE") {
            self.notes.left_out(row.place.clone(), format!("server {address}: its status is {status}"));
            return None;
        }
        let usual = i64::from(family.protocol.server_port());
        let port = row.number(&["port"]).filter(|port| *port != 0).unwrap_or(usual);
        if !(1..=65535).contains(&port) {
            self.notes.left_out(row.place.clone(), format!("server {address}: port {port} is none"));
            return None;
        }
        let most = row.number(&["max_connections"]);
        // PostgreSQL's own bound, which that of the setting is.
        let max_connections = most.and_then(|n| u64::try_from(n).ok()).filter(|n| (1..=262_143).contains(n));
        if most.is_some() && max_connections.is_none() {
            let text = format!("server {address}: max_connections must be from 1 to 262143");
            self.notes.left_out(row.place.clone(), text);
        }
        Some(Server {
            address,
            port,
            weight: row.number(&["weight"]).unwrap_or(1),
            max_connections,
            tls: row.flag(&["use_ssl"]) == Some(true),
            place: row.place.clone(),
        })
    }

    /// A database for each server.
    pub(super) fn databases(&mut self, family: &Family, hostgroups: &Hostgroups) {
        let mut said = false;
        for (&number, servers) in &hostgroups.groups {
            let is_main = hostgroups.is_main(number);
            for (index, server) in servers.iter().enumerate() {
                let own = hostgroups.own_name(number);
                let name = match index {
                    0 if is_main => "*".to_owned(),
                    0 => own,
                    _ => format!("{own}_{}", index + 1),
                };
                let schema = if name == "*" { "" } else { hostgroups.schema.as_str() };
                self.say_of_database(server, &name, number, schema, index);
                let mut one = Named::new(name);
                let reader = hostgroups.readers.contains(&number);
                let what = if reader { ", whose servers ProxySQL reads from" } else { "" };
                one.comments.push(format!("{} hostgroup {number}{what}", family.prefix));
                one.field("url", Value::Text(url(family, server, schema)));
                if let Some(most) = server.max_connections {
                    one.field("max_db_connections", Value::Count(most));
                    if !said {
                        let text = "max_connections: max_db_connections is the same limit; each user has up to \
                                    pool.default_pool_size (20) of these connections";
                        self.notes.add(NoteKind::Differs, server.place.clone(), text);
                        said = true;
                    }
                }
                self.insert(one, &server.place);
            }
        }
    }

    /// Both protocols have a `*`; names are those of one table.
    fn insert(&mut self, mut one: Named, place: &Place) {
        if self.document.databases.iter().any(|other| other.name == one.name) {
            let table = format!("pgsql_{}", if one.name == "*" { "any" } else { &one.name });
            one.fields.insert(0, ("name", Value::Text(std::mem::replace(&mut one.name, table))));
        }
        if self.document.databases.iter().any(|other| other.name == one.name) {
            let text = format!("there is a database {} already", one.name);
            return self.notes.left_out(place.clone(), text);
        }
        self.document.databases.push(one);
    }

    fn say_of_database(&mut self, server: &Server, name: &str, number: i64, schema: &str, index: usize) {
        let address = &server.address;
        let text = match index {
            0 if name == "*" => return,
            0 => format!(
                "hostgroup {number} is the database {name}: Weir has no read/write split and no routing by user; clients that name this database reach {address}, and start in {schema}"
            ),
            _ => format!(
                "server {address} is the database {name}: a database of Weir has one server, and Weir does not balance among servers"
            ),
        };
        self.notes.add(NoteKind::Differs, server.place.clone(), text);
    }

    /// A database of its own for a schema that a rule sends elsewhere.
    pub(super) fn schema_of_rule(&mut self, schema: &str, url: String, family: &Family, place: &Place) {
        let mut one = Named::new(schema);
        one.comments.push(format!("{} query rule for schema {}", family.prefix, schema.escape_debug()));
        one.field("url", Value::Text(url));
        self.insert(one, place);
    }
}
