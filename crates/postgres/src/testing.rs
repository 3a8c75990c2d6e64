//! Helpers of the tests: messages written by hand, and a bench that joins a front and a back.

use crate::back::Back;
use crate::cancel::{ClientKey, ServerKey};
use crate::effects::Effects;
use crate::frame::{put, put_cstr};
use crate::front::Front;
use crate::message::query::{put_parse, put_query, put_statement};
use crate::session_state::{Reported, Settings};
use std::sync::Arc;
use weir_session::Front as _;
use weir_sql::catalogue::{Catalogue, Knowledge};
use weir_wire::{Boundary, Fault, Found, Owner, Step};

pub fn front_with(id: u32, settings: &[(&str, &str)]) -> Front {
    let pairs = settings.iter().map(|(n, v)| ((*n).to_owned(), v.as_bytes().to_vec()));
    let mut front =
        Front::new(id, ClientKey::new(&[id as u8; 32], false), Settings::from_pairs(pairs).unwrap());
    front.know(&Knowledge::settled(Catalogue::default()));
    front
}

pub fn front(id: u32) -> Front {
    front_with(id, &[])
}

pub fn reported() -> Reported {
    let mut reported = Reported::default();
    for (name, value) in [
        ("server_version", "15.6"),
        ("client_encoding", "UTF8"),
        ("TimeZone", "UTC"),
        ("DateStyle", "ISO, MDY"),
        ("standard_conforming_strings", "on"),
        ("application_name", ""),
    ] {
        reported.set(name, value.as_bytes());
    }
    reported
}

pub fn back() -> Back {
    back_with_room_for(100)
}

/// The same for so many prepared statements.
pub fn back_with_room_for(statements: usize) -> Back {
    Back::new(ServerKey::new(77, b"keyk"), reported(), statements)
}

/// Messages of a client.
pub mod c {
    use super::*;

    pub fn q(text: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_query(&mut out, text.as_bytes());
        out
    }
    pub fn parse(name: &str, text: &str) -> Vec<u8> {
        let mut content = text.as_bytes().to_vec();
        content.extend_from_slice(&[0, 0, 0]);
        let mut out = Vec::new();
        put_parse(&mut out, name.as_bytes(), &content);
        out
    }
    pub fn bind_to(portal: &str, statement: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'B', |o| {
            put_cstr(o, portal.as_bytes());
            put_cstr(o, statement.as_bytes());
            o.extend_from_slice(&[0; 6]);
        });
        out
    }
    pub fn bind(statement: &str) -> Vec<u8> {
        bind_to("", statement)
    }
    pub fn describe(statement: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_statement(&mut out, b'D', statement.as_bytes());
        out
    }
    pub fn describe_portal() -> Vec<u8> {
        b"D\0\0\0\x06P\0".to_vec()
    }
    pub fn close(statement: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put_statement(&mut out, b'C', statement.as_bytes());
        out
    }
    pub fn execute() -> Vec<u8> {
        execute_of("")
    }
    pub fn execute_of(portal: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'E', |o| {
            put_cstr(o, portal.as_bytes());
            o.extend_from_slice(&[0; 4]);
        });
        out
    }
    pub fn sync() -> Vec<u8> {
        b"S\0\0\0\x04".to_vec()
    }
    pub fn flush() -> Vec<u8> {
        b"H\0\0\0\x04".to_vec()
    }
    pub fn copy_data(bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'd', |o| o.extend_from_slice(bytes));
        out
    }
    pub fn copy_done() -> Vec<u8> {
        b"c\0\0\0\x04".to_vec()
    }
    pub fn function_call() -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'F', |o| o.extend_from_slice(&[0, 0, 0, 9, 0, 0, 0, 0, 0, 1]));
        out
    }
}

/// Messages of a server.
pub mod s {
    use super::*;

