//! Listens for PostgreSQL clients that only listen, so that they hold no server.
//!
//! Owns: one thread for each pool that has such clients, with a connection outside the pool, which channels
//! it listens on and for whom. Must not know: clients beyond where their mail goes, and when they come and go
//! (`hall/away.rs`).
//!
//! Invariants: no worker waits; a client is told what comes behind its mark and in front of the next one, in
//! the order of the database (`weir_postgres::listen`); when the connection is lost, all its clients are told
//! so; the number of such connections is bounded.

mod line;

use crate::context::Ticket;
use crate::crypto::WorkDone;
use crate::panics::Panics;
use crate::pool::PoolId;
use line::{Heard, Line};
use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use weir_config::ServerTls;
use weir_net::Target;
use weir_session::listen::{Channels, Mark};
use weir_session::login::ConnectParams;
use weir_wire::limits::LISTENING_POOLS;
use weir_wire::{Fault, FaultKind};

/// A connection without clients is closed after this time, and its thread ends.
const IDLE: Duration = Duration::from_secs(5);

/// A server that says nothing is asked after this time whether it is there.
const QUIET: Duration = Duration::from_secs(10);

/// The pool for whose clients one connection listens, and where its servers are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Place {
    /// The pool.
    pub pool: PoolId,
    /// The server.
    pub target: Target,
}

/// How to get there.
#[derive(Clone)]
pub struct Way {
    /// As whom.
    pub params: ConnectParams,
    /// TLS, if there may be any.
    pub tls: Option<Arc<ServerTls>>,
    /// Maximum time that the server may be silent when it has to answer.
    pub patience: Duration,
}

/// What a hall asks for a client.
pub enum Wish {
    /// Listen for it, from its mark on.
    Join {
        /// Where.
        place: Place,
        /// By which way, if nobody listens there yet.
        way: Box<Way>,
        /// On what.
        channels: Channels,
        /// Its number.
        number: u64,
    },
    /// It has gone.
    Leave {
        /// Its number.
        number: u64,
    },
}

/// What a hall is told for a client.
pub struct News {
    /// Its number.
    pub number: u64,
    /// What.
    pub what: Said,
}

/// See [`News`].
pub enum Said {
    /// The connection listens on its channels; what it tells begins behind this mark.
    Joined(Mark),
    /// It does not.
    Refused,
    /// A NotificationResponse for it.
    Notified(Arc<[u8]>),
    /// Its server listens, and nothing more comes from here.
    AtHome,
    /// The connection was lost, and what was notified with it.
    Lost,
}

/// Numbers of clients, never used twice.
pub fn next_number() -> u64 {
    static NUMBERS: AtomicU64 = AtomicU64::new(1);
    NUMBERS.fetch_add(1, Relaxed)
}

/// Brings news to whom they are for.
type Deliver = Arc<dyn Fn(Ticket, WorkDone) + Send + Sync>;

/// Takes wishes.
pub(crate) struct Ears {
    desks: Arc<Mutex<Desks>>,
    deliver: Deliver,
    panics: Arc<Panics>,
}

#[derive(Default)]
struct Desks {
    by_place: HashMap<Place, Arc<Desk>>,
    /// Where a client is listened for.
    by_number: HashMap<u64, Arc<Desk>>,
}

/// One connection and its thread, as others see them.
struct Desk {
    place: Place,
    inbox: Mutex<Vec<Letter>>,
    bell: UnixStream,
}

enum Letter {
    Join { ticket: Ticket, way: Box<Way>, channels: Channels, number: u64 },
    Leave { number: u64 },
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn tell(deliver: &Deliver, ticket: Ticket, number: u64, what: Said) {
    deliver(ticket, WorkDone::Ear(News { number, what }));
}

impl Ears {
    pub(crate) fn new(
        panics: Arc<Panics>,
        deliver: impl Fn(Ticket, WorkDone) + Send + Sync + 'static,
    ) -> Ears {
        Ears { desks: Arc::default(), deliver: Arc::new(deliver), panics }
    }

    /// Takes a wish; the answer comes by mail. Given back: too many pools have clients that listen.
    pub(crate) fn take(&self, ticket: Ticket, wish: Wish) -> Result<(), Wish> {
        let mut desks = lock(&self.desks);
        match wish {
            Wish::Join { place, way, channels, number } => {
                let Some(desk) = self.desk(&mut desks, &place) else {
                    return Err(Wish::Join { place, way, channels, number });
                };
                desks.by_number.insert(number, desk.clone());
                desk.put(Letter::Join { ticket, way, channels, number });
            }
            Wish::Leave { number } => {
                if let Some(desk) = desks.by_number.remove(&number) {
                    desk.put(Letter::Leave { number });
                }
            }
        }
        Ok(())
    }

