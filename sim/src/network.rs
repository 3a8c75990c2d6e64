//! The simulated kernel: connections as byte pipes, a virtual clock, and the agenda of all future events.
//!
//! Owns: time, every connection's two ends, listeners, bytes in transit, pending wake-ups. Must not know:
//! protocols, workers' insides, what the bytes mean.
//!
//! Invariants: bytes of one direction arrive in order; an end's edges are reported as the interface of `net`
//! requires; the same seed and the same calls give the same run.

use crate::dice::Dice;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::io;
use weir_net::Token;

/// A pipe grows to the double when so many times its bytes have gone through, as TCP's windows do. So a small
/// one shows what becomes of each byte of a login or a short query, and a large reply does not take a hundred
/// thousand steps.
const FILLS: usize = 24;

/// A send is cut so often at most.
const CUTS: u32 = 4;

/// What the clock says when a run begins.
pub const START_NS: u64 = 1_000_000_000;

/// One end of a connection. The other end is [`EndId::other`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndId(pub u32);

impl EndId {
    /// The other end of the same connection.
    pub fn other(self) -> EndId {
        EndId(self.0 ^ 1)
    }
}

/// Who is told when something happens on an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// A worker.
    Worker(usize),
    /// A model client or a session of a model server.
    Peer(u32),
    /// Nobody yet, or no longer: in a backlog, in a parcel, closed.
    Nobody,
}

/// Something on the agenda.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Item {
    /// What is under way to this end may arrive.
    Arrive(EndId),
    /// A worker's connect ends.
    Connected(EndId),
    /// A model client's connection reaches a worker's listener.
    Knock(u32, EndId),
    /// An end that met a full pipe may write again.
    Room(EndId),
    /// A worker's turn.
    Worker(usize),
    /// A peer's turn.
    Peer(u32),
    /// The plan's next fault.
    Fault(u32),
}

/// How bad the weather is. All chances are per mille.
#[derive(Debug, Clone)]
pub struct Weather {
    /// Least and greatest delay of a packet, in nanoseconds.
    pub latency_ns: (u64, u64),
    /// A send is cut into pieces that travel by themselves.
    pub split: u64,
    /// A send takes fewer bytes than there is room for.
    pub short_write: u64,
    /// Bytes a connection holds, least and greatest.
    pub capacity: (u64, u64),
    /// A connect to a database fails at once.
    pub connect_error: u64,
    /// A connect is never answered.
    pub connect_lost: u64,
    /// A connect takes up to a second.
    pub connect_slow: u64,
    /// A connect is refused although the database runs.
    pub connect_refused: u64,
    /// Accept finds no descriptor.
    pub accept_exhausted: u64,
    /// A client goes before it is accepted.
    pub accept_aborted: u64,
    /// A connection breaks, for each send on it.
    pub reset: u64,
    /// A parcel has no room in the queue to its worker.
    pub pack_refused: u64,
    /// A parcel is lost on the way: the descriptor table of the receiver is full.
    pub unpack_lost: u64,
    /// An event that says nothing.
    pub spurious: u64,
    /// A worker sleeps for milliseconds before it takes its turn.
    pub stall: u64,
    /// Nothing is left to chance: whoever is woken takes a turn at once, and events come in the order of what
    /// happened.
    pub still: bool,
    /// All that workers send on one of their connections to databases takes longer: on which of them, from 0,
    /// and by how much, in nanoseconds.
    pub slow_connection: Option<(u32, u64)>,
}

impl Weather {
    /// Every packet takes a microsecond, and nothing ever goes wrong.
    pub fn still() -> Weather {
        Weather {
            latency_ns: (1_000, 1_000),
            split: 0,
            short_write: 0,
            capacity: (1 << 20, 1 << 20),
            connect_error: 0,
            connect_lost: 0,
            connect_slow: 0,
            connect_refused: 0,
            accept_exhausted: 0,
            accept_aborted: 0,
            reset: 0,
            pack_refused: 0,
            unpack_lost: 0,
            spurious: 0,
            stall: 0,
            still: true,
            slow_connection: None,
        }
    }
}

