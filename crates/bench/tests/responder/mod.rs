//! A server of canned replies, one thread per connection: it answers `SELECT n` with a row that contains n,
//! in the ways a real server would, or misbehaves as configured.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use weir_tls::{Acceptor, AcceptorSettings, Blocking, Bounds, ClientCertificate, self_made};

/// How the responder misbehaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quirk {
    /// Not at all.
    None,
    /// Every so many replies hold a wrong value.
    WrongValue(u64),
    /// Every so many replies are an error.
    Error(u64),
    /// Every so many queries are answered by closing the connection.
    Close(u64),
    /// No reply to any query.
    Silence,
    /// Logins are refused.
    Refuse,
    /// Replies come byte by byte.
    Dribble,
    /// No reply while the responder is told to hold still.
    Hold,
    /// Each reply takes so many milliseconds.
    Slow(u64),
}

pub struct Responder {
    pub address: SocketAddr,
    pub queries: Arc<AtomicU64>,
    /// With [`Quirk::Hold`]: hold still.
    pub held: Arc<AtomicBool>,
}

/// Which protocol is spoken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speak {
    Postgres,
    Mysql,
}

impl Responder {
    pub fn start(speak: Speak, quirk: Quirk) -> Responder {
        Responder::begin(speak, quirk, None)
    }

    /// With TLS for clients that ask for it.
    pub fn with_tls(speak: Speak) -> Responder {
        let made = self_made(&["localhost".to_owned()], None).unwrap();
        let settings = AcceptorSettings {
            identity: made.identity,
            bounds: Bounds::default(),
            client: ClientCertificate::None,
            alpn: Vec::new(),
            tickets: true,
        };
        Responder::begin(speak, Quirk::None, Some(Acceptor::new(&settings).unwrap()))
    }

    fn begin(speak: Speak, quirk: Quirk, acceptor: Option<Acceptor>) -> Responder {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let queries = Arc::new(AtomicU64::new(0));
        let held = Arc::new(AtomicBool::new(false));
        let (count, hold) = (Arc::clone(&queries), Arc::clone(&held));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                stream.set_nodelay(true).unwrap();
                let mut session = Session {
                    stream: Some(Box::new(stream)),
                    acceptor: acceptor.clone(),
                    quirk,
                    queries: Arc::clone(&count),
                    held: Arc::clone(&hold),
                };
                std::thread::spawn(move || {
                    // A client that leaves ends its thread by an error.
                    let _ = match speak {
                        Speak::Postgres => session.postgres(),
                        Speak::Mysql => session.mysql(),
                    };
                });
            }
        });
        Responder { address, queries, held }
    }

    pub fn url(&self, speak: Speak) -> String {
        match speak {
            Speak::Postgres => format!("postgres://app@{}/d", self.address),
            Speak::Mysql => format!("mysql://app@{}/d", self.address),
        }
    }
}

trait Transport: Read + Write + Send {}
impl Transport for TcpStream {}
impl Transport for Blocking<Box<dyn Transport>> {}

struct Session {
    /// Never empty but while TLS begins.
    stream: Option<Box<dyn Transport>>,
    acceptor: Option<Acceptor>,
    quirk: Quirk,
    queries: Arc<AtomicU64>,
    held: Arc<AtomicBool>,
}

/// What to do with one query.
enum Answer {
    Value(i64),
    Error,
    Nothing,
}

fn closed() -> io::Error {
    io::ErrorKind::UnexpectedEof.into()
}

impl Session {
    fn stream(&mut self) -> &mut dyn Transport {
        self.stream.as_mut().unwrap().as_mut()
    }

    fn secure(&mut self) -> io::Result<()> {
        let tls = self.acceptor.as_ref().unwrap().accept().unwrap();
        let line = Blocking::handshake(tls, self.stream.take().unwrap())?;
        self.stream = Some(Box::new(line));
        Ok(())
    }

