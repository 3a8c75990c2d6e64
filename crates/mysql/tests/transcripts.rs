//! Conversations of a session, replayed: split at every byte, the result is the same; with any byte changed
//! they end, with or without a fault, and nothing panics.

mod common;

use common::{IDLE, MODERN, OLD, OPEN, STEPS, back, c, connect_params, front, s, set_up_answers};
use std::sync::Arc;
use weir_auth::job::RsaKey;
use weir_auth::{Secret, caching_sha2, native};
use weir_mysql::frame::{HEADER_BYTES, Header, put};
use weir_mysql::message::response::HandshakeResponse;
use weir_mysql::message::{Capabilities, Command, status};
use weir_mysql::{Accept, Connect};
use weir_session::Accept as _;
use weir_session::AuthMethod;
use weir_session::Back as _;
use weir_session::Connect as _;
use weir_session::Front as _;
use weir_session::login::{AcceptParams, AcceptStep, Admission, ConnectParams, ConnectStep, TlsWish, Trust};
use weir_wire::{Fault, Owner};

/// What one side says.
#[derive(Debug, Clone)]
enum Line {
    Client(Vec<u8>),
    Server(Vec<u8>),
}

use Line::{Client, Server};

impl Line {
    fn bytes(&self) -> &[u8] {
        let (Client(bytes) | Server(bytes)) = self;
        bytes
    }

    fn bytes_mut(&mut self) -> &mut Vec<u8> {
        let (Client(bytes) | Server(bytes)) = self;
        bytes
    }
}

/// All that came out, on either side.
#[derive(Debug, Default, PartialEq, Eq)]
struct Said {
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    done: usize,
    reusable: bool,
    pins: bool,
}

/// Pieces in which a line arrives.
#[derive(Debug, Clone, Copy)]
enum Cut {
    Nowhere,
    /// Before this byte of all lines together.
    At(usize),
    Everywhere,
}

/// The pieces of a line that begins at byte `start` of the conversation.
fn pieces(bytes: &[u8], start: usize, cut: Cut) -> Vec<&[u8]> {
    match cut {
        Cut::At(at) if at > start && at < start + bytes.len() => {
            let (a, b) = bytes.split_at(at - start);
            vec![a, b]
        }
        Cut::Nowhere | Cut::At(_) => vec![bytes],
        Cut::Everywhere => bytes.chunks(1).collect(),
    }
}

// ---- Sessions --------------------------------------------------------------------------------------------

struct Session {
    name: &'static str,
    capabilities: Capabilities,
    /// The server changes in the middle: before this line.
    moves_at: Option<usize>,
    lines: Vec<Line>,
}

const OWNER: Owner = 1;

/// Plays a session. What neither side has made use of at the end of a line stays for the next.
fn play(session: &Session, cut: Cut) -> Result<Said, Fault> {
    let (mut here, mut next) = (back(7), session.moves_at.map(|_| back(8)));
    let mut front = front(1, session.capabilities, &mut here);
    let mut said = Said::default();
    let (mut from_client, mut from_server) = (Vec::new(), Vec::new());
    let mut start = 0;
    for (n, line) in session.lines.iter().enumerate() {
        if session.moves_at == Some(n)
            && let Some(other) = next.take()
        {
            here = other;
            from_server.clear();
        }
        for piece in pieces(line.bytes(), start, cut) {
            match line {
                Client(_) => from_client.extend_from_slice(piece),
                Server(_) => from_server.extend_from_slice(piece),
            }
            // Each side until neither goes on: a request may wait for the end of the one before.
            loop {
                let sent = common::try_send(&mut front, &mut here, OWNER, &from_client)?;
                from_client.drain(..sent.used);
                said.to_client.extend_from_slice(&sent.to_client);
                said.to_server.extend_from_slice(&sent.to_server);
                let got = common::try_receive(&mut here, Some(&mut front), &from_server)?;
                from_server.drain(..got.used);
                said.to_client.extend_from_slice(&got.to_client);
                said.to_server.extend_from_slice(&got.to_server);
                said.done += got.done.len();
                if sent.used + got.used + got.done.len() == 0 {
                    break;
                }
            }
        }
        start += line.bytes().len();
    }
    if !session.capabilities.has(Capabilities::DEPRECATE_EOF) {
        said.to_client = without_more_results(&said.to_client);
    }
    said.reusable = here.is_reusable();
    said.pins = !front.pins().is_empty();
    Ok(said)
}

