//! A minimal pooler on top of these machines, to try them by hand against a real server: one thread, no
//! blocking calls, transaction pooling, every client let in.
//!
//! `cargo run -p weir-postgres --example bridge -- 127.0.0.1:15132 127.0.0.1:15133 USER DATABASE SERVERS
//! [PASSWORD]` listens on the first address and uses SERVERS connections to the second. With a password,
//! clients log in by SCRAM-SHA-256 with it.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use weir_auth::{JobDone, Secret};
use weir_postgres::{Accept, Back, Connect, Front, Welcomes};
use weir_session::Accept as _;
use weir_session::Back as _;
use weir_session::Connect as _;
use weir_session::Front as _;
use weir_session::Welcomes as _;
use weir_session::login::{
    AcceptParams, AcceptStep, Admission, AuthMethod, ConnectParams, ConnectStep, TlsOffer, TlsWish,
};
use weir_wire::{Boundary, Found, INTERNAL, Owner, Step};

struct Pipe {
    socket: TcpStream,
    input: Vec<u8>,
    output: Vec<u8>,
    open: bool,
}

impl Pipe {
    fn new(socket: TcpStream) -> Self {
        socket.set_nonblocking(true).expect("nonblocking");
        socket.set_nodelay(true).expect("nodelay");
        Pipe { socket, input: Vec::new(), output: Vec::new(), open: true }
    }
    fn read(&mut self) -> bool {
        let mut buffer = [0; 65536];
        match self.socket.read(&mut buffer) {
            Ok(0) => self.open = false,
            Ok(n) => {
                self.input.extend_from_slice(&buffer[..n]);
                return true;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => self.open = false,
        }
        false
    }
    fn write(&mut self) {
        while !self.output.is_empty() {
            match self.socket.write(&self.output) {
                Ok(n) => drop(self.output.drain(..n)),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.open = false;
                    self.output.clear();
                }
            }
        }
    }
}

enum Stage {
    Login(Box<Accept>),
    Welcome(Box<Front>),
    Session(Box<Front>),
}

struct Client {
    id: Owner,
    pipe: Pipe,
    stage: Option<Stage>,
    server: Option<usize>,
    waiting: bool,
    /// Found, and waiting for a server.
    found: Option<Found>,
}

struct Server {
    pipe: Pipe,
    back: Back,
    owner: Option<Owner>,
}

fn nonce(seed: u64) -> [u8; 64] {
    let mut nonce = [0; 64];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    for byte in &mut nonce {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        *byte = state as u8;
    }
    nonce
}

