//! Helpers of the tests: packets of a server written by hand, logins of both kinds, and the two steps of a
//! session: a client sends, a server answers.
//!
//! Owns: nothing of the product. Uses its public names only.
#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::Arc;
use weir_auth::Secret;
use weir_mysql::frame::{HEADER_BYTES, Header, put};
use weir_mysql::message::greeting::Greeting;
use weir_mysql::message::lenenc::{put_number, put_string};
use weir_mysql::message::response::HandshakeResponse;
use weir_mysql::message::{Capabilities, Command, status};
use weir_mysql::{Accept, Back, Connect, Front, Welcomes};
use weir_session::Accept as _;
use weir_session::AuthMethod;
use weir_session::Back as _;
use weir_session::Connect as _;
use weir_session::Front as _;
use weir_session::Welcomes as _;
use weir_session::login::{
    AcceptParams, AcceptStep, Admission, Changes, ConnectParams, ConnectStep, TlsOffer, TlsWish, Trust,
};
use weir_sql::catalogue::{Catalogue, Knowledge};
use weir_wire::{Boundary, Fault, Found, Needs, Owner, Step};

/// A small result, which several tests have a server send.
pub const COLUMNS: &[&str] = &["a", "b"];
pub const ROWS: &[&[&str]] = &[&["1", "one"], &["2", "two"]];

/// What a client of today has.
pub const MODERN: Capabilities = Capabilities::OFFERED
    .without(Capabilities::CONNECT_WITH_DB)
    .without(Capabilities::FOUND_ROWS)
    .without(Capabilities::IGNORE_SPACE)
    .without(Capabilities::INTERACTIVE);

/// What a client of MySQL 5.6 has.
pub const OLD: Capabilities =
    MODERN.without(Capabilities::DEPRECATE_EOF).without(Capabilities::SESSION_TRACK);

/// No transaction, autocommit.
pub const IDLE: u16 = status::AUTOCOMMIT;
/// In a transaction.
pub const OPEN: u16 = status::AUTOCOMMIT | status::IN_TRANS;

/// Steps that any of these conversations may take. One that needs more has no end.
pub const STEPS: usize = 100_000;

/// Packets of a client.
pub mod c {
    use super::{Command, put};

    pub fn command(command: Command, rest: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, 0, |out| {
            out.push(command as u8);
            out.extend_from_slice(rest);
        });
        out
    }
    pub fn query(text: &str) -> Vec<u8> {
        command(Command::Query, text.as_bytes())
    }
    pub fn prepare(text: &str) -> Vec<u8> {
        command(Command::StmtPrepare, text.as_bytes())
    }
    pub fn close(id: u32) -> Vec<u8> {
        command(Command::StmtClose, &id.to_le_bytes())
    }
    /// EXECUTE without parameters.
    pub fn execute(id: u32) -> Vec<u8> {
        command(Command::StmtExecute, &[&id.to_le_bytes()[..], &[0, 1, 0, 0, 0]].concat())
    }
    /// EXECUTE with one parameter, a number of eight bytes, whose type is said or not.
    pub fn execute_one(id: u32, typed: bool, value: u64) -> Vec<u8> {
        let types: &[u8] = if typed { &[1, 8, 0] } else { &[0] };
        let value = value.to_le_bytes();
        command(Command::StmtExecute, &[&id.to_le_bytes()[..], &[0, 1, 0, 0, 0, 0], types, &value].concat())
    }
    /// EXECUTE with one parameter that long data brought.
    pub fn execute_long(id: u32) -> Vec<u8> {
        command(Command::StmtExecute, &[&id.to_le_bytes()[..], &[0, 1, 0, 0, 0, 0, 1, 252, 0]].concat())
    }
    pub fn long_data(id: u32, data: &[u8]) -> Vec<u8> {
        command(Command::StmtSendLongData, &[&id.to_le_bytes()[..], &[0, 0], data].concat())
    }
    pub fn ping() -> Vec<u8> {
        command(Command::Ping, &[])
    }
}