#[derive(Debug)]
enum Packet {
    Data(Vec<u8>),
    Fin,
    Reset,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Pending,
    Up,
    Refused,
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Ready {
    pub readable: bool,
    pub writable: bool,
    pub read_closed: bool,
    pub hangup: bool,
}

#[derive(Debug)]
pub(crate) struct End {
    pub owner: Owner,
    pub token: Option<Token>,
    pub ready: Ready,
    listed: bool,
    received: VecDeque<u8>,
    fin: bool,
    reset: bool,
    reset_told: bool,
    flight: VecDeque<(u64, Packet)>,
    flight_bytes: usize,
    last_arrival_ns: u64,
    /// What is sent to it takes longer by this.
    slow_by_ns: u64,
    /// Bytes that may be under way to it or unread.
    capacity: usize,
    /// Bytes it takes until that grows.
    grows_in: usize,
    open: bool,
    write_shut: bool,
    blocked: bool,
    /// It is on the agenda that this end will be told of room.
    room_due: bool,
    stage: Stage,
    /// Where a pending connect leads.
    database: u32,
}

#[derive(Debug)]
struct Listener {
    worker: usize,
    backlog: VecDeque<EndId>,
    token: Option<Token>,
    ready: bool,
    open: bool,
}

/// What a peer finds when it reads.
#[derive(Debug, PartialEq, Eq)]
pub enum Read {
    /// These bytes.
    Bytes(Vec<u8>),
    /// Nothing now.
    Nothing,
    /// The end of the stream.
    Eof,
    /// The connection is broken.
    Reset,
}

/// The kernel.
pub struct Network {
    /// Nanoseconds of the virtual clock.
    pub now_ns: u64,
    /// How bad the weather is.
    pub weather: Weather,
    dice: Dice,
    sequence: u64,
    agenda: BinaryHeap<Reverse<(u64, u64, Item)>>,
    ends: Vec<End>,
    listeners: Vec<Listener>,
    /// Connects of workers to databases so far.
    connects: u32,
    /// By database: it accepts connections.
    pub databases_up: Vec<bool>,
    /// Connections that have reached a database: which one, the database's end, the worker.
    pub arrivals: Vec<(u32, EndId)>,
    listed: Vec<Vec<EndId>>,
    /// By worker: connections it has open.
    sockets: Vec<usize>,
    worker_wake_ns: Vec<u64>,
    peer_wake_ns: Vec<u64>,
    /// Connections that the weather has broken.
    pub broken: BTreeSet<u32>,
    /// Those of them that nobody has looked at yet.
    pub just_broken: Vec<EndId>,
    /// A hash of everything that was sent and when: two runs of a seed must agree.
    pub fingerprint: u64,
    /// Some bytes are of chance that the seed does not decide: their number counts.
    pub is_opaque: bool,
    /// Print what happens.
    pub trace: bool,
}

/// The start of some bytes as a person can read them.
fn shown(bytes: &[u8]) -> String {
    let text: String =
        bytes.iter().take(160).flat_map(|b| std::ascii::escape_default(*b)).map(char::from).collect();
    format!("{} bytes {text}", bytes.len())
}

fn would_block() -> io::Error {
    io::Error::from(io::ErrorKind::WouldBlock)
}

fn reset_error() -> io::Error {
    io::Error::from(io::ErrorKind::ConnectionReset)
}

impl Network {
    /// An empty network.
    pub fn new(dice: Dice, weather: Weather, workers: usize, databases: usize) -> Self {
        Network {
            now_ns: START_NS,
            weather,
            dice,
            sequence: 0,
            agenda: BinaryHeap::new(),
            ends: Vec::new(),
            listeners: Vec::new(),
            connects: 0,
            databases_up: vec![true; databases],
            arrivals: Vec::new(),
            listed: vec![Vec::new(); workers],
            sockets: vec![0; workers],
            worker_wake_ns: vec![u64::MAX; workers],
            peer_wake_ns: Vec::new(),
            broken: BTreeSet::new(),
            just_broken: Vec::new(),
            fingerprint: 0xcbf2_9ce4_8422_2325,
            is_opaque: false,
            trace: false,
        }
    }

