//! The simulated kernel as workers see it: an implementation of `weir_net`'s interface.
//!
//! Owns: nothing but a reference. Must not know: what the bytes mean.

use crate::between;
use crate::network::{EndId, Network};
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use weir_net::{Event, Kept, Net, Peer, Target, Token};

/// The network, shared by all that takes part in a run. One thread runs it all: the lock is never waited for.
#[derive(Clone)]
pub struct Shared(pub Arc<Mutex<Network>>);

impl Shared {
    /// The network.
    pub fn lock(&self) -> MutexGuard<'_, Network> {
        self.0.try_lock().unwrap_or_else(|e| match e {
            std::sync::TryLockError::Poisoned(e) => PoisonError::into_inner(e),
            std::sync::TryLockError::WouldBlock => panic!("the network is in use: it would wait for itself"),
        })
    }
}

/// The first port of the databases: database n is at 10.0.0.1, this port plus n.
const FIRST_PORT: u16 = 5_000;

/// Where a database is.
pub fn address_of(database: u32) -> Target {
    Target::Tcp(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), FIRST_PORT + database as u16))
}

/// One worker's kernel.
pub struct SimNet {
    network: Shared,
    worker: usize,
    now_ns: u64,
    /// Events one wait returns at most.
    pub events_per_wait: usize,
}

/// An open connection.
pub struct Socket {
    end: EndId,
    network: Shared,
    closed: bool,
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.closed {
            self.network.lock().close(self.end, false);
        }
    }
}

/// A listener of a worker.
pub struct Listener {
    number: u32,
    network: Shared,
}

impl Listener {
    /// A new one.
    pub fn new(network: &Shared, worker: usize) -> Self {
        let number = network.lock().listen(worker);
        Listener { number, network: network.clone() }
    }

    /// Its number in the network.
    pub fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.network.lock().close_listener(self.number);
    }
}

/// A connection on its way between workers.
pub struct Parcel {
    socket: Socket,
    to: usize,
}

impl SimNet {
    /// The kernel of a worker.
    pub fn new(network: &Shared, worker: usize) -> Self {
        let now_ns = network.lock().now_ns;
        SimNet { network: network.clone(), worker, now_ns, events_per_wait: 1_024 }
    }
}

impl Net for SimNet {
    type Socket = Socket;
    type Listener = Listener;
    type Parcel = Parcel;

    fn now_ns(&self) -> u64 {
        if self.worker == 0 {
            between::look();
        }
        self.now_ns
    }

    fn wait(&mut self, events: &mut Vec<Event>, _timeout: Option<Duration>) -> io::Result<()> {
        events.clear();
        let mut network = self.network.lock();
        self.now_ns = network.now_ns;
        network.spurious(self.worker);
        network.take_events(self.worker, self.events_per_wait, events);
        Ok(())
    }

    fn watch_listener(&mut self, listener: &Listener, token: Token) -> io::Result<()> {
        self.network.lock().watch_listener(listener.number, token);
        Ok(())
    }

    fn accept(&mut self, listener: &Listener) -> io::Result<(Socket, Peer)> {
        let end = self.network.lock().accept(listener.number)?;
        let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 1, 1)), (end.0 / 2 % 60_000) as u16);
        Ok((Socket { end, network: self.network.clone(), closed: false }, Peer::Tcp(address)))
    }

    fn connect(&mut self, target: &Target) -> io::Result<Socket> {
        let Target::Tcp(address) = target else {
            return Err(io::Error::from(io::ErrorKind::NotFound));
        };
        let database = u32::from(address.port() - FIRST_PORT);
        let end = self.network.lock().connect(self.worker, database)?;
        Ok(Socket { end, network: self.network.clone(), closed: false })
    }

    fn connect_outcome(&mut self, socket: &Socket) -> io::Result<bool> {
        self.network.lock().connect_outcome(socket.end)
    }

    fn register(&mut self, socket: &Socket, token: Token) -> io::Result<()> {
        self.network.lock().register(socket.end, self.worker, token);
        Ok(())
    }

    fn recv(&mut self, socket: &Socket, buf: &mut [u8]) -> io::Result<usize> {
        self.network.lock().recv(socket.end, buf)
    }

    fn send(&mut self, socket: &Socket, bytes: &[u8]) -> io::Result<usize> {
        self.network.lock().send(socket.end, bytes)
    }

    fn shutdown_write(&mut self, socket: &Socket) -> io::Result<()> {
        self.network.lock().shutdown_write(socket.end);
        Ok(())
    }

    fn close(&mut self, mut socket: Socket, abort: bool) {
        socket.closed = true;
        self.network.lock().close(socket.end, abort);
    }

    fn pack(&mut self, socket: Socket, to: usize) -> Result<Parcel, Kept<Socket>> {
        let mut network = self.network.lock();
        let refused = network.weather.pack_refused;
        if network.chance(refused) {
            drop(network);
            return Err(Kept { socket, error: io::Error::from(io::ErrorKind::WouldBlock) });
        }
        network.unwatch(socket.end);
        drop(network);
        Ok(Parcel { socket, to })
    }

    fn unpack(&mut self, parcel: Parcel, token: Token) -> io::Result<Socket> {
        assert_eq!(parcel.to, self.worker, "a parcel reached another worker than the one it was packed for");
        let mut network = self.network.lock();
        let lost = network.weather.unpack_lost;
        if network.chance(lost) {
            drop(network);
            return Err(io::Error::from_raw_os_error(24));
        }
        network.register(parcel.socket.end, self.worker, token);
        drop(network);
        Ok(parcel.socket)
    }
}
