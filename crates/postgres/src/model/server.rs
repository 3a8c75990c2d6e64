//! A PostgreSQL server in miniature: sessions, transactions, one setting, prepared statements, COPY, errors
//! that skip to Sync. Its rows name the text they come from, so that a reply to another client's request is
//! recognised.

use crate::frame::{body, put, put_cstr};
use crate::message::query::{Object, read_bind, read_execute, read_object, read_parse, read_query};
use crate::testing::s;
use std::collections::HashMap;
use weir_wire::Boundary;

#[derive(Clone)]
struct Statement {
    text: String,
    zone_at_parse: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Copying {
    No,
    Simple,
    Extended,
}

pub struct Server {
    input: Vec<u8>,
    pub output: Vec<u8>,
    /// So much of it is sent. The rest waits, as a server's does, for Sync, Flush, an error or a COPY.
    pub sent: usize,
    boundary: Boundary,
    startup_zone: String,
    zone: String,
    zone_before: String,
    zone_at_savepoint: Option<String>,
    zone_reported: String,
    zone_kept: String,
    prepared: HashMap<String, Statement>,
    portals: HashMap<String, Statement>,
    skipping: bool,
    copying: Copying,
    pub listens: bool,
    /// Time zones under which each name of Weir's was parsed.
    pub parsed: Vec<(String, String)>,
}

/// A server sends what it has when that is more, whatever comes next.
const BUFFER_BYTES: usize = 64;

type Reply = Result<Vec<u8>, (&'static str, String)>;

impl Server {
    pub fn new(zone: &str) -> Self {
        Server {
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            boundary: Boundary::Idle,
            startup_zone: zone.into(),
            zone: zone.into(),
            zone_before: zone.into(),
            zone_at_savepoint: None,
            zone_reported: zone.into(),
            zone_kept: String::new(),
            prepared: HashMap::new(),
            portals: HashMap::new(),
            skipping: false,
            copying: Copying::No,
            listens: false,
            parsed: Vec::new(),
        }
    }

    pub fn is_clean(&self) -> bool {
        self.boundary == Boundary::Idle && !self.skipping && self.copying == Copying::No && !self.listens
    }

    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        while self.input.len() >= 5 {
            let length = u32::from_be_bytes(self.input[1..5].try_into().unwrap()) as usize + 1;
            if self.input.len() < length {
                return;
            }
            let message: Vec<u8> = self.input.drain(..length).collect();
            self.message(message[0], body(&message));
            if self.output.len() > self.sent + BUFFER_BYTES {
                self.sent = self.output.len();
            }
        }
    }

    fn message(&mut self, tag: u8, body: &[u8]) {
        if self.copying != Copying::No {
            return self.copy_message(tag);
        }
        if self.skipping && tag != b'S' {
            return;
        }
        match tag {
            b'Q' => {
                self.prepared.remove("");
                let text = String::from_utf8(read_query(body).unwrap().to_vec()).unwrap();
                for one in text.split(';').map(str::trim).filter(|t| !t.is_empty()) {
                    match self.run(one, None) {
                        Ok(reply) => self.output.extend(reply),
                        Err(error) => {
                            self.error(&error);
                            break;
                        }
                    }
                    if self.copying != Copying::No {
                        self.sent = self.output.len();
                        return;
                    }
                }
                self.ready();
            }
            b'S' => {
                self.skipping = false;
                self.ready();
            }
            b'H' => self.sent = self.output.len(),
            b'd' | b'c' | b'f' => {}
            b'F' => {
                match self.check_transaction("f") {
                    Ok(()) => self.output.extend(s::function_result()),
                    Err(error) => self.error(&error),
                }
                self.ready();
            }
            b'P' | b'B' | b'D' | b'E' | b'C' => match self.extended(tag, body) {
                Ok(reply) => {
                    self.output.extend(reply);
                    if self.copying != Copying::No {
                        self.sent = self.output.len();
                    }
                }
                Err(error) => {
                    self.error(&error);
                    self.skipping = true;
                }
            },
            other => panic!("the server got {other}"),
        }
    }

    fn copy_message(&mut self, tag: u8) {
        let extended = self.copying == Copying::Extended;
        match tag {
            b'd' | b'S' | b'H' => return,
            b'c' => {
                self.copying = Copying::No;
                self.output.extend(s::complete("COPY 1"));
            }
            _ => {
                self.copying = Copying::No;
                self.error(&("57014", "COPY failed".into()));
                self.skipping = extended;
            }
        }
        if !extended {
            self.ready();
        }
    }

    fn ready(&mut self) {
        if self.boundary == Boundary::Idle {
            self.zone_before.clone_from(&self.zone);
            self.portals.clear();
        }
        if self.zone_reported != self.zone {
            self.zone_reported.clone_from(&self.zone);
            self.output.extend(s::parameter("TimeZone", &self.zone));
        }
        self.output.extend(s::ready(self.boundary));
        self.sent = self.output.len();
    }

    fn error(&mut self, (code, text): &(&'static str, String)) {
        self.output.extend(s::error(code, text));
        self.sent = self.output.len();
        self.zone.clone_from(&self.zone_before);
        if self.boundary == Boundary::InTransaction {
            self.boundary = Boundary::Failed;
        }
    }

    fn check_transaction(&self, text: &str) -> Result<(), (&'static str, String)> {
        let ends = matches!(text.to_lowercase().as_str(), "commit" | "rollback")
            || text.starts_with("ROLLBACK TO SAVEPOINT");
        if self.boundary == Boundary::Failed && !ends {
            return Err(("25P02", "current transaction is aborted".into()));
        }
        Ok(())
    }

    fn extended(&mut self, tag: u8, body: &[u8]) -> Reply {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        match tag {
            b'P' => {
                let parse = read_parse(body).unwrap();
                let (name, query) = (text(parse.name), text(parse.text));
                if name.is_empty() {
                    self.prepared.remove("");
                }
                // An empty one may be prepared in a failed transaction, too.
                if !query.is_empty() {
                    self.check_transaction(&query)?;
                }
                if query.starts_with("bad") {
                    return Err(("42601", format!("syntax error in {query}")));
                }
                if self.prepared.contains_key(&name) {
                    return Err(("42P05", format!("prepared statement \"{name}\" already exists")));
                }
                if name.starts_with("weir_") && name != "weir_aside" {
                    self.parsed.push((name.clone(), self.zone.clone()));
                }
                self.prepared.insert(name, Statement { text: query, zone_at_parse: self.zone.clone() });
                Ok(s::parse_complete())
            }
            b'B' => {
                let bind = read_bind(body).unwrap();
                let statement = self.statement(&text(bind.statement))?.clone();
                self.check_transaction(&statement.text)?;
                self.portals.insert(text(bind.portal), statement);
                Ok(s::bind_complete())
            }
            b'D' => match read_object(body).unwrap() {
                Object::Statement(name) => {
                    let statement = self.statement(&text(name))?.clone();
                    self.check_transaction(&statement.text)?;
                    let mut reply = s::parameters();
                    put(&mut reply, b'T', |o| put_cstr(o, statement.text.as_bytes()));
                    Ok(reply)
                }
                Object::Portal(_) => {
                    self.check_transaction("")?;
                    Ok(b"n\0\0\0\x04".to_vec())
                }
            },
            b'C' => {
                match read_object(body).unwrap() {
                    Object::Statement(name) => drop(self.prepared.remove(&text(name))),
                    Object::Portal(name) => drop(self.portals.remove(&text(name))),
                }
                Ok(s::close_complete())
            }
            _ => {
                let portal = text(read_execute(body).unwrap());
                let Some(statement) = self.portals.get(&portal).cloned() else {
                    return Err(("34000", format!("portal \"{portal}\" does not exist")));
                };
                self.run(&statement.text, Some(&statement.zone_at_parse))
            }
        }
    }

    fn statement(&self, name: &str) -> Result<&Statement, (&'static str, String)> {
        self.prepared
            .get(name)
            .ok_or_else(|| ("26000", format!("prepared statement \"{name}\" does not exist")))
    }

    /// `prepared`: under which time zone, if it was prepared by the protocol.
    fn run(&mut self, text: &str, prepared: Option<&str>) -> Reply {
        let simple = prepared.is_none();
        self.check_transaction(text)?;
        let words: Vec<&str> = text.split(' ').collect();
        if text.starts_with("SELECT pg_catalog.set_config(") {
            let described: &[u8] = if simple { &s::row_description() } else { b"" };
            let done = self.set_config(text)?;
            return Ok([described, &done].concat());
        }
        if text.starts_with("SELECT pg_catalog.current_setting(") {
            let row = self.current_settings(text);
            return Ok([row, s::complete("SELECT 1")].concat());
        }
        let done = |tag: &str| Ok(s::complete(tag));
        match words.as_slice() {
            ["begin" | "BEGIN"] => {
                self.boundary = Boundary::InTransaction;
                done("BEGIN")
            }
            ["commit"] if self.boundary == Boundary::InTransaction => {
                self.boundary = Boundary::Idle;
                self.zone_at_savepoint = None;
                self.zone_before.clone_from(&self.zone);
                done("COMMIT")
            }
            ["commit" | "rollback" | "ROLLBACK"] => {
                self.boundary = Boundary::Idle;
                self.zone_at_savepoint = None;
                self.zone.clone_from(&self.zone_before);
                done("ROLLBACK")
            }
            // The only one that is ever there is Weir's own.
            ["SAVEPOINT", _] if self.boundary == Boundary::InTransaction => {
                self.zone_at_savepoint = Some(self.zone.clone());
                done("SAVEPOINT")
            }
            ["ROLLBACK", "TO", "SAVEPOINT", name] => match &self.zone_at_savepoint {
                Some(zone) => {
                    self.zone.clone_from(zone);
                    self.boundary = Boundary::InTransaction;
                    done("ROLLBACK")
                }
                None => Err(("25P01", format!("no savepoint {name}"))),
            },
            ["RELEASE", "SAVEPOINT", _] if self.zone_at_savepoint.take().is_some() => done("RELEASE"),
            ["SAVEPOINT", name] | ["RELEASE", "SAVEPOINT", name] => {
                Err(("25P01", format!("no transaction for {name}")))
            }
            ["set", "timezone", "to", zone] => {
                self.zone = zone.trim_matches('\'').into();
                done("SET")
            }
            ["reset", "timezone"] => {
                self.zone.clone_from(&self.startup_zone);
                done("RESET")
            }
            ["show", "timezone"] => Ok([s::row(self.zone.as_bytes()), s::complete("SHOW")].concat()),
            ["select", "1/0"] => Err(("22012", "division by zero".into())),
            ["select", _] => {
                // Its literals were read when it was parsed.
                let read_in = prepared.filter(|_| text.contains('\''));
                let value = format!("{text}|{}|{}", read_in.unwrap_or(&self.zone), self.zone);
                Ok([s::row(value.as_bytes()), s::complete("SELECT 1")].concat())
            }
            ["deallocate", "all"] => {
                self.prepared.retain(|name, _| name.is_empty());
                done("DEALLOCATE ALL")
            }
            ["deallocate", name] | ["DEALLOCATE", name] => match self.prepared.remove(*name) {
                Some(_) => done("DEALLOCATE"),
                None => Err(("26000", format!("prepared statement \"{name}\" does not exist"))),
            },
            ["execute", name] => {
                let Statement { text: inner, zone_at_parse } = self.statement(name)?.clone();
                if inner.starts_with("execute") || inner.contains("copy") {
                    return Err(("0A000", "not in a prepared statement".into()));
                }
                self.run(&inner, Some(&zone_at_parse))
            }
            ["DISCARD", "SEQUENCES"] => done("DISCARD SEQUENCES"),
            ["DISCARD", "PLANS"] => done("DISCARD PLANS"),
            ["discard" | "DISCARD", _] => {
                if self.boundary != Boundary::Idle {
                    return Err(("25001", "DISCARD ALL cannot run inside a transaction block".into()));
                }
                self.prepared.retain(|name, _| name.is_empty());
                self.zone.clone_from(&self.startup_zone);
                self.listens = false;
                done("DISCARD ALL")
            }
            _ if text.starts_with("SELECT EXISTS (") => {
                // Nothing is prepared by SQL here.
                let is_there = |what: &str| self.listens && what.contains("pg_listening_channels");
                let values: Vec<&[u8]> = text
                    .split("EXISTS (")
                    .skip(1)
                    .map(|what| if is_there(what) { &b"t"[..] } else { b"f" })
                    .collect();
                Ok([s::row_description(), s::row_of(&values), s::complete("SELECT 1")].concat())
            }
            ["listen", _] => {
                self.listens = true;
                done("LISTEN")
            }
            ["unlisten", _] => {
                self.listens = false;
                done("UNLISTEN")
            }
            ["copy", ..] => {
                self.copying = if simple { Copying::Simple } else { Copying::Extended };
                Ok(s::copy_in())
            }
            _ => panic!("the server got {text:?}"),
        }
    }

    fn set_config(&mut self, text: &str) -> Reply {
        for call in text.split("pg_catalog.set_config(").skip(1) {
            let (name, value) = call.split_once(',').unwrap();
            if name == "E'weir.timezone'" {
                self.zone_kept.clone_from(&self.zone);
                continue;
            }
            if name != "E'timezone'" {
                continue;
            }
            // What is set for a transaction only is followed by a rollback here.
            let value = value.split_once(",false").or_else(|| value.split_once(",true"));
            self.zone = match value.unwrap().0 {
                "NULL" => self.startup_zone.clone(),
                kept if kept.contains("weir.timezone") => self.zone_kept.clone(),
                quoted => quoted.trim_start_matches("E'").trim_end_matches('\'').into(),
            };
        }
        Ok([s::row(b"x"), s::complete("SELECT 1")].concat())
    }

    fn current_settings(&self, text: &str) -> Vec<u8> {
        let value = |call: &str| if call.starts_with("E'timezone'") { self.zone.as_str() } else { "" };
        let values: Vec<&[u8]> =
            text.split("pg_catalog.current_setting(").skip(1).map(|call| value(call).as_bytes()).collect();
        s::row_of(&values)
    }

    /// Under which time zone a statement of Weir's was parsed here.
    pub fn zone_of(&self, name: &str) -> Option<&str> {
        self.prepared.get(name).map(|statement| statement.zone_at_parse.as_str())
    }
}