    /// Says what happens, when somebody listens.
    pub fn say(&self, text: impl FnOnce() -> String) {
        if self.trace {
            println!("{:>14.6} ms  {}", self.now_ns as f64 / 1e6, text());
        }
    }

    /// Puts something on the agenda.
    pub fn schedule(&mut self, at_ns: u64, item: Item) {
        self.sequence += 1;
        self.agenda.push(Reverse((at_ns.max(self.now_ns), self.sequence, item)));
    }

    /// Moves the clock to the next thing on the agenda and returns it. `None`: nothing will ever happen.
    pub fn happens_next(&mut self) -> Option<Item> {
        loop {
            let Reverse((at_ns, _, item)) = self.agenda.pop()?;
            let stale = match item {
                Item::Worker(worker) => {
                    let stale = self.worker_wake_ns[worker] != at_ns;
                    if !stale {
                        self.worker_wake_ns[worker] = u64::MAX;
                    }
                    stale
                }
                Item::Peer(peer) => {
                    let stale = self.peer_wake_ns[peer as usize] != at_ns;
                    if !stale {
                        self.peer_wake_ns[peer as usize] = u64::MAX;
                    }
                    stale
                }
                Item::Arrive(_) | Item::Connected(_) | Item::Knock(..) | Item::Room(_) | Item::Fault(_) => {
                    false
                }
            };
            if !stale {
                self.now_ns = at_ns;
                return Some(item);
            }
        }
    }

    /// A worker takes its turn at this time or before.
    pub fn wake_worker(&mut self, worker: usize, at_ns: u64) {
        let at_ns = at_ns.max(self.now_ns);
        if at_ns < self.worker_wake_ns[worker] {
            self.worker_wake_ns[worker] = at_ns;
            self.schedule(at_ns, Item::Worker(worker));
        }
    }

    /// A peer takes its turn at this time or before.
    pub fn wake_peer(&mut self, peer: u32, at_ns: u64) {
        let at_ns = at_ns.max(self.now_ns);
        if self.peer_wake_ns.len() <= peer as usize {
            self.peer_wake_ns.resize(peer as usize + 1, u64::MAX);
        }
        if at_ns < self.peer_wake_ns[peer as usize] {
            self.peer_wake_ns[peer as usize] = at_ns;
            self.schedule(at_ns, Item::Peer(peer));
        }
    }

    /// A delay as the weather has it.
    pub fn latency(&mut self) -> u64 {
        let (low, high) = self.weather.latency_ns;
        self.dice.spread(low, high)
    }

    fn mix(&mut self, bytes: &[u8]) {
        for word in bytes.chunks(8) {
            let mut padded = [0; 8];
            padded[..word.len()].copy_from_slice(word);
            let mixed = self.fingerprint ^ u64::from_le_bytes(padded);
            self.fingerprint = mixed.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        }
    }

    pub(crate) fn end(&mut self, id: EndId) -> &mut End {
        &mut self.ends[id.0 as usize]
    }

    fn set_owner(&mut self, id: EndId, owner: Owner) {
        let before = std::mem::replace(&mut self.end(id).owner, owner);
        if let Owner::Worker(worker) = before {
            self.sockets[worker] -= 1;
        }
        if let Owner::Worker(worker) = owner {
            self.sockets[worker] += 1;
        }
    }

    fn new_link(&mut self, first: Owner, stage: Stage, database: u32) -> EndId {
        let id = EndId(self.ends.len() as u32);
        if let Owner::Worker(worker) = first {
            self.sockets[worker] += 1;
        }
        for owner in [first, Owner::Nobody] {
            let (low, high) = self.weather.capacity;
            let capacity = self.dice.spread(low, high) as usize;
            self.ends.push(End {
                owner,
                token: None,
                ready: Ready::default(),
                listed: false,
                received: VecDeque::new(),
                fin: false,
                reset: false,
                reset_told: false,
                flight: VecDeque::new(),
                flight_bytes: 0,
                last_arrival_ns: 0,
                slow_by_ns: 0,
                capacity,
                grows_in: capacity * FILLS,
                open: true,
                write_shut: false,
                blocked: false,
                room_due: false,
                stage,
                database,
            });
        }
        id
    }