/// EOF packets without the flag of further results: behind column definitions it is only there when all of
/// the result was at hand.
fn without_more_results(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while let Some(header) = out.get(at..).and_then(Header::read) {
        if let Some(&mut [0xFE, _, _, ref mut low, _]) = out.get_mut(at + HEADER_BYTES..at + header.total()) {
            *low &= !(status::MORE_RESULTS as u8);
        }
        at += header.total();
    }
    out
}

fn ask(text: &str, reply: Vec<u8>) -> [Line; 2] {
    [Client(c::query(text)), Server(reply)]
}

fn results(flags: u16) -> Vec<u8> {
    let more = flags | status::MORE_RESULTS;
    let (mut reply, seq) = s::result_at(1, &["a", "b"], &[&["1", "one"], &["2", "two"]], more, 0);
    reply.extend(s::ok_with(seq, more, 0, b""));
    reply.extend(s::result_at(seq + 1, &["c"], &[], flags, 0).0);
    reply
}

fn texts(name: &'static str, capabilities: Capabilities) -> Session {
    let mut lines = Vec::new();
    lines.extend(ask("SELECT a FROM t", s::result(&["a"], &[&["1"]])));
    lines.extend(ask("SELECT a, b FROM t; DELETE FROM t WHERE a = 1; SELECT c FROM t", results(IDLE)));
    lines.extend(ask("BEGIN", s::ok(OPEN)));
    lines.extend(ask("SELECT a FROM t", s::result_at(1, &["a"], &[&["1"]], OPEN, 0).0));
    lines.extend(ask("COMMIT", s::ok(IDLE)));
    lines.extend(ask("SELECT a FROM none", s::err(1, 1146, "no such table")));
    lines.push(Server(s::ok(IDLE)));
    lines.push(Server(s::warnings("1146", "no such table")));
    lines.push(Client(c::query("SHOW WARNINGS")));
    lines.extend(ask("INSERT INTO t VALUES (1)", s::inserted(1, 42)));
    // What LAST_INSERT_ID() is now.
    lines.push(Server(s::result(&["made", "left"], &[&["42", "0"]])));
    lines.extend(ask("SELECT CONNECTION_ID(), ROW_COUNT()", s::result(&["a", "b"], &[&["1", "1"]])));
    lines.push(Client(c::ping()));
    lines.push(Server(s::ok(IDLE)));
    lines.push(Client(c::query("KILL 9")));
    Session { name, capabilities, moves_at: None, lines }
}

fn moving() -> Session {
    let mut lines = Vec::new();
    lines.extend(ask("SET sql_mode = 'ANSI'", s::ok_with(1, IDLE, 0, &s::state_change())));
    let there = s::ok_with(1, IDLE, 0, &[s::schema_change("other"), s::state_change()].concat());
    lines.extend(ask("USE other", there.clone()));
    lines.push(Client(c::prepare("SELECT c FROM t WHERE a = ?")));
    lines.push(Server(s::prepared(70, 1)));
    let moves_at = Some(lines.len());
    lines.push(Client(c::long_data(1, b"some data")));
    lines.push(Client(c::execute_long(1)));
    // SET, the schema, and the statement.
    lines.push(Server([s::ok(IDLE), there, s::prepared(80, 1)].concat()));
    lines.push(Server(s::result(&["c"], &[&["x"]])));
    lines.push(Client([c::close(1), c::execute(1)].concat()));
    Session { name: "a statement that moves", capabilities: MODERN, moves_at, lines }
}