/// Packets of a server with DEPRECATE_EOF and SESSION_TRACK.
pub mod s {
    use super::{Capabilities, IDLE, put, put_number, put_string, status};

    pub fn packet(seq: u8, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, seq, |out| out.extend_from_slice(payload));
        out
    }
    fn ending(first: u8, seq: u8, flags: u16, warnings: u16, changes: &[u8]) -> Vec<u8> {
        let mut payload = vec![first, 0, 0];
        let tracked = if changes.is_empty() { 0 } else { status::STATE_CHANGED };
        payload.extend_from_slice(&(flags | tracked).to_le_bytes());
        payload.extend_from_slice(&warnings.to_le_bytes());
        if !changes.is_empty() {
            put_string(&mut payload, b"");
            put_string(&mut payload, changes);
        }
        packet(seq, &payload)
    }
    pub fn ok_with(seq: u8, flags: u16, warnings: u16, changes: &[u8]) -> Vec<u8> {
        ending(0, seq, flags, warnings, changes)
    }
    pub fn ok(flags: u16) -> Vec<u8> {
        ok_with(1, flags, 0, b"")
    }
    /// OK to an INSERT.
    pub fn inserted(rows: u64, id: u64) -> Vec<u8> {
        let mut payload = vec![0];
        put_number(&mut payload, rows);
        put_number(&mut payload, id);
        payload.extend_from_slice(&[IDLE as u8, 0, 0, 0]);
        packet(1, &payload)
    }
    /// What ends rows.
    pub fn end(seq: u8, flags: u16, warnings: u16) -> Vec<u8> {
        end_with(seq, flags, warnings, b"")
    }
    pub fn end_with(seq: u8, flags: u16, warnings: u16, changes: &[u8]) -> Vec<u8> {
        ending(0xFE, seq, flags, warnings, changes)
    }
    /// An EOF packet of old.
    pub fn eof(seq: u8, flags: u16, warnings: u16) -> Vec<u8> {
        let [a, b] = warnings.to_le_bytes();
        let [c, d] = flags.to_le_bytes();
        packet(seq, &[0xFE, a, b, c, d])
    }
    pub fn err(seq: u8, code: u16, text: &str) -> Vec<u8> {
        let mut payload = vec![0xFF];
        payload.extend_from_slice(&code.to_le_bytes());
        payload.extend_from_slice(b"#42000");
        payload.extend_from_slice(text.as_bytes());
        packet(seq, &payload)
    }
    pub fn schema_change(name: &str) -> Vec<u8> {
        let (mut entry, mut out) = (Vec::new(), vec![1]);
        put_string(&mut entry, name.as_bytes());
        put_string(&mut out, &entry);
        out
    }
    pub fn state_change() -> Vec<u8> {
        vec![2, 1, b'1']
    }
    pub fn definition(seq: u8, name: &str) -> Vec<u8> {
        let mut payload = Vec::new();
        for text in ["def", "", "", "", name, ""] {
            put_string(&mut payload, text.as_bytes());
        }
        payload.extend_from_slice(&[12, 45, 0, 255, 0, 0, 0, 253, 0, 0, 0, 0, 0]);
        packet(seq, &payload)
    }
    pub fn row(seq: u8, values: &[&str]) -> Vec<u8> {
        let mut payload = Vec::new();
        values.iter().for_each(|value| put_string(&mut payload, value.as_bytes()));
        packet(seq, &payload)
    }
    /// A whole result whose first packet is number `seq`; also the number behind its last packet.
    pub fn result_at(
        seq: u8,
        columns: &[&str],
        rows: &[&[&str]],
        flags: u16,
        warnings: u16,
    ) -> (Vec<u8>, u8) {
        let mut next = seq..;
        let mut number = || next.next().unwrap_or_default();
        let mut out = packet(number(), &[columns.len() as u8]);
        columns.iter().for_each(|name| out.extend(definition(number(), name)));
        rows.iter().for_each(|values| out.extend(row(number(), values)));
        out.extend(end(number(), flags, warnings));
        (out, number())
    }
    pub fn result(columns: &[&str], rows: &[&[&str]]) -> Vec<u8> {
        result_at(1, columns, rows, IDLE, 0).0
    }
    /// The same result as a client without DEPRECATE_EOF reads it.
    pub fn old_result_at(
        seq: u8,
        columns: &[&str],
        rows: &[&[&str]],
        flags: u16,
        warnings: u16,
    ) -> (Vec<u8>, u8) {
        let mut next = seq..;
        let mut number = || next.next().unwrap_or_default();
        let mut out = packet(number(), &[columns.len() as u8]);
        columns.iter().for_each(|name| out.extend(definition(number(), name)));
        out.extend(eof(number(), flags, 0));
        rows.iter().for_each(|values| out.extend(row(number(), values)));
        out.extend(eof(number(), flags, warnings));
        (out, number())
    }
    /// The reply to a COM_STMT_PREPARE of a text with so many parameters and one column.
    pub fn prepared(id: u32, params: u16) -> Vec<u8> {
        let mut payload = vec![0];
        payload.extend_from_slice(&id.to_le_bytes());
        payload.extend_from_slice(&1_u16.to_le_bytes());
        payload.extend_from_slice(&params.to_le_bytes());
        payload.extend_from_slice(&[0, 0, 0]);
        let mut out = packet(1, &payload);
        (0..params).for_each(|n| out.extend(definition(2 + n as u8, "?")));
        out.extend(definition(2 + params as u8, "c"));
        out
    }
    /// What a server says of user variables: for each the type of its column, its length, its collation and
    /// its value as Weir asks for it.
    pub fn variables(told: &[(u8, u32, &str, Option<&str>)]) -> Vec<u8> {
        let count = told.len() as u8;
        let mut out = packet(1, &[count]);
        for (at, (code, length, collation, _)) in told.iter().enumerate() {
            let mut payload = Vec::new();
            for text in ["def", "", "", "", "@v", ""] {
                put_string(&mut payload, text.as_bytes());
            }
            let charset = if *collation == "binary" { 63 } else { 45 };
            payload.extend_from_slice(&[12, charset, 0]);
            payload.extend_from_slice(&length.to_le_bytes());
            payload.extend_from_slice(&[*code, 0, 0, 0, 0, 0]);
            out.extend(packet(2 + at as u8, &payload));
        }
        out.extend(end(2 + count, IDLE, 0));
        let mut row = Vec::new();
        for (_, _, collation, value) in told {
            put_string(&mut row, collation.as_bytes());
            match value {
                Some(value) => put_string(&mut row, value.as_bytes()),
                None => row.push(0xFB),
            }
        }
        out.extend(packet(1, &[2 * count]));
        (0..2 * count).for_each(|n| out.extend(definition(2 + n, "x")));
        out.extend(packet(2 + 2 * count, &row));
        out.extend(end(3 + 2 * count, IDLE, 0));
        out
    }
    /// What SHOW WARNINGS says of one error.
    pub fn warnings(code: &str, text: &str) -> Vec<u8> {
        result(&["Level", "Code", "Message"], &[&["Error", code, text]])
    }
    pub fn greeting(id: u32, version: &str, plugin: &str) -> Vec<u8> {
        greeting_with(id, version, plugin, Capabilities::default())
    }

    pub fn greeting_with(id: u32, version: &str, plugin: &str, more: Capabilities) -> Vec<u8> {
        let greeting = super::Greeting {
            version: version.as_bytes(),
            id,
            scramble: *b"abcdefghijklmnopqrst",
            capabilities: Capabilities::OFFERED.or(more),
            collation: 45,
            status: IDLE,
            plugin: plugin.as_bytes(),
        };
        let mut out = Vec::new();
        put(&mut out, 0, |out| greeting.write(out));
        out
    }
}