    // Workers' side.

    /// A listener of a worker.
    pub fn listen(&mut self, worker: usize) -> u32 {
        self.listeners.push(Listener {
            worker,
            backlog: VecDeque::new(),
            token: None,
            ready: false,
            open: true,
        });
        (self.listeners.len() - 1) as u32
    }

    /// A listener closes: who waits in it is reset.
    pub fn close_listener(&mut self, listener: u32) {
        let listener = &mut self.listeners[listener as usize];
        listener.open = false;
        for end in std::mem::take(&mut listener.backlog) {
            self.close(end, true);
        }
    }

    /// Starts to watch a listener.
    pub fn watch_listener(&mut self, listener: u32, token: Token) {
        let state = &mut self.listeners[listener as usize];
        state.token = Some(token);
        if !state.backlog.is_empty() {
            state.ready = true;
            let worker = state.worker;
            self.wake_worker_soon(worker);
        }
    }

    /// Takes a connection out of a listener's backlog.
    pub fn accept(&mut self, listener: u32) -> io::Result<EndId> {
        if self.listeners[listener as usize].backlog.is_empty() {
            return Err(would_block());
        }
        if self.dice.per_mille(self.weather.accept_exhausted) {
            // EMFILE. The connection stays in the backlog and no further edge tells of it.
            return Err(io::Error::from_raw_os_error(24));
        }
        let Some(end) = self.listeners[listener as usize].backlog.pop_front() else {
            return Err(would_block());
        };
        if self.dice.per_mille(self.weather.accept_aborted) {
            self.close(end, true);
            return Err(io::Error::from(io::ErrorKind::ConnectionAborted));
        }
        let worker = self.listeners[listener as usize].worker;
        self.set_owner(end, Owner::Worker(worker));
        Ok(end)
    }

    /// A worker connects to a database.
    pub fn connect(&mut self, worker: usize, database: u32) -> io::Result<EndId> {
        if self.dice.per_mille(self.weather.connect_error) {
            return Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
        }
        let end = self.new_link(Owner::Worker(worker), Stage::Pending, database);
        let nth = self.connects;
        self.connects += 1;
        if let Some((_, by_ns)) = self.weather.slow_connection.filter(|&(slow, _)| slow == nth) {
            self.end(end.other()).slow_by_ns = by_ns;
        }
        if self.dice.per_mille(self.weather.connect_lost) {
            return Ok(end);
        }
        let slow = self.dice.per_mille(self.weather.connect_slow);
        let delay_ns = if slow { self.dice.below(1_000_000_000) } else { self.latency() };
        self.schedule(self.now_ns + delay_ns, Item::Connected(end));
        Ok(end)
    }

    /// How a connect ended.
    pub fn connect_outcome(&mut self, id: EndId) -> io::Result<bool> {
        let end = self.end(id);
        match end.stage {
            Stage::Pending => Ok(false),
            Stage::Up if end.reset && !end.reset_told => {
                end.reset_told = true;
                Err(reset_error())
            }
            Stage::Up => Ok(true),
            Stage::Refused => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
        }
    }

    /// Watches an end for a worker: what is there already is an edge.
    pub fn register(&mut self, id: EndId, worker: usize, token: Token) {
        self.set_owner(id, Owner::Worker(worker));
        self.end(id).token = Some(token);
        let now = self.state_of(id);
        self.edge(id, now);
    }

    /// Takes an end from its worker.
    pub fn unwatch(&mut self, id: EndId) {
        for list in &mut self.listed {
            list.retain(|&listed| listed != id);
        }
        self.set_owner(id, Owner::Nobody);
        let end = self.end(id);
        end.listed = false;
        end.token = None;
        end.ready = Ready::default();
    }

    /// A chance of the weather.
    pub fn chance(&mut self, per_mille: u64) -> bool {
        self.dice.per_mille(per_mille)
    }

