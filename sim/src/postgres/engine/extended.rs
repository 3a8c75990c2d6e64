//! The extended query protocol: Parse, Bind, Describe, Execute, Close, Sync, and FunctionCall.

use super::{Engine, Portal, Transaction, columns};
use crate::postgres::sql::{self, Command, Statement};
use crate::postgres::wire::{put, put_description, take_text, take_u16, take_u32};

impl Engine {
    pub(super) fn parse(&mut self, body: &[u8]) -> Option<()> {
        let mut rest = body;
        let name = take_text(&mut rest)?.to_owned();
        let text = take_text(&mut rest)?;
        let types = take_u16(&mut rest)?;
        for _ in 0..types {
            take_u32(&mut rest)?;
        }
        if !rest.is_empty() {
            return None;
        }
        let statements = sql::split(text);
        if statements.len() > 1 {
            self.fail("42601", "cannot insert multiple commands into a prepared statement", true);
            return Some(());
        }
        let statement = Statement::read(statements.first().map_or("", String::as_str));
        // An empty one may be prepared there (`exec_parse_message`).
        if statement.command != Command::Empty && self.refuses(&statement) {
            return Some(());
        }
        if statement.command == Command::Unknown {
            self.unknown(&statement);
            self.fail("42601", &format!("syntax error in {}", statement.id), true);
            return Some(());
        }
        if !name.is_empty() && self.statements.contains_key(&name) {
            self.fail("42P05", &format!("prepared statement \"{name}\" already exists"), true);
            return Some(());
        }
        self.statements.insert(name, statement);
        put(&mut self.held, b'1', b"");
        Some(())
    }

    pub(super) fn bind(&mut self, body: &[u8]) -> Option<()> {
        let mut rest = body;
        let portal = take_text(&mut rest)?.to_owned();
        let name = take_text(&mut rest)?.to_owned();
        for _ in 0..take_u16(&mut rest)? {
            take_u16(&mut rest)?;
        }
        let mut values = Vec::new();
        for _ in 0..take_u16(&mut rest)? {
            let n = take_u32(&mut rest)? as usize;
            let (value, behind) = rest.split_at_checked(n)?;
            values.push(String::from_utf8_lossy(value).into_owned());
            rest = behind;
        }
        for _ in 0..take_u16(&mut rest)? {
            take_u16(&mut rest)?;
        }
        if !rest.is_empty() {
            return None;
        }
        let Some(statement) = self.statements.get(&name).cloned() else {
            let text = match name.as_str() {
                "" => "unnamed prepared statement does not exist".to_owned(),
                name => format!("prepared statement \"{name}\" does not exist"),
            };
            self.fail("26000", &text, true);
            return Some(());
        };
        if self.refuses(&statement) {
            return Some(());
        }
        if values.len() != statement.parameters() {
            self.fail("08P01", "the number of parameters is wrong", true);
            return Some(());
        }
        if !portal.is_empty() && self.portals.contains_key(&portal) {
            self.fail("42P03", &format!("cursor \"{portal}\" already exists"), true);
            return Some(());
        }
        self.portals.insert(portal, Portal { statement, values, given: 0 });
        put(&mut self.held, b'2', b"");
        Some(())
    }

    pub(super) fn describe(&mut self, body: &[u8]) -> Option<()> {
        let (&what, mut rest) = body.split_first()?;
        let name = take_text(&mut rest)?.to_owned();
        let statement = match what {
            b'S' => self.statements.get(&name).cloned(),
            b'P' => self.portals.get(&name).map(|portal| portal.statement.clone()),
            _ => return None,
        };
        let Some(statement) = statement else {
            let (code, kind) =
                if what == b'S' { ("26000", "prepared statement") } else { ("34000", "portal") };
            self.fail(code, &format!("{kind} \"{name}\" does not exist"), true);
            return Some(());
        };
        if self.refuses(&statement) {
            return Some(());
        }
        if what == b'S' {
            let mut body = (statement.parameters() as u16).to_be_bytes().to_vec();
            (0..statement.parameters()).for_each(|_| body.extend_from_slice(&25u32.to_be_bytes()));
            put(&mut self.held, b't', &body);
        }
        if statement.has_rows() {
            put_description(&mut self.held, &columns(&statement));
        } else {
            put(&mut self.held, b'n', b"");
        }
        Some(())
    }

    pub(super) fn execute(&mut self, body: &[u8], now_ns: u64) -> Option<()> {
        let mut rest = body;
        let name = take_text(&mut rest)?.to_owned();
        let rows = take_u32(&mut rest)? as usize;
        let Some(portal) = self.portals.get(&name).cloned() else {
            self.fail("34000", &format!("portal \"{name}\" does not exist"), true);
            return Some(());
        };
        if self.refuses(&portal.statement) {
            return Some(());
        }
        if portal.given > 0 && !portal.statement.has_rows() {
            self.fail("55000", &format!("portal \"{name}\" cannot be run"), true);
            return Some(());
        }
        self.begin(portal.statement, portal.values, Some((name, rows)), now_ns);
        Some(())
    }

    pub(super) fn close(&mut self, body: &[u8]) -> Option<()> {
        let (&what, mut rest) = body.split_first()?;
        let name = take_text(&mut rest)?;
        match what {
            b'S' => drop(self.statements.remove(name)),
            b'P' => drop(self.portals.remove(name)),
            _ => return None,
        }
        put(&mut self.held, b'3', b"");
        Some(())
    }

    pub(super) fn sync(&mut self) {
        self.skips = false;
        self.end_implicit();
        self.ready();
    }

    pub(super) fn function_call(&mut self, body: &[u8]) -> Option<()> {
        let mut rest = body;
        let function = take_u32(&mut rest)?;
        if self.transaction == Transaction::Failed {
            self.fail("25P02", "current transaction is aborted", false);
            return Some(());
        }
        let value = format!("function {function}");
        let mut reply = (value.len() as u32).to_be_bytes().to_vec();
        reply.extend_from_slice(value.as_bytes());
        put(&mut self.held, b'V', &reply);
        self.end_implicit();
        self.ready();
        Some(())
    }
}