/// The packets in `bytes`, which must be whole: number and payload.
pub fn packets(bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while !rest.is_empty() {
        let header = Header::read(rest).expect("a whole header");
        found.push((header.seq, rest[HEADER_BYTES..header.total()].to_vec()));
        rest = &rest[header.total()..];
    }
    found
}

/// What a server was asked: texts as they are, other commands by name with their number of a statement.
pub fn asked(bytes: &[u8]) -> Vec<String> {
    let said = |payload: &[u8]| {
        let command = Command::from_code(payload[0]).expect("a command");
        match command {
            Command::Query => String::from_utf8_lossy(&payload[1..]).into_owned(),
            Command::StmtPrepare | Command::InitDb => {
                format!("{command:?} {}", String::from_utf8_lossy(&payload[1..]))
            }
            Command::StmtExecute
            | Command::StmtClose
            | Command::StmtReset
            | Command::StmtFetch
            | Command::StmtSendLongData => {
                format!("{command:?} {}", u32::from_le_bytes(payload[1..5].try_into().expect("four bytes")))
            }
            _ => format!("{command:?}"),
        }
    };
    packets(bytes)
        .iter()
        .inspect(|(seq, _)| assert_eq!(*seq, 0, "a command begins a conversation"))
        .map(|(_, payload)| said(payload))
        .collect()
}