    fn state_of(&mut self, id: EndId) -> Ready {
        let can_write = self.room(id) > 0;
        let end = self.end(id);
        let gone = end.reset || end.stage == Stage::Refused;
        Ready {
            readable: !end.received.is_empty() || end.fin || gone,
            writable: (end.stage == Stage::Up && can_write && !end.blocked) || gone,
            read_closed: end.fin || gone,
            hangup: gone || (end.fin && end.write_shut),
        }
    }

    /// Collects what a worker has to know, as one wait does. At most `limit` events.
    pub fn take_events(&mut self, worker: usize, limit: usize, events: &mut Vec<weir_net::Event>) {
        for index in 0..self.listeners.len() {
            let listener = &mut self.listeners[index];
            if listener.worker == worker && std::mem::take(&mut listener.ready) {
                let Some(token) = listener.token else { continue };
                events.push(weir_net::Event {
                    token,
                    readable: true,
                    writable: false,
                    read_closed: false,
                    hangup: false,
                });
            }
        }
        let mut listed = std::mem::take(&mut self.listed[worker]);
        if listed.len() > 1 && !self.weather.still && self.dice.one_in(4) {
            let at = self.dice.below(listed.len() as u64) as usize;
            listed.rotate_left(at);
        }
        let rest = listed.split_off(listed.len().min(limit));
        for id in listed {
            let end = self.end(id);
            end.listed = false;
            let ready = std::mem::take(&mut end.ready);
            let (Owner::Worker(owner), Some(token)) = (end.owner, end.token) else { continue };
            if owner != worker {
                // It has moved: the new owner's list has it.
                continue;
            }
            self.say(|| format!("    [{}] worker {worker} is told {ready:?}", id.0 / 2));
            events.push(weir_net::Event {
                token,
                readable: ready.readable,
                writable: ready.writable,
                read_closed: ready.read_closed,
                hangup: ready.hangup,
            });
        }
        self.listed[worker] = rest;
        if !self.listed[worker].is_empty() {
            self.wake_worker(worker, self.now_ns);
        }
    }

    fn wake_worker_soon(&mut self, worker: usize) {
        let stalls = self.dice.per_mille(self.weather.stall);
        let longest_ns = if self.weather.still { 0 } else { 20_000 };
        let delay_ns = if stalls { self.dice.below(20_000_000) } else { self.dice.below(longest_ns) };
        self.wake_worker(worker, self.now_ns + delay_ns);
    }

    fn wake_peer_soon(&mut self, peer: u32) {
        let delay_ns = self.dice.below(if self.weather.still { 0 } else { 20_000 });
        self.wake_peer(peer, self.now_ns + delay_ns);
    }

    /// Something changed on an end: its owner will be told.
    fn edge(&mut self, id: EndId, what: Ready) {
        let end = self.end(id);
        match end.owner {
            Owner::Peer(peer) => self.wake_peer_soon(peer),
            Owner::Worker(worker) if end.token.is_some() => {
                end.ready.readable |= what.readable;
                end.ready.writable |= what.writable;
                end.ready.read_closed |= what.read_closed;
                end.ready.hangup |= what.hangup;
                let ready = end.ready;
                if !(ready.readable || ready.writable || ready.read_closed || ready.hangup) {
                    return;
                }
                if !end.listed {
                    end.listed = true;
                    self.listed[worker].push(id);
                }
                self.wake_worker_soon(worker);
            }
            Owner::Worker(_) | Owner::Nobody => {}
        }
    }

    // Both sides.

    /// Bytes that can be sent from this end now.
    fn room(&mut self, id: EndId) -> usize {
        let to = self.end(id.other());
        to.capacity.saturating_sub(to.received.len() + to.flight_bytes)
    }

