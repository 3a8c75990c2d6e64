//! Sessions recorded from a real server, replayed through a front and a back: whole, split at every byte on
//! either side, and with one byte changed.

use weir_postgres::{Accept, Back, Connect, Front};
use weir_session::Accept as _;
use weir_session::Back as _;
use weir_session::Connect as _;
use weir_session::Front as _;
use weir_session::login::{
    AcceptParams, AcceptStep, Admission, AuthMethod, ConnectParams, ConnectStep, TlsOffer, TlsWish,
};
use weir_sql::catalogue::{Catalogue, Knowledge};
use weir_wire::{Fault, Found, Step};

const OWNER: u64 = 9;

struct Session {
    name: String,
    login: Vec<u8>,
    steps: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Session {
    /// The reply as its client gets it: its own notifications carry the number of its login instead of the
    /// server's.
    fn as_told(&self, reply: &[u8], front: &Front) -> Vec<u8> {
        let key = self.login.windows(5).position(|it| it == b"K\0\0\0\x0c").unwrap() + 5;
        let own = [b"A\0\0\0\x12", &self.login[key..key + 4]].concat();
        let mut told = reply.to_vec();
        while let Some(at) = told.windows(own.len()).position(|it| it == own) {
            told[at + 5..at + 9].copy_from_slice(&front.id().to_be_bytes());
        }
        told
    }
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len() / 2).map(|i| u8::from_str_radix(&text[2 * i..2 * i + 2], 16).unwrap()).collect()
}

fn sessions() -> Vec<Session> {
    let mut all: Vec<Session> = Vec::new();
    let mut asked = None;
    for line in include_str!("transcripts/postgresql-15.txt").lines() {
        let Some((kind, rest)) = line.split_once(' ') else { continue };
        match kind {
            "=" => all.push(Session { name: rest.into(), login: Vec::new(), steps: Vec::new() }),
            ">" => asked = Some(unhex(rest)),
            "<" => {
                let session = all.last_mut().unwrap();
                match asked.take() {
                    Some(request) => session.steps.push((request, unhex(rest))),
                    None => session.login = unhex(rest),
                }
            }
            _ => {}
        }
    }
    assert!(all.len() >= 8 && all.iter().all(|s| !s.steps.is_empty()));
    all
}

fn front() -> Front {
    let mut accept = Accept::new(AcceptParams {
        id: 3.into(),
        nonce: [7; 64],
        unix: false,
        tls: TlsOffer::Off,
        secured: None,
        greeting: std::sync::Arc::default(),
        default_method: AuthMethod::Trust,
        compression: true,
        rsa: None,
    });
    let mut packet = b"\0\0\0\0\0\x03\0\0user\0u\0\0".to_vec();
    packet[3] = packet.len() as u8;
    let mut out = Vec::new();
    let (_, step) = accept.handle_input(&packet, &mut out).unwrap();
    assert!(matches!(step, AcceptStep::Lookup(_)));
    accept
        .handle_lookup(Admission { method: AuthMethod::Trust, secret: None, names: None }, &mut out)
        .unwrap();
    let mut front = accept.into_front();
    front.know(&Knowledge::settled(Catalogue::default()));
    front
}

fn connect(login: &[u8]) -> Result<Option<Back>, Fault> {
    let mut connect = Connect::new(ConnectParams {
        user: "u".into(),
        secret: None,
        database: "d".into(),
        parameters: vec![],
        nonce: [1; 64],
        unix: false,
        tls: TlsWish::Off,
        cancel: None,
        max_prepared_statements: 50,
        trust: Default::default(),
        changes: Default::default(),
        variant: 0,
    });
    let (mut rest, mut out) = (login, Vec::new());
    loop {
        let (used, step) = connect.handle_input(rest, &mut out)?;
        rest = &rest[used..];
        match step {
            ConnectStep::LoggedIn => return Ok(Some(connect.into_back())),
            _ if used == 0 => return Ok(None),
            _ => {}
        }
    }
}

/// Bytes that arrive in order; what is not used stays in front.
#[derive(Default)]
struct Inbox(Vec<u8>);

struct Pair {
    front: Front,
    back: Back,
    from_client: Inbox,
    from_server: Inbox,
    to_client: Vec<u8>,
    to_server: Vec<u8>,
}

impl Pair {
    fn new(session: &Session) -> Self {
        Pair {
            front: front(),
            back: connect(&session.login).unwrap().unwrap(),
            from_client: Inbox::default(),
            from_server: Inbox::default(),
            to_client: Vec::new(),
            to_server: Vec::new(),
        }
    }

    fn client_says(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.from_client.0.extend_from_slice(bytes);
        self.to_server.clear();
        loop {
            let input = std::mem::take(&mut self.from_client.0);
            let found = self.front.find(&input, &mut self.to_client);
            let (len, result) = match found? {
                Found::Incomplete | Found::Goodbye | Found::Kill { .. } | Found::Login { .. } => {
                    self.from_client.0 = input;
                    return Ok(());
                }
                Found::Drop { len } | Found::Answered { len } => (len, Ok(())),
                found @ (Found::Request { len, needs } | Found::Part { len, needs }) => {
                    let whole = matches!(found, Found::Request { .. });
                    let (front, out) = (&mut self.front, &mut self.to_server);
                    let request = &input[..len];
                    let result = match needs.continues {
                        true => self.back.extend(front, request, whole, out),
                        false => self.back.dispatch(front, OWNER, request, whole, out),
                    };
                    (len, result)
                }
            };
            self.from_client.0 = input[len..].to_vec();
            result?;
        }
    }