/// errno and text of the only packet in `bytes`, which is an ERR.
pub fn error_in(bytes: &[u8]) -> (u16, String) {
    let found = packets(bytes);
    let [(_, payload)] = found.as_slice() else { panic!("{} packets", found.len()) };
    let err = weir_mysql::message::ok::ErrPacket::read(payload).expect("an ERR");
    assert_eq!(payload[0], 0xFF);
    (err.code, String::from_utf8_lossy(err.message).into_owned())
}

pub fn accept_params(id: u32, method: AuthMethod) -> AcceptParams {
    AcceptParams {
        id: id.into(),
        nonce: std::array::from_fn(|i| i as u8 + 33),
        unix: false,
        tls: TlsOffer::Off,
        secured: None,
        greeting: Arc::new(weir_mysql::message::greeting::before_any("9.7.4")),
        default_method: method,
        compression: true,
        rsa: None,
    }
}

pub fn connect_params(secret: Option<&str>) -> ConnectParams {
    ConnectParams {
        user: "app".into(),
        secret: secret.map(|text| Arc::new(Secret::plain(text))),
        database: String::new(),
        parameters: vec![("program_name".into(), "weir".into())],
        nonce: [9; 64],
        unix: false,
        tls: TlsWish::Off,
        trust: Trust { unproven: true, ..Trust::default() },
        cancel: None,
        variant: 0,
        max_prepared_statements: 10,
        changes: Changes::default(),
    }
}

/// The answers to the two questions with which Weir sets up a session, made from the questions.
pub fn set_up_answers(questions: &[u8], id: u32) -> Vec<u8> {
    let questions = packets(questions);
    let [_, (_, base)] = questions.as_slice() else { panic!("{} questions", questions.len()) };
    let text = std::str::from_utf8(&base[1..]).expect("a text");
    let names: Vec<&str> =
        text.strip_prefix("SELECT ").expect("a SELECT").trim_end_matches(" LIMIT 1").split(',').collect();
    let mut out = s::ok_with(1, IDLE, 0, &s::state_change());
    out.extend(s::packet(1, &[names.len() as u8]));
    let mut seq = 2;
    for name in &names {
        out.extend(s::definition(seq, name));
        seq += 1;
    }
    let mut row = Vec::new();
    for name in names {
        match name.trim_start_matches("@@session.") {
            "NULL" => row.push(0xFB),
            "@@global.init_connect<>''" => put_string(&mut row, b"0"),
            "CONNECTION_ID()" => put_string(&mut row, id.to_string().as_bytes()),
            "sql_mode" => put_string(&mut row, b"STRICT_TRANS_TABLES"),
            "time_zone" => put_string(&mut row, b"SYSTEM"),
            "transaction_isolation" | "tx_isolation" => put_string(&mut row, b"REPEATABLE-READ"),
            "lc_time_names" => put_string(&mut row, b"en_US"),
            "default_storage_engine" => put_string(&mut row, b"InnoDB"),
            _ => put_string(&mut row, b"1"),
        }
    }
    out.extend(s::packet(seq, &row));
    out.extend(s::end(seq + 1, IDLE, 0));
    out
}