    /// Writes what there is room for.
    pub fn send(&mut self, id: EndId, bytes: &[u8]) -> io::Result<usize> {
        let end = self.end(id);
        assert!(end.open, "a send on a closed socket");
        if end.stage == Stage::Pending {
            end.blocked = true;
            return Err(would_block());
        }
        if end.reset || end.stage == Stage::Refused {
            end.reset_told = true;
            return Err(reset_error());
        }
        if end.write_shut {
            return Err(io::Error::from(io::ErrorKind::BrokenPipe));
        }
        if self.dice.per_mille(self.weather.reset) {
            self.broken.insert(id.0 / 2);
            self.just_broken.push(id);
            self.say(|| format!("weather: connection {} breaks", id.0 / 2));
            self.break_link(id);
            return Ok(bytes.len());
        }
        let room = self.room(id);
        let mut n = room.min(bytes.len());
        if n == 0 {
            self.end(id).blocked = true;
            return Err(would_block());
        }
        if n > 1 && self.dice.per_mille(self.weather.short_write) {
            n = self.dice.between(1, n as u64) as usize;
        }
        if n < bytes.len() {
            self.end(id).blocked = true;
            if n < room {
                self.tell_of_room(id);
            }
        }
        self.mix(&self.now_ns.to_le_bytes());
        if self.is_opaque {
            self.mix(&n.to_le_bytes());
        } else {
            self.mix(&bytes[..n]);
        }
        self.say(|| format!("{} {}", self.arrow(id), shown(&bytes[..n])));
        self.launch(id.other(), &bytes[..n]);
        Ok(n)
    }

    /// Which connection, and from whom to whom.
    fn arrow(&self, id: EndId) -> String {
        let name = |id: EndId| match self.ends[id.0 as usize].owner {
            Owner::Worker(worker) => format!("worker {worker}"),
            Owner::Peer(peer) => format!("actor {peer}"),
            Owner::Nobody => "nobody".to_owned(),
        };
        format!("    [{}] {} -> {}:", id.0 / 2, name(id), name(id.other()))
    }

    /// Puts bytes on their way to an end, in pieces as the weather has it.
    fn launch(&mut self, to: EndId, mut bytes: &[u8]) {
        let mut cuts = 0;
        while !bytes.is_empty() {
            let n = match cuts < CUTS && self.dice.per_mille(self.weather.split) {
                true => self.dice.spread(1, bytes.len() as u64) as usize,
                false => bytes.len(),
            };
            cuts += 1;
            let (piece, rest) = bytes.split_at(n);
            self.end(to).flight_bytes += n;
            self.launch_packet(to, Packet::Data(piece.to_vec()));
            bytes = rest;
        }
    }

    fn launch_packet(&mut self, to: EndId, packet: Packet) {
        let latency_ns = self.latency() + self.end(to).slow_by_ns;
        let now_ns = self.now_ns;
        let end = self.end(to);
        let at_ns = (now_ns + latency_ns).max(end.last_arrival_ns);
        // It may arrive together with the one before it: that is one event.
        let together = at_ns == end.last_arrival_ns && !end.flight.is_empty();
        end.last_arrival_ns = at_ns;
        end.flight.push_back((at_ns, packet));
        if !together {
            self.schedule(at_ns, Item::Arrive(to));
        }
    }

    /// Reads what is there.
    pub fn recv(&mut self, id: EndId, buf: &mut [u8]) -> io::Result<usize> {
        assert!(!buf.is_empty(), "a read into an empty buffer looks like the end of the stream");
        let end = self.end(id);
        assert!(end.open, "a read from a closed socket");
        if !end.received.is_empty() {
            let n = end.received.len().min(buf.len());
            let (front, back) = end.received.as_slices();
            let of_front = n.min(front.len());
            buf[..of_front].copy_from_slice(&front[..of_front]);
            buf[of_front..n].copy_from_slice(&back[..n - of_front]);
            end.received.drain(..n);
            self.grow(id, n);
            self.room_made(id);
            self.say(|| {
                format!("    [{}] {n} bytes are read by {:?}", id.0 / 2, self.ends[id.0 as usize].owner)
            });
            return Ok(n);
        }
        if end.reset || end.stage == Stage::Refused {
            if end.reset_told {
                return Ok(0);
            }
            end.reset_told = true;
            return Err(reset_error());
        }
        if end.fin { Ok(0) } else { Err(would_block()) }
    }

    fn grow(&mut self, reader: EndId, taken: usize) {
        let end = self.end(reader);
        end.grows_in = end.grows_in.saturating_sub(taken);
        if end.grows_in == 0 && end.capacity < 1 << 20 {
            end.capacity *= 2;
            end.grows_in = end.capacity * FILLS;
        }
    }