fn file() -> Session {
    let mut lines = Vec::new();
    lines.extend(ask("LOAD DATA LOCAL INFILE 'f' INTO TABLE t", s::packet(1, b"\xFBf")));
    lines.push(Client([s::packet(2, b"a,b\n"), s::packet(3, b"")].concat()));
    lines.push(Server(s::ok_with(4, IDLE, 0, b"")));
    // What LAST_INSERT_ID() is now.
    lines.push(Server(s::result(&["a", "b"], &[&["41", "0"]])));
    lines.extend(ask("SELECT a FROM t", s::packet(1, b"\xFB/etc/passwd")));
    lines.push(Server(s::ok_with(3, IDLE, 0, b"")));
    Session { name: "files", capabilities: MODERN, moves_at: None, lines }
}

fn reset() -> Session {
    let mut lines = Vec::new();
    lines.extend(ask("SET @`x ` = 1", s::ok_with(1, IDLE, 0, &s::state_change())));
    lines.push(Client(c::command(Command::ResetConnection, &[])));
    lines.push(Server(s::ok(IDLE).repeat(2)));
    lines.push(Client(c::command(Command::SetOption, &[1, 0])));
    lines.push(Client(c::query("SELECT a FROM t")));
    lines.push(Server(s::ok(IDLE).repeat(3)));
    Session { name: "resets", capabilities: OLD, moves_at: None, lines }
}

fn sessions() -> Vec<Session> {
    vec![texts("texts", MODERN), texts("texts of an old client", OLD), moving(), file(), reset()]
}

/// Bytes of all lines.
fn len(lines: &[Line]) -> usize {
    lines.iter().map(|line| line.bytes().len()).sum()
}

/// The byte at this place of the conversation.
fn byte_mut(lines: &mut [Line], mut at: usize) -> &mut u8 {
    for line in lines {
        let len = line.bytes().len();
        if at < len {
            return &mut line.bytes_mut()[at];
        }
        at -= len;
    }
    panic!("behind the end");
}

#[test]
fn sessions_go_as_they_are_written() {
    for session in sessions() {
        let said = play(&session, Cut::Nowhere).expect(session.name);
        assert!(said.reusable && !said.pins, "{}", session.name);
        assert!(said.done >= 2 && !said.to_client.is_empty(), "{}", session.name);
    }
}

#[test]
fn sessions_cut_at_every_byte_come_to_the_same() {
    for session in sessions() {
        let whole = play(&session, Cut::Nowhere);
        assert_eq!(play(&session, Cut::Everywhere), whole, "{}", session.name);
        for at in 1..len(&session.lines) {
            assert_eq!(play(&session, Cut::At(at)), whole, "{} cut at {at}", session.name);
        }
    }
}

#[test]
fn sessions_with_a_wrong_byte_end() {
    let mut faults = 0;
    for mut session in sessions() {
        for at in 0..len(&session.lines) {
            let right = *byte_mut(&mut session.lines, at);
            for wrong in [right ^ 1, 0xFE, 0xFF] {
                *byte_mut(&mut session.lines, at) = wrong;
                faults += usize::from(play(&session, Cut::Nowhere).is_err());
            }
            *byte_mut(&mut session.lines, at) = right;
        }
    }
    assert!(faults > 1000, "hardly anything was noticed: {faults}");
}

#[test]
fn sessions_that_break_off_are_no_fault() {
    for session in sessions() {
        for lines in 0..session.lines.len() {
            let short = Session { lines: session.lines[..lines].to_vec(), ..session };
            assert!(play(&short, Cut::Nowhere).is_ok(), "{} of {}", lines, session.name);
        }
    }
}

// ---- Logins ----------------------------------------------------------------------------------------------

fn accept_params() -> AcceptParams {
    AcceptParams { unix: true, ..common::accept_params(5, AuthMethod::CachingSha2) }
}

/// The scramble in a greeting of Weir's.
fn scramble() -> Vec<u8> {
    let mut out = Vec::new();
    Accept::new(accept_params()).start(&mut out);
    let greeting = weir_mysql::message::greeting::Greeting::read(&out[4..]).expect("whole").expect("known");
    greeting.scramble.to_vec()
}

fn response(seq: u8, plugin: &[u8], answer: &[u8]) -> Vec<u8> {
    let response = HandshakeResponse {
        capabilities: Capabilities::OFFERED,
        max_packet_bytes: 1 << 24,
        collation: 45,
        user: b"app",
        answer,
        database: Some(b"shop"),
        plugin: Some(plugin),
        attributes: b"\x03_os\x05Linux",
        zstd_level: 0,
    };
    let mut out = Vec::new();
    put(&mut out, seq, |out| response.write(out));
    out
}