/// A server that Weir has logged in to, with this connection id.
pub fn back_with(id: u32, params: ConnectParams, version: &str) -> Back {
    let (mut connect, mut out) = (Connect::new(params), Vec::new());
    let mut say = |bytes: &[u8], out: &mut Vec<u8>| {
        let mut rest = bytes;
        loop {
            let (used, step) = connect.handle_input(rest, out).expect("a login that goes through");
            rest = &rest[used..];
            match step {
                ConnectStep::LoggedIn => return true,
                ConnectStep::More if used == 0 => return false,
                ConnectStep::More => {}
                ConnectStep::Work(_) => panic!("no key was sent"),
                ConnectStep::Tls => panic!("TLS was not wished for"),
            }
        }
    };
    say(&s::greeting(id, version, "mysql_native_password"), &mut out);
    out.clear();
    say(&s::ok_with(2, IDLE, 0, b""), &mut out);
    let answers = set_up_answers(&out, id);
    assert!(say(&answers, &mut out), "logged in");
    connect.into_back()
}

pub fn back(id: u32) -> Back {
    let mut back = back_with(id, connect_params(None), "9.7.4");
    back.know(&knowledge());
    back
}

/// A database without code of its own, as all of a test know it.
pub fn knowledge() -> Arc<Knowledge> {
    thread_local! {
        static KNOWLEDGE: Arc<Knowledge> = Knowledge::settled(Catalogue::default());
    }
    KNOWLEDGE.with(Arc::clone)
}

/// A client that has proved itself and was not greeted yet.
pub fn client(id: u32, capabilities: Capabilities, database: Option<&str>) -> Front {
    let mut accept = Accept::new(accept_params(id, AuthMethod::Trust));
    let mut out = Vec::new();
    accept.start(&mut out);
    out.clear();
    let capabilities = match database {
        Some(_) => capabilities.or(Capabilities::CONNECT_WITH_DB),
        None => capabilities,
    };
    let response = HandshakeResponse {
        capabilities,
        max_packet_bytes: 1 << 24,
        collation: 45,
        user: b"app",
        answer: b"",
        database: database.map(str::as_bytes),
        plugin: Some(b"caching_sha2_password"),
        attributes: b"",
        zstd_level: 0,
    };
    put(&mut out, 1, |out| response.write(out));
    let (used, step) = accept.handle_input(&out, &mut Vec::new()).expect("a handshake response");
    assert!(used == out.len() && matches!(step, AcceptStep::Lookup(_)));
    let admission = Admission { method: AuthMethod::Trust, secret: None, names: None };
    let step = accept.handle_lookup(admission, &mut Vec::new()).expect("admitted");
    assert!(matches!(step, AcceptStep::LoggedIn));
    accept.into_front()
}

/// A client that was greeted by the pool of `back`.
pub fn front(id: u32, capabilities: Capabilities, back: &mut Back) -> Front {
    let mut front = client(id, capabilities, None);
    front.know(&knowledge());
    let mut out = Vec::new();
    back.dispatch_welcome(&mut front, 900, &mut out).expect("a welcome");
    let got = receive(back, Some(&mut front), &[]);
    assert!(out.is_empty() && got.to_server.is_empty(), "nothing has to be asked");
    assert_eq!(got.done, [(900, Boundary::Idle)]);
    let mut welcomes = Welcomes::default();
    assert!(welcomes.record(&mut front, back));
    assert!(welcomes.greet(&mut front, &mut out));
    assert_eq!(packets(&out)[0].1[0], 0, "an OK");
    front
}