    /// The reader of a pipe has taken bytes: a writer that met a full one is told when a third is free.
    fn room_made(&mut self, reader: EndId) {
        let writer = reader.other();
        let capacity = self.end(reader).capacity;
        if self.end(writer).blocked && self.room(writer) * 3 >= capacity {
            self.tell_of_room(writer);
        }
    }

    fn tell_of_room(&mut self, writer: EndId) {
        if !std::mem::replace(&mut self.end(writer).room_due, true) {
            let delay_ns = self.latency();
            self.schedule(self.now_ns + delay_ns, Item::Room(writer));
        }
    }

    /// Ends this direction.
    pub fn shutdown_write(&mut self, id: EndId) {
        let end = self.end(id);
        if end.write_shut || end.reset || !end.open {
            return;
        }
        end.write_shut = true;
        self.launch_packet(id.other(), Packet::Fin);
    }

    /// Closes an end. Unread bytes make it a reset, as in TCP.
    pub fn close(&mut self, id: EndId, abort: bool) {
        if !self.end(id).open {
            return;
        }
        self.set_owner(id, Owner::Nobody);
        let end = self.end(id);
        let unread = !end.received.is_empty();
        let said = end.write_shut;
        let was_reset = end.reset;
        let pending = end.stage == Stage::Pending;
        end.open = false;
        end.write_shut = true;
        // Closed ends stay in the list: they keep no memory of their own.
        end.received = VecDeque::new();
        end.token = None;
        end.ready = Ready::default();
        if pending || was_reset {
            return;
        }
        if abort || unread {
            if self.dice.one_in(2) {
                self.drop_flight(id.other());
            }
            self.launch_packet(id.other(), Packet::Reset);
        } else if !said {
            self.launch_packet(id.other(), Packet::Fin);
        }
    }

    fn drop_flight(&mut self, to: EndId) {
        let end = self.end(to);
        end.flight.clear();
        end.flight_bytes = 0;
    }

    /// Breaks a connection in both directions.
    pub fn break_link(&mut self, id: EndId) {
        for end in [id, id.other()] {
            if self.dice.one_in(2) {
                self.drop_flight(end);
            }
            self.launch_packet(end, Packet::Reset);
        }
    }

    // The agenda's items.

    /// Handles an item of the network's own.
    pub fn happen(&mut self, item: Item) {
        match item {
            Item::Arrive(end) => self.arrive(end),
            Item::Connected(end) => self.connected(end),
            Item::Knock(listener, end) => self.knock(listener, end),
            Item::Room(end) => {
                self.end(end).room_due = false;
                let blocked = std::mem::replace(&mut self.end(end).blocked, false);
                if blocked && self.end(end).open {
                    self.edge(end, Ready { writable: true, ..Ready::default() });
                }
            }
            Item::Worker(_) | Item::Peer(_) | Item::Fault(_) => {}
        }
    }

    fn arrive(&mut self, id: EndId) {
        loop {
            let now_ns = self.now_ns;
            let end = self.end(id);
            match end.flight.front() {
                Some(&(at_ns, _)) if at_ns <= now_ns => {}
                _ => return,
            }
            let Some((_, packet)) = end.flight.pop_front() else { return };
            if let Packet::Data(bytes) = &packet {
                end.flight_bytes -= bytes.len();
            }
            if !end.open {
                // Bytes for a closed socket are answered with a reset.
                if matches!(packet, Packet::Data(_)) && self.end(id.other()).open {
                    self.launch_packet(id.other(), Packet::Reset);
                }
                continue;
            }
            if end.reset {
                continue;
            }
            let can_write = self.room(id) > 0 && !self.end(id).blocked;
            let end = self.end(id);
            let mut edge = Ready { readable: true, writable: can_write, ..Ready::default() };
            match packet {
                Packet::Data(bytes) => end.received.extend(bytes),
                Packet::Fin => {
                    end.fin = true;
                    edge.read_closed = true;
                    edge.hangup = end.write_shut;
                }
                Packet::Reset => {
                    end.reset = true;
                    edge = Ready { readable: true, writable: true, read_closed: true, hangup: true };
                }
            }
            self.edge(id, edge);
        }
    }