    fn small(tag: u8) -> Vec<u8> {
        vec![tag, 0, 0, 0, 4]
    }
    pub fn parse_complete() -> Vec<u8> {
        small(b'1')
    }
    /// For a named statement: what Weir asks behind its Parse is answered, too.
    pub fn named_parsed() -> Vec<u8> {
        [parse_complete(), parameters(), no_data()].concat()
    }
    pub fn no_data() -> Vec<u8> {
        small(b'n')
    }
    pub fn bind_complete() -> Vec<u8> {
        small(b'2')
    }
    pub fn close_complete() -> Vec<u8> {
        small(b'3')
    }
    pub fn parameters() -> Vec<u8> {
        b"t\0\0\0\x06\0\0".to_vec()
    }
    pub fn row_description() -> Vec<u8> {
        b"T\0\0\0\x06\0\0".to_vec()
    }
    pub fn row(value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'D', |o| {
            o.extend_from_slice(&[0, 1]);
            o.extend_from_slice(&(value.len() as u32).to_be_bytes());
            o.extend_from_slice(value);
        });
        out
    }
    pub fn row_of(values: &[&[u8]]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'D', |o| {
            o.extend_from_slice(&(values.len() as u16).to_be_bytes());
            for value in values {
                o.extend_from_slice(&(value.len() as u32).to_be_bytes());
                o.extend_from_slice(value);
            }
        });
        out
    }
    pub fn complete(tag: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'C', |o| put_cstr(o, tag.as_bytes()));
        out
    }
    pub fn error(code: &str, message: &str) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'E', |o| {
            for (field, text) in [(b'S', "ERROR"), (b'V', "ERROR"), (b'C', code), (b'M', message)] {
                o.push(field);
                put_cstr(o, text.as_bytes());
            }
            o.push(0);
        });
        out
    }
    pub fn fatal(code: &str, message: &str) -> Vec<u8> {
        let text = String::from_utf8(error(code, message)).unwrap();
        text.replace("ERROR", "FATAL").into_bytes()
    }
    pub fn notice(message: &str) -> Vec<u8> {
        let mut out = error("00000", message);
        out[0] = b'N';
        out
    }
    pub fn notification() -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, b'A', |o| o.extend_from_slice(b"\0\0\0\x07channel\0payload\0"));
        out
    }
    pub fn parameter(name: &str, value: &str) -> Vec<u8> {
        let mut out = Vec::new();
        crate::message::reply::put_parameter(&mut out, name, value.as_bytes());
        out
    }
    pub fn ready(boundary: Boundary) -> Vec<u8> {
        let mut out = Vec::new();
        crate::message::reply::put_ready(&mut out, boundary);
        out
    }
    pub fn idle() -> Vec<u8> {
        ready(Boundary::Idle)
    }
    pub fn in_transaction() -> Vec<u8> {
        ready(Boundary::InTransaction)
    }
    pub fn failed() -> Vec<u8> {
        ready(Boundary::Failed)
    }
    pub fn copy_in() -> Vec<u8> {
        b"G\0\0\0\x07\0\0\0".to_vec()
    }
    pub fn copy_out() -> Vec<u8> {
        b"H\0\0\0\x07\0\0\0".to_vec()
    }
    pub fn copy_data(bytes: &[u8]) -> Vec<u8> {
        super::c::copy_data(bytes)
    }
    pub fn copy_done() -> Vec<u8> {
        super::c::copy_done()
    }
    pub fn function_result() -> Vec<u8> {
        b"V\0\0\0\x08\xff\xff\xff\xff".to_vec()
    }
    /// What the query that brings settings is answered with.
    pub fn settings_done() -> Vec<u8> {
        [row_description(), row(b"x"), complete("SELECT 1"), idle()].concat()
    }
}

/// The types of the messages in `bytes`, with names of statements: what a server was sent or a client got.
pub fn tags(bytes: &[u8]) -> String {
    let mut text = String::new();
    let mut rest = bytes;
    while rest.len() >= 5 {
        let total = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize + 1;
        text.push(char::from(rest[0]));
        rest = &rest[total..];
    }
    assert!(rest.is_empty(), "a message is cut: {rest:?}");
    text
}

/// Finds and dispatches everything in `bytes`; what is found is listed.
pub fn send(front: &mut Front, back: &mut Back, owner: Owner, bytes: &[u8]) -> Sent {
    try_send(front, back, owner, bytes, &Arc::default()).unwrap()
}

/// The same, and every text has these effects, whatever the lexer says.
pub fn send_with(front: &mut Front, back: &mut Back, bytes: &[u8], effects: &Arc<Effects>) -> Sent {
    try_send(front, back, 1, bytes, effects).unwrap()
}

#[derive(Debug, Default)]
pub struct Sent {
    pub to_server: Vec<u8>,
    pub to_client: Vec<u8>,
    pub found: Vec<Found>,
    pub dispatched: usize,
}

pub fn try_send(
    front: &mut Front,
    back: &mut Back,
    owner: Owner,
    bytes: &[u8],
    effects: &Arc<Effects>,
) -> Result<Sent, Fault> {
    let mut sent = Sent::default();
    let mut rest = bytes;
    loop {
        let found = front.find(rest, &mut sent.to_client)?;
        sent.found.push(found);
        let (len, needs, whole) = match found {
            Found::Incomplete | Found::Goodbye => return Ok(sent),
            Found::Drop { len } | Found::Answered { len } => {
                rest = &rest[len..];
                continue;
            }
            Found::Request { len, needs } => (len, needs, true),
            Found::Part { len, needs } => (len, needs, false),
            Found::Kill { .. } | Found::Login { .. } => panic!("not in PostgreSQL"),
        };
        let (now, later) = rest.split_at(len);
        rest = later;
        front.replace_texts(effects);
        if needs.continues {
            back.extend(front, now, whole, &mut sent.to_server)?;
        } else {
            sent.dispatched += 1;
            back.dispatch(front, owner, now, whole, &mut sent.to_server)?;
        }
    }
}

#[derive(Debug, Default)]
pub struct Got {
    pub to_client: Vec<u8>,
    pub to_server: Vec<u8>,
    pub done: Vec<(Owner, Boundary)>,
    pub forwards: usize,
    pub used: usize,
}

/// Feeds a server's bytes, all of which must be dealt with, for one client.
pub fn receive(back: &mut Back, front: Option<&mut Front>, bytes: &[u8]) -> Got {
    let got = try_receive(back, front, bytes).unwrap();
    assert_eq!(got.used, bytes.len(), "bytes are left");
    got
}

pub fn try_receive(back: &mut Back, mut front: Option<&mut Front>, bytes: &[u8]) -> Result<Got, Fault> {
    let mut got = Got::default();
    loop {
        let rest = &bytes[got.used..];
        let step = back.handle_reply(front.as_deref_mut(), rest, &mut got.to_client, &mut got.to_server)?;
        match step {
            Step::Forward(n) => {
                got.to_client.extend_from_slice(&rest[..n]);
                got.used += n;
                got.forwards += 1;
            }
            Step::Consumed(n) => got.used += n,
            Step::Done { owner, boundary } => got.done.push((owner, boundary)),
            Step::Incomplete => return Ok(got),
        }
        assert!(back.queue.is_consistent());
    }
}