/// What sending came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Sent {
    pub to_server: Vec<u8>,
    pub to_client: Vec<u8>,
    pub found: Vec<Found>,
    pub used: usize,
}

/// Finds and dispatches what is in `bytes`.
///
/// # Errors
/// Those of the front and the back.
pub fn try_send(front: &mut Front, back: &mut Back, owner: Owner, bytes: &[u8]) -> Result<Sent, Fault> {
    let mut sent = Sent::default();
    for _ in 0..STEPS {
        let rest = &bytes[sent.used..];
        let found = front.find(rest, &mut sent.to_client)?;
        let (len, dispatched): (usize, Option<(Needs, bool)>) = match found {
            Found::Incomplete | Found::Goodbye | Found::Login { .. } => {
                if found != Found::Incomplete {
                    sent.found.push(found);
                }
                return Ok(sent);
            }
            Found::Drop { len } | Found::Answered { len } => (len, None),
            Found::Kill { len, .. } => {
                front.killed(weir_session::login::KillOutcome::Killed, &mut sent.to_client);
                (len, None)
            }
            Found::Request { len, needs } => (len, Some((needs, true))),
            Found::Part { len, needs } => (len, Some((needs, false))),
        };
        sent.found.push(found);
        let now = &rest[..len];
        sent.used += len;
        match dispatched {
            Some((needs, whole)) if needs.continues => back.extend(front, now, whole, &mut sent.to_server)?,
            Some((_, whole)) => back.dispatch(front, owner, now, whole, &mut sent.to_server)?,
            None => {}
        }
    }
    panic!("a client's bytes without end");
}

/// Finds and dispatches everything in `bytes`.
pub fn send(front: &mut Front, back: &mut Back, owner: Owner, bytes: &[u8]) -> Sent {
    let sent = try_send(front, back, owner, bytes).expect("a request");
    assert_eq!(sent.used, bytes.len(), "all of it is found");
    sent
}

/// What receiving came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Got {
    pub to_client: Vec<u8>,
    pub to_server: Vec<u8>,
    pub done: Vec<(Owner, Boundary)>,
    /// Bytes that went through as they were.
    pub forwarded: usize,
    pub used: usize,
}

/// Gives a server's bytes to the back, for one client.
///
/// # Errors
/// Those of the back.
pub fn try_receive(back: &mut Back, mut front: Option<&mut Front>, bytes: &[u8]) -> Result<Got, Fault> {
    let mut got = Got::default();
    for _ in 0..STEPS {
        let rest = &bytes[got.used..];
        let step = back.handle_reply(front.as_deref_mut(), rest, &mut got.to_client, &mut got.to_server)?;
        match step {
            Step::Forward(n) => {
                got.to_client.extend_from_slice(&rest[..n]);
                got.used += n;
                got.forwarded += n;
            }
            Step::Consumed(n) => got.used += n,
            Step::Done { owner, boundary } => got.done.push((owner, boundary)),
            Step::Incomplete => return Ok(got),
        }
    }
    panic!("a server's bytes without end");
}

/// Gives a server's bytes to the back; all of them are dealt with.
pub fn receive(back: &mut Back, front: Option<&mut Front>, bytes: &[u8]) -> Got {
    let got = try_receive(back, front, bytes).expect("a reply");
    assert_eq!(got.used, bytes.len(), "bytes are left");
    got
}

/// One request, sent as it is, and its reply.
pub fn exchange(front: &mut Front, back: &mut Back, request: &[u8], reply: &[u8]) -> Vec<u8> {
    let sent = send(front, back, 1, request);
    assert_eq!(sent.to_server, request, "nothing goes ahead");
    let got = receive(back, Some(front), reply);
    assert_eq!(got.done.len(), 1, "one reply");
    assert!(got.to_server.is_empty(), "nothing is asked: {:?}", asked(&got.to_server));
    got.to_client
}