    fn connected(&mut self, id: EndId) {
        if !self.end(id).open {
            return;
        }
        let database = self.end(id).database;
        let refused = self.dice.per_mille(self.weather.connect_refused);
        if !self.databases_up[database as usize] || refused {
            self.end(id).stage = Stage::Refused;
            self.edge(id, Ready { readable: true, writable: true, read_closed: true, hangup: true });
            return;
        }
        self.end(id).stage = Stage::Up;
        self.end(id).blocked = false;
        self.end(id.other()).stage = Stage::Up;
        self.arrivals.push((database, id.other()));
        self.edge(id, Ready { writable: true, ..Ready::default() });
    }

    fn knock(&mut self, listener: u32, id: EndId) {
        let state = &mut self.listeners[listener as usize];
        if !state.open {
            self.close(id, true);
            return;
        }
        state.backlog.push_back(id);
        state.ready = state.token.is_some();
        let worker = state.worker;
        self.wake_worker_soon(worker);
    }

    /// An event that says nothing, on some end of a worker.
    pub fn spurious(&mut self, worker: usize) {
        if self.ends.is_empty() || !self.dice.per_mille(self.weather.spurious) {
            return;
        }
        let id = EndId(self.dice.below(self.ends.len() as u64) as u32);
        if self.end(id).owner == Owner::Worker(worker) {
            let writable = self.room(id) > 0;
            self.edge(id, Ready { readable: true, writable, ..Ready::default() });
        }
    }

    // The peers' side.

    /// A peer connects to a worker's listener.
    pub fn peer_connect(&mut self, peer: u32, listener: u32) -> EndId {
        let end = self.new_link(Owner::Peer(peer), Stage::Up, 0);
        let delay_ns = self.latency();
        self.schedule(self.now_ns + delay_ns, Item::Knock(listener, end.other()));
        end
    }

    /// A peer's connection holds so many bytes that it has not read, and never more.
    pub fn narrow(&mut self, id: EndId, capacity: usize) {
        let end = self.end(id);
        (end.capacity, end.grows_in) = (capacity, usize::MAX);
    }

    /// A database's session takes a connection that arrived.
    pub fn peer_takes(&mut self, peer: u32, end: EndId) {
        self.set_owner(end, Owner::Peer(peer));
        self.wake_peer_soon(peer);
    }

    /// A peer reads at most `max` bytes.
    pub fn peer_read(&mut self, id: EndId, max: usize) -> Read {
        if !self.end(id).open {
            return Read::Eof;
        }
        let n = self.end(id).received.len().min(max);
        if n == 0 {
            let end = self.end(id);
            return match (end.received.is_empty(), end.reset, end.fin) {
                (false, _, _) | (true, false, false) => Read::Nothing,
                (true, true, _) => Read::Reset,
                (true, false, true) => Read::Eof,
            };
        }
        let mut bytes = vec![0; n];
        match self.recv(id, &mut bytes) {
            Ok(n) => {
                bytes.truncate(n);
                Read::Bytes(bytes)
            }
            Err(_) => Read::Nothing,
        }
    }

    /// A peer writes; `None` when the connection is broken.
    pub fn peer_write(&mut self, id: EndId, bytes: &[u8]) -> Option<usize> {
        if !self.end(id).open {
            return None;
        }
        match self.send(id, bytes) {
            Ok(n) => Some(n),
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => Some(0),
            Err(_) => None,
        }
    }

    /// Bytes are on their way to this end, or have come and were not read.
    pub fn is_spoken_to(&mut self, id: EndId) -> bool {
        let end = self.end(id);
        end.flight_bytes > 0 || !end.received.is_empty()
    }

    /// The weather has broken this connection.
    pub fn is_broken(&self, id: EndId) -> bool {
        self.broken.contains(&(id.0 / 2))
    }

    /// Connections that a worker has open.
    pub fn sockets_of(&self, worker: usize) -> usize {
        self.sockets[worker]
    }
}