/// A client's side of logins: the method that is asked of it, whether its hash is all that is known, and its
/// packets.
fn client_logins() -> Vec<(AuthMethod, bool, Vec<Vec<u8>>)> {
    let (secret, scramble) = (Secret::plain("pw"), scramble());
    let fast = caching_sha2::response(&secret, &scramble).expect("in clear");
    let old = native::response(&secret, &scramble).expect("in clear");
    let (sha2, native) = (&b"caching_sha2_password"[..], &b"mysql_native_password"[..]);
    vec![
        (AuthMethod::CachingSha2, false, vec![response(1, sha2, &fast)]),
        (AuthMethod::CachingSha2, true, vec![response(1, sha2, &fast), s::packet(3, b"pw\0")]),
        (AuthMethod::Native, true, vec![response(1, native, &old)]),
        (AuthMethod::Native, true, vec![response(1, sha2, &fast), s::packet(3, &old)]),
        (AuthMethod::CachingSha2, false, vec![response(1, native, &old), s::packet(3, &fast)]),
    ]
}

/// What the client hears; whether it is in.
fn log_in_client(
    method: AuthMethod,
    hashed: bool,
    lines: &[Line],
    cut: Cut,
) -> Result<(Vec<u8>, bool), Fault> {
    let secret = if hashed {
        Secret::new(weir_auth::SecretKind::MySqlNative(native::stored_hash(b"pw")))
    } else {
        Secret::plain("pw")
    };
    let admission = Admission { method, secret: Some(Arc::new(secret)), names: None };
    let (mut accept, mut out) = (Accept::new(accept_params()), Vec::new());
    accept.start(&mut out);
    let (mut input, mut start) = (Vec::new(), 0);
    for line in lines {
        for piece in pieces(line.bytes(), start, cut) {
            input.extend_from_slice(piece);
            for step in 0.. {
                assert!(step < STEPS, "a login without end");
                let (used, step) = accept.handle_input(&input, &mut out)?;
                input.drain(..used);
                let step = match step {
                    AcceptStep::Lookup(_) => accept.handle_lookup(admission.clone(), &mut out)?,
                    other => other,
                };
                let step = match step {
                    AcceptStep::Work(job) => accept.handle_job(job.run(), &mut out)?,
                    other => other,
                };
                match step {
                    AcceptStep::LoggedIn => return Ok((out, true)),
                    AcceptStep::More if used == 0 => break,
                    _ => {}
                }
            }
        }
        start += line.bytes().len();
    }
    Ok((out, false))
}

/// A server's side of logins, up to and with the set-up.
fn server_logins() -> Vec<Vec<Vec<u8>>> {
    let switch = |plugin: &[u8]| [&[0xFE][..], plugin, b"\0tsrqponmlkjihgfedcba\0"].concat();
    [
        vec![s::greeting(7, "5.5.5-10.11.19-MariaDB", "mysql_native_password"), s::ok_with(2, IDLE, 0, b"")],
        vec![
            s::greeting(7, "9.7.4", "caching_sha2_password"),
            s::packet(2, &[1, 3]),
            s::ok_with(3, IDLE, 0, b""),
        ],
        vec![
            s::greeting(7, "9.7.4", "caching_sha2_password"),
            s::packet(2, &[1, 4]),
            s::ok_with(4, IDLE, 0, b""),
        ],
        vec![
            s::greeting(7, "9.7.4", "unknown_password"),
            s::packet(2, &switch(b"caching_sha2_password")),
            s::packet(4, &[1, 3]),
            s::ok_with(5, IDLE, 0, b""),
        ],
        vec![
            s::greeting(7, "8.4.1", "caching_sha2_password"),
            s::packet(2, &switch(b"sha256_password")),
            s::ok_with(4, IDLE, 0, b""),
        ],
    ]
    .into()
}