    /// Nothing is owed; what is left on the server has a reason that is known.
    fn assert_clean(&self, name: &str) {
        assert_eq!(self.back.queued(), 0, "{name}");
        assert_eq!(self.back.is_reusable(), self.front.pins().is_empty(), "{name}");
        // A FunctionCall runs code that nobody has read.
        let keeps = ["copy in", "function call"].iter().any(|what| name.contains(what));
        assert_eq!(self.front.pins().is_empty(), !keeps, "{name}: {:?}", self.front.pins());
    }

    fn server_says(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.to_server.clear();
        self.from_server.0.extend_from_slice(bytes);
        self.read_server()?;
        // Weir asks whether what was left is still there: it is.
        let questions = self.to_server.windows(8).filter(|part| part == b"EXISTS (").count();
        if questions > 0 {
            let columns = u8::try_from(questions).unwrap();
            let row = [[0, 0, 0, 1, b't']].repeat(questions).concat();
            let length = u8::try_from(6 + row.len()).unwrap();
            let said = [&[b'D', 0, 0, 0, length, 0, columns][..], &row, b"C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I"];
            self.from_server.0.extend_from_slice(&said.concat());
            self.read_server()?;
        }
        Ok(())
    }

    fn read_server(&mut self) -> Result<(), Fault> {
        loop {
            let input = std::mem::take(&mut self.from_server.0);
            let (to_client, to_server) = (&mut self.to_client, &mut self.to_server);
            let step = self.back.handle_reply(Some(&mut self.front), &input, to_client, to_server)?;
            let used = match step {
                Step::Forward(n) => {
                    self.to_client.extend_from_slice(&input[..n]);
                    n
                }
                Step::Consumed(n) => n,
                Step::Done { .. } => 0,
                Step::Incomplete => {
                    self.from_server.0 = input;
                    return Ok(());
                }
            };
            self.from_server.0 = input[used..].to_vec();
        }
    }
}

#[test]
fn whole() {
    for session in sessions() {
        let mut pair = Pair::new(&session);
        for (n, (request, reply)) in session.steps.iter().enumerate() {
            pair.client_says(request).unwrap();
            pair.server_says(reply).unwrap();
            let got = std::mem::take(&mut pair.to_client);
            let reply = session.as_told(reply, &pair.front);
            assert!(got == reply, "{}, step {n}: {:?}", session.name, String::from_utf8_lossy(&got));
        }
        pair.assert_clean(&session.name);
        assert!(pair.from_server.0.is_empty() && pair.from_client.0.is_empty());
    }
}

#[test]
fn cut_at_every_byte() {
    for session in sessions() {
        let mut pair = Pair::new(&session);
        for (n, (request, reply)) in session.steps.iter().enumerate() {
            for byte in request {
                pair.client_says(&[*byte]).unwrap();
            }
            for byte in reply {
                pair.server_says(&[*byte]).unwrap();
            }
            let got = std::mem::take(&mut pair.to_client);
            assert!(got == session.as_told(reply, &pair.front), "{}, step {n}", session.name);
        }
        pair.assert_clean(&session.name);
    }
}

/// The bytes of a session with one changed: nothing panics, and it ends in an error, in a wait for more, or
/// well.
#[test]
fn one_byte_changed() {
    for session in sessions() {
        let requests: usize = session.steps.iter().map(|(request, _)| request.len()).sum();
        let replies: usize = session.steps.iter().map(|(_, reply)| reply.len()).sum();
        for at in 0..requests + replies {
            // The inside of long rows is as good at one place as at another.
            if at > requests + 600 && at % 101 != 0 {
                continue;
            }
            for change in [0x01, 0x80, 0xff] {
                let mut pair = Pair::new(&session);
                let (mut before_request, mut before_reply) = (0, requests);
                for (request, reply) in &session.steps {
                    let (mut request, mut reply) = (request.clone(), reply.clone());
                    if let Some(byte) = at.checked_sub(before_request).and_then(|at| request.get_mut(at)) {
                        *byte ^= change;
                    }
                    if let Some(byte) = at.checked_sub(before_reply).and_then(|at| reply.get_mut(at)) {
                        *byte ^= change;
                    }
                    before_request += request.len();
                    before_reply += reply.len();
                    if pair.client_says(&request).and_then(|()| pair.server_says(&reply)).is_err() {
                        break;
                    }
                }
            }
        }
        for at in 0..session.login.len() {
            let mut login = session.login.clone();
            login[at] ^= 0x81;
            let _ = connect(&login);
        }
    }
}

/// What a client gets is what another implementation of the protocol can read.
#[test]
fn another_reader_understands_what_comes_out() {
    use postgres_protocol::message::backend::Message;
    // That implementation has no function calls.
    for session in sessions().into_iter().filter(|s| s.name != "function call") {
        let mut pair = Pair::new(&session);
        for (request, reply) in &session.steps {
            pair.client_says(request).unwrap();
            pair.server_says(reply).unwrap();
        }
        let mut bytes = bytes::BytesMut::from(&pair.to_client[..]);
        let mut ready = 0;
        while let Some(message) = Message::parse(&mut bytes).unwrap() {
            ready += usize::from(matches!(message, Message::ReadyForQuery(_)));
        }
        assert!(bytes.is_empty() && ready > 0);
    }
}