    fn desk(&self, desks: &mut Desks, place: &Place) -> Option<Arc<Desk>> {
        if let Some(desk) = desks.by_place.get(place) {
            return Some(desk.clone());
        }
        if desks.by_place.len() >= LISTENING_POOLS {
            return None;
        }
        let (bell, rings) = UnixStream::pair().ok()?;
        bell.set_nonblocking(true).ok()?;
        rings.set_nonblocking(true).ok()?;
        let desk = Arc::new(Desk { place: place.clone(), inbox: Mutex::default(), bell });
        if !self.begin(&desk, rings) {
            return None;
        }
        desks.by_place.insert(place.clone(), desk.clone());
        Some(desk)
    }

    fn begin(&self, desk: &Arc<Desk>, rings: UnixStream) -> bool {
        let (desk, desks, deliver) = (desk.clone(), self.desks.clone(), self.deliver.clone());
        let panics = self.panics.clone();
        let members = Arc::<Mutex<HashMap<u64, Member>>>::default();
        let body = move || {
            let ear = Ear {
                desk: desk.clone(),
                desks: desks.clone(),
                deliver: deliver.clone(),
                rings,
                line: None,
                members: members.clone(),
                channels: HashMap::new(),
                stale: Vec::new(),
                complained: None,
            };
            let _ = panics.guard("the thread that listens for clients", || ear.run());
            // Nobody is to believe that somebody listens.
            lock(&desks).close(&desk);
            let letters = std::mem::take(&mut *lock(&desk.inbox));
            for letter in letters {
                if let Letter::Join { ticket, number, .. } = letter {
                    tell(&deliver, ticket, number, Said::Refused);
                }
            }
            for (number, member) in lock(&members).drain() {
                tell(&deliver, member.ticket, number, Said::Lost);
            }
        };
        let begun = std::thread::Builder::new().name("listen".to_owned()).spawn(body);
        if let Err(error) = &begun {
            tracing::error!("cannot start a thread that listens for clients: {error}");
        }
        begun.is_ok()
    }
}

impl Desks {
    fn close(&mut self, desk: &Arc<Desk>) {
        self.by_place.retain(|_, other| !Arc::ptr_eq(other, desk));
        self.by_number.retain(|_, other| !Arc::ptr_eq(other, desk));
    }
}

impl Desk {
    fn put(&self, letter: Letter) {
        lock(&self.inbox).push(letter);
        // One that is full rings, too.
        let _ = (&self.bell).write(&[0]);
    }
}

/// A client that is listened for.
struct Member {
    ticket: Ticket,
    channels: Channels,
    /// Its mark has come.
    is_told: bool,
}

/// The thread that listens for the clients of one pool.
struct Ear {
    desk: Arc<Desk>,
    desks: Arc<Mutex<Desks>>,
    deliver: Deliver,
    rings: UnixStream,
    line: Option<Line>,
    /// By number.
    members: Arc<Mutex<HashMap<u64, Member>>>,
    /// Whom each channel is for.
    channels: HashMap<Box<[u8]>, Vec<u64>>,
    /// Channels whose clients have gone home.
    stale: Vec<Box<[u8]>>,
    complained: Option<(Instant, String)>,
}

impl Ear {
    fn run(mut self) {
        let mut since = Instant::now();
        loop {
            let is_empty = lock(&self.members).is_empty();
            let timeout = if is_empty { IDLE } else { QUIET };
            let bytes =
                match weir_blocking::wait(self.line.as_ref().map(Line::get), self.rings.as_fd(), timeout) {
                    Ok(bytes) => bytes,
                    Err(error) => {
                        return self.lose(&Fault::new(FaultKind::OutOfResources, error.to_string()));
                    }
                };
            let letters = self.letters();
            if !letters.is_empty() || bytes {
                since = Instant::now();
            }
            if bytes {
                self.hear();
            }
            self.join(letters);
            if since.elapsed() < timeout {
                continue;
            }
            if is_empty && self.ends() {
                return;
            }
            // Its network may be gone without a word.
            self.ask(b";");
            since = Instant::now();
        }
    }

    fn letters(&mut self) -> Vec<Letter> {
        let mut rung = [0; 64];
        while self.rings.read(&mut rung).is_ok_and(|n| n == rung.len()) {}
        std::mem::take(&mut *lock(&self.desk.inbox))
    }

    /// Nobody is listened for any more, and nobody will be here.
    fn ends(&self) -> bool {
        let mut desks = lock(&self.desks);
        let ends = lock(&self.desk.inbox).is_empty() && lock(&self.members).is_empty();
        if ends {
            desks.close(&self.desk);
        }
        ends
    }