    fn take<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.stream().read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn take_vec(&mut self, len: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len];
        self.stream().read_exact(&mut bytes)?;
        Ok(bytes)
    }

    fn say(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.quirk != Quirk::Dribble {
            return self.stream().write_all(bytes);
        }
        bytes.iter().try_for_each(|byte| self.stream().write_all(&[*byte]))
    }

    fn answer(&mut self, value: i64) -> io::Result<Answer> {
        let number = self.queries.fetch_add(1, Ordering::Relaxed) + 1;
        match self.quirk {
            Quirk::WrongValue(n) if number.is_multiple_of(n) => Ok(Answer::Value(value + 1)),
            Quirk::Error(n) if number.is_multiple_of(n) => Ok(Answer::Error),
            Quirk::Close(n) if number.is_multiple_of(n) => Err(closed()),
            Quirk::Silence => Ok(Answer::Nothing),
            Quirk::Slow(ms) => {
                std::thread::sleep(Duration::from_millis(ms));
                Ok(Answer::Value(value))
            }
            Quirk::Hold => {
                while self.held.load(Ordering::Relaxed) {
                    std::thread::park_timeout(Duration::from_millis(1));
                }
                Ok(Answer::Value(value))
            }
            _ => Ok(Answer::Value(value)),
        }
    }

    // ---- PostgreSQL ----

    fn postgres(&mut self) -> io::Result<()> {
        let mut len = u32::from_be_bytes(self.take()?) as usize;
        if len == 8 && self.acceptor.is_some() {
            self.take::<4>()?;
            self.say(b"S")?;
            self.secure()?;
            len = u32::from_be_bytes(self.take()?) as usize;
        }
        self.take_vec(len - 4)?;
        if self.quirk == Quirk::Refuse {
            return self.say(&message(b'E', b"SFATAL\0VFATAL\0C53300\0Msorry, too many clients already\0\0"));
        }
        let mut out = message(b'R', &[0, 0, 0, 0]);
        out.extend(message(b'S', b"server_version\x0015.0\0"));
        out.extend(message(b'S', b"client_encoding\0UTF8\0"));
        out.extend(message(b'K', &[0, 0, 0, 7, 1, 2, 3, 4]));
        out.extend(message(b'Z', b"I"));
        self.say(&out)?;
        let mut prepared = std::collections::HashSet::new();
        let (mut reply, mut value) = (Vec::new(), 0);
        loop {
            let [tag] = self.take()?;
            let len = u32::from_be_bytes(self.take()?) as usize;
            let body = self.take_vec(len - 4)?;
            match tag {
                b'Q' => {
                    let text = String::from_utf8(body).unwrap();
                    let number = text.trim_end_matches('\0').strip_prefix("SELECT ").unwrap();
                    if number == "version()" {
                        self.say(
                            &[row_description(), postgres_row("responder"), message(b'Z', b"I")].concat(),
                        )?;
                        continue;
                    }
                    value = number.parse().unwrap();
                    reply = row_description();
                    self.postgres_reply(&mut reply, value)?;
                }
                b'P' => {
                    let name = body.split(|&b| b == 0).next().unwrap().to_vec();
                    assert!(name.is_empty() || prepared.insert(name), "prepared twice");
                    reply.extend(message(b'1', &[]));
                }
                b'B' => {
                    // No formats, one parameter as text, no result formats.
                    let text = &body[..body.len() - 2];
                    let at = text.iter().rposition(|b| *b < b'0').unwrap() + 1;
                    value = std::str::from_utf8(&text[at..]).unwrap().parse().unwrap();
                    reply.extend(message(b'2', &[]));
                }
                b'D' => reply.extend(row_description()),
                b'E' => {}
                b'S' => self.postgres_reply(&mut reply, value)?,
                b'X' => return Ok(()),
                other => panic!("message {other}"),
            }
        }
    }

    fn postgres_reply(&mut self, reply: &mut Vec<u8>, value: i64) -> io::Result<()> {
        let mut out = std::mem::take(reply);
        match self.answer(value)? {
            Answer::Value(value) => {
                out.extend(postgres_row(&value.to_string()));
            }
            Answer::Error => out = message(b'E', b"SERROR\0VERROR\0C40001\0Mtry again\0\0"),
            Answer::Nothing => return Ok(()),
        }
        out.extend(message(b'Z', b"I"));
        self.say(&out)
    }

    // ---- MySQL ----

    fn mysql(&mut self) -> io::Result<()> {
        if self.quirk == Quirk::Refuse {
            return self.say(&packet(0, b"\xff\x10\x04Too many connections"));
        }
        let mut greeting = b"\x0a8.0.0\0\x01\0\0\0abcdefgh\0".to_vec();
        // PROTOCOL_41, SECURE_CONNECTION, PLUGIN_AUTH, TRANSACTIONS, CONNECT_WITH_DB, MULTI_*, and
        // SESSION_TRACK with DEPRECATE_EOF.
        let ssl = if self.acceptor.is_some() { 0x0800 } else { 0 };
        let capabilities: u32 = 0x018f_a20d | ssl;
        greeting.extend(&capabilities.to_le_bytes()[..2]);
        greeting.extend([45, 2, 0]);
        greeting.extend(&capabilities.to_le_bytes()[2..]);
        greeting.push(21);
        greeting.extend([0; 10]);
        greeting.extend(b"ijklmnopqrst\0mysql_native_password\0");
        self.say(&packet(0, &greeting))?;
        let (mut sequence, response) = self.mysql_packet()?;
        if response.len() == 32 && self.acceptor.is_some() {
            self.secure()?;
            (sequence, _) = self.mysql_packet()?;
        }
        self.say(&packet(sequence + 1, &[0, 0, 0, 2, 0, 0, 0]))?;
        let mut next_id = 1u32;
        loop {
            let (_, payload) = self.mysql_packet()?;
            match payload[0] {
                1 => return Ok(()),
                3 => {
                    let text = std::str::from_utf8(&payload[1..]).unwrap();
                    let asked = text.strip_prefix("SELECT ").unwrap();
                    if asked == "version()" {
                        self.say(&mysql_result(b"\x09responder"))?;
                        continue;
                    }
                    self.mysql_reply(asked.parse().unwrap(), false)?;
                }
                0x16 => {
                    let mut head = vec![0];
                    head.extend(next_id.to_le_bytes());
                    head.extend([1, 0, 1, 0, 0, 0, 0]);
                    next_id += 1;
                    let mut out = packet(1, &head);
                    for sequence in [2, 3] {
                        out.extend(packet(sequence, &column()));
                    }
                    self.say(&out)?;
                }
                0x17 => {
                    let value = i64::from_le_bytes(payload[payload.len() - 8..].try_into().unwrap());
                    self.mysql_reply(value, true)?;
                }
                0x19 => {}
                other => panic!("command {other}"),
            }
        }
    }

    fn mysql_packet(&mut self) -> io::Result<(u8, Vec<u8>)> {
        let [a, b, c, sequence] = self.take()?;
        Ok((sequence, self.take_vec(u32::from_le_bytes([a, b, c, 0]) as usize)?))
    }

    fn mysql_reply(&mut self, value: i64, binary: bool) -> io::Result<()> {
        let value = match self.answer(value)? {
            Answer::Value(value) => value,
            Answer::Error => return self.say(&packet(1, b"\xff\xbd\x04#40001Deadlock found")),
            Answer::Nothing => return Ok(()),
        };
        let row = if binary {
            [&[0, 0], &value.to_le_bytes()[..]].concat()
        } else {
            let text = value.to_string();
            [&[text.len() as u8], text.as_bytes()].concat()
        };
        self.say(&mysql_result(&row))
    }
}

/// One column, one row.
fn mysql_result(row: &[u8]) -> Vec<u8> {
    [packet(1, &[1]), packet(2, &column()), packet(3, row), packet(4, &[0xfe, 0, 0, 2, 0, 0, 0])].concat()
}

/// A row of one value and the end of the result.
fn postgres_row(text: &str) -> Vec<u8> {
    let mut row = vec![0, 1];
    row.extend((text.len() as u32).to_be_bytes());
    row.extend(text.bytes());
    [message(b'D', &row), message(b'C', b"SELECT 1\0")].concat()
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    out.extend((body.len() as u32 + 4).to_be_bytes());
    out.extend(body);
    out
}

fn row_description() -> Vec<u8> {
    message(b'T', b"\0\x01n\0\0\0\0\0\0\0\0\0\0\x14\0\x08\xff\xff\xff\xff\0\0")
}

fn packet(sequence: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = (payload.len() as u32).to_le_bytes()[..3].to_vec();
    out.push(sequence);
    out.extend(payload);
    out
}

fn column() -> Vec<u8> {
    [b"\x03def\0\0\0\x01n\0\x0c\x3f\0\x14\0\0\0".as_slice(), &[8, 0x81, 0, 0, 0, 0]].concat()
}