fn connect(address: &str, user: &str, database: &str, secret: Option<Arc<Secret>>) -> Server {
    let mut pipe = Pipe::new(TcpStream::connect(address).expect("server"));
    let mut connect = Connect::new(ConnectParams {
        user: user.into(),
        secret,
        database: database.into(),
        parameters: vec![],
        nonce: nonce(99),
        unix: false,
        tls: TlsWish::Off,
        cancel: None,
        max_prepared_statements: 100,
        variant: 0,
        changes: Default::default(),
        trust: Default::default(),
    });
    connect.start(&mut pipe.output);
    loop {
        pipe.write();
        pipe.read();
        loop {
            let result = connect.handle_input(&pipe.input, &mut pipe.output);
            let (used, mut step) = result.expect("login to the server");
            pipe.input.drain(..used);
            if let ConnectStep::Work(job) = step {
                step = connect.handle_job(job.run(), &mut pipe.output).expect("job");
            }
            match step {
                ConnectStep::LoggedIn => {
                    return Server { pipe, back: connect.into_back(), owner: None };
                }
                _ if used == 0 => break,
                _ => {}
            }
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Pool {
    clients: Vec<Client>,
    servers: Vec<Server>,
    queue: VecDeque<Owner>,
    welcomes: Welcomes,
    secret: Option<Arc<Secret>>,
}

impl Pool {
    fn lease(&mut self, at: usize) -> Option<usize> {
        if let Some(server) = self.clients[at].server {
            return Some(server);
        }
        let id = self.clients[at].id;
        let first = self.queue.front().is_none_or(|&head| head == id);
        let free = self.servers.iter().position(|s| s.owner.is_none() && s.back.is_reusable());
        match free {
            Some(free) if first => {
                self.queue.retain(|&waiting| waiting != id);
                self.clients[at].waiting = false;
                self.servers[free].owner = Some(id);
                self.clients[at].server = Some(free);
                Some(free)
            }
            _ => {
                if !self.clients[at].waiting {
                    self.clients[at].waiting = true;
                    self.queue.push_back(id);
                }
                None
            }
        }
    }

    fn login(&mut self, at: usize, mut accept: Box<Accept>) -> Stage {
        let pipe = &mut self.clients[at].pipe;
        loop {
            let (used, mut step) = match accept.handle_input(&pipe.input, &mut pipe.output) {
                Ok(found) => found,
                Err(fault) => {
                    eprintln!("client: {fault}");
                    accept.refuse(&fault, &mut pipe.output);
                    pipe.write();
                    pipe.open = false;
                    return Stage::Login(accept);
                }
            };
            pipe.input.drain(..used);
            loop {
                let next = match step {
                    AcceptStep::More => break,
                    AcceptStep::Lookup(_) => {
                        let method =
                            if self.secret.is_some() { AuthMethod::ScramSha256 } else { AuthMethod::Trust };
                        let admission = Admission { method, secret: self.secret.clone(), names: None };
                        accept.handle_lookup(admission, &mut pipe.output)
                    }
                    AcceptStep::Work(job) => {
                        let done: JobDone = job.run();
                        accept.handle_job(done, &mut pipe.output)
                    }
                    AcceptStep::Cancel { .. } | AcceptStep::Tls | AcceptStep::Vouch(_) => {
                        pipe.open = false;
                        return Stage::Login(accept);
                    }
                    AcceptStep::LoggedIn => return Stage::Welcome(Box::new(accept.into_front())),
                };
                step = match next {
                    Ok(step) => step,
                    Err(fault) => {
                        accept.refuse(&fault, &mut pipe.output);
                        pipe.write();
                        pipe.open = false;
                        return Stage::Login(accept);
                    }
                };
            }
            if used == 0 {
                return Stage::Login(accept);
            }
        }
    }

    fn welcome(&mut self, at: usize, mut front: Box<Front>) -> Stage {
        if self.clients[at].server.is_some() {
            return Stage::Welcome(front);
        }
        if self.welcomes.greet(&mut front, &mut self.clients[at].pipe.output) {
            return Stage::Session(front);
        }
        if let Some(server) = self.lease(at) {
            let server = &mut self.servers[server];
            let id = self.clients[at].id;
            server.back.dispatch_welcome(&mut front, id, &mut server.pipe.output).expect("welcome");
        }
        Stage::Welcome(front)
    }

    fn session(&mut self, at: usize, mut front: Box<Front>) -> Stage {
        loop {
            let mut answers = std::mem::take(&mut self.clients[at].pipe.output);
            let found = match self.clients[at].found.take() {
                Some(found) => Ok(found),
                None => front.find(&self.clients[at].pipe.input, &mut answers),
            };
            self.clients[at].pipe.output = answers;
            let (len, needs, whole) = match found {
                Ok(Found::Incomplete) => break,
                Ok(Found::Goodbye) => {
                    self.clients[at].pipe.open = false;
                    break;
                }
                Ok(Found::Drop { len } | Found::Answered { len }) => {
                    self.clients[at].pipe.input.drain(..len);
                    continue;
                }
                Ok(Found::Request { len, needs }) => (len, needs, true),
                Ok(Found::Part { len, needs }) => (len, needs, false),
                Ok(Found::Kill { .. } | Found::Login { .. }) => unreachable!("not in PostgreSQL"),
                Err(fault) => {
                    eprintln!("client: {fault}");
                    front.fatal(&fault, &mut self.clients[at].pipe.output);
                    self.clients[at].pipe.write();
                    self.clients[at].pipe.open = false;
                    break;
                }
            };
            let Some(server) = self.lease(at) else {
                self.clients[at].found = found.ok();
                break;
            };
            let bytes: Vec<u8> = self.clients[at].pipe.input.drain(..len).collect();
            let (id, server) = (self.clients[at].id, &mut self.servers[server]);
            let result = if needs.continues {
                server.back.extend(&mut front, &bytes, whole, &mut server.pipe.output)
            } else {
                server.back.dispatch(&mut front, id, &bytes, whole, &mut server.pipe.output)
            };
            if let Err(fault) = result {
                eprintln!("client: {fault}");
                self.clients[at].pipe.open = false;
                break;
            }
            server.pipe.write();
        }
        Stage::Session(front)
    }

    fn pump_servers(&mut self) -> bool {
        let mut busy = false;
        for n in 0..self.servers.len() {
            busy |= self.servers[n].pipe.read();
            self.servers[n].pipe.write();
            loop {
                let owner = self.servers[n].back.head().filter(|&o| o != INTERNAL).or(self.servers[n].owner);
                let at = self.clients.iter().position(|c| Some(c.id) == owner);
                let server = &mut self.servers[n];
                let mut own = at.and_then(|at| self.clients[at].stage.take());
                let front = match &mut own {
                    Some(Stage::Session(front) | Stage::Welcome(front)) => Some(&mut **front),
                    Some(Stage::Login(_)) | None => None,
                };
                let has_front = front.is_some();
                let mut to_client = Vec::new();
                let step = server.back.handle_reply(
                    front,
                    &server.pipe.input,
                    &mut to_client,
                    &mut server.pipe.output,
                );
                let step = step.expect("server's bytes");
                if let Step::Forward(len) | Step::Consumed(len) = step {
                    let bytes: Vec<u8> = server.pipe.input.drain(..len).collect();
                    if matches!(step, Step::Forward(_)) {
                        to_client.extend_from_slice(&bytes);
                    }
                }
                if let (Some(at), true) = (at, has_front) {
                    self.clients[at].pipe.output.extend_from_slice(&to_client);
                }
                server.pipe.write();
                if let (Step::Done { .. }, Some(Stage::Welcome(front))) = (step, &mut own)
                    && !self.welcomes.record(front, &server.back)
                {
                    self.clients[at.expect("owner")].pipe.open = false;
                }
                let pinned = matches!(&own, Some(Stage::Session(front)) if !front.pins().is_empty());
                if let Some(at) = at
                    && let Some(own) = own
                {
                    self.clients[at].stage = Some(own);
                }
                match step {
                    Step::Incomplete => break,
                    Step::Done { boundary: Boundary::Idle, .. } if server.back.queued() == 0 && !pinned => {
                        if !server.back.is_reusable() {
                            server.back.reset(&mut server.pipe.output);
                            server.pipe.write();
                        } else {
                            server.owner = None;
                            if let Some(at) = at {
                                self.clients[at].server = None;
                            }
                        }
                    }
                    Step::Done { .. } | Step::Forward(_) | Step::Consumed(_) => {}
                }
            }
        }
        busy
    }

    fn pump_clients(&mut self) -> bool {
        let mut busy = false;
        for at in 0..self.clients.len() {
            let read = self.clients[at].pipe.read();
            busy |= read;
            if let Some(stage) = self.clients[at].stage.take() {
                let stage = match stage {
                    Stage::Login(accept) if !self.clients[at].pipe.input.is_empty() => self.login(at, accept),
                    Stage::Login(accept) => Stage::Login(accept),
                    Stage::Welcome(front) => self.welcome(at, front),
                    Stage::Session(front) => self.session(at, front),
                };
                self.clients[at].stage = Some(stage);
            }
            self.clients[at].pipe.write();
        }
        let mut at = 0;
        while at < self.clients.len() {
            if self.clients[at].pipe.open {
                at += 1;
                continue;
            }
            let client = self.clients.swap_remove(at);
            self.queue.retain(|&waiting| waiting != client.id);
            if let Some(n) = client.server {
                let server = &mut self.servers[n];
                server.owner = None;
                server.back.forget(client.id, &mut server.pipe.output);
                if !server.back.is_reusable() {
                    server.back.reset(&mut server.pipe.output);
                }
            }
        }
        busy
    }
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [listen, target, user, database, servers, rest @ ..] = args.as_slice() else {
        eprintln!("bridge LISTEN SERVER USER DATABASE SERVERS [PASSWORD]");
        std::process::exit(2);
    };
    let secret = rest.first().map(|password| Arc::new(Secret::from_userlist(password)));
    let listener = TcpListener::bind(listen).expect("listen");
    listener.set_nonblocking(true).expect("nonblocking");
    let count: usize = servers.parse().expect("number of servers");
    let mut pool = Pool {
        clients: Vec::new(),
        servers: (0..count).map(|_| connect(target, user, database, secret.clone())).collect(),
        queue: VecDeque::new(),
        welcomes: Welcomes::default(),
        secret,
    };
    for server in &mut pool.servers {
        pool.welcomes.observe(&mut server.back);
    }
    let mut next = 0_u32;
    loop {
        let mut busy = false;
        while let Ok((socket, _)) = listener.accept() {
            next += 1;
            let params = AcceptParams {
                id: next.into(),
                nonce: nonce(u64::from(next)),
                unix: false,
                tls: TlsOffer::Off,
                secured: None,
                greeting: Arc::default(),
                default_method: AuthMethod::Trust,
                compression: true,
                rsa: None,
            };
            pool.clients.push(Client {
                id: u64::from(next),
                pipe: Pipe::new(socket),
                stage: Some(Stage::Login(Box::new(Accept::new(params)))),
                server: None,
                waiting: false,
                found: None,
            });
            busy = true;
        }
        busy |= pool.pump_clients();
        busy |= pool.pump_servers();
        if !busy {
            std::thread::sleep(Duration::from_micros(200));
        }
    }
}