    /// Those who come, and those who go.
    fn join(&mut self, letters: Vec<Letter>) {
        if letters.is_empty() {
            return;
        }
        let mut come: Vec<(u64, Ticket)> = Vec::new();
        let (mut begin, mut end) = (Vec::new(), std::mem::take(&mut self.stale));
        for letter in letters {
            match letter {
                Letter::Leave { number } => {
                    come.retain(|(other, _)| *other != number);
                    self.forget(number, &mut end);
                }
                Letter::Join { ticket, way, channels, number } => {
                    if self.line.is_none() && !self.open(&way) {
                        self.refuse(ticket, number);
                        continue;
                    }
                    for name in channels.iter() {
                        let whom = self.channels.entry(name.clone()).or_default();
                        if whom.is_empty() {
                            begin.push(name.clone());
                        }
                        whom.push(number);
                    }
                    lock(&self.members)
                        .insert(number, Member { ticket, channels: channels.clone(), is_told: false });
                    come.push((number, ticket));
                }
            }
        }
        end.retain(|name| self.channels.get(name).is_none_or(Vec::is_empty));
        for name in &end {
            self.channels.remove(name);
        }
        begin.retain(|name| self.channels.contains_key(name));
        let text = [line::text("UNLISTEN", &end), line::text("LISTEN", &begin)].concat();
        if !text.is_empty() {
            self.ask(&text);
        }
        let Some(mark) = self.line.as_ref().map(|line| line.channel().clone()) else { return };
        for (number, ticket) in come {
            tell(&self.deliver, ticket, number, Said::Joined(Mark { channel: mark.clone(), number }));
        }
    }

    fn refuse(&self, ticket: Ticket, number: u64) {
        lock(&self.desks).by_number.remove(&number);
        tell(&self.deliver, ticket, number, Said::Refused);
    }

    /// Nobody listens for this one any more; `end`: channels that nobody else has.
    fn forget(&mut self, number: u64, end: &mut Vec<Box<[u8]>>) -> Option<Member> {
        let member = lock(&self.members).remove(&number)?;
        for name in member.channels.iter() {
            if let Some(whom) = self.channels.get_mut(name) {
                whom.retain(|other| *other != number);
                if whom.is_empty() {
                    end.push(name.clone());
                }
            }
        }
        Some(member)
    }

    fn open(&mut self, way: &Way) -> bool {
        match Line::open(&self.desk.place.target, way) {
            Ok(line) => self.line = Some(line),
            Err(fault) => self.complain(&fault),
        }
        self.line.is_some()
    }

    /// Asks something without an answer.
    fn ask(&mut self, text: &[u8]) {
        let Some(mut line) = self.line.take() else { return };
        let asked = line.ask(text, |heard| self.heard(heard));
        self.line = Some(line);
        if let Err(fault) = asked {
            self.lose(&fault);
        }
    }

    fn hear(&mut self) {
        let Some(mut line) = self.line.take() else { return };
        let heard = line.hear(|heard| self.heard(heard));
        self.line = Some(line);
        if let Err(fault) = heard {
            self.lose(&fault);
        }
    }

    fn heard(&mut self, heard: Heard<'_>) {
        match heard {
            Heard::Begins(number) => {
                if let Some(member) = lock(&self.members).get_mut(&number) {
                    member.is_told = true;
                }
            }
            Heard::Ends(number) => {
                let mut stale = std::mem::take(&mut self.stale);
                let member = self.forget(number, &mut stale);
                self.stale = stale;
                if let Some(member) = member {
                    lock(&self.desks).by_number.remove(&number);
                    tell(&self.deliver, member.ticket, number, Said::AtHome);
                }
            }
            Heard::Notified { channel, message } => {
                let Some(whom) = self.channels.get(channel) else { return };
                let (message, members) = (Arc::<[u8]>::from(message), lock(&self.members));
                for number in whom {
                    if let Some(member) = members.get(number).filter(|member| member.is_told) {
                        tell(&self.deliver, member.ticket, *number, Said::Notified(message.clone()));
                    }
                }
            }
        }
    }

    /// The connection is gone: so is what was notified since.
    fn lose(&mut self, fault: &Fault) {
        self.line = None;
        self.channels.clear();
        self.stale.clear();
        let members = std::mem::take(&mut *lock(&self.members));
        self.complain(fault);
        let mut desks = lock(&self.desks);
        for (number, member) in members {
            desks.by_number.remove(&number);
            tell(&self.deliver, member.ticket, number, Said::Lost);
        }
    }

    /// Tells the operator.
    fn complain(&mut self, fault: &Fault) {
        const AGAIN: Duration = Duration::from_secs(10);
        let text = fault.to_string();
        if self.complained.as_ref().is_some_and(|(when, said)| *said == text && when.elapsed() < AGAIN) {
            return;
        }
        tracing::warn!(target = %self.desk.place.target, "the connection that listens for clients: {text}");
        self.complained = Some((Instant::now(), text));
    }
}