#[test]
fn sha256_password_leaves_in_clear_on_a_safe_path_only() {
    let switch = s::packet(2, b"\xFEsha256_password\0tsrqponmlkjihgfedcba\0");
    let key = RsaKey::generate().expect("a key");
    let pem = s::packet(4, &[&[1], key.public_pem().as_bytes()].concat());
    for (unix, password, first) in [(true, "pw", &b"pw\0"[..]), (false, "pw", &[1]), (false, "", &[0])] {
        let params = ConnectParams { unix, ..connect_params(Some(password)) };
        let (mut connect, mut out) = (Connect::new(params), Vec::new());
        connect.handle_input(&s::greeting(7, "8.4.1", "caching_sha2_password"), &mut out).expect("greeting");
        out.clear();
        connect.handle_input(&switch, &mut out).expect("switch");
        assert_eq!(out[4..], *first, "unix: {unix}");
        let after = connect.handle_input(&pem, &mut out);
        if unix {
            assert!(after.is_err(), "a key that nobody asked for");
            continue;
        }
        let Ok((_, ConnectStep::Work(job))) = after else { panic!("no envelope: {after:?}") };
        out.clear();
        connect.handle_job(job.run(), &mut out).expect("envelope");
        let mut opened = key.decrypt(&out[4..]).expect("for this key").to_vec();
        caching_sha2::mask(&mut opened, b"tsrqponmlkjihgfedcba");
        assert_eq!(opened, [password.as_bytes(), b"\0"].concat());
    }
}

/// A false server chooses the method, has a key of its own, and shows a certificate of its own.
#[test]
fn a_password_that_can_be_read_goes_to_a_proven_server_only() {
    let (right, wrong) = (RsaKey::generate().expect("a key"), RsaKey::generate().expect("a key"));
    let known = || Trust { key: Some(right.public_pem().as_bytes().into()), ..Trust::default() };
    let verified = || Trust { verified: true, ..Trust::default() };
    let full = s::packet(2, &[1, 4]);
    let switch =
        |plugin: &str| s::packet(2, &[b"\xFE", plugin.as_bytes(), b"\0tsrqponmlkjihgfedcba\0"].concat());
    let says = |said: &[u8], tls: bool, unix: bool, trust: Trust| {
        let tls = if tls { TlsWish::Required } else { TlsWish::Off };
        let params = ConnectParams { unix, tls, trust, ..connect_params(Some("pw")) };
        let (mut connect, mut out) = (Connect::new(params), Vec::new());
        let greeting = s::greeting_with(7, "8.4.1", "caching_sha2_password", Capabilities::SSL);
        connect.handle_input(&greeting, &mut out).expect("greeting");
        if tls != TlsWish::Off {
            connect.handle_secured(Arc::default(), &mut out).expect("TLS");
        }
        out.clear();
        connect.handle_input(said, &mut out)?;
        let key = s::packet(4, &[&[1], wrong.public_pem().as_bytes()].concat());
        if matches!(out.get(4..), Some([1 | 2])) {
            out.clear();
            let Ok((_, ConnectStep::Work(job))) = connect.handle_input(&key, &mut out) else {
                panic!("no envelope")
            };
            connect.handle_job(job.run(), &mut out)?;
        }
        Ok::<_, Fault>(out)
    };
    for said in [full, switch("sha256_password"), switch("mysql_clear_password")] {
        let clear = said.len() > 5 && said.ends_with(&switch("mysql_clear_password"));
        for (tls, unix, trust, given) in [
            (false, false, Trust::default(), false),
            (true, false, Trust::default(), false),
            (true, false, known(), false),
            (true, false, verified(), true),
            (false, true, Trust::default(), true),
            (false, false, known(), !clear),
        ] {
            let out = says(&said, tls, unix, trust.clone());
            assert_eq!(out.is_ok(), given, "TLS {tls}, Unix {unix}, {trust:?}, {said:?}");
            let Ok(out) = out else { continue };
            assert!(wrong.decrypt(&out[4..]).is_none(), "the key of whoever answers");
            if !tls && !unix {
                assert!(right.decrypt(&out[4..]).is_some());
            }
        }
    }
}

/// What the server hears; whether Weir is in. The set-up is answered by what was asked for without any error.
fn log_in_at_server(lines: &[Line], cut: Cut) -> Result<(Vec<u8>, bool), Fault> {
    let mut params = connect_params(Some("pw"));
    params.unix = true;
    let (mut connect, mut out) = (Connect::new(params), Vec::new());
    let (mut input, mut start) = (Vec::new(), 0);
    for line in lines {
        for piece in pieces(line.bytes(), start, cut) {
            input.extend_from_slice(piece);
            for step in 0.. {
                assert!(step < STEPS, "a login without end");
                let (used, step) = connect.handle_input(&input, &mut out)?;
                input.drain(..used);
                match step {
                    ConnectStep::LoggedIn => {
                        assert_eq!(connect.into_back().queued(), 0);
                        return Ok((out, true));
                    }
                    ConnectStep::More if used == 0 => break,
                    ConnectStep::More | ConnectStep::Tls => {}
                    ConnectStep::Work(job) => {
                        connect.handle_job(job.run(), &mut out)?;
                    }
                }
            }
        }
        start += line.bytes().len();
    }
    Ok((out, false))
}

/// The lines of a server's side with the answers of the set-up, which depend on the questions.
fn with_set_up(packets: Vec<Vec<u8>>) -> Vec<Line> {
    let mut lines: Vec<Line> = packets.into_iter().map(Server).collect();
    let before = log_in_at_server(&lines[..lines.len() - 1], Cut::Nowhere).expect("a login").0.len();
    let all = log_in_at_server(&lines, Cut::Nowhere).expect("a login").0;
    lines.push(Server(set_up_answers(&all[before..], 7)));
    lines
}

/// Every byte wrong in turn.
fn with_wrong_bytes(lines: &[Line], mut play: impl FnMut(&[Line])) {
    let mut lines = lines.to_vec();
    for at in 0..len(&lines) {
        let right = *byte_mut(&mut lines, at);
        for wrong in [right ^ 1, 0, 0xFF] {
            *byte_mut(&mut lines, at) = wrong;
            play(&lines);
        }
        *byte_mut(&mut lines, at) = right;
    }
}

#[test]
fn logins_of_clients_cut_at_every_byte_come_to_the_same() {
    for (n, (method, hashed, packets)) in client_logins().into_iter().enumerate() {
        let lines: Vec<Line> = packets.into_iter().map(Client).collect();
        let whole = log_in_client(method, hashed, &lines, Cut::Nowhere);
        assert!(matches!(whole, Ok((_, true))), "login {n}: {whole:?}");
        assert_eq!(log_in_client(method, hashed, &lines, Cut::Everywhere), whole);
        for at in 1..len(&lines) {
            assert_eq!(log_in_client(method, hashed, &lines, Cut::At(at)), whole, "login {n} cut at {at}");
        }
    }
}

#[test]
fn logins_of_clients_with_a_wrong_byte_end() {
    for (method, hashed, packets) in client_logins() {
        let lines: Vec<Line> = packets.into_iter().map(Client).collect();
        let mut refused = 0;
        with_wrong_bytes(&lines, |lines| {
            refused +=
                usize::from(!matches!(log_in_client(method, hashed, lines, Cut::Nowhere), Ok((_, true))));
        });
        assert!(refused > 100, "{method:?}: {refused}");
    }
}

#[test]
fn logins_at_servers_cut_at_every_byte_come_to_the_same() {
    for packets in server_logins() {
        let lines = with_set_up(packets);
        let whole = log_in_at_server(&lines, Cut::Nowhere);
        assert!(matches!(whole, Ok((_, true))), "{whole:?}");
        assert_eq!(log_in_at_server(&lines, Cut::Everywhere), whole);
        for at in 1..len(&lines) {
            assert_eq!(log_in_at_server(&lines, Cut::At(at)), whole, "cut at {at}");
        }
    }
}

#[test]
fn logins_at_servers_with_a_wrong_byte_end() {
    for packets in server_logins() {
        let lines = with_set_up(packets);
        let mut refused = 0;
        with_wrong_bytes(&lines, |lines| {
            refused += usize::from(!matches!(log_in_at_server(lines, Cut::Nowhere), Ok((_, true))));
        });
        assert!(refused > 100, "{refused}");
    }
}
